"""Does the order of items matter? It must not (paper §3.2: the Q-values are equi-invariant).

Seen: observing the permuted state is the permuted observation, context unchanged, up to rounding.
Then: a step from the permuted state with the permuted picks has the same reward, discount and next
sums over items and context *in distribution*. Draws may belong to an item's index, so that one key
proves nothing: 256 pairs of independent keys are compared. Where all is well each difference is
symmetric, hence P(|Σd| ≥ 6 √Σd²) ≤ 2 exp(−18), whatever the distribution: 3 in a hundred million.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jaxtyping import Array, Float, Int, Key

from selectmdp.check.forms import permute_form
from selectmdp.check.probe import JaxProbe, Trail
from selectmdp.check.report import NotChecked, Wrong, close
from selectmdp.envs.base import offers
from selectmdp.spec import Spec
from selectmdp.types import Action, Observation

PAIRS = 256
THRESHOLD = 6.0


def permutation(probe: JaxProbe) -> str:
    """Permuting the items permutes what is observed and nothing else."""
    spec = probe.env.spec
    if offers(probe.env, "permute") is None:
        raise NotChecked("the environment offers no permute(state, order), so none can be made")
    if spec.num_items < 2:
        raise NotChecked("there is one item only")
    permute_form(probe)
    orders = _orders(spec.num_items, probe.seed)
    steps = np.linspace(0, probe.steps - 1, len(orders)).astype(int)
    see = jax.jit(lambda trail: _seen(probe, jax.tree.map(lambda leaf: leaf[steps], trail), orders))
    rows, permuted, expected, seen = see(probe.trail)
    _check_seen(expected, seen, orders)

    keys = jax.random.split(probe.key, (2 * len(orders), PAIRS))
    compare = jax.jit(lambda *given: _both_outcomes(probe, *given))
    plain, turned = compare(rows, permuted, orders, keys)
    _check_outcomes(plain, turned, spec)
    return (
        f"{len(orders)} states seen in another order; reward, discount and what comes next agree "
        f"in the mean over {PAIRS} pairs of keys"
    )


def _seen(probe: JaxProbe, rows: Trail, orders: npt.NDArray[np.int32]) -> Any:
    """The rows, their permuted states, what should be seen then, and what is."""
    order_of_row = jnp.asarray(orders)
    permuted = jax.vmap(probe.env.permute)(rows.state, order_of_row)
    expected = jax.vmap(_reordered)(rows.observation, order_of_row)
    return rows, permuted, expected, jax.vmap(probe.env.observe)(permuted)


def _both_outcomes(probe: JaxProbe, rows: Trail, permuted: Any, orders: Array, keys: Array) -> Any:
    actions = jax.vmap(_followed)(rows.action, orders)
    worlds = jax.tree.map(
        lambda *parts: jnp.concatenate(parts), (rows.state, rows.action), (permuted, actions)
    )
    # Loops, not vmap: they compile several times faster, and these worlds are small.
    return jnp.split(jax.lax.map(lambda given: _outcomes(probe, *given), (keys, *worlds)), 2)


def _orders(num_items: int, seed: int) -> npt.NDArray[np.int32]:
    turned = np.arange(num_items)
    shuffled = np.random.default_rng(seed).permutation(num_items)
    return np.stack([turned[::-1], np.roll(turned, 1), shuffled]).astype(np.int32)


def _check_seen(expected: Observation, seen: Observation, orders: npt.NDArray[np.int32]) -> None:
    present = np.asarray(expected.present)[..., None]
    for name in Observation._fields:
        want = np.asarray(getattr(expected, name), np.float64)
        got = np.asarray(getattr(seen, name), np.float64)
        if name == "items":  # what padding holds is nobody's business
            want, got = (np.where(present, part, 0.0) for part in (want, got))
        wrong = ~close(got, want)
        if wrong.any():
            case, *place = np.argwhere(wrong)[0].tolist()
            raise Wrong(
                f"with the items in the order {orders[case].tolist()} "
                f"observation.{name}{place} is {got[wrong][0]} instead of {want[wrong][0]}: "
                "`observe` must not use an item's index, and permute(state, order) must put item "
                "order[i] at place i and leave the context alone"
            )


def _followed(action: Action, order: Int[Array, " N"]) -> Action:
    """The same picks, where the items are now."""
    return action._replace(items=jnp.where(action.items >= 0, jnp.argsort(order)[action.items], -1))


def _reordered(observation: Observation, order: Int[Array, " N"]) -> Observation:
    return observation._replace(
        items=observation.items[order],
        present=observation.present[order],
        legal=observation.legal[order],
    )


def _outcomes(
    probe: JaxProbe, keys: Key[Array, " PAIRS"], state: Any, action: Action
) -> Float[Array, "PAIRS 2 facts"]:
    """What came of a step under each key, and how much was added up for it."""

    def once(key: Key[Array, ""]) -> Float[Array, "2 facts"]:
        following, reward, discount = probe.env.step(key, state, action)
        seen = probe.env.observe(following)
        counts = jnp.stack([reward, discount, seen.present.sum(), seen.legal.sum()])
        items = jnp.where(seen.present[:, None], seen.items, 0.0)
        context = jnp.where(seen.context_present[:, None], seen.context, 0.0)
        # Sums over items: at which place a new item enters is the environment's choice.
        facts = jnp.concatenate([counts, items.sum(axis=0), context.sum(axis=0)])
        added = jnp.concatenate(
            [jnp.abs(counts), jnp.abs(items).sum(axis=0), jnp.abs(context).sum(axis=0)]
        )
        return jnp.stack([facts, added]).astype(jnp.float32)

    return jax.lax.map(once, keys)


def _check_outcomes(left: Array, right: Array, spec: Spec) -> None:
    before, after = (
        np.nan_to_num(np.asarray(part, np.float64), posinf=0.0, neginf=0.0)
        for part in (left, right)
    )
    (plain, added), (permuted, added_after) = (np.moveaxis(part, 2, 0) for part in (before, after))
    size = np.maximum(added, added_after).max(axis=1, keepdims=True)
    difference = permuted - plain
    difference[np.abs(difference) <= 1e-4 * (1 + size)] = 0.0  # rounding, in another order
    spread = np.sqrt(np.square(difference).sum(axis=1))
    wrong = np.abs(difference.sum(axis=1)) > THRESHOLD * np.maximum(spread, 1e-12)
    if wrong.any():
        case, fact = np.argwhere(wrong)[0].tolist()
        was, now = plain[case, :, fact].mean(), permuted[case, :, fact].mean()
        raise Wrong(
            f"with the items in another order {_facts(spec)[fact]} is {now:.4g} in the mean "
            f"instead of {was:.4g}: `step` must treat all items alike, whatever their index"
        )


def _facts(spec: Spec) -> list[str]:
    return [
        "the reward",
        "the discount",
        "the number of items present",
        "the number of legal pairs",
        *(f"the sum of item feature {i} after the step" for i in range(spec.item_features)),
        *(f"the sum of context feature {i} after the step" for i in range(spec.context_features)),
    ]
