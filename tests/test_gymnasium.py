import subprocess
import sys
from copy import deepcopy

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector.utils import batch_space
from hypothesis import given
from hypothesis import strategies as st
from worlds import Shelf

from selectmdp.envs import Circle
from selectmdp.interop import registration
from selectmdp.interop.gymnasium import SelectGymEnv
from selectmdp.interop.spaces import SelectSpace
from selectmdp.raster import to_rgb
from selectmdp.spec import SelectError, Spec
from selectmdp.types import Action

SMALL = Circle(num_items=4, num_context=2, num_select=2)
TINY = Spec(4, 1, 0, 1, 2, 3)


def picks(*pairs):
    items, commands = zip(*pairs, strict=True)
    return {"items": np.array(items), "commands": np.array(commands)}


def same(left, right):
    return all(
        np.array_equal(a, b)
        for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("selectmdp/Circle-v0", {"num_items": 5, "num_select": 2}),
        ("selectmdp/Circle-v0", {"num_items": 3, "num_context": 2, "num_select": 3}),
        ("selectmdp/PredatorPrey-v0", {"num_items": 3, "num_context": 1, "num_select": 2}),
        ("selectmdp/League-v0", {"num_items": 5, "formation": (1, 1, 1, 0)}),
    ],
)
def test_gymnasiums_own_checker_finds_nothing(name, options):
    check_env(gymnasium.make(name, render_mode="rgb_array", **options).unwrapped)


def test_options_reach_the_world_through_make():
    circle = gymnasium.make(
        "selectmdp/Circle-v0", num_items=7, num_select=3, commands=("stay",), dynamics="text"
    ).unwrapped.env
    assert (circle.spec.num_items, circle.spec.num_select, circle.spec.num_commands) == (7, 3, 1)
    assert circle.dynamics == "text"
    hunt = gymnasium.make("selectmdp/PredatorPrey-v0", grid=6, captors=3).unwrapped.env
    assert (hunt.grid, hunt.captors) == (6, 3)


@pytest.mark.parametrize("imports", ["import selectmdp, gymnasium", "import gymnasium, selectmdp"])
def test_our_ids_are_known_in_either_order_of_imports_and_without_jax(imports):
    code = f"import sys; {imports}; assert 'selectmdp/Circle-v0' in gymnasium.registry; "
    code += "gymnasium.spec('selectmdp/PredatorPrey-v0'); assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_importing_selectmdp_alone_does_not_import_gymnasium():
    code = "import sys, selectmdp; assert 'gymnasium' not in sys.modules"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_registering_twice_is_harmless():
    registration.register()
    registration.register()
    assert gymnasium.spec("selectmdp/Circle-v0").kwargs == {"world": "circle"}


def test_more_picks_than_items_and_unknown_options_are_refused_when_made():
    with pytest.raises(SelectError, match="num_select=4 is more than num_items=3"):
        gymnasium.make("selectmdp/Circle-v0", num_items=3, num_select=4)
    with pytest.raises(SelectError, match="num_item=3: circle has no such option"):
        gymnasium.make("selectmdp/Circle-v0", num_item=3)


def test_observations_have_the_worlds_numbers_and_the_spaces_dtypes():
    env = SelectGymEnv(SMALL)
    seen, info = env.reset(seed=1)
    assert info == {}
    assert {name: (part.shape, part.dtype.name) for name, part in seen.items()} == {
        "items": ((4, 3), "float32"),
        "context": ((2, 3), "float32"),
        "present": ((4,), "int8"),
        "context_present": ((2,), "int8"),
        "legal": ((4, 5), "int8"),
    }
    assert np.array_equal(seen["items"], env.state.items)
    nothing_there, _ = SelectGymEnv(Shelf()).reset()
    assert (nothing_there["context"].shape, nothing_there["context_present"].shape) == (
        (0, 1),
        (0,),
    )
    seen["items"][:] = 7.0  # the caller's own copy
    assert env.state.items.max() < 1.0


def test_the_same_seed_gives_the_same_episode():
    def episode(seed):
        env = SelectGymEnv(SMALL)
        env.action_space.seed(seed)
        seen = [env.reset(seed=seed)]
        seen += [env.step(env.action_space.sample()) for _ in range(4)]
        return [*seen, env.reset()]

    assert same(episode(3), episode(3))
    assert not same(episode(3), episode(4))


def test_a_time_limit_truncates_and_never_terminates():
    env = SelectGymEnv(Circle(num_items=2, num_select=1, time_limit=3))
    env.reset(seed=0)
    ends = [env.step(picks((0, 0)))[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]
    with pytest.raises(SelectError, match=r"after the end of the episode: call reset\(\)"):
        env.step(picks((0, 0)))
    env.reset()
    assert env.step(picks((0, 0)))[2:4] == (False, False)


@pytest.mark.parametrize("limit", [100, 2])
def test_a_discount_of_zero_terminates_even_at_the_time_limit(limit):
    env = SelectGymEnv(Shelf(num_items=1, num_select=1, max_refills=1, time_limit=limit))
    env.reset()
    assert env.step(picks((0, 1)))[1:4] == (10.0, False, False)
    assert env.step(picks((-1, 0)))[1:4] == (-1.0, True, False)


def test_render_draws_a_frame_of_the_state():
    env = SelectGymEnv(SMALL, render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    assert (first.dtype, first.shape[1:]) == (np.uint8, (480, 3))
    assert len(np.unique(first.reshape(-1, 3), axis=0)) > 3
    env.step(env.action_space.sample())
    assert not np.array_equal(first, env.render())
    assert SelectGymEnv(SMALL).render() is None


def test_a_render_mode_that_cannot_be_offered_is_refused():
    with pytest.raises(SelectError, match="render_mode='rgb_array'"):
        SelectGymEnv(Shelf(), render_mode="rgb_array")
    with pytest.raises(SelectError, match=r"render_mode='film'.*rgb_array"):
        SelectGymEnv(SMALL, render_mode="film")


@pytest.mark.parametrize("what", ["step", "render", "state"])
def test_nothing_works_before_the_first_reset(what):
    env = gymnasium.make("selectmdp/Circle-v0", render_mode="rgb_array")
    calls = {
        "step": lambda: env.step(env.action_space.sample()),
        "render": env.render,
        "state": lambda: env.unwrapped.state,
    }
    with pytest.raises(SelectError, match=rf"{what} before the first reset: call reset\(\)"):
        calls[what]()


BAD = [
    ([0, 1, 2], "must be a dict of 'items' and 'commands'"),
    ({"items": np.array([0, 1, 2])}, "must be a dict of 'items' and 'commands'"),
    ({"items": np.array([0.0, 1.0, 2.0]), "commands": np.zeros(3, int)}, "dtype float64"),
    ({"items": np.array([0.0, np.nan, 2.0]), "commands": np.zeros(3, int)}, "nan"),
    ({"items": np.arange(3), "commands": np.zeros(3, bool)}, "commands=.* has dtype bool"),
    ({"items": [0, 1, None], "commands": np.zeros(3, int)}, "dtype object"),
    ({"items": [[0], [1, 2]], "commands": np.zeros(3, int)}, r"must have shape \(3,\)"),
    (picks((0, 0), (1, 0)), r"items has shape \(2,\): must have shape \(3,\)"),
    (picks((0, 0), (1, 0), (4, 0)), "each must be from -1 to 3"),
    (picks((0, 0), (1, 0), (-2, 0)), "each must be from -1 to 3"),
    (picks((0, 0), (1, 0), (2, 2)), "each must be from 0 to 1"),
    (picks((0, 0), (1, 0), (2, 2**40)), "each must be from 0 to 1"),
    (picks((2, 0), (1, 0), (2, 1)), r"items\[2\]=2 is picked twice in \[2, 1, 2\]"),
    (picks((1, 0), (2, 0), (0, 0)), "pick 2: item 0 with command 0 is not legal now"),
    (picks((1, 1), (2, 1), (0, 1)), r"item 2 with command 1 is not legal after the picks \[1\]"),
    (picks((1, 0), (-1, 0), (-1, 0)), r"items\[1\]=-1: .* 5 pairs are; .* \(0, 1\)"),
    (picks((-1, 0), (1, 0), (2, 0)), r"items\[0\]=-1"),
]


@pytest.mark.parametrize(("action", "message"), BAD)
def test_a_bad_action_is_named_and_changes_nothing(action, message):
    env, twin = SelectGymEnv(Shelf(sell_only=1)), SelectGymEnv(Shelf(sell_only=1))
    env.reset(seed=0)
    twin.reset(seed=0)
    before, rng = deepcopy(env.state), env.np_random.bit_generator.state
    with pytest.raises(SelectError, match=message):
        env.step(action)
    assert action not in env.action_space
    assert same(before, env.state)
    assert env.np_random.bit_generator.state == rng
    good = picks((3, 0), (0, 1), (1, 0))
    assert same(env.step(good), twin.step(good))


def test_a_shelf_sells_one_and_shows_who_is_left():
    env = SelectGymEnv(Shelf())
    env.reset()
    seen, reward, *_ = env.step(picks((3, 1), (0, 0), (1, 0)))
    assert reward == 40 + 1 + 2
    assert seen["present"].tolist() == [0, 0, 1, 0]
    assert env.action_space.legal.tolist() == [[False] * 2] * 2 + [[True] * 2] + [[False] * 2]
    assert env.action_space.sample()["items"].tolist() == [2, -1, -1]
    seen, reward, *_ = env.step(picks((2, 0), (-1, 0), (-1, 0)))
    assert (reward, seen["present"].tolist()) == (3, [0, 0, 0, 0])
    assert env.action_space.sample()["items"].tolist() == [-1, -1, -1]


def test_a_seeded_space_gives_the_same_samples():
    def samples(space):
        return [space.sample()["items"].tolist() for _ in range(5)]

    assert samples(SelectSpace(TINY, seed=5)) == samples(SelectSpace(TINY, seed=5))
    space = SelectSpace(TINY, seed=5)
    assert samples(space) != samples(space)


def test_equal_sizes_make_equal_spaces():
    assert SelectSpace(TINY) == SelectSpace(Spec(4, 9, 7, 5, 2, 3))
    assert SelectSpace(TINY) != SelectSpace(Spec(4, 1, 0, 1, 3, 3))
    assert SelectSpace(TINY) != batch_space(SelectSpace(TINY), 2)
    assert gymnasium.spaces.Dict(SelectSpace(TINY).spaces) != SelectSpace(TINY)
    assert repr(SelectSpace(TINY)) == "SelectSpace(2 of 4, 3 commands)"


def test_a_sample_heeds_a_mask_or_weights():
    space, mask = SelectSpace(TINY, seed=0), np.zeros((4, 3), np.int8)
    mask[2, 1] = mask[3, 0] = 1
    found = {tuple(space.sample(mask=mask)["items"].tolist()) for _ in range(20)}
    assert found == {(2, 3), (3, 2)}
    weights = np.zeros((4, 3))
    weights[0, 2] = 1.0
    sampled = space.sample(probability=weights)  # one pair has weight; the other pick is any
    assert (sampled["items"][0], sampled["commands"][0]) == (0, 2)
    assert sampled["items"][1] in (1, 2, 3)
    with pytest.raises(SelectError, match="not both"):
        space.sample(mask=mask, probability=weights)
    with pytest.raises(SelectError, match=r"shape \(3, 4\): must have shape \(4, 3\)"):
        space.sample(mask=mask.T)


@given(st.data())
def test_a_sample_is_always_contained_and_as_long_as_can_be(data):
    num_items, num_commands = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 3))
    num_select = data.draw(st.integers(1, num_items))
    space = SelectSpace(Spec(num_items, 1, 0, 1, num_select, num_commands), seed=0)
    pairs = data.draw(st.lists(st.booleans(), min_size=num_items * num_commands, max_size=99))
    space.legal = np.array(pairs[: num_items * num_commands]).reshape(num_items, num_commands)
    sampled = space.sample()
    taken = [item for item in sampled["items"].tolist() if item >= 0]
    assert sampled in space
    assert len(set(taken)) == len(taken)
    assert len(taken) == min(num_select, space.legal.any(axis=1).sum())


def test_looking_for_gymnasium_before_importing_it_loses_nothing():
    code = "import importlib.util, selectmdp; importlib.util.find_spec('gymnasium'); "
    code += "import gymnasium; gymnasium.spec('selectmdp/Circle-v0')"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_a_frame_shows_the_picks_of_the_last_step():
    env = SelectGymEnv(SMALL, render_mode="rgb_array")
    env.reset(seed=0)
    before, state = env.render(), env.state
    env.step(picks((0, 1), (1, 2)))
    made = Action(jnp.array([0, 1]), jnp.array([1, 2]))
    np.testing.assert_array_equal(env.render(), to_rgb(SMALL.draw(state, made)))
    assert (env.render() != before).any()


@pytest.mark.parametrize("seed", [-1, "a", 1.5])
def test_a_bad_seed_is_refused_by_name(seed):
    with pytest.raises(SelectError, match="seed="):
        SelectGymEnv(SMALL).reset(seed=seed)
