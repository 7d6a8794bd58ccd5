"""Proposition 1 (paper §3.1): Q* does not mind the order of the picks, and moves with the items.

Exact Q-values of random worlds are compared over all orders of the items and of the picks, and
those of an I-shared network over all of S_k × S_{N−k}. In worlds that are not alike for all items,
and in a network with one weight untied, the property must be seen to fail.
"""

from functools import partial
from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np

from selectmdp.theory import networks
from selectmdp.theory.iterated import IteratedSolution
from selectmdp.theory.networks import Omega, Sizes
from selectmdp.theory.plan import Plan, Progress, Verdict
from selectmdp.theory.worlds import moved, reordered

ALLOWED = 1e-8
NETWORKS = (
    Sizes(selected=0, unselected=4, features=3, commands=2, channels=4),
    Sizes(selected=2, unselected=3, features=3, commands=2, channels=4),
    Sizes(selected=3, unselected=2, features=2, commands=3, channels=4),
)


def check(plan: Plan, progress: Progress) -> Verdict:
    """The largest deviation of Q* and of shared networks, and of their controls."""
    worlds = plan.solved
    errors = []
    for index, each in enumerate(worlds):
        errors.append(deviation(each.iterated))
        progress(index + 1, len(worlds))
    pairs = [network_deviations(sizes, plan.seed) for sizes in NETWORKS]
    untied = [other for _, other in pairs]
    tied = untied if plan.broken == "untie" else [one for one, _ in pairs]
    drawn = (plan.solve(index, symmetric=False) for index in range(len(plan.shapes)))
    asymmetric = [deviation(each.iterated) for each in drawn]
    controls = {"asymmetric world": min(asymmetric), "one weight untied": min(untied)}
    return Verdict(
        statement="Q* is equi-invariant (proposition 1)",
        checked="exact Q* over all orders of items and picks; I-shared networks likewise",
        holds=max(*errors, *tied) <= ALLOWED < min(controls.values()),
        instances=len(errors) + len(tied),
        max_error=max(*errors, *tied),
        allowed=ALLOWED,
        details={
            "worlds": len(errors),
            "worlds_max_error": max(errors),
            "networks": len(tied),
            "networks_max_error": max(tied),
            "controls": controls,
        },
    )


def deviation(solution: IteratedSolution) -> float:
    """How far Q* is from equi-invariance, over S_N for the items and S_k for k picks."""
    looks = solution.world.items.argmax(axis=2)
    tables = [np.where(np.isfinite(q), q, 0.0) for q in solution.q]
    worst = 0.0
    for order in permutations(range(looks.shape[1])):
        states = reordered(looks, order)
        for q, prefixes, places in zip(tables, solution.prefixes, solution.places, strict=True):
            same = np.array([places[moved(picks, order)] for picks in prefixes])
            worst = max(worst, np.abs(q[np.ix_(states, same)] - q[:, :, order]).max())
    for phase, (q, prefixes) in enumerate(zip(tables, solution.prefixes, strict=True)):
        places = solution.places[phase]
        for order in permutations(range(phase)):
            swapped = (tuple(picks[place] for place in order) for picks in prefixes)
            same = np.array([places[picks] for picks in swapped])
            worst = max(worst, np.abs(q[:, same] - q).max())
    return float(worst)


def network_deviations(sizes: Sizes, seed: int, states: int = 8) -> tuple[float, float]:
    """How far the dense network ω(θ) of a random θ is from equi-invariance, tied and untied."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(states, sizes.selected, sizes.features + sizes.commands))
    i = rng.normal(size=(states, sizes.unselected, sizes.features))
    with jax.enable_x64(True):
        omega = jax.jit(partial(networks.projected, sizes=sizes))(networks.init(rng, sizes))
        values = jax.jit(jax.vmap(partial(networks.dense, activation=jnp.tanh), (None, 0, 0)))
        worst = []
        for each in (omega, untie(omega)):
            plain = np.asarray(values(each, x, i))
            gaps = [
                np.abs(values(each, x[:, list(picks)], i[:, list(items)]) - plain[:, list(items)])
                for picks, items in networks.orders(sizes)
            ]
            worst.append(float(np.max(gaps)))
    return worst[0], worst[1]


def untie(omega: Omega) -> Omega:
    """One weight alone, by a tenth: the first of the first layer, from an unselected item."""
    first = {**omega[0], "weight": omega[0]["weight"].at[0, 0].add(0.1)}
    return [first, *omega[1:]]
