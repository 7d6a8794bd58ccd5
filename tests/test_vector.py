import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from worlds import Shelf

from selectmdp.envs import Circle
from selectmdp.interop.gymnasium import SelectGymEnv
from selectmdp.interop.spaces import SelectSpace
from selectmdp.interop.vector import SelectVectorEnv
from selectmdp.spec import SelectError, Spec

SMALL = Circle(num_items=4, num_context=2, num_select=2, time_limit=3)


def row_of(batch, row):
    return {name: rows[row] for name, rows in batch.items()}


def test_make_vec_gives_one_natively_batched_environment():
    envs = gymnasium.make_vec("selectmdp/Circle-v0", num_envs=3, num_items=4, num_select=2)
    assert isinstance(envs, SelectVectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    seen, info = envs.reset(seed=0)
    assert (seen["items"].shape, seen["items"].dtype) == ((3, 4, 3), np.float32)
    assert seen in envs.observation_space
    assert info == {}
    seen, rewards, terminated, truncated, info = envs.step(envs.action_space.sample())
    assert seen in envs.observation_space
    assert (rewards.shape, rewards.dtype, info) == ((3,), np.float64, {})
    assert (terminated.tolist(), truncated.tolist()) == ([False] * 3, [False] * 3)
    assert envs.spec.id == "selectmdp/Circle-v0"


@pytest.mark.parametrize(
    "env", [SMALL, Shelf(time_limit=4), Shelf(sell_only=4, starts_empty=True, max_refills=1)]
)
def test_row_i_is_the_single_environment_of_seed_s_plus_i_across_resets(env):
    envs = SelectVectorEnv(env, num_envs=3)
    singles = [SelectGymEnv(env) for _ in range(3)]
    envs.action_space.seed(0)
    seen, _ = envs.reset(seed=5)
    alone = [single.reset(seed=5 + row)[0] for row, single in enumerate(singles)]
    for _ in range(8):
        assert data_equivalence([row_of(seen, row) for row in range(3)], alone, exact=False)
        actions = envs.action_space.sample()
        seen, rewards, terminated, truncated, info = envs.step(actions)
        for row, single in enumerate(singles):
            alone[row], reward, *ended, _ = single.step(row_of(actions, row))
            assert reward == pytest.approx(rewards[row], abs=1e-6)
            assert ended == [terminated[row], truncated[row]]
            if any(ended):
                assert data_equivalence(info["final_obs"][row], alone[row], exact=False)
                alone[row], _ = single.reset()


def test_an_ended_episode_shows_its_last_observation_and_the_next_ones_first():
    envs = SelectVectorEnv(Shelf(num_items=2, num_select=1, time_limit=2), num_envs=2)
    envs.reset()
    first = {"items": np.array([[0], [1]]), "commands": np.array([[0], [1]])}
    seen, rewards, _, truncated, info = envs.step(first)
    assert (rewards.tolist(), truncated.tolist(), info) == ([1.0, 20.0], [False, False], {})
    assert seen["present"].tolist() == [[0, 1], [1, 0]]
    other = {"items": np.array([[1], [0]]), "commands": np.array([[0], [0]])}
    seen, rewards, terminated, truncated, info = envs.step(other)
    assert (rewards.tolist(), truncated.tolist()) == ([2.0, 1.0], [True, True])
    assert terminated.tolist() == [False, False]
    assert seen["present"].tolist() == [[1, 1], [1, 1]]
    assert [final["present"].tolist() for final in info["final_obs"]] == [[0, 0], [0, 0]]
    assert info["_final_obs"].tolist() == [True, True]
    assert envs.action_space.legal.all()
    *_, truncated, info = envs.step(first)
    assert (truncated.tolist(), info) == ([False, False], {})


def test_only_the_row_that_ended_begins_again():
    envs = SelectVectorEnv(Shelf(num_items=2, num_select=2, max_refills=1), num_envs=2)
    envs.reset()
    envs.step({"items": np.array([[0, 1], [0, 1]]), "commands": np.zeros((2, 2), int)})
    envs._running = envs._running._replace(
        state=envs.state._replace(refills=np.array([0, -1], np.int32))
    )
    seen, rewards, terminated, _, info = envs.step(
        {"items": np.full((2, 2), -1), "commands": np.zeros((2, 2), int)}
    )
    assert (rewards.tolist(), terminated.tolist()) == ([-1.0, -1.0], [True, False])
    assert envs.state.refills.tolist() == [0, 0]
    assert info["_final_obs"].tolist() == [True, False]
    assert info["final_obs"][1] is None
    assert seen["present"].tolist() == [[1, 1], [1, 1]]


def test_episodes_end_as_in_gymnasiums_own_vector_environment():
    ours = SelectVectorEnv(SMALL, num_envs=2)
    theirs = SyncVectorEnv(
        [lambda: SelectGymEnv(SMALL)] * 2, autoreset_mode=AutoresetMode.SAME_STEP
    )
    assert theirs.action_space == ours.action_space
    ours.action_space.seed(1)
    assert data_equivalence(ours.reset(seed=1), theirs.reset(seed=1), exact=False)
    for _ in range(7):
        actions = ours.action_space.sample()
        left, right = ours.step(actions), theirs.step(actions)
        assert data_equivalence(left, right, exact=False)


def test_samples_are_legal_in_each_row():
    envs = SelectVectorEnv(Shelf(sell_only=1), num_envs=2)
    envs.reset()
    envs.step(
        {"items": np.array([[3, 2, 1], [0, 1, 2]]), "commands": np.eye(2, 3, dtype=int)[::-1]}
    )
    assert envs.action_space.legal.any(axis=2).tolist() == [
        [True, False, False, False],
        [False, False, False, True],
    ]
    for _ in range(5):
        sampled = envs.action_space.sample()
        assert sampled["items"].tolist() == [[0, -1, -1], [3, -1, -1]]
        assert sampled["commands"][0].tolist() == [1, 0, 0]
        assert sampled in envs.action_space


@pytest.mark.parametrize(
    ("items", "commands", "message"),
    [
        ([[0, 1, 2], [1, 1, 0]], [[0] * 3] * 2, r"environment 1: items\[1\]=1 is picked twice"),
        ([[0, 1, 2], [1, 2, 0]], [[0] * 3, [1, 1, 0]], "environment 1: pick 1: .* not legal after"),
        ([[0, 1, -1], [0, 1, 2]], [[0] * 3] * 2, r"environment 0: items\[2\]=-1"),
        ([[0, 1, 4], [0, 1, 2]], [[0] * 3] * 2, "from -1 to 3"),
        ([[0, 1], [0, 1]], [[0] * 2] * 2, r"must have shape \(2, 3\)"),
        ([[0.5, 1, 2], [0, 1, 2]], [[0] * 3] * 2, "dtype float64"),
    ],
)
def test_a_bad_row_is_named_and_changes_no_row(items, commands, message):
    envs = SelectVectorEnv(Shelf(), num_envs=2)
    envs.reset(seed=0)
    before = jax.device_get(envs.state)
    bad = {"items": np.array(items), "commands": np.array(commands)}
    assert bad not in envs.action_space
    with pytest.raises(SelectError, match=message):
        envs.step(bad)
    assert all((a == b).all() for a, b in zip(before, jax.device_get(envs.state), strict=True))
    good = {"items": np.array([[0, 1, 2], [3, 1, 0]]), "commands": np.zeros((2, 3), int)}
    assert envs.step(good)[1].tolist() == [6.0, 7.0]


def test_seeds_must_fit_and_a_reset_comes_first():
    envs = SelectVectorEnv(Shelf(), num_envs=2)
    with pytest.raises(SelectError, match="step before the first reset"):
        envs.step(envs.action_space.sample())
    with pytest.raises(SelectError, match="seed has 3 entries: give one for each of 2"):
        envs.reset(seed=[1, 2, 3])
    with pytest.raises(SelectError, match="num_envs=0: must be at least 1"):
        SelectVectorEnv(Shelf(), num_envs=0)


def test_each_row_is_drawn():
    envs = SelectVectorEnv(SMALL, num_envs=2, render_mode="rgb_array")
    envs.reset(seed=0)
    left, right = envs.render()
    assert left.shape == right.shape
    assert not np.array_equal(left, right)


def test_a_batch_samples_distinct_picks_and_each_legal_pair_as_often():
    space = SelectSpace(Spec(3, 1, 0, 1, 2, 2), seed=0, num_envs=600)
    space.legal = np.tile(np.array([[1, 1], [0, 1], [0, 0]]), (600, 1, 1))
    sampled = space.sample()
    assert sampled["items"].shape == (600, 2)
    assert (np.sort(sampled["items"], axis=1) == [[0, 1]]).all()
    pairs, counts = np.unique(
        np.stack([sampled["items"][:, 0], sampled["commands"][:, 0]]), axis=1, return_counts=True
    )
    assert pairs.T.tolist() == [[0, 0], [0, 1], [1, 1]]
    assert (np.abs(counts - 200) < 50).all()
    assert repr(space) == "SelectSpace(2 of 3, 2 commands, num_envs=600)"


def test_a_bad_seed_in_one_row_changes_nothing_in_any():
    envs = SelectVectorEnv(SMALL, num_envs=2)
    with pytest.raises(SelectError, match="seed=-1"):
        envs.reset(seed=[1, -1])
    seen, _ = envs.reset(seed=7)
    again, _ = SelectVectorEnv(SMALL, num_envs=2).reset(seed=7)
    assert data_equivalence(seen, again, exact=True)


def test_a_reset_of_some_rows_is_refused():
    envs = SelectVectorEnv(SMALL, num_envs=2)
    with pytest.raises(SelectError, match="reset_mask is not served"):
        envs.reset(options={"reset_mask": np.array([True, False])})


def test_frames_show_the_picks_of_the_last_step():
    envs = SelectVectorEnv(SMALL, num_envs=2, render_mode="rgb_array")
    alone = SelectGymEnv(SMALL, render_mode="rgb_array")
    envs.reset(seed=3)
    alone.reset(seed=4)
    picks = {"items": np.array([[0, 1], [2, 3]]), "commands": np.array([[1, 2], [0, 4]])}
    envs.step(picks)
    alone.step(row_of(picks, 1))
    np.testing.assert_array_equal(envs.render()[1], alone.render())
