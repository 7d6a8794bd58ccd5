"""Circles whose number each episode draws: padding changes nothing, rules go by its N."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st

import selectmdp as sm
from selectmdp import cli, tasks
from selectmdp.check import check_select_env
from selectmdp.envs.circle import CircleDraws, CircleState
from selectmdp.spec import SelectError
from selectmdp.types import Action

haste = tiny.haste
RANGE = sm.Circle(num_items=(4, 9), num_context=2, num_select=3, time_limit=40)
seeds = st.integers(0, 2**31 - 1)
reset = jax.jit(RANGE.reset)


def plain(count: int) -> sm.Circle:
    return sm.Circle(num_items=count, num_context=2, num_select=3, time_limit=40)


@pytest.mark.slow
@settings(max_examples=10)
@given(seed=seeds)
def test_a_step_is_that_of_a_world_of_the_episodes_own_number_of_circles(seed: int) -> None:
    key, step_key = jax.random.split(jax.random.key(seed))
    state = reset(key)
    count = int(state.present.sum())
    small = plain(count)
    rng = np.random.default_rng(seed)
    action = Action(
        jnp.asarray(rng.permutation(count)[:3], jnp.int32), jnp.asarray(rng.integers(0, 5, 3))
    )
    chance = RANGE.draws(step_key)
    few = CircleDraws(*(part[:count] if part.shape[0] == 9 else part for part in chance))
    shown = CircleState(state.items[:count], state.context)
    following, reward = RANGE.advance(state, action, chance)
    expected, same = small.advance(shown, action, few)
    np.testing.assert_allclose(following.items[:count], expected.items, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(following.context, expected.context, rtol=1e-6, atol=1e-7)
    assert float(reward) == pytest.approx(float(same), abs=1e-6)
    assert np.array_equal(following.present, state.present)
    greedy = RANGE.greedy(step_key, state)
    assert np.array_equal(greedy.items, small.greedy(step_key, shown).items)


def test_every_number_in_the_range_is_drawn_as_often() -> None:
    states = jax.jit(jax.vmap(RANGE.reset))(jax.random.split(jax.random.key(0), 3000))
    counts = np.bincount(np.asarray(states.present.sum(axis=1)), minlength=10)
    assert counts[:4].sum() == 0
    np.testing.assert_allclose(counts[4:] / 3000, 1 / 6, atol=0.03)


def test_padding_is_seen_as_zeros_that_nobody_can_pick() -> None:
    state = reset(jax.random.key(3))
    seen, count = RANGE.observe(state), int(state.present.sum())
    assert 4 <= count < 9
    assert seen.items.shape == (9, 3)
    assert not np.asarray(seen.items[count:]).any()
    assert np.array_equal(seen.legal, np.broadcast_to(np.asarray(seen.present)[:, None], (9, 5)))
    discs = [
        shape for shape in RANGE.draw(state).shapes if getattr(shape, "item", None) is not None
    ]
    assert len(discs) == count


def test_one_number_is_a_world_as_it_was() -> None:
    single, again = sm.Circle(num_items=9, num_select=3), sm.Circle(num_items=(9, 9), num_select=3)
    assert again == single
    assert single.item_range is None
    state = single.reset(jax.random.key(0))
    assert state.present is None
    assert len(jax.tree.leaves(state)) == 2


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((2, 9), "at least num_select=3"),
        ((9, 4), "not less than the first"),
        ((4, 9, 12), "give one number, or two"),
        ((4, 9.5), "must be a whole number"),
    ],
)
def test_a_range_that_cannot_be_is_refused(given: object, says: str) -> None:
    with pytest.raises(SelectError, match=says):
        sm.Circle(num_items=given, num_select=3)  # type: ignore[arg-type]


def test_it_passes_the_checks() -> None:
    report = check_select_env(RANGE)
    assert report.passed, str(report)


@pytest.mark.slow
def test_a_policy_of_a_range_is_trained_saved_and_evaluated_at_any_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    words = "train circle --num-items 4:9 --num-select 2 --time-limit 20 --steps 128 --episodes 2"
    changes = ["channels=8", "num_envs=8", "rollout=4", "minibatch=32", "chunk=64"]
    settings = [part for each in changes for part in ("--set", each)]
    cli.main([*words.split(), "--evaluations", "1", "--out", str(out), *settings])
    assert "4:9, 0, 2" in capsys.readouterr().out
    policy = sm.load(out)
    assert policy.about["config"]["options"]["num_items"] in ([4, 9], (4, 9))
    for shown in ("3", "30", "20:25"):
        told = f"evaluate {out} --num-items {shown} --episodes 2 --json".split()
        cli.main(told)
        assert '"mean_reward"' in capsys.readouterr().out
    cli.main(["train", "--resume", "--out", str(out), "--num-items", "4:9"])
    with pytest.raises(SystemExit):
        cli.main(["train", "--resume", "--out", str(out), "--num-items", "4:8"])


def test_a_range_is_told_as_it_is_typed() -> None:
    assert tasks.describe(RANGE)["num_items"] == (4, 9)
    assert tasks.told_items((4, 9)) == "4:9"
    assert tasks.told_items(50) == "50"
