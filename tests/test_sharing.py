"""Which parameter set serves which phase: literal maps, times of splits, what a split copies."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selectmdp import sharing
from selectmdp.sharing import first_map, map_at, num_sets, split, stages, stretched


def test_unified_sharing_has_one_set_and_independent_one_for_each_phase() -> None:
    assert first_map("unified", 4) == (0, 0, 0, 0)
    assert first_map("independent", 4) == (0, 1, 2, 3)
    assert first_map("progressive", 4) == (0, 0, 0, 0)
    assert [num_sets("unified", 4), num_sets("independent", 4)] == [1, 4]
    assert num_sets("progressive", 4) == 4  # all rows from the start: a split only copies


def starts(num_select: int) -> list[list[int]]:
    """The first phases of the sets at each stage."""
    return [sorted(set(phase_map)) for phase_map in stages(num_select)]


def test_four_phases_part_into_two_sets_and_four() -> None:
    assert stages(4) == [(0, 0, 0, 0), (0, 0, 2, 2), (0, 1, 2, 3)]


def test_six_phases_part_into_two_sets_and_four_and_six() -> None:
    assert starts(6) == [[0], [0, 3], [0, 2, 3, 5], [0, 1, 2, 3, 4, 5]]
    assert stages(6)[1:3] == [(0, 0, 0, 3, 3, 3), (0, 0, 2, 3, 3, 5)]


def test_seven_phases_part_into_two_sets_and_four_and_seven() -> None:
    assert starts(7) == [[0], [0, 4], [0, 2, 4, 6], [0, 1, 2, 3, 4, 5, 6]]


def test_ten_phases_end_with_ten_sets() -> None:
    assert starts(10) == [
        [0],
        [0, 5],
        [0, 3, 5, 8],
        [0, 2, 3, 4, 5, 7, 8, 9],
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    ]


def test_few_phases_part_too() -> None:
    assert stages(1) == [(0,)]
    assert stages(2) == [(0, 0), (0, 1)]
    assert stages(3) == [(0, 0, 0), (0, 0, 2), (0, 1, 2)]
    assert starts(5) == [[0], [0, 3], [0, 2, 3, 4], [0, 1, 2, 3, 4]]


@given(st.integers(1, 40))
def test_stages_refine_each_other_and_a_set_is_named_after_its_first_phase(k: int) -> None:
    maps = stages(k)
    assert maps[0] == (0,) * k
    assert maps[-1] == tuple(range(k))
    assert len(maps) == len(set(maps)) == 1 + int(np.ceil(np.log2(k)))
    for phase_map in maps:
        assert all(phase_map[start] == start for start in phase_map)
        assert list(phase_map) == sorted(phase_map)
    for old, new in pairwise(maps):
        assert all(old[new[phase]] == old[phase] for phase in range(k))


def split_times(num_select: int, total_steps: int) -> list[int]:
    """The steps at which the map is another than one step before."""
    maps = [map_at("progressive", num_select, step, total_steps) for step in range(total_steps + 1)]
    return [step for step in range(1, total_steps + 1) if maps[step] != maps[step - 1]]


def test_all_splits_are_made_by_half_of_the_training() -> None:
    assert split_times(4, 1000) == [250, 500]
    assert split_times(6, 1000) == [166, 333, 500]
    assert split_times(10, 1001) == [125, 250, 375, 500]
    assert split_times(2, 1001) == [500]
    assert split_times(1, 100) == []


def test_the_map_at_a_step_is_that_of_the_splits_that_are_due() -> None:
    assert map_at("progressive", 4, 0, 1000) == (0, 0, 0, 0)
    assert map_at("progressive", 4, 249, 1000) == (0, 0, 0, 0)
    assert map_at("progressive", 4, 250, 1000) == (0, 0, 2, 2)
    assert map_at("progressive", 4, 500, 1000) == (0, 1, 2, 3)
    assert map_at("progressive", 4, 1000, 1000) == (0, 1, 2, 3)
    assert map_at("unified", 4, 1000, 1000) == (0, 0, 0, 0)
    assert map_at("independent", 4, 0, 1000) == (0, 1, 2, 3)


def test_a_split_gives_each_phase_a_copy_of_its_old_set() -> None:
    stacked = {"weight": jnp.asarray([[10.0, 11.0], [0.0, 0.0], [20.0, 21.0], [0.0, 0.0]])}
    parted = split(stacked, (0, 0, 2, 2))
    expected = [[10.0, 11.0], [10.0, 11.0], [20.0, 21.0], [20.0, 21.0]]
    assert parted["weight"].tolist() == expected


def test_a_split_leaves_a_count_that_belongs_to_all_sets() -> None:
    count = split({"count": jnp.asarray(7), "moment": jnp.asarray([1.0, 0.0])}, (0, 0))
    assert int(count["count"]) == 7
    assert count["moment"].tolist() == [1.0, 1.0]


@given(st.integers(1, 12), st.integers(0, 2**31 - 1))
def test_at_a_split_every_phase_keeps_its_parameters(k: int, seed: int) -> None:
    params = {"a": np.random.default_rng(seed).normal(size=(k, 2)), "b": np.arange(k)}
    maps = stages(k)
    for first in range(len(maps)):
        for new in maps[first:]:  # of two splits in one chunk the maps between are skipped
            old = maps[first]
            parted = split(params, old)
            for name in params:
                np.testing.assert_array_equal(
                    parted[name][np.array(new)], params[name][np.array(old)]
                )


def test_each_phase_is_served_by_the_set_of_its_map() -> None:
    params = {"a": jnp.asarray([[10.0], [20.0], [30.0]])}
    phase_map = sharing.as_array((0, 0, 2))
    assert sharing.of_phases(params, phase_map)["a"].tolist() == [[10.0], [10.0], [30.0]]
    assert phase_map.dtype == jnp.int32
    of_phase = jax.jit(sharing.of_phase)
    served = [of_phase(params, phase_map, jnp.asarray(k))["a"].item() for k in range(3)]
    assert served == [10.0, 10.0, 30.0]


def test_a_single_set_stays_single_and_serves_all_phases() -> None:
    params = {"a": jnp.asarray([[10.0]])}
    assert sharing.of_phases(params, jnp.zeros(3, jnp.int32))["a"].shape == (1, 1)
    last = sharing.of_phase(params, jnp.zeros(3, jnp.int32), jnp.asarray(2))
    assert last["a"].tolist() == [10.0]


@pytest.mark.parametrize(
    ("trained", "num_select", "expected"),
    [
        ((0, 1, 2, 3, 4, 5), 3, (0, 2, 5)),  # 2½ is rounded to the even 2
        ((0, 1, 2), 6, (0, 0, 1, 1, 2, 2)),
        ((0, 1, 2), 5, (0, 0, 1, 2, 2)),  # ½ and 1½ are rounded to 0 and 2
        ((0, 1, 2, 3), 1, (0,)),
        ((0,), 3, (0, 0, 0)),
        ((0, 0, 2, 2), 2, (0, 2)),
        ((0, 1, 2, 3), 4, (0, 1, 2, 3)),
    ],
)
def test_a_map_is_stretched_to_another_number_of_picks(
    trained: tuple[int, ...], num_select: int, expected: tuple[int, ...]
) -> None:
    assert stretched(trained, num_select) == expected
