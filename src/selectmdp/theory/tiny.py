"""Select-MDPs small enough to write down (paper §2.1): every state, every set of picks, a table.

A `TinyWorld` is played like any world and knows its own model, so that `solve` can say what is best
and a learner can be judged against it. Its states are 0 … S−1, its joint actions 0 … A−1.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from selectmdp import draws
from selectmdp.iterative import LegalAfter, command_of_item, picked
from selectmdp.spec import SelectError, Spec, check_count
from selectmdp.theory.joint import OpenAfter, Picks, after_picks, joint_picks, received
from selectmdp.types import Action, Observation

Permute = Callable[[Int[Array, ""], Int[Array, " N"]], Int[Array, ""]]


@dataclass(frozen=True, eq=False, repr=False)
class TinyWorld:
    """A Select-MDP as tables; `tabulate` makes one of a rule. It never terminates.

    Picks that are not legal, not distinct or too few earn NaN.
    """

    items: Float[np.ndarray, "S N F"]
    context: Float[np.ndarray, "S U G"]
    present: Bool[np.ndarray, "S N"]
    legal: Bool[np.ndarray, "S N C"]
    num_select: int
    """K, how many items are picked in a step."""
    rewards: Float[np.ndarray, "S A"]
    """The reward of each joint action; taken as 0 where it is not allowed."""
    transitions: Float[np.ndarray, "S A S"]
    """The probability of each next state; taken as 0 where the joint action is not allowed."""
    start: Float[np.ndarray, " S"]
    """The probability of each state at a reset."""
    time_limit: int = 100
    """Steps of an episode."""
    allow_pass: bool = False
    """Whether fewer than K may be picked."""
    legal_after: LegalAfter | None = None
    """Which pairs stay legal after some picks; None: those of the items that are left."""
    spec: Spec = field(init=False)
    joint: tuple[Picks, ...] = field(init=False)
    """The joint actions, items ascending in each."""
    allowed: Bool[np.ndarray, "S A"] = field(init=False)
    """Which joint actions are legal and complete in a state."""

    def __post_init__(self) -> None:
        for name, kind in _KINDS.items():
            object.__setattr__(self, name, np.array(getattr(self, name), kind))
        spec = self._checked_spec()
        rule = None if self.legal_after is None else self.open_after
        joint, allowed = joint_picks(self.open_pairs, spec.num_select, rule, self.allow_pass)
        object.__setattr__(self, "spec", spec)
        object.__setattr__(self, "joint", joint)
        object.__setattr__(self, "allowed", allowed)
        self._check_model()
        kept = np.where(allowed[:, :, None], self.transitions, 0.0)
        object.__setattr__(self, "rewards", np.where(allowed, self.rewards, 0.0))
        object.__setattr__(self, "transitions", kept)
        for name in (*_KINDS, "allowed"):
            getattr(self, name).setflags(write=False)

    def __repr__(self) -> str:
        return f"TinyWorld({self.num_states} states, {len(self.joint)} joint actions, {self.spec})"

    @property
    def num_states(self) -> int:
        return len(self.items)

    @property
    def open_pairs(self) -> Bool[np.ndarray, "S N C"]:
        """Which pairs may be picked first in a state."""
        return self.legal & self.present[:, :, None]

    @cached_property
    def open_after(self) -> OpenAfter:
        """From picks to the pairs [S, N, C] that may be picked after them."""
        return after_picks(self.legal_after, self.items, self.context, self.present, self.legal)

    def reset(self, key: Key[Array, ""]) -> Int[Array, ""]:
        return _drawn(key, jnp.asarray(_upto(self.start)))

    def step(
        self, key: Key[Array, ""], state: Int[Array, ""], action: Action
    ) -> tuple[Int[Array, ""], Float[Array, ""], Float[Array, ""]]:
        num_items = self.spec.num_items
        codes = jnp.where(picked(action, num_items), 1 + command_of_item(action, num_items), 0)
        same = (jnp.asarray(self._codes) == codes[None]).all(axis=1)
        index, distinct = jnp.argmax(same), (codes > 0).sum() == (action.items >= 0).sum()
        earned = jnp.asarray(self._earned)[state, index]
        reward = jnp.where(same.any() & distinct, earned, jnp.nan)
        return _drawn(key, jnp.asarray(self._next_upto)[state, index]), reward, jnp.ones(())

    def observe(self, state: Int[Array, ""]) -> Observation:
        return Observation(
            items=jnp.asarray(self.items)[state],
            context=jnp.asarray(self.context)[state],
            present=jnp.asarray(self.present)[state],
            context_present=jnp.ones(self.spec.num_context, bool),
            legal=jnp.asarray(self.legal)[state],
        )

    @cached_property
    def permute(self) -> Permute | None:
        """`permute(state, order)`: the state with its items in another order.

        None where some order is no state of this world: it cannot be asked for then.
        """
        unmoved = np.arange(self.spec.num_items)
        swaps = [_swapped(unmoved, place) for place in unmoved[:-1]]  # these make every order
        seen = {self._look(state, unmoved) for state in range(self.num_states)}
        orders = ((state, order) for state in range(self.num_states) for order in swaps)
        return self._permuted if all(self._look(*given) in seen for given in orders) else None

    @cached_property
    def received(self) -> Bool[np.ndarray, "A N C"]:
        """Which command each item receives in a joint action."""
        return received(self.joint, self.spec.num_items, self.spec.num_commands)

    @cached_property
    def _codes(self) -> Int[np.ndarray, "A N"]:
        """0 for an item not picked, 1 + c for one picked with command c: no order in it."""
        codes = self.received * np.arange(1, self.spec.num_commands + 1)
        return codes.sum(axis=2, dtype=np.int32)

    @cached_property
    def _earned(self) -> Float[np.ndarray, "S A"]:
        return np.where(self.allowed, self.rewards, np.nan).astype(np.float32)

    @cached_property
    def _next_upto(self) -> Float[np.ndarray, "S A S"]:
        return _upto(self.transitions)

    def _permuted(self, state: Int[Array, ""], order: Int[Array, " N"]) -> Int[Array, ""]:
        same = jnp.ones(self.num_states, bool)
        for table, places in (
            (self.items, order),
            (self.present, order),
            (self.legal, order),
            (self.context, jnp.arange(self.spec.num_context)),
        ):
            rows = jnp.asarray(table)
            alike = rows == rows[state][places][None]
            same &= alike.reshape(self.num_states, -1).all(axis=1)
        return jnp.argmax(same).astype(jnp.int32)

    def _look(self, state: int, order: Int[np.ndarray, " N"]) -> bytes:
        """What is seen of a state with its items in this order."""
        by_item = [part[state][order] for part in (self.items, self.present, self.legal)]
        return b"".join(part.tobytes() for part in (*by_item, self.context[state]))

    def _checked_spec(self) -> Spec:
        for name, axes in (("items", 3), ("context", 3), ("present", 2), ("legal", 3)):
            if getattr(self, name).ndim != axes:
                raise SelectError(f"{name} has {getattr(self, name).ndim} axes: must have {axes}")
        states, num_items, features = self.items.shape
        _, num_context, context_features = self.context.shape
        num_commands = self.legal.shape[2]
        _check_shape("present", self.present, (states, num_items))
        _check_shape("legal", self.legal, (states, num_items, num_commands))
        _check_shape("context", self.context, (states, num_context, context_features))
        if check_count("time_limit", self.time_limit) < 1:
            raise SelectError(f"time_limit={self.time_limit}: must be at least 1")
        sizes = (num_items, features, num_context, context_features)
        return Spec(*sizes, self.num_select, num_commands, self.allow_pass)

    def _check_model(self) -> None:
        states, actions = self.allowed.shape
        _check_shape("rewards", self.rewards, (states, actions))
        _check_shape("transitions", self.transitions, (states, actions, states))
        _check_shape("start", self.start, (states,))
        _check_chances("start", self.start[None])
        _check_chances("transitions", self.transitions[self.allowed])
        if not np.isfinite(self.rewards[self.allowed]).all():
            raise SelectError("rewards: some reward of an allowed joint action is not finite")
        seen: dict[bytes, int] = {}
        for state in range(states):
            twin = seen.setdefault(self._look(state, np.arange(self.spec.num_items)), state)
            if twin != state:
                raise SelectError(
                    f"states {twin} and {state} look alike, and no policy could tell them apart: "
                    "give them different features, or make them one state"
                )


_KINDS = {
    "items": np.float32,
    "context": np.float32,
    "present": bool,
    "legal": bool,
    "rewards": np.float64,
    "transitions": np.float64,
    "start": np.float64,
}


def _swapped(order: Int[np.ndarray, " N"], place: int) -> Int[np.ndarray, " N"]:
    swapped = order.copy()
    swapped[[place, place + 1]] = order[[place + 1, place]]
    return swapped


def _upto(chances: Float[np.ndarray, "*rows S"]) -> Float[np.ndarray, "*rows S"]:
    """Cumulative probabilities; 1 from the last possible state on, whatever the rounding."""
    sums = np.cumsum(chances, axis=-1)
    return np.where(sums == sums[..., -1:], 1.0, sums).astype(np.float32)


def _drawn(key: Key[Array, ""], upto: Float[Array, " S"]) -> Int[Array, ""]:
    return (upto <= draws.uniform(key, ())).sum().astype(jnp.int32)


def _check_shape(name: str, values: np.ndarray, shape: tuple[int, ...]) -> None:
    if values.shape != shape:
        raise SelectError(f"{name} has shape {values.shape}: must be {shape}")


def _check_chances(name: str, rows: Float[np.ndarray, "n S"]) -> None:
    wrong = (rows < 0).any(axis=1) | ~np.isclose(rows.sum(axis=1), 1.0, rtol=0.0, atol=1e-9)
    if wrong.any():
        raise SelectError(f"{name}: {rows[wrong][0]} are not probabilities; they must sum to 1")
