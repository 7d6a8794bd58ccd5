"""Theorem 2 (paper §4): four shared layers, wide enough, come close to any equi-invariant Q*.

Networks of growing width are fitted to random targets, and judged on fresh states by the largest
error, as a share of the target's range. Beside them stand the proof's own weights
(`construction`), and a target that is not equi-invariant: between a state and its reordered twin
any shared network misses it by half of what the two should differ, however wide it is.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Key

from selectmdp.nets.base import leaky
from selectmdp.nets.layers import Affine
from selectmdp.theory import construction, networks, targets
from selectmdp.theory.networks import Sizes, Theta
from selectmdp.theory.plan import Plan, Progress, Verdict
from selectmdp.theory.targets import EQUI_INVARIANT, Kind, Target

ALLOWED = 0.2
"""Largest error of the widest network, as a share of the target's range; the control's floor is
about 0.5."""
SHRINKS = 0.5
"""The widest network's error is at most this share of the narrowest one's."""
CONSTRUCTED = 0.01
"""The same for the finest construction."""
KNOTS = (2, 4, 8, 16, 32, 64)
SELECTED, UNSELECTED, COMMANDS = 2, 3, 2
LAYERS = 4
BATCH = 256
LEARNING_RATE = 5e-3
CONTROL = {"by place": Kind(targets.by_place, 1)}


def check(plan: Plan, progress: Progress) -> Verdict:
    """Fits, the construction and the control."""
    kinds = {name: EQUI_INVARIANT[name] for name in plan.targets}
    kinds |= CONTROL if plan.broken == "target" else {}
    ends = plan.widths[0], plan.widths[-1]
    total = len(kinds) * len(plan.widths) + len(ends) + 1
    done = 0
    fits: list[dict[str, Any]] = []
    for name, kind in kinds.items():
        for width, error in fitted(kind, plan.widths, plan):
            fits.append({"target": name, "width": width, "error": error})
            progress(done := done + 1, total)
    control = []
    for _, error in fitted(CONTROL["by place"], ends, plan):
        control.append(error)
        progress(done := done + 1, total)
    built = constructed(plan)
    progress(total, total)
    narrowest, widest = ([f["error"] for f in fits if f["width"] == end] for end in ends)
    shrinks = all(
        after <= SHRINKS * before for before, after in zip(narrowest, widest, strict=True)
    )
    floor = order_gap(CONTROL["by place"], plan)
    apart = max(widest) <= ALLOWED < min(*control, floor)
    return Verdict(
        statement="four shared layers come close to any equi-invariant Q (theorem 2)",
        checked="largest error on fresh states over the target's range, at the greatest width",
        holds=apart and shrinks and built["holds"],
        instances=len(fits) + len(built["rows"]),
        max_error=max(widest),
        allowed=ALLOWED,
        details={
            "fits": fits,
            "construction": built,
            "order_gaps": {name: order_gap(kind, plan) for name, kind in kinds.items()},
            "controls": {"target that depends on places": min(control)},
            "control": {"floor": floor, "widths": list(ends), "errors": control},
        },
    )


def fitted(kind: Kind, widths: Sequence[int], plan: Plan) -> Iterator[tuple[int, float]]:
    """Each width, and the largest error on fresh states of a network so wide, over the range.

    A narrow network is trained as a wide one whose other channels are 0: no gradient reaches them,
    so they stay 0, and one compiled program serves all widths.
    """
    sizes = Sizes(SELECTED, UNSELECTED, kind.features, COMMANDS, widths[-1], LAYERS - 1)
    target = kind.make(np.random.default_rng(plan.seed), sizes)
    fresh_key, train_key = jax.random.split(jax.random.key(plan.seed))
    x, i = targets.states(fresh_key, sizes, plan.points)
    wanted = jax.jit(jax.vmap(target))(x, i)
    centre, scale = wanted.mean(), wanted.std()
    train = jax.jit(trainer(lambda x, i: (target(x, i) - centre) / scale, sizes, plan.steps))
    values = jax.jit(jax.vmap(partial(networks.shared, activation=leaky), (None, 0, 0)))
    for width in widths:
        theta = networks.init(np.random.default_rng(plan.seed), replace(sizes, channels=width))
        theta = train(padded(theta, widths[-1]), train_key)
        error = jnp.abs(values(theta, x, i) * scale + centre - wanted).max()
        yield width, float(error / (wanted.max() - wanted.min()))


def trainer(target: Target, sizes: Sizes, steps: int) -> Callable[[Theta, Key[Array, ""]], Theta]:
    """Adam on fresh random states, the rate falling to 0."""
    optimiser = optax.adam(optax.cosine_decay_schedule(LEARNING_RATE, steps))

    def loss(theta: Theta, x: Float[Array, "B k X"], i: Float[Array, "B M F"]) -> Array:
        values = jax.vmap(partial(networks.shared, activation=leaky), (None, 0, 0))(theta, x, i)
        return ((values - jax.vmap(target)(x, i)) ** 2).mean()

    def step(held: tuple[Theta, Any], key: Key[Array, ""]) -> tuple[tuple[Theta, Any], None]:
        theta, state = held
        slope = jax.grad(loss)(theta, *targets.states(key, sizes, BATCH))
        change, state = optimiser.update(slope, state)
        return (optax.apply_updates(theta, change), state), None

    def train(theta: Theta, key: Key[Array, ""]) -> Theta:
        (theta, _), _ = jax.lax.scan(
            step, (theta, optimiser.init(theta)), jax.random.split(key, steps)
        )
        return theta

    return train


def padded(theta: Theta, channels: int) -> Theta:
    """The same network with more channels, which are 0."""
    first, *others = theta["phi"]
    more = channels - len(first["unselected"]["bias"])
    rest = [{name: _padded(part, more, more) for name, part in layer.items()} for layer in others]
    return {
        "phi": [{name: _padded(part, 0, more) for name, part in first.items()}, *rest],
        "psi": _padded(theta["psi"], more, 0),
    }


def constructed(plan: Plan) -> dict[str, Any]:
    """The proof's weights, finer and finer, against their bound; errors over the range."""
    sizes = Sizes(SELECTED, UNSELECTED, EQUI_INVARIANT["sums"].features, COMMANDS, 1, LAYERS - 1)
    target = targets.sums(np.random.default_rng(plan.seed), sizes)
    rows: list[dict[str, float]] = []
    with jax.enable_x64(True):
        x, i = targets.states(jax.random.key(plan.seed), sizes, plan.points)
        wanted = jax.jit(jax.vmap(target))(x, i)
        spread = float(wanted.max() - wanted.min())
        values = jax.jit(jax.vmap(partial(networks.shared, activation=leaky), (None, 0, 0)))
        for knots in KNOTS:
            theta = construction.construct(target, sizes, knots)
            error = float(jnp.abs(values(theta, x, i) - wanted).max())
            most = construction.bound(target, sizes, knots)
            rows.append(
                {
                    "knots": knots,
                    "width": construction.width(theta),
                    "error": error / spread,
                    "bound": most / spread,
                }
            )
    within = all(row["error"] <= row["bound"] for row in rows)
    return {"holds": within and rows[-1]["error"] <= CONSTRUCTED, "rows": rows}


def order_gap(kind: Kind, plan: Plan) -> float:
    """What no shared network can do better: half of |Q*(σ(s)) − σ(Q*(s))|, over the range.

    0 for an equi-invariant target, but for rounding.
    """
    sizes = Sizes(SELECTED, UNSELECTED, kind.features, COMMANDS, 1)
    target = jax.jit(jax.vmap(kind.make(np.random.default_rng(plan.seed), sizes)))
    drawn = targets.states(jax.random.key(plan.seed), sizes, plan.points)
    x, i = (np.asarray(part) for part in drawn)
    plain, worst = np.asarray(target(x, i)), 0.0
    for picks, items in networks.orders(sizes):
        turned = target(x[:, list(picks)], i[:, list(items)])
        worst = max(worst, float(np.abs(turned - plain[:, list(items)]).max()))
    return worst / 2.0 / float(np.ptp(plain))


def _padded(part: Affine, before: int, after: int) -> Affine:
    """So many more channels come in, from either set, and go out."""
    columns = part["means"].shape[1]
    halves = part["means"].reshape(2, -1, columns) if before else part["means"][None]
    means = jnp.pad(halves, ((0, 0), (0, before), (0, after)))
    return {
        "own": jnp.pad(part["own"], ((0, before), (0, after))),
        "means": means.reshape(-1, columns + after),
        "bias": jnp.pad(part["bias"], (0, after)),
    }
