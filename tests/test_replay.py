"""Replay: what is stored comes back as it was, each observation once, and nothing else does."""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selectmdp import replay
from selectmdp.engines import blank
from selectmdp.envs import Circle
from selectmdp.types import Action, Observation, Transition

jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})  # runs few times
PAIRS = (3, 2)
SAMPLES = 400

add, cut = jit(replay.add), jit(replay.cut)


def seen(time: Any) -> Observation:
    """An observation that shows its time, in its masks too; or one for each of several times."""
    time = np.asarray(time, np.float32)
    bits = (time.astype(int)[..., None] >> np.arange(11)) & 1 == 1
    return Observation(
        items=np.broadcast_to(time[..., None, None], (*time.shape, 3, 2)),
        context=np.broadcast_to(-time[..., None, None], (*time.shape, 2, 1)),
        present=bits[..., :3],
        context_present=bits[..., 3:5],
        legal=bits[..., 5:].reshape(*time.shape, *PAIRS),
    )


def step(
    time: float,
    item: int = 1,
    discount: float = 0.5,
    truncated: bool = False,
    reward: float | None = None,
) -> Transition:
    """From what is seen at a time to what is seen one later; its reward is ten times the time."""
    return Transition(
        observation=seen(time),
        action=Action(np.array([item, -1], np.int32), np.array([1, 0], np.int32)),
        reward=np.float32(10.0 * time if reward is None else reward),
        discount=np.float32(discount),
        truncated=np.bool_(truncated),
        next_observation=seen(time + 1),
    )


def ring(capacity: int = 12) -> replay.Rows:
    return replay.init(capacity, jax.tree.map(jnp.asarray, step(0)))


class Known(NamedTuple):
    """A stored step in plain numbers."""

    time: float
    item: int
    reward: float
    discount: float
    ended: bool
    """By a time limit or a terminal, which has a discount of 0."""
    following: float


@jit
def draw(rows: replay.Rows) -> Transition:
    """Many samples of one ring."""
    rings = jax.tree.map(lambda leaf: leaf[None], rows)
    keys = jax.random.split(jax.random.key(0), SAMPLES)
    one = jnp.zeros((), jnp.int32)
    return jax.vmap(lambda key: replay.sample(key, rings, one, PAIRS))(keys)


def kept(rows: replay.Rows) -> list[Known]:
    """All that samples bring, each once; in each, masks and features show the same time."""
    batch = jax.tree.map(np.asarray, draw(rows))
    now, then = batch.observation.items[:, 0, 0], batch.next_observation.items[:, 0, 0]
    jax.tree.map(np.testing.assert_array_equal, batch.observation, seen(now))
    jax.tree.map(np.testing.assert_array_equal, batch.next_observation, seen(then))
    np.testing.assert_array_equal(batch.action.items[:, 1], -1)
    np.testing.assert_array_equal(batch.action.commands, [[1, 0]] * SAMPLES)
    ended = batch.truncated | (batch.discount == 0)
    parts = now, batch.action.items[:, 0], batch.reward, batch.discount, ended, then
    return sorted({Known(*one) for one in zip(*(part.tolist() for part in parts), strict=True)})


def test_the_next_observation_is_the_next_row() -> None:
    rows = ring()
    for time in range(4):
        rows = add(rows, step(time, item=time % 3))
    # The last step is not followed by anything yet.
    assert kept(rows) == [
        (0.0, 0, 0.0, 0.5, False, 1.0),
        (1.0, 1, 10.0, 0.5, False, 2.0),
        (2.0, 2, 20.0, 0.5, False, 3.0),
    ]
    assert int(rows.filled) == 4


def test_what_is_seen_last_before_a_truncation_has_a_row_of_its_own() -> None:
    rows = ring()
    rows = add(rows, step(0))
    rows = add(rows, step(1, truncated=True))
    rows = add(rows, step(100))
    assert kept(rows) == [(0.0, 1, 0.0, 0.5, False, 1.0), (1.0, 1, 10.0, 0.5, True, 2.0)]
    rows = add(rows, step(101))
    assert kept(rows)[2:] == [(100.0, 1, 1000.0, 0.5, False, 101.0)]
    assert int(rows.filled) == 5


def test_a_terminal_step_keeps_its_discount_of_0_and_is_not_followed_by_the_next_episode() -> None:
    rows = ring()
    rows = add(rows, step(0))
    rows = add(rows, step(1, discount=0.0))
    rows = add(rows, step(100))
    assert kept(rows) == [(0.0, 1, 0.0, 0.5, False, 1.0), (1.0, 1, 10.0, 0.0, True, 2.0)]


def test_an_episode_that_is_broken_off_is_cut_there() -> None:
    rows = ring()
    rows = add(rows, step(0))
    rows = cut(rows, seen(1))
    rows = add(rows, step(100))
    assert kept(rows) == [(0.0, 1, 0.0, 0.5, True, 1.0)]


def test_the_oldest_rows_make_room() -> None:
    rows = ring(5)
    for time in range(12):
        rows = add(rows, step(time))
    # Rows 7 … 11 are there; 11 is not followed by anything, 7 … 10 are.
    assert [one.time for one in kept(rows)] == [7.0, 8.0, 9.0, 10.0]
    assert [one.following for one in kept(rows)] == [8.0, 9.0, 10.0, 11.0]
    assert int(rows.filled) == 5


def test_a_row_of_what_was_seen_last_makes_room_as_well() -> None:
    rows = ring(4)
    for time in range(6):
        rows = add(rows, step(time))
    rows = add(rows, step(6, truncated=True))
    # Rows 4, 5, 6 and what was seen at 7.
    assert [one[0::5] for one in kept(rows)] == [(4.0, 5.0), (5.0, 6.0), (6.0, 7.0)]


def test_a_step_without_picks_is_amended_to_the_one_before() -> None:
    rows = ring()
    rows = add(rows, step(0, reward=3.0))
    rows = add(rows, step(1, item=-1, reward=8.0, discount=0.25))
    rows = add(rows, step(2, reward=5.0))
    # 3 + ½ · 8, and ½ · ¼ of what is seen at time 2.
    assert kept(rows) == [(0.0, 1, 7.0, 0.125, False, 2.0)]
    assert int(rows.filled) == 2


def test_two_steps_without_picks_are_both_amended() -> None:
    rows = ring()
    rows = add(rows, step(0, reward=3.0))
    rows = add(rows, step(1, item=-1, reward=8.0))
    rows = add(rows, step(2, item=-1, reward=16.0))
    rows = add(rows, step(3))
    assert kept(rows) == [(0.0, 1, 3.0 + 4.0 + 4.0, 0.125, False, 3.0)]


def test_a_step_without_picks_can_end_the_episode() -> None:
    rows = ring()
    rows = add(rows, step(0, reward=3.0))
    rows = add(rows, step(1, item=-1, reward=8.0, discount=0.0))
    rows = add(rows, step(100))
    assert kept(rows) == [(0.0, 1, 7.0, 0.0, True, 2.0)]
    rows = ring()
    rows = add(rows, step(0, reward=3.0))
    rows = add(rows, step(1, item=-1, reward=8.0, truncated=True))
    rows = add(rows, step(100))
    assert kept(rows) == [(0.0, 1, 7.0, 0.25, True, 2.0)]


def test_a_step_without_picks_does_not_reach_into_the_episode_before() -> None:
    rows = ring()
    rows = add(rows, step(0, reward=3.0, truncated=True))
    rows = add(rows, step(100, item=-1, reward=8.0))
    rows = add(rows, step(101))
    rows = add(rows, step(102))
    assert kept(rows) == [
        (0.0, 1, 3.0, 0.5, True, 1.0),
        (101.0, 1, 1010.0, 0.5, False, 102.0),
    ]


def test_a_first_step_without_picks_is_not_stored() -> None:
    rows = add(ring(), step(0, item=-1))
    assert int(rows.filled) == 0
    rows = add(add(rows, step(1)), step(2))
    assert kept(rows) == [(1.0, 1, 10.0, 0.5, False, 2.0)]


class Shadow:
    """The same ring as a plain list of rows: steps, and None for what was seen last."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.rows = capacity, []

    def add(self, one: Transition) -> None:
        time = float(one.observation.items[0, 0])
        reward, discount = float(one.reward), float(one.discount)
        if int(one.action.items[0]) >= 0:
            self.put([time, int(one.action.items[0]), reward, discount])
        elif self.rows and len(self.rows[-1]) == 4:
            last = self.rows[-1]
            last[2] += last[3] * reward
            last[3] *= discount
        if bool(one.truncated) or discount == 0:
            self.put([time + 1])

    def put(self, row: list[float]) -> None:
        self.rows = [*self.rows, row][-self.capacity :]

    def known(self) -> list[Known]:
        pairs = zip(self.rows[:-1], self.rows[1:], strict=True)
        return [Known(*row, len(then) == 1, then[0]) for row, then in pairs if len(row) == 4]


EVENTS = st.lists(st.sampled_from("ssssiitT"), min_size=4, max_size=15)


@given(EVENTS)
def test_samples_are_the_steps_that_a_plain_list_would_hold(events: list[str]) -> None:
    """s: a step; i: one without picks; t and T: one that is truncated, and a terminal one."""
    rows, shadow = ring(16), Shadow(16)
    for time, event in enumerate("sss" + "sss".join(events)):
        one = step(
            float(time),
            item=-1 if event == "i" else time % 3,
            discount=0.0 if event == "T" else 0.5,
            truncated=event == "t",
            reward=float(time % 4),
        )
        rows = add(rows, one)
        shadow.add(one)
    assert kept(rows) == sorted(shadow.known())


def test_all_steps_are_as_likely_wherever_episodes_end() -> None:
    rows = ring(60)
    for time in range(44):
        rows = add(rows, step(time, truncated=time % 9 == 8))
    counts = np.zeros(44)
    batch = many(jax.tree.map(lambda leaf: leaf[None], rows), jnp.zeros(8600, jnp.int32))
    np.add.at(counts, np.asarray(batch.observation.items[:, 0, 0], int), 1)
    assert counts[43] == 0  # not followed by anything yet
    surprise = ((counts[:43] - 200) ** 2 / 200).sum()
    assert surprise < 90  # chi-square of 42 degrees of freedom: above 90 once in 40,000


@jit
def many(rings: replay.Rows, which: Any) -> Transition:
    keys = jax.random.split(jax.random.key(5), which.shape[0])
    return jax.vmap(lambda key, one: replay.sample(key, rings, one, PAIRS))(keys, which)


def test_each_ring_is_sampled_from_by_itself() -> None:
    first, second = ring(), ring()
    for time in range(5):
        first = add(first, step(time))
        second = add(second, step(100 + time))
    rings = jax.tree.map(lambda *leaves: jnp.stack(leaves), first, second)
    which = jnp.asarray([0, 1] * 30)
    times = np.asarray(many(rings, which).observation.items[:, 0, 0])
    assert set(times[::2]) == {0.0, 1.0, 2.0, 3.0}
    assert set(times[1::2]) == {100.0, 101.0, 102.0, 103.0}


@pytest.mark.parametrize("num_context", [0, 7])
def test_fifty_thousand_steps_of_two_hundred_circles_take_less_than_150_mb(
    num_context: int,
) -> None:
    env = Circle(num_items=200, num_context=num_context, num_select=6)
    state = jax.eval_shape(env.reset, jax.random.key(0))
    rows = jax.eval_shape(lambda state: replay.init(50_001, blank(env.observe(state), 6)), state)
    size = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(rows))
    assert 120e6 < size < 150e6  # 200 · 3 floats of 4 bytes, 50,000 times, are 120 MB


def test_an_episode_without_any_step_leaves_no_row() -> None:
    rows = add(ring(), step(0, item=-1, discount=0.0))
    assert int(rows.filled) == 0
    rows = add(rows, step(100))
    for time in (101, 200, 300):
        rows = add(rows, step(time, item=-1, truncated=True))
    rows = add(rows, step(400))
    assert [one[0::5] for one in kept(rows)] == [(100.0, 102.0)]
