"""mobile-env as a world, against the real package."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import thirdparty
from mobile_env.core.arrival import Arrival
from mobile_env.handlers.central import MComCentralHandler
from thirdparty import mean_reward, picks

import selectmdp as sm
from selectmdp.check import check_select_env
from selectmdp.interop.mobile import Mobile
from selectmdp.spec import SelectError

pytestmark = pytest.mark.thirdparty


@pytest.mark.parametrize("scenario", ["small", "medium"])
def test_the_checks_pass(scenario: str) -> None:
    report = check_select_env(lambda: Mobile(scenario))
    assert report.passed, str(report)


def test_users_are_items_and_stations_commands() -> None:
    spec = Mobile("medium", num_select=4).spec
    assert (spec.num_items, spec.num_commands, spec.num_select) == (15, 7, 4)
    assert spec.allow_pass
    assert Mobile("small").time_limit == 100
    with pytest.raises(SelectError, match="scenario='tiny': there are small, medium, large"):
        Mobile("tiny")


@pytest.mark.parametrize("scenario", ["small", "medium"])
def test_an_episode_earns_what_theirs_earns_by_the_same_orders(scenario: str) -> None:
    ours = Mobile(scenario, num_select=3)
    config = {"seed": 7, "handler": MComCentralHandler}
    theirs: Any = gymnasium.make(f"mobile-{scenario}-central-v0", config=config).unwrapped
    theirs.reset()
    seen, rng = ours.reset(7), np.random.default_rng(0)
    for _ in range(40):
        users = np.flatnonzero(seen["legal"].any(axis=1))
        users = rng.permutation(users)[:3]
        pairs = [
            (int(user), int(rng.choice(np.flatnonzero(seen["legal"][user])))) for user in users
        ]
        orders = [0] * ours.spec.num_items
        for user, station in pairs:
            orders[user] = station + 1
        shown, expected, *_ = theirs.step(orders)
        seen, reward, terminated, truncated = ours.step(picks(*pairs))
        assert reward == expected
        assert not terminated
        assert not truncated
        by_user = shown.reshape(ours.spec.num_items, -1)  # connections, channels, utility
        stations = ours.spec.num_commands
        in_range = seen["legal"]
        connected = by_user[:, :stations] * in_range  # theirs releases the others a step later
        np.testing.assert_array_equal(seen["items"][:, :stations], connected)
        np.testing.assert_allclose(seen["items"][:, -1], by_user[:, -1], rtol=1e-6)


def test_a_connection_is_seen_by_all_and_the_second_order_ends_it() -> None:
    world = Mobile("small")
    seen = world.reset(0)
    user, station = (int(part) for part in np.argwhere(seen["legal"])[0])
    assert not seen["items"][:, :3].any()
    assert (seen["items"][:, -1] == -1).all()  # nobody is served
    seen, *_ = world.step(picks((user, station)))
    assert seen["items"][user, station] == 1
    np.testing.assert_allclose(seen["items"][:, 9 + station], 0.2)  # one of five users
    assert seen["items"][user, -1] > -1
    seen, *_ = world.step(picks((user, station)))
    assert seen["items"][user, station] == 0


@pytest.mark.parametrize("scenario", ["small", "medium"])
def test_a_user_shows_what_an_order_would_change_for_all(scenario: str) -> None:
    world = Mobile(scenario, num_select=3)
    seen, rng, met = world.reset(5), np.random.default_rng(0), set[bool]()
    stations = world.spec.num_commands
    for _ in range(15):
        gains = seen["items"][:, 4 * stations : 5 * stations]
        legal = np.argwhere(seen["legal"])
        for user, station in legal:  # the slow way: the mean utility after each order alone
            by_itself = world.partial_reward(picks((int(user), int(station))))[0]
            now = world._mean_utility(world._connected)
            expected = (by_itself - now) * seen["present"].sum()
            assert gains[user, station] == pytest.approx(expected, abs=1e-9)
            met.add(bool(seen["items"][user, station]))
        assert (gains[~seen["legal"]] == 0).all()
        users = rng.permutation(np.unique(legal[:, 0]))[:3]
        order = [(int(u), int(rng.choice(np.flatnonzero(seen["legal"][u])))) for u in users]
        seen, *_ = world.step(picks(*order))
    assert met == {False, True}  # orders that connect, and that disconnect


def test_a_shared_station_is_worth_less_than_one_alone() -> None:
    world = Mobile("small")
    seen = world.reset(0)
    station = int(seen["legal"].sum(axis=0).argmax())
    first, second = np.flatnonzero(seen["legal"][:, station])[:2]
    np.testing.assert_array_equal(seen["items"][:, 3:6], seen["items"][:, 6:9])  # no load yet
    seen, *_ = world.step(picks((int(first), station)))
    assert seen["items"][second, 6 + station] < seen["items"][second, 3 + station]


class Coming(Arrival):
    """User i comes at step 2 i; user 0 goes at step 5."""

    def arrival(self, ue: Any) -> int:
        return 2 * int(ue.ue_id)

    def departure(self, ue: Any) -> int:
        return 5 if ue.ue_id == 0 else self.ep_time


def test_who_is_away_is_not_present_and_not_legal() -> None:
    world = Mobile("small", config={"arrival": Coming})
    seen = world.reset(3)
    present = [seen["present"].tolist()]
    for _ in range(9):
        away = ~seen["present"]
        assert not seen["legal"][away].any()
        assert not seen["items"][away].any()
        seen, *_ = world.step(picks())
        present.append(seen["present"].tolist())
    assert present[0] == [True, False, False, False, False]
    assert present[3] == [True, True, False, False, False]
    assert present[9] == [False, True, True, True, True]


def test_the_checks_pass_where_users_come_and_go() -> None:
    report = check_select_env(lambda: Mobile("small", config={"arrival": Coming}))
    assert report.passed, str(report)


def test_the_heuristic_is_far_above_random() -> None:
    world = Mobile("small")
    assert mean_reward(world, "greedy", 5) > mean_reward(world, "random", 5) + 0.15


def test_a_plan_of_one_step_is_above_the_heuristic_and_takes_the_best_pairs() -> None:
    world = Mobile("small", heuristic="planned")
    assert mean_reward(world, "greedy", 5) > mean_reward(Mobile("small"), "greedy", 5) + 0.03
    seen = world.reset(0)
    users, stations = world.greedy()
    gains = seen["items"][:, 12:15]
    assert gains[users[0], stations[0]] == gains.max()
    first = (users[0], stations[0])
    pairs = [(int(u), int(b)) for u, b in np.argwhere(seen["legal"]) if u != users[0]]
    best = max(pairs, key=lambda pair: world.partial_reward(picks(first, pair))[1])
    assert (users[1], stations[1]) == best
    with pytest.raises(SelectError, match="heuristic='best': there are waiting, planned"):
        Mobile("small", heuristic="best")


def test_it_plays_in_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(thirdparty.ROOT)
    told = sm.evaluate("examples.mobile:small", "greedy", episodes=2, steps=5, workers=1)
    assert told.unit == "mean utility"
    assert told.episodes == 2


@pytest.mark.slow
def test_a_minute_of_training_is_far_above_random(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(thirdparty.ROOT)
    result = sm.train(
        "examples.mobile:small",
        steps=20_480,
        evaluations=1,
        episodes=10,
        out=tmp_path / "run",
    )
    slow = {"num_envs": 32, "chunk": 1024}
    assert result.to_json()["settings"] == {**slow, "discount": 0.5, "epsilon_end": 0.05}
    random = result.references["random"].mean_reward  # about −0.40; −0.09 was learned
    assert result.evaluation.mean_reward > random + 0.15
