import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.utils.passive_env_checker import env_reset_passive_checker, env_step_passive_checker
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import Shelf

from selectmdp.envs import Circle, PredatorPrey
from selectmdp.interop.gymnasium import SelectGymEnv
from selectmdp.interop.iterative_select import IterativeSelect
from selectmdp.interop.spaces import SelectSpace
from selectmdp.spec import SelectError, Spec

WORLDS = [
    Circle(num_items=5, num_context=2, num_select=3, time_limit=3),
    Circle(num_items=3, num_context=0, num_select=3, commands=("stay",)),  # K = N, U = 0, C = 1
    Circle(num_items=1, num_context=1, num_select=1),
    Circle(num_items=12, num_context=0, num_select=1, dynamics="text"),
    PredatorPrey(num_items=4, num_context=1, num_select=2, grid=4),
    Shelf(),
    Shelf(num_items=1, num_select=1, max_refills=1),
    Shelf(num_items=6, num_select=6, sell_only=3, time_limit=3),
    Shelf(num_items=5, num_select=2, sell_only=5, starts_empty=True),
]


@pytest.mark.parametrize("world", WORLDS)
@settings(max_examples=4)
@given(seed=st.integers(0, 2**31 - 1))
def test_a_walk_through_phases_is_the_step_of_the_picks_it_assembled(world, seed):
    walk, base = IterativeSelect(world), SelectGymEnv(world)
    sizes, rng = world.spec, np.random.default_rng(seed)
    walk.reset(seed=seed)
    base.reset(seed=seed)
    for _ in range(4):
        items, commands, moved = [], [], False
        while not moved:
            pairs = walk.action_masks()
            assert (pairs.shape, pairs.dtype) == ((sizes.num_items * sizes.num_commands,), bool)
            nothing = not base.action_space.legal.any()
            action = rng.choice(np.flatnonzero(pairs))
            if not nothing:
                items.append(action // sizes.num_commands)
                commands.append(action % sizes.num_commands)
            seen, reward, terminated, truncated, _ = walk.step(action)
            assert seen in walk.observation_space
            moved = seen["phase"] == 0
            if not moved:
                assert (reward, terminated, truncated) == (0.0, False, False)
                assert np.flatnonzero(seen["chosen"]).tolist() == sorted(items)
                assert seen["command"][items].tolist() == commands
        missing = sizes.num_select - len(items)
        action = {
            "items": np.array(items + [-1] * missing),
            "commands": np.array(commands + [0] * missing),
        }
        assert action in base.action_space
        expected, *outcome, _ = base.step(action)
        assert outcome == [reward, terminated, truncated]
        shown = {name: part for name, part in expected.items() if name != "legal"}
        assert data_equivalence({name: seen[name] for name in shown}, shown, exact=True)
        assert not seen["chosen"].any()
        if terminated or truncated:
            walk.reset()
            base.reset()


def test_one_step_of_three_picks_in_numbers():
    env = IterativeSelect(Shelf(num_items=4, num_select=3))
    seen, _ = env.reset()
    assert set(seen) == {
        "items",
        "context",
        "present",
        "context_present",
        "chosen",
        "command",
        "phase",
    }
    assert env.action_space == gymnasium.spaces.Discrete(8)
    assert env.action_masks().all()
    seen, reward, *_ = env.step(3 * 2 + 1)  # sell item 3
    assert (reward, seen["phase"]) == (0.0, 1)
    assert (seen["chosen"].tolist(), seen["command"].tolist()) == ([0, 0, 0, 1], [0, 0, 0, 1])
    assert env.action_masks().tolist() == [True, False] * 3 + [False, False]
    seen, reward, *_ = env.step(0)
    assert (reward, seen["phase"], seen["present"].tolist()) == (0.0, 2, [1, 1, 1, 1])
    seen, reward, *_ = env.step(2)
    assert (reward, seen["phase"], seen["present"].tolist()) == (40 + 1 + 2, 0, [0, 0, 1, 0])


def test_where_fewer_than_k_are_legal_the_last_pick_taken_gets_the_reward():
    env = IterativeSelect(Shelf(num_items=4, num_select=3))
    env.reset()
    for action in (0, 2, 4):
        env.step(action)
    seen, reward, *_ = env.step(6)  # item 3 is the only one left
    assert (reward, seen["phase"], seen["present"].tolist()) == (4.0, 0, [0, 0, 0, 0])


def test_a_budget_may_end_the_picks_while_items_are_left():
    env = IterativeSelect(Shelf(num_items=3, num_select=3, sell_only=3))
    env.reset()
    assert env.action_masks().tolist() == [False, True] * 3
    seen, reward, *_ = env.step(2 * 1 + 1)
    assert (reward, seen["phase"], seen["present"].tolist()) == (20.0, 0, [1, 0, 1])


def test_where_nothing_is_legal_any_action_goes_on_without_picks():
    env = IterativeSelect(Shelf(num_items=2, num_select=2, starts_empty=True, max_refills=2))
    seen, _ = env.reset()
    assert seen["present"].tolist() == [0, 0]
    assert env.action_masks().all()
    seen, reward, terminated, _, _ = env.step(3)
    assert (reward, terminated) == (-1.0, False)
    assert (seen["present"].tolist(), seen["phase"]) == ([1, 1], 0)
    env.step(0)
    env.step(2)
    *_, reward, terminated, truncated, _ = env.step(0)
    assert (reward, terminated, truncated) == (-1.0, True, False)


def test_time_limits_count_whole_steps_and_truncate():
    env = IterativeSelect(Circle(num_items=3, num_select=2, commands=("stay",), time_limit=2))
    env.reset(seed=0)
    ends = [env.step(action)[2:4] for action in (0, 1, 2, 0)]
    assert ends == [(False, False)] * 3 + [(False, True)]
    with pytest.raises(SelectError, match=r"call reset\(\) first"):
        env.step(0)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (1.0, r"action=1\.0: must be one whole number, item \* 2 \+ command"),
        (float("nan"), "action=nan: must be one whole number"),
        (np.array([1]), "must be one whole number"),
        (True, "action=True: must be one whole number"),
        (-1, "action=-1: must be from 0 to 7"),
        (8, "action=8: must be from 0 to 7"),
        (6, "action=6: item 3 with command 0 was chosen in an earlier phase"),
        (3, "action=3: item 1 with command 1 is not legal now; .*action_masks"),
    ],
)
def test_a_bad_action_is_named_and_changes_nothing(action, message):
    env = IterativeSelect(Shelf())
    env.reset()
    env.step(7)
    before = env.action_masks()
    with pytest.raises(SelectError, match=message):
        env.step(action)
    assert np.array_equal(env.action_masks(), before)
    env.step(0)
    assert env.step(2)[1] == 40 + 1 + 2


def test_stepping_before_the_first_reset_is_refused():
    with pytest.raises(SelectError, match=r"call reset\(\) first"):
        IterativeSelect(Shelf()).step(0)


def test_it_wraps_what_gymnasium_made_and_gymnasiums_checks_find_nothing():
    env = IterativeSelect(gymnasium.make("selectmdp/Circle-v0", num_items=3, num_select=2))
    env_reset_passive_checker(env, seed=0)
    env_step_passive_checker(env, 0)
    env_step_passive_checker(env, 14)
    assert env.spec.additional_wrappers[-1].name == "IterativeSelect"


class Outside(gymnasium.Env):
    """Someone else's environment: our action space, another kind of observation."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (2,), np.float32)

    def __init__(self):
        self.action_space = SelectSpace(Spec(3, 1, 0, 1, 2, 1))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.action_space.legal = [[True], [False], [True]]
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.ones(2, np.float32), float(action["items"].sum()), True, False, {"picks": action}


def test_any_gymnasium_environment_with_our_action_space_will_do():
    env = IterativeSelect(Outside())
    seen, _ = env.reset(seed=0)
    assert seen in env.observation_space
    assert env.action_masks().tolist() == [True, False, True]
    env.step(2)
    seen, reward, terminated, _, info = env.step(0)
    assert (reward, terminated, info["picks"]["items"].tolist()) == (2.0, True, [2, 0])
    assert seen["observation"].tolist() == [1.0, 1.0]


def test_another_action_space_is_refused():
    with pytest.raises(SelectError, match=r"action_space=Discrete\(2\): must be a SelectSpace"):
        IterativeSelect(gymnasium.make("CartPole-v1"))


def test_a_frame_shows_the_picks_so_far():
    world = Circle(num_items=5, num_context=2, num_select=3)
    env = IterativeSelect(SelectGymEnv(world, render_mode="rgb_array"))
    env.reset(seed=0)
    frames = [env.render()]
    for item in range(2):
        env.step(item * 5)
        frames.append(env.render())
    assert (frames[0] != frames[1]).any()
    assert (frames[1] != frames[2]).any()


def test_a_base_environment_that_fails_leaves_the_phase_as_it_was(monkeypatch):
    env = IterativeSelect(Shelf(num_items=4, num_select=2))
    env.reset(seed=0)
    env.step(0)  # take item 0, worth 1

    def fails(picks):
        raise RuntimeError("no power")

    with monkeypatch.context() as patched:
        patched.setattr(env.env, "step", fails)
        with pytest.raises(RuntimeError, match="no power"):
            env.step(2)
    seen, reward, *_ = env.step(2)  # take item 1, worth 2
    assert (reward, seen["phase"]) == (3.0, 0)
