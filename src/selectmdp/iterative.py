"""Iterative Select-MDP (paper §2.1): K single choices replace one choice of K.

One definition serves both forms: `unroll` acts (a chooser runs K times inside one step), `expand`
learns (one transition becomes K phase transitions, reward 0 and discount 1 before the last), and
the Gymnasium wrapper `IterativeSelect` walks the same selections one step at a time. Where fewer
than K legal pairs remain the picks end: item −1 for the rest, and the last pick taken gets the
step's reward and bootstrap.

Where a world allows a pass, it is one more choice in every phase, always legal, and ends the picks:
item −1 from there on. It is then what the phase chose, and gets the step's reward and bootstrap. In
arrays over pairs it is one more row, [N + 1, C], in which the first place alone counts.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from selectmdp import draws
from selectmdp.spec import SelectError, Spec
from selectmdp.types import Action, Observation, Transition

LegalAfter = Callable[
    [Observation, Bool[Array, " N"], Int[Array, " N"]],
    Bool[Array, "N C"],
]


class Selection(NamedTuple):
    """What earlier phases of a step chose."""

    picks: Action
    """The picks so far in their order, item −1 from there on."""
    phase: Int[Array, ""]


class PhaseTransition(NamedTuple):
    """One step of the IS-MDP (eq. 1); `discount` is 1 between phases."""

    observation: Observation
    selection: Selection
    item: Int[Array, ""]
    command: Int[Array, ""]
    reward: Float[Array, ""]
    discount: Float[Array, ""]
    last: Bool[Array, ""]
    """The step's last pick: what follows is the next observation with nothing chosen."""
    taken: Bool[Array, ""]
    """False: the picks had ended, there is nothing to learn from this phase."""
    next_observation: Observation
    next_selection: Selection


Chooser = Callable[
    [Key[Array, ""], Observation, Selection, Bool[Array, "rows C"]],
    tuple[Int[Array, ""], Int[Array, ""], Any],
]


def empty(num_select: int) -> Selection:
    """The selection of phase 0."""
    return Selection(
        picks=Action(
            items=jnp.full(num_select, -1, jnp.int32),
            commands=jnp.zeros(num_select, jnp.int32),
        ),
        phase=jnp.zeros((), jnp.int32),
    )


def choose(selection: Selection, item: Int[Array, ""], command: Int[Array, ""]) -> Selection:
    """The selection after one more pick; item −1 picks nothing. The phase goes on by one."""
    items, commands = selection.picks
    now = jnp.arange(items.shape[0]) == selection.phase
    picks = Action(
        items=jnp.where(now, item, items),
        commands=jnp.where(now & (item >= 0), command, commands),
    )
    return Selection(picks, selection.phase + 1)


def picked(picks: Action, num_items: int) -> Bool[Array, " N"]:
    """Which items are picked; a pick of −1 picks nothing."""
    return _hits(picks, num_items).any(axis=0)


def command_of_item(picks: Action, num_items: int) -> Int[Array, " N"]:
    """The command that each item receives, 0 for those not picked."""
    return jnp.where(_hits(picks, num_items), picks.commands[:, None], 0).sum(axis=0)


def legal(
    observation: Observation, selection: Selection, legal_after: LegalAfter | None = None
) -> Bool[Array, "N C"]:
    """Which pairs may be chosen now: legal, present, and the item not chosen before."""
    num_items = observation.present.shape[0]
    chosen = picked(selection.picks, num_items)
    mask = observation.legal & (observation.present & ~chosen)[:, None]
    if legal_after is None:
        return mask
    rest = legal_after(observation, chosen, command_of_item(selection.picks, num_items))
    if rest.shape != mask.shape:
        raise SelectError(
            f"`legal_after` gives shape {rest.shape} where {mask.shape} is seen: make it of what "
            "its arguments show, whose N may be another than that of `spec`"
        )
    return mask & rest


def with_pass(mask: Bool[Array, "N C"], selection: Selection) -> Bool[Array, "N+1 C"]:
    """The legal pairs, and under them the pass; nothing is legal any more once it was taken."""
    made = jnp.arange(selection.picks.items.shape[0]) < selection.phase
    passed = (made & (selection.picks.items < 0)).any()
    row = jnp.arange(mask.shape[1]) == 0
    return jnp.concatenate([mask, row[None]]) & ~passed


def as_pick(
    item: Int[Array, ""], command: Int[Array, ""], mask: Bool[Array, "rows C"], num_items: int
) -> Action:
    """What was chosen by these rows, as a pick: item −1 to pass, and where nothing is legal."""
    picks = mask.any()
    if mask.shape[0] > num_items:
        picks &= item < num_items
    return Action(
        items=jnp.where(picks, item, -1).astype(jnp.int32),
        commands=jnp.where(picks, command, 0).astype(jnp.int32),
    )


def unroll(
    key: Key[Array, ""],
    observation: Observation,
    chooser: Chooser,
    num_select: int,
    legal_after: LegalAfter | None = None,
    allow_pass: bool = False,
) -> tuple[Action, Any]:
    """Run `chooser` K times, each chosen item leaving the unselected set.

    `chooser(key, observation, selection, legal)` gives (item, command, anything); the
    anythings come back stacked over phases. It is not heeded where nothing is legal. Where a pass
    is allowed, `legal` has a row for it.
    """
    num_items = observation.present.shape[0]

    def phase(selection: Selection, phase_key: Key[Array, ""]) -> tuple[Selection, Any]:
        mask = legal(observation, selection, legal_after)
        if allow_pass:
            mask = with_pass(mask, selection)
        item, command, aside = chooser(phase_key, observation, selection, mask)
        pick = as_pick(item, command, mask, num_items)
        return choose(selection, *pick), (pick, aside)

    start = empty(num_select)
    _, (action, aside) = jax.lax.scan(phase, start, jax.random.split(key, num_select))
    return action, aside


def selections(action: Action) -> Selection:
    """The selection before each of the K phases and after the last, stacked: [K + 1, …]."""
    num_select = action.items.shape[0]
    phases = jnp.arange(num_select + 1, dtype=jnp.int32)
    made = jnp.arange(num_select)[None] < phases[:, None]
    made &= (action.items >= 0)[None]
    picks = Action(
        items=jnp.where(made, action.items[None], -1),
        commands=jnp.where(made, action.commands[None], 0),
    )
    return Selection(picks, phases)


def expand(transition: Transition, allow_pass: bool = False) -> PhaseTransition:
    """The K phase transitions of one S-MDP step, stacked on a leading axis (eq. 1)."""
    action = transition.action
    num_select = action.items.shape[0]
    stacked = selections(action)
    last = is_last(action.items, allow_pass)

    def per_phase(value: Array) -> Array:
        return jnp.broadcast_to(value, (num_select, *value.shape))

    def at_last(following: Array, same: Array) -> Array:
        mask = last.reshape((num_select,) + (1,) * (same.ndim - 1))
        return jnp.where(mask, following, same)

    observation = jax.tree.map(per_phase, transition.observation)
    following = jax.tree.map(per_phase, transition.next_observation)
    nothing = jax.tree.map(per_phase, empty(num_select))
    return PhaseTransition(
        observation=observation,
        selection=jax.tree.map(lambda rows: rows[:-1], stacked),
        item=action.items,
        command=action.commands,
        reward=jnp.where(last, transition.reward, 0.0),
        discount=jnp.where(last, transition.discount, 1.0),
        last=last,
        taken=taken(action.items, allow_pass),
        next_observation=jax.tree.map(at_last, following, observation),
        next_selection=jax.tree.map(at_last, nothing, jax.tree.map(lambda rows: rows[1:], stacked)),
    )


def taken(items: Int[Array, " K"], allow_pass: bool) -> Bool[Array, " K"]:
    """Which phases chose something: those with a pick, and the one that passed."""
    picks = items >= 0
    if not allow_pass:
        return picks
    return jnp.concatenate([jnp.ones(1, bool), picks[:-1]])


def is_last(items: Int[Array, " K"], allow_pass: bool = False) -> Bool[Array, " K"]:
    """Which phase took the last choice of a step; none where nothing was chosen at all."""
    chose, phases = taken(items, allow_pass), jnp.arange(items.shape[0])
    return chose & (phases == jnp.where(chose, phases, -1).max())


def random_choice(
    key: Key[Array, ""], observation: Observation, selection: Selection, mask: Bool[Array, "rows C"]
) -> tuple[Int[Array, ""], Int[Array, ""], None]:
    """A chooser that takes any legal pair with equal probability."""
    return *random_pair(draws.uniform(key, ()), mask), None


def random_pair(
    number: Float[Array, ""], mask: Bool[Array, "rows C"]
) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """The legal pair at this share of the way through all of them: random if the number is."""
    # The pair of a random rank among the legal ones: one number instead of one for each pair.
    per_item = mask.sum(axis=1)
    upto = jnp.cumsum(per_item)
    rank = jnp.floor(number * upto[-1]).astype(jnp.int32)
    item = jnp.minimum((upto <= rank).sum(), mask.shape[0] - 1)
    within = rank - (upto[item] - per_item[item])
    command = jnp.minimum((jnp.cumsum(mask[item]) <= within).sum(), mask.shape[1] - 1)
    return item, command


def best_pair(
    values: Float[Array, "rows C"], mask: Bool[Array, "rows #C"]
) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """The legal pair of the largest value; the first of equals."""
    flat = jnp.argmax(jnp.where(mask, values, -jnp.inf))
    return flat // values.shape[1], flat % values.shape[1]


def random_action(key: Key[Array, ""], env: Any, observation: Observation) -> Action:
    """K distinct random legal picks, or fewer by a pass: the reference policy `random`."""
    spec: Spec = env.spec
    after = getattr(env, "legal_after", None)
    action, _ = unroll(key, observation, random_choice, spec.num_select, after, spec.allow_pass)
    return action


def _hits(picks: Action, num_items: int) -> Bool[Array, "K N"]:
    # Comparing is faster than scattering for the few picks there are, and −1 hits nothing.
    return picks.items[:, None] == jnp.arange(num_items)[None]
