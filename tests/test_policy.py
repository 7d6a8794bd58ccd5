"""A policy selects for other N and K, for NumPy and JAX, and is loaded whole or not at all."""

import json
import shutil
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny
from worlds import Shelf

import selectmdp as sm
from selectmdp import agent, checkpoint
from selectmdp.algorithms import Shape
from selectmdp.checkpoint import CheckpointError
from selectmdp.policy import Policy
from selectmdp.spec import SelectError

haste = tiny.haste

CIRCLE = sm.Circle(num_items=6, num_select=3)
HUNT = sm.PredatorPrey(num_items=5, num_context=2, num_select=2)


@pytest.fixture(scope="module")
def policy() -> Policy:
    return tiny.untrained("isq-i", CIRCLE)


@pytest.fixture(scope="module")
def hunter() -> Policy:
    return tiny.untrained("isq-u", HUNT)


def circles(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(0.1, 0.9, (*shape, 3)).astype(np.float32)


# One state, a batch, kinds


def test_numpy_gives_numpy_and_jax_gives_jax(policy: Policy) -> None:
    items = circles(6)
    for given in (items, items.tolist(), items.astype(np.float64), {"items": items}):
        picks = policy.select(given, q_values=True)
        assert {type(part) for part in (picks.items, picks.commands, picks.q_values)} == {
            np.ndarray
        }
        assert picks.items.tolist() == policy.select(items).items.tolist()
    for given in (jnp.asarray(items), {"items": items, "present": jnp.ones(6, bool)}):
        picks = policy.select(given, q_values=True)
        assert all(isinstance(part, jax.Array) for part in (picks.items, picks.q_values))
        assert picks.items.tolist() == policy.select(items).items.tolist()


def test_an_observation_of_a_world_and_of_gymnasium_are_understood(policy: Policy) -> None:
    state = CIRCLE.reset(jax.random.key(0))
    seen = CIRCLE.observe(state)
    as_dict = {name: np.asarray(part).astype(float) for name, part in seen._asdict().items()}
    assert policy.select(seen).items.tolist() == policy.select(as_dict).items.tolist()


def test_a_batch_is_its_states_one_by_one(policy: Policy) -> None:
    batch = circles(4, 6)
    picks = policy.select(batch, q_values=True)
    assert (picks.items.shape, picks.q_values.shape) == ((4, 3), (4, 3, 6, 5))
    for row in range(4):
        one = policy.select(batch[row], q_values=True)
        assert one.items.tolist() == picks.items[row].tolist()
        assert one.commands.tolist() == picks.commands[row].tolist()
        np.testing.assert_allclose(one.q_values, picks.q_values[row], rtol=1e-5, atol=1e-6)


def test_an_empty_batch_gives_no_picks(policy: Policy) -> None:
    assert policy.select(circles(0, 6)).items.shape == (0, 3)


def test_the_same_state_gives_the_same_picks_and_rsq_heeds_its_seed() -> None:
    chance = tiny.untrained("rsq", CIRCLE)
    items = circles(4, 6)
    drawn = [chance.select(items, seed=seed).items.tolist() for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]


# What is picked


def test_items_are_distinct_and_each_is_the_best_that_was_allowed(policy: Policy) -> None:
    for seed in range(20):
        picks = policy.select(circles(6, seed=seed), q_values=True)
        assert len(set(picks.items.tolist())) == 3
        for phase in range(3):
            values = picks.q_values[phase]
            place = np.unravel_index(values.argmax(), values.shape)
            assert place == (picks.items[phase], picks.commands[phase])
            closed = np.isneginf(values).all(axis=1)
            assert np.flatnonzero(closed).tolist() == sorted(picks.items[:phase].tolist())
            assert np.isfinite(values[~closed]).all()


def test_only_legal_pairs_are_picked(policy: Policy) -> None:
    legal = np.zeros((6, 5), int)
    legal[1, 4] = legal[2, 0] = legal[5, 2] = legal[5, 3] = 1
    picks = policy.select({"items": circles(6), "legal": legal}, q_values=True)
    assert sorted(picks.items.tolist()) == [1, 2, 5]
    assert all(legal[item, command] for item, command in zip(*picks[:2], strict=True))
    assert np.isneginf(picks.q_values[0][legal == 0]).all()
    legal[1:3] = 0
    picks = policy.select({"items": circles(6), "legal": legal})
    assert picks.items.tolist() == [5, -1, -1]
    assert picks.commands.tolist()[1:] == [0, 0]


def test_what_is_absent_is_never_picked_and_does_not_matter(policy: Policy) -> None:
    few = circles(4)
    padded = np.concatenate([few, np.full((5, 3), 77.0, np.float32)])
    alone = policy.select(few, q_values=True)
    among = policy.select({"items": padded, "present": [1] * 4 + [0] * 5}, q_values=True)
    assert among.items.tolist() == alone.items.tolist()
    assert among.commands.tolist() == alone.commands.tolist()
    np.testing.assert_allclose(among.q_values[:, :4], alone.q_values, rtol=1e-5, atol=1e-6)
    assert np.isneginf(among.q_values[:, 4:]).all()


def test_absent_context_does_not_matter(hunter: Policy) -> None:
    items, context = np.eye(5, 2), np.full((2, 2), 0.5)
    padded = np.concatenate([context, np.full((3, 2), -9.0)])
    alone = hunter.select({"items": items, "context": context}, q_values=True)
    told = {"items": items, "context": padded, "context_present": [1, 1, 0, 0, 0]}
    among = hunter.select(told, q_values=True)
    np.testing.assert_allclose(among.q_values, alone.q_values, rtol=1e-5, atol=1e-6)


def test_rules_that_depend_on_the_picks_are_kept() -> None:
    shelf = Shelf(num_items=5, num_select=4)
    seller = tiny.untrained("isq-u", shelf)
    picks = seller.select(np.arange(1.0, 6.0)[:, None], q_values=True)
    assert sum(picks.commands) <= 1
    if 1 in picks.commands[:3].tolist():
        after = picks.commands.tolist().index(1) + 1
        assert np.isneginf(picks.q_values[after:, :, 1]).all()


# Other N, other K


def test_any_number_of_items_can_be_selected_from(policy: Policy) -> None:
    for num_items in (4, 9):
        picks = policy.select(circles(num_items), q_values=True)
        assert picks.q_values.shape == (3, num_items, 5)
        assert len(set(picks.items.tolist())) == 3
        assert not picks.extrapolates


def test_the_order_of_the_items_does_not_matter(policy: Policy) -> None:
    items, order = circles(9), np.random.default_rng(3).permutation(9)
    picks, shuffled = policy.select(items), policy.select(items[order])
    assert order[shuffled.items].tolist() == picks.items.tolist()
    assert shuffled.commands.tolist() == picks.commands.tolist()


@pytest.mark.parametrize(
    ("num_select", "phases"),
    [(1, [0]), (2, [0, 2]), (3, [0, 1, 2]), (5, [0, 0, 1, 2, 2]), (6, [0, 0, 1, 1, 2, 2])],
)
def test_phases_of_another_number_of_picks_borrow_from_the_nearest(
    policy: Policy, num_select: int, phases: list[int]
) -> None:
    # Phase j of K′ takes the set of phase round(j · 2 / max(K′ − 1, 1)) of the three trained.
    assert policy._map(num_select).tolist() == phases


def test_another_number_of_picks_is_as_if_those_phases_had_been_trained(policy: Policy) -> None:
    items = circles(6)
    picks = policy.select(items, 5, q_values=True)
    assert picks.extrapolates
    assert len(set(picks.items.tolist())) == 5
    params = jax.tree.map(lambda leaf: leaf[np.array([0, 0, 1, 2, 2])], policy.params)
    five = agent.make("isq-i", sm.Circle(num_items=6, num_select=5), shape=Shape(8))
    wanted = Policy(five, params, tuple(range(5)), {}).select(items, q_values=True)
    assert not wanted.extrapolates
    assert picks.items.tolist() == wanted.items.tolist()
    np.testing.assert_allclose(picks.q_values, wanted.q_values, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "given", "num_select", "said"),
    [
        ("vanilla", circles(7), None, "a dense network serves only the sizes it was trained for"),
        ("sorting", circles(6), 2, "train an isq algorithm to change N or K"),
        ("idqn-own", circles(7), None, "num_items=7: each of the 6 items of the training has"),
    ],
)
def test_networks_bound_to_their_sizes_refuse_others(
    name: str, given: Any, num_select: int | None, said: str
) -> None:
    bound = tiny.untrained(name, CIRCLE)
    with pytest.raises(SelectError) as refused:
        bound.select(given, num_select)
    assert said in str(refused.value)


# Values alone


def test_q_values_are_those_that_select_chose_from(policy: Policy) -> None:
    items = circles(6)
    picks = policy.select(items, q_values=True)
    made = [(int(item), int(command)) for item, command in zip(*picks[:2], strict=True)]
    for phase in range(3):
        values = policy.q_values(items, made[:phase])
        np.testing.assert_allclose(values, picks.q_values[phase], rtol=1e-5, atol=1e-6)
    assert isinstance(policy.q_values(jnp.asarray(items)), jax.Array)


@pytest.mark.parametrize(
    ("picks", "said"),
    [
        ([(0, 0)] * 3, "of K=3 all are made; there is no next pick"),
        ([(1, 0), (1, 2)], "an item can be picked once"),
        ([(6, 0)], "(6, 0) is none of the pairs of 6 items and 5 commands"),
        ([(0, -1)], "(0, -1) is none of the pairs"),
        ([1, 2], "picks=[1, 2]: give pairs of an item and a command"),
        ([(0.5, 1)], "give pairs of an item and a command"),
        (7, "picks=7: give pairs"),
    ],
)
def test_picks_that_cannot_have_been_made_are_refused(
    policy: Policy, picks: Any, said: str
) -> None:
    with pytest.raises(SelectError) as refused:
        policy.q_values(circles(6), picks)
    assert said in str(refused.value)


def test_earlier_picks_that_are_not_legal_are_refused(policy: Policy) -> None:
    legal = np.ones((6, 5), bool)
    legal[1, 2] = False
    state = {"items": circles(6), "legal": legal, "present": [1, 1, 1, 1, 1, 0]}
    assert policy.q_values(state, [(1, 0), (4, 2)]).shape == (6, 5)
    for picks in ([(1, 2)], [(0, 0), (5, 0)]):
        item, command = picks[-1]
        said = rf"\({item}, {command}\) is not legal there, or absent: give earlier picks"
        with pytest.raises(SelectError, match=said):
            policy.q_values(state, picks)
    seller = tiny.untrained("isq-u", Shelf(num_items=5, num_select=4))
    goods = np.arange(1.0, 6.0)[:, None]
    assert np.isneginf(seller.q_values(goods, [(0, 1)])[:, 1]).all()
    with pytest.raises(SelectError, match=r"\(1, 1\) is not legal there"):  # one is sold dear
        seller.q_values(goods, [(0, 1), (1, 1)])


def test_of_fewer_items_than_picks_all_are_picked_and_the_rest_is_minus_one(
    policy: Policy,
) -> None:
    few = circles(2)
    picks = policy.select(few, q_values=True)
    assert sorted(picks.items.tolist()) == [-1, 0, 1]
    assert picks.items[-1] == -1
    assert not picks.extrapolates
    assert picks.q_values.shape == (3, 2, 5)
    absent = {"items": np.concatenate([few, circles(4)]), "present": [1, 1, 0, 0, 0, 0]}
    assert policy.select(absent).items.tolist() == picks.items.tolist()
    batch = policy.select(jnp.asarray(circles(4, 2)))
    assert (batch.items[:, -1] == -1).all()
    asked = policy.select(few, num_select=3, q_values=True)
    for part, other in zip(asked, picks, strict=True):
        assert np.array_equal(part, other)
    many = policy.select(few, num_select=7)
    assert (sorted(many.items.tolist()), many.extrapolates) == ([-1] * 5 + [0, 1], True)
    np.testing.assert_array_equal(policy.q_values(few), picks.q_values[0])


# What is no observation


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "items has shape (): give [N, F], or a batch [B, N, F]"),
        ("circle", "items is not an array of numbers: could not convert string"),
        ([[1.0, 2.0], [3.0]], "items is not an array of numbers"),
        (({"items": 0}, {}), "items is not an array of numbers"),
        (1j * circles(6), "items is not an array of numbers: it holds complex ones"),
        (jnp.asarray(1j * circles(6)), "items is not an array of numbers: it holds complex ones"),
        (np.zeros(6), "items has shape (6,): give [N, F]"),
        (np.zeros((1, 1, 6, 3)), "items has shape (1, 1, 6, 3)"),
        (np.zeros((0, 3)), "items has shape (0, 3)"),
        (np.zeros((6, 4)), "item_features=4: the policy was trained with 3"),
        ({"present": np.ones(6)}, "observation has ['present']: 'items' is needed"),
        ({"items": circles(6), "mask": 1}, "what else it may have is context, present"),
        ({"items": circles(6), "present": np.ones(5)}, "present has shape (5,): it must be (6,)"),
        ({"items": circles(6), "present": [[1], [1, 0]]}, "present is not an array"),
        ({"items": circles(6), "present": [0.5] * 6}, "present[0] is 0.5: give 0 or 1, or False"),
        ({"items": circles(6), "present": ["x"] * 6}, "present[0] is x: give 0 or 1, or False"),
        ({"items": circles(6), "legal": np.ones((6, 4))}, "legal has shape (6, 4): it must be (6,"),
        ({"items": circles(6), "context": []}, "context has shape (0,): give [U, 3]"),
        (
            {"items": circles(2, 6), "context": circles(3)},
            "context has shape (3, 3): give [2, U, 3]",
        ),
        (
            {"items": circles(6), "context": circles(2)},
            "num_context=2: the policy was trained without context",
        ),
    ],
    ids=range(20),
)
def test_what_is_no_observation_is_refused(policy: Policy, given: Any, said: str) -> None:
    with pytest.raises(SelectError) as refused:
        policy.select(given)
    assert said in str(refused.value)


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e300])
def test_a_number_that_is_not_finite_is_refused_by_its_place(policy: Policy, number: float) -> None:
    items = circles(2, 6).astype(np.float64)
    items[1, 4, 2] = number
    kinds = [items] if number == 1e300 else [items, jnp.asarray(items, jnp.float32)]
    for given in kinds:
        with pytest.raises(
            SelectError, match=r"items\[1, 4, 2\] is (nan|inf|1e\+300), not a finite float32"
        ):
            policy.select(given)


@pytest.mark.parametrize(
    ("num_select", "said"),
    [
        (0, "num_select=0: must be at least 1"),
        (-1, "num_select=-1: must not be negative"),
        (2.0, "num_select=2.0: must be a whole number, not float"),
        (True, "num_select=True: must be a whole number, not bool"),
    ],
)
def test_a_number_of_picks_that_cannot_be_is_refused(
    policy: Policy, num_select: Any, said: str
) -> None:
    with pytest.raises(SelectError) as refused:
        policy.select(circles(6), num_select)
    assert said in str(refused.value)


def test_missing_context_is_refused(hunter: Policy) -> None:
    with pytest.raises(SelectError, match=r"no context: the policy was trained with 2.*context=\["):
        hunter.select(np.zeros((5, 2)))
    with pytest.raises(SelectError, match="context_features=3: the policy was trained with 2"):
        hunter.select({"items": np.zeros((5, 2)), "context": np.zeros((2, 3))})


def test_inside_jit_it_says_what_to_take_instead(policy: Policy) -> None:
    with pytest.raises(SelectError, match=r"is traced: inside jit and vmap take policy\.actor"):
        jax.jit(lambda items: policy.select(items).items)(circles(6))


def test_its_actor_works_inside_jit_and_in_a_larger_world(policy: Policy) -> None:
    large = sm.Circle(num_items=9, num_select=3)
    state = large.reset(jax.random.key(0))
    action = jax.jit(policy.actor(large))(jax.random.key(1), state, large.observe(state))
    picks = policy.select(large.observe(state))
    assert action.items.tolist() == picks.items.tolist()
    assert action.commands.tolist() == picks.commands.tolist()


# Loading


@pytest.fixture(scope="module")
def run() -> Path:
    return tiny.finished()


def test_a_run_a_step_and_the_best_can_be_loaded(run: Path) -> None:
    newest = sm.load(run)
    assert newest.about["step"] == 400
    assert newest.spec == sm.Circle(**tiny.WORLD).spec
    assert newest.phase_map == (0, 1)
    step = sm.load(str(run / "checkpoints" / "step-000000000350"))
    assert step.about["step"] == 350
    assert sm.load(run / "checkpoints" / "best").about["config"]["seed"] == 0
    items = circles(4, 6)
    same = sm.load(run / "checkpoints" / tiny.LAST).select(items)
    assert same.items.tolist() == newest.select(items).items.tolist()
    given = sm.load(run, env=sm.Circle(**tiny.WORLD)).select(items)
    assert given.items.tolist() == newest.select(items).items.tolist()


@pytest.mark.parametrize("name", ["", "metrics.csv", "nothing", "tensorboard"])
def test_where_there_is_no_run_it_says_so(run: Path, tmp_path: Path, name: str) -> None:
    path = run / name if name else tmp_path
    with pytest.raises(SelectError, match="holds no run: give the folder that train wrote"):
        sm.load(path)


def test_a_run_without_a_checkpoint_says_so(run: Path, tmp_path: Path) -> None:
    shutil.copy(run / "config.json", tmp_path)
    with pytest.raises(CheckpointError, match=r"no checkpoint in .*: train first"):
        sm.load(tmp_path)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def foreign(path: Path) -> None:
    path.write_bytes(b'{"format": "another"}')


DAMAGES = [cut, flip, foreign, Path.unlink]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("name", ["manifest.json", "policy.safetensors", "training.safetensors"])
def test_damage_to_the_newest_checkpoint_names_the_file_and_the_newest_whole_one(
    run: Path, tmp_path: Path, name: str, damage: Any
) -> None:
    shutil.copytree(run, tmp_path / "run")
    file = tmp_path / "run" / "checkpoints" / tiny.LAST / name
    damage(file)
    with pytest.raises(CheckpointError) as refused:
        sm.load(tmp_path / "run")
    assert str(refused.value).startswith(f"{file} ")
    whole = tmp_path / "run" / "checkpoints" / "step-000000000350"
    assert f"the newest that is whole is {whole}: load that to use it" in str(refused.value)
    assert sm.load(whole).about["step"] == 350


def test_a_whole_checkpoint_of_something_else_is_refused(run: Path, tmp_path: Path) -> None:
    params = {"layer": jnp.ones(3)}
    checkpoint.save(tmp_path / "other", {"policy": params}, {"task": "chess"})
    with pytest.raises(CheckpointError, match=r"other/manifest\.json is whole but not of a train"):
        sm.load(tmp_path / "other")
    meta = checkpoint.manifest(run / "checkpoints" / tiny.LAST)
    checkpoint.save(tmp_path / "swapped", {"policy": params}, meta)
    with pytest.raises(CheckpointError, match=r"policy\.safetensors is whole but not the tree"):
        sm.load(tmp_path / "swapped")
    checkpoint.save(tmp_path / "short", {"policy": params}, {**meta, "phase_map": [0]})
    with pytest.raises(CheckpointError, match="phase_map and num_select do not fit"):
        sm.load(tmp_path / "short")
    strange = json.loads(json.dumps(meta))
    strange["config"]["algorithm"] = "oracle"
    checkpoint.save(tmp_path / "strange", {"policy": params}, strange)
    with pytest.raises(CheckpointError, match="algorithm 'oracle' is none of isq-i"):
        sm.load(tmp_path / "strange")


def test_a_link_out_of_a_checkpoint_is_not_followed(run: Path, tmp_path: Path) -> None:
    step = tmp_path / "step"
    shutil.copytree(run / "checkpoints" / tiny.LAST, step)
    (step / "policy.safetensors").rename(tmp_path / "away")
    (step / "policy.safetensors").symlink_to(tmp_path / "away")
    with pytest.raises(CheckpointError, match=r"policy\.safetensors is damaged: it is not a plain"):
        sm.load(step)
