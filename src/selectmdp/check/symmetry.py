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
from selectmdp.check.report import NotChecked, Wrong
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
    keys = jax.random.split(probe.key, (2 * len(orders), PAIRS))
    compare = jax.jit(lambda *given: _compare(probe, steps, *given))
    expected, seen, plain, permuted = compare(probe.trail, jnp.asarray(orders), keys)
    _check_seen(expected, seen, orders)
    _check_outcomes(plain, permuted, spec)
    return (
        f"{len(orders)} states seen in another order; reward, discount and what comes next agree "
        f"in the mean over {PAIRS} pairs of keys"
    )


def _compare(probe: JaxProbe, steps: Any, trail: Trail, orders: Array, keys: Array) -> Any:
    """The permuted observations as they should be and as they are; outcomes, plain and permuted."""
    rows = jax.tree.map(lambda leaf: leaf[steps], trail)
    permuted = jax.vmap(probe.env.permute)(rows.state, orders)
    actions = jax.vmap(_followed)(rows.action, orders)
    worlds = jax.tree.map(
        lambda *parts: jnp.concatenate(parts), (rows.state, rows.action), (permuted, actions)
    )
    # Loops, not vmap: they compile several times faster, and these worlds are small.
    outcomes = jax.lax.map(lambda given: _outcomes(probe, *given), (keys, *worlds))
    plain_outcomes, permuted_outcomes = jnp.split(outcomes, 2)
    seen = jax.vmap(probe.env.observe)(permuted)
    return jax.vmap(_reordered)(rows.observation, orders), seen, plain_outcomes, permuted_outcomes


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
        wrong = ~np.isclose(got, want, rtol=1e-4, atol=1e-5, equal_nan=True)
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
) -> Float[Array, "PAIRS facts"]:
    def once(key: Key[Array, ""]) -> Float[Array, " facts"]:
        following, reward, discount = probe.env.step(key, state, action)
        seen = probe.env.observe(following)
        # Sums over items: where new items enter is the environment's choice.
        items = jnp.where(seen.present[:, None], seen.items, 0.0).sum(axis=0)
        context = jnp.where(seen.context_present[:, None], seen.context, 0.0).sum(axis=0)
        counts = jnp.stack([reward, discount, seen.present.sum(), seen.legal.sum()])
        return jnp.concatenate([counts, items, context]).astype(jnp.float32)

    return jax.lax.map(once, keys)


def _check_outcomes(left: Array, right: Array, spec: Spec) -> None:
    plain, permuted = (
        np.nan_to_num(np.asarray(part, np.float64), posinf=0.0, neginf=0.0)
        for part in (left, right)
    )
    size = np.maximum(np.abs(plain), np.abs(permuted)).max(axis=1, keepdims=True)
    difference = permuted - plain
    difference[np.abs(difference) <= 1e-4 * size + 1e-4] = 0.0  # rounding, in another order
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
