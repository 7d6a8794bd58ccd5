"""RDDL domains as worlds, against pyRDDLGym and the instances of rddlrepository."""

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyRDDLGym
import pytest
import thirdparty
from thirdparty import mean_reward, picks

import selectmdp as sm
from selectmdp.check import check_select_env
from selectmdp.interop.rddl import Rddl
from selectmdp.spec import SelectError

# ply leaves a file open where it makes its tables for the first time
pytestmark = [pytest.mark.thirdparty, pytest.mark.filterwarnings("ignore::ResourceWarning")]


SYSADMIN = "SysAdmin_MDP_ippc2011"
DOMAINS = ("sysadmin", "wildfire", "tamarisk", "advising")

TWINS = """
non-fluents nf_twins {
  domain = sysadmin_mdp;
  objects { computer : {a, b, c}; };
  non-fluents { CONNECTED(a, c); CONNECTED(b, c); };
}
instance twins {
  domain = sysadmin_mdp;
  non-fluents = nf_twins;
  init-state { running(a); running(b); };
  max-nondef-actions = 2;
  horizon = 5;
  discount = 1.0;
}
"""


def example(name: str, **options: Any) -> Rddl:
    if str(thirdparty.ROOT) not in sys.path:
        sys.path.insert(0, str(thirdparty.ROOT))
    return getattr(importlib.import_module("examples.rddl"), name)(**options)


def twins(folder: Path) -> Rddl:
    """Three computers, two of which nothing tells apart, from files."""
    manager = importlib.import_module("rddlrepository.core.manager").RDDLRepoManager()
    (folder / "twins.rddl").write_text(TWINS)
    return Rddl(manager.get_problem(SYSADMIN).get_domain(), str(folder / "twins.rddl"))


@pytest.mark.parametrize("name", DOMAINS)
def test_the_checks_pass(name: str) -> None:
    report = check_select_env(lambda: example(name))
    assert report.passed, str(report)


@pytest.mark.parametrize(
    ("name", "instance", "items", "commands", "picks"),
    [
        ("sysadmin", 1, 10, ("reboot",), 1),
        ("sysadmin", 10, 50, ("reboot",), 1),
        ("wildfire", 1, 9, ("put-out", "cut-out"), 1),
        ("tamarisk", 1, 4, ("eradicate", "restore"), 1),
        ("advising", 1, 10, ("takeCourse",), 1),
        ("advising", 10, 30, ("takeCourse",), 2),
    ],
)
def test_object_tuples_are_items_and_action_fluents_commands(
    name: str, instance: int, items: int, commands: tuple[str, ...], picks: int
) -> None:
    world = example(name, instance=instance)
    assert (world.spec.num_items, world.spec.num_select) == (items, picks)
    assert world.command_names == commands
    assert world.spec.allow_pass
    assert world.time_limit == 40


def test_an_item_is_named_by_its_objects() -> None:
    assert example("wildfire").items[:4] == (("x1", "y1"), ("x1", "y2"), ("x1", "y3"), ("x2", "y1"))


@pytest.mark.parametrize(
    ("name", "domain", "instance"),
    [
        ("sysadmin", SYSADMIN, "1"),
        ("wildfire", "Wildfire_MDP_ippc2014", "2"),
        ("tamarisk", "Tamarisk_MDP_ippc2014", "1"),
        ("advising", "AcademicAdvising_MDP_ippc2014", "2"),
    ],
)
def test_picks_do_what_the_grounded_actions_of_theirs_do(
    name: str, domain: str, instance: str
) -> None:
    ours, theirs = example(name, instance=instance), pyRDDLGym.make(domain, instance)
    ours.reset(5)
    theirs.reset(seed=5)
    rng, spec = np.random.default_rng(0), ours.spec
    for _ in range(30):
        items = rng.permutation(spec.num_items)[: rng.integers(spec.num_select + 1)]
        pairs = [(int(item), int(rng.integers(spec.num_commands))) for item in items]
        grounded = {
            f"{ours.command_names[command]}___{'__'.join(ours.items[item])}": True
            for item, command in pairs
        }
        state, expected, *_ = theirs.step(grounded)
        _, reward, *_ = ours.step(picks(*pairs))
        assert reward == expected
        for fluent in theirs.model.state_fluents:
            shown = dict(theirs.model.ground_var_with_values(fluent, ours.values[fluent]))
            assert shown == {key: state[key] for key in shown}


def test_a_computer_shows_itself_and_its_neighbours(tmp_path: Path) -> None:
    world = twins(tmp_path)
    items = world.reset(0)["items"]
    shown = {name: items[:, place].tolist() for place, name in enumerate(world.feature_names)}
    assert shown["running"] == [1, 1, 0]
    assert shown["CONNECTED→ number"] == [1, 1, 0]
    assert shown["CONNECTED← number"] == [0, 0, 2]
    assert shown["CONNECTED← sum running"] == [0, 0, 2]
    assert shown["CONNECTED→ sum running"] == [0, 0, 0]
    assert shown["CONNECTED← mean running"] == [0, 0, 1]
    assert shown["CONNECTED→ mean CONNECTED← number"] == [2, 2, 0]


def test_what_nothing_tells_apart_shows_the_same(tmp_path: Path) -> None:
    a, b, c = twins(tmp_path).reset(0)["items"]
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()


def test_a_cell_counts_the_fires_around_it() -> None:
    world = example("wildfire", instance=5)
    seen = world.reset(0)
    for _ in range(10):
        seen, *_ = world.step(picks())
    burning = {
        objects for place, objects in enumerate(world.items) if world.values["burning"].flat[place]
    }
    assert burning
    model = world.env.model
    grounded = dict(model.ground_var_with_values("NEIGHBOR", world.values["NEIGHBOR"]))
    pairs = {
        tuple(name.split("___")[1].split("__")) for name, is_true in grounded.items() if is_true
    }
    forwards, backwards = (world.feature_names.index(f"NEIGHBOR{way} sum burning") for way in "→←")
    for place, cell in enumerate(world.items):
        assert seen["items"][place, forwards] == sum((*cell, *near) in pairs for near in burning)
        assert seen["items"][place, backwards] == sum((*near, *cell) in pairs for near in burning)


def test_a_cell_tells_a_burning_target_from_a_target_and_a_fire() -> None:
    world = example("wildfire", instance=2)
    cell = world.reset(0)["items"][world.items.index(("x3", "y2"))]
    shown = dict(zip(world.feature_names, cell.tolist(), strict=True))
    # Beside it: (x2, y2), a burning target; (x2, y3), which burns; (x3, y3), a target.
    assert shown["NEIGHBOR→ number"] == 3
    assert shown["NEIGHBOR→ sum TARGET"] == 2
    assert shown["NEIGHBOR→ sum burning"] == 2
    assert shown["NEIGHBOR→ sum TARGET and burning"] == 1
    assert shown["NEIGHBOR→ mean TARGET and burning"] == pytest.approx(1 / 3)
    assert shown["NEIGHBOR→ sum TARGET and burning and out-of-fuel"] == 0
    assert not any(
        "PRIOR" in name and " and " in name for name in example("advising").feature_names
    )


def test_a_reach_sees_the_plants_of_its_slots_and_of_the_next_reach() -> None:
    world = example("tamarisk")
    items = world.reset(0)["items"]
    shown = {name: items[:, place].tolist() for place, name in enumerate(world.feature_names)}
    assert shown["SLOT-AT-REACH← number"] == [2, 2, 2, 2]
    assert shown["SLOT-AT-REACH← sum tamarisk-at"] == [1, 0, 0, 0]
    assert shown["SLOT-AT-REACH← mean native-at"] == [0.5, 0.5, 0.5, 0]
    # r2 is downstream of r1
    assert shown["DOWNSTREAM-REACH→ sum SLOT-AT-REACH← sum tamarisk-at"] == [0, 1, 0, 0]


def test_instances_of_a_domain_show_the_same_columns() -> None:
    names = {example("advising", instance=instance).feature_names for instance in (1, 2, 10)}
    assert len(names) == 1


def test_a_tuple_takes_only_the_fluents_of_its_parameters() -> None:
    world = Rddl("TriangleTireworld_MDP_ippc2014", "1")
    legal = world.reset(0)["legal"]
    takes = {len(objects): legal[place].tolist() for place, objects in enumerate(world.items)}
    assert world.command_names == ("move-car", "loadtire", "changetire")
    assert takes == {2: [True, False, False], 1: [False, True, False], 0: [False, False, True]}
    assert legal.sum() == len(world.items)
    assert check_select_env(lambda: Rddl("TriangleTireworld_MDP_ippc2014", "1")).passed


def test_what_is_hidden_or_no_choice_is_refused() -> None:
    with pytest.raises(SelectError, match="its state is hidden"):
        Rddl("SysAdmin_POMDP_ippc2011", "1")
    with pytest.raises(SelectError, match="action action is real, and a pick is done or not"):
        Rddl("MountainCar_ippc2023", "1")
    with pytest.raises(
        SelectError, match="cannot make domain 'No', instance '1': Domain <No> does"
    ):
        Rddl("No", 1)
    with pytest.raises(SelectError, match="reward_scale=0: must be more than 0"):
        Rddl(SYSADMIN, "1", reward_scale=0)


def test_learners_see_the_reward_scaled_and_reports_do_not() -> None:
    world = example("sysadmin", instance=1)
    world.reset(0)
    assert world.step(picks())[1] == 10  # all ten run
    assert world.learning_reward(10.0) == 1.0


@pytest.mark.parametrize("name", DOMAINS)
def test_the_heuristic_is_above_random(name: str) -> None:
    world = example(name)
    assert mean_reward(world, "greedy", 6) > mean_reward(world, "random", 6) + 1


def test_it_plays_in_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(thirdparty.ROOT)
    told = sm.evaluate(
        "examples.rddl:sysadmin", "greedy", episodes=2, steps=5, workers=1, instance="1"
    )
    assert told.episodes == 2
    assert told.mean_reward > 5


def test_a_made_world_and_its_class_are_judged_alike_by_their_heuristic() -> None:
    made = sm.evaluate(example("sysadmin", instance=1), "greedy", episodes=3)
    assert made == sm.evaluate(lambda: example("sysadmin", instance=1), "greedy", episodes=3)
    assert Rddl(SYSADMIN, 1).greedy is None
