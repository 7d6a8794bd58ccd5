"""Rules between picks (`legal_after`) of a world in NumPy, asked for other N than was trained."""

from typing import Any

import faulty
import jax
import numpy as np
import pytest

import selectmdp as sm
from selectmdp import agent
from selectmdp.interop.host import HostEnv
from selectmdp.policy import Policy
from selectmdp.spec import SelectError, WorldFault


class Once(faulty.Sound):
    """`full` once in a step, told by operators alone."""

    def legal_after(self, observation: Any, chosen: Any, command: Any) -> Any:
        return observation.legal & (np.arange(2) < 2 - (chosen & (command == 1)).any())[None]


class ByNumpy(faulty.Sound):
    """The same by NumPy, which is called back."""

    def legal_after(self, observation: Any, chosen: Any, command: Any) -> Any:
        legal = np.array(observation.legal)
        legal[:, 1] &= not np.any(np.asarray(command)[np.asarray(chosen)] == 1)
        return legal


class OfItsOwnSize(faulty.Sound):
    def legal_after(self, observation: Any, chosen: Any, command: Any) -> Any:
        return np.array(np.repeat(~np.asarray(chosen)[:4, None], 2, axis=1))


class OneColumn(faulty.Sound):
    def legal_after(self, observation: Any, chosen: Any, command: Any) -> Any:
        return observation.legal[:, :1] & (chosen.sum() < 1)


def untrained(world: Any) -> Policy:
    env: Any = HostEnv(world)
    made = agent.make("isq-u", env)
    return Policy(made, made.init(jax.random.key(0)), (0, 0), {})


@pytest.mark.parametrize("world", [Once, ByNumpy])
@pytest.mark.parametrize("num_items", [4, 9])
def test_a_policy_of_a_world_with_rules_selects_at_any_number_of_items(
    world: Any, num_items: int
) -> None:
    states = np.random.default_rng(0).uniform(size=(20, num_items, 2))
    picks = untrained(world()).select({"items": states})
    assert (picks.items >= 0).all()
    assert (picks.commands.sum(axis=1) <= 1).all()


def test_both_ways_to_write_a_rule_pick_the_same() -> None:
    states = np.random.default_rng(0).uniform(size=(20, 6, 2))
    one, other = (untrained(world()).select({"items": states}) for world in (Once, ByNumpy))
    assert one.items.tolist() == other.items.tolist()
    assert one.commands.tolist() == other.commands.tolist()


@pytest.mark.parametrize(
    ("world", "kind", "said"),
    [
        (OfItsOwnSize, WorldFault, r"gives shape \(4, 2\) where \(9, 2\) is seen: make it of what"),
        (OneColumn, SelectError, r"`legal_after` gives shape \(9, 1\) where \(9, 2\) is seen"),
    ],
)
def test_a_rule_of_the_wrong_shape_is_told(world: Any, kind: Any, said: str) -> None:
    policy = untrained(world())
    with pytest.raises(kind, match=said):
        policy.select(np.ones((9, 2)))
    with pytest.raises(kind, match=said):
        policy.q_values(np.ones((9, 2)), [(0, 0)])


def test_a_rule_of_a_jax_world_for_one_number_of_items_is_told() -> None:
    class Fixed(sm.Circle):
        def legal_after(self, observation: Any, chosen: Any, command: Any) -> Any:
            return np.ones((8, 5), bool)

    made = agent.make("isq-u", Fixed(num_items=8, num_select=2))
    policy = Policy(made, made.init(jax.random.key(0)), (0, 0), {})
    assert len(policy.select(np.ones((8, 3))).items) == 2
    with pytest.raises(SelectError, match=r"gives shape \(8, 5\) where \(6, 5\) is seen"):
        policy.select(np.ones((6, 3)))
