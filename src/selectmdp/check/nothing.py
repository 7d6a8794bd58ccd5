"""Does a step leave the items alone for a pick of −1, which picks nothing?

JAX does not refuse −1 as an index: `x[-1]` is the last item, and the step acts on it unasked. What
each part of a step's result is with −1 in place of the last pick is held against the same step, by
the same key, with the last item in that place, for every command. A part acts on the last item if
it is always the same, is another with another item there, and another without the pick at all.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jaxtyping import Array, Key

from selectmdp.check.probe import JaxProbe
from selectmdp.check.report import NotChecked, Wrong
from selectmdp.envs.base import offers
from selectmdp.iterative import Selection, legal
from selectmdp.types import Action, Observation

EPISODES = 4
"""How many trails are looked at."""
LEAST = 8
"""Fewer cases prove nothing: that pick may have changed nothing by chance."""
MEND = (
    "turn −1 into N, items = jnp.where(action.items < 0, N, action.items), and write with "
    "`.at[items].…(…, mode='drop')`; or take `iterative.picked(action, N)`, which knows −1"
)


def minus_one(probe: JaxProbe) -> str:
    """A pick of −1 picks nothing."""
    spec = probe.env.spec
    if spec.num_items < 2:
        raise NotChecked("there is one item only")
    trails = [probe.play(probe.seed + episode) for episode in range(EPISODES)]
    trail = jax.tree.map(lambda *parts: jnp.concatenate(parts), *trails)
    compare = jax.jit(jax.vmap(lambda *given: _compared(probe, *given)))
    told = compare(trail.key, trail.state, trail.observation, trail.action)
    as_last, as_other, known, other_known = (np.asarray(part) for part in told)
    cases = int(known.sum())
    acts = ~(known[..., None] & ~as_last).any(axis=(0, 1))
    acts &= (other_known[..., None] & ~as_other).any(axis=(0, 1)) & (cases >= LEAST)
    if acts.any():
        acts &= ~_as_without(probe, trail)
    if not acts.any():
        return f"a pick of −1 leaves the last item alone, as far as {cases} cases show"
    part = _names(probe)[int(acts.argmax())]
    said = (
        f"with −1 in place of the last pick {part} is in each of {cases} cases what it is with "
        f"item {spec.num_items - 1}, the last: JAX takes −1 for it. {MEND}"
    )
    if spec.allow_pass or (np.asarray(trail.action.items) < 0).any():
        raise Wrong(said)
    return f"no pick was −1 in {len(known)} steps. Note: should one be, {said}"


def _compared(
    probe: JaxProbe, key: Key[Array, ""], state: Any, seen: Observation, action: Action
) -> tuple[Array, Array, Array, Array]:
    """Which parts are the same with −1 as with the last item, and as with another: [C, parts]; and
    whether that pick would be legal [C]."""
    num_items, num_commands = probe.env.spec.num_items, probe.env.spec.num_commands
    before = Selection(_with_last(action, -1, 0), jnp.asarray(action.items.shape[0] - 1))
    open_pairs = legal(seen, before, offers(probe.env, "legal_after"))
    other = jnp.argmax(open_pairs[:-1], axis=0)  # the first item that may have the command

    def parts(item: Any, command: Array) -> list[Array]:
        return _parts(probe, key, state, _with_last(action, item, command))

    def each(command: Array) -> tuple[Array, Array]:
        nothing = parts(-1, command)
        last, another = parts(num_items - 1, command), parts(other[command], command)
        return _same(nothing, last), _same(nothing, another)

    as_last, as_other = jax.lax.map(each, jnp.arange(num_commands))
    return as_last, as_other, open_pairs[-1], open_pairs[:-1].any(axis=0)


def _as_without(probe: JaxProbe, trail: Any) -> npt.NDArray[np.bool_]:
    """Which parts are, in all steps, what they are with one pick less."""

    def one(key: Key[Array, ""], state: Any, action: Action) -> Array:
        fewer = jax.tree.map(lambda part: part[:-1], action)
        return _same(
            _parts(probe, key, state, _with_last(action, -1, 0)), _parts(probe, key, state, fewer)
        )

    try:
        same = jax.jit(jax.vmap(one))(trail.key, trail.state, trail.action)
        return np.asarray(same.all(axis=0))
    except Exception as error:  # it may be written for K picks
        last = probe.env.spec.num_items - 1
        raise NotChecked(
            f"a pick of −1 does what item {last}, the last, does, and step takes no fewer picks to "
            f"show whether that is nothing. Should it take −1 for that item: {MEND}"
        ) from error


def _with_last(action: Action, item: Any, command: Any) -> Action:
    """The same picks but for the last."""
    return Action(action.items.at[-1].set(item), action.commands.at[-1].set(command))


def _parts(probe: JaxProbe, key: Key[Array, ""], state: Any, action: Action) -> list[Array]:
    parts: list[Array] = jax.tree.leaves(probe.env.step(key, state, action))
    return [jax.random.key_data(part) if _is_key(part) else part for part in parts]


def _is_key(part: Array) -> bool:
    return bool(jnp.issubdtype(part.dtype, jax.dtypes.prng_key))


def _same(left: list[Array], right: list[Array]) -> Array:
    return jnp.stack([(a == b).all() for a, b in zip(left, right, strict=True)])


def _names(probe: JaxProbe) -> list[str]:
    """What the parts of a step's result are called."""
    state, *rest = probe.form.outcome
    leaves = jax.tree_util.tree_leaves_with_path(state)
    paths = [f"state{jax.tree_util.keystr(path)}" for path, _ in leaves]
    return [*paths, "the reward", "the discount"][: len(paths) + len(rest)]
