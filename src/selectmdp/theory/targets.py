"""Continuous functions that I-shared networks are to approximate (paper §4, lemma 2).

Each is a Q-function of one state (x, i), values in [M, C]; a seed draws its coefficients. All but
`by_place` are equi-invariant: `sums` has the form of lemma 2, the others are told in other words,
with maxima, sorted values and distances. Features lie within [−1, 1].
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from selectmdp.theory.networks import Sizes

Target = Callable[[Float[Array, "k X"], Float[Array, "M F"]], Float[Array, "M C"]]


class Ridges(NamedTuple):
    """u ↦ (sin(a · u + b) for every row a): continuous, and as simple as a function of many."""

    directions: Float[np.ndarray, "R D"]
    shifts: Float[np.ndarray, " R"]

    def __call__(self, u: Float[Array, " D"]) -> Float[Array, " R"]:
        return jnp.sin(jnp.asarray(self.directions) @ u + jnp.asarray(self.shifts))


@dataclass(frozen=True, eq=False)
class Sums:
    """H(Σ ξ_x(x), i, Σ ξ_i(i′)) with the sum over the other unselected items (lemma 2)."""

    of_selected: Ridges
    of_unselected: Ridges
    whole: Ridges
    """Of all three, one after the other."""
    weights: Float[np.ndarray, "C R"]
    """H is these sums of `whole`."""

    def __call__(self, x: Float[Array, "k X"], i: Float[Array, "M F"]) -> Float[Array, "M C"]:
        chosen = jax.vmap(self.of_selected.__call__)(x).sum(axis=0)
        each = jax.vmap(self.of_unselected.__call__)(i)

        def row(item: Float[Array, " F"], own: Float[Array, " R"]) -> Float[Array, " C"]:
            u = jnp.concatenate([chosen, item, each.sum(axis=0) - own])
            return jnp.asarray(self.weights) @ self.whole(u)

        return jax.vmap(row)(i, each)


def sums(rng: np.random.Generator, sizes: Sizes) -> Sums:
    """Two sums of each set, four terms in H."""
    selected = _ridges(rng, 2, sizes.features + sizes.commands, 1.5)
    unselected = _ridges(rng, 2, sizes.features, 1.5)
    whole = _ridges(rng, 4, 4 + sizes.features, 1.0)
    return Sums(selected, unselected, whole, rng.normal(size=(sizes.commands, 4)) / 2.0)


def pairwise_maxima(rng: np.random.Generator, sizes: Sizes) -> Target:
    """The farthest pick, by a command's own measure, and the best partner among the others."""
    measures = jnp.asarray(rng.uniform(0.5, 1.5, (sizes.commands, sizes.features)))

    def target(x: Float[Array, "k X"], i: Float[Array, "M F"]) -> Float[Array, "M C"]:
        apart = jnp.abs(i[:, None] - x[None, :, : sizes.features])
        farthest = (apart @ measures.T).max(axis=1)
        partner = jnp.where(jnp.eye(len(i), dtype=bool), -jnp.inf, i @ i.T).max(axis=1)
        return farthest + partner[:, None]

    return target


def sorted_statistics(rng: np.random.Generator, sizes: Sizes) -> Target:
    """Weights by rank: of the picks, and of the other unselected items times the item itself."""
    of_picks = jnp.asarray(rng.uniform(-1.0, 1.0, sizes.selected))
    of_others = jnp.asarray(rng.uniform(-1.0, 1.0, (sizes.commands, sizes.unselected - 1)))

    def target(x: Float[Array, "k X"], i: Float[Array, "M F"]) -> Float[Array, "M C"]:
        picks = jnp.sort(x[:, 0] + 0.3 * x[:, -1]) @ of_picks
        places = np.arange(len(i))
        others = np.stack([np.delete(places, place) for place in places])
        ranked = jnp.sort(i[:, 0][others], axis=1) @ of_others.T
        return picks + ranked * (1.0 + i[:, :1])

    return target


def collision_margins(rng: np.random.Generator, sizes: Sizes) -> Target:
    """How far an item, moved by its command, stays clear of the nearest pick: circles as items.

    The last feature is the radius, the others are the centre; the picks have moved as well.
    """
    moves = jnp.asarray(rng.uniform(-0.5, 0.5, (sizes.commands, sizes.features - 1)))

    def target(x: Float[Array, "k X"], i: Float[Array, "M F"]) -> Float[Array, "M C"]:
        last = sizes.features - 1
        picks = x[:, :last] + x[:, sizes.features :] @ moves
        centres = i[:, None, :last] + moves[None]
        distance = jnp.sqrt(((centres[:, :, None] - picks[None, None]) ** 2).sum(axis=3) + 1e-6)
        radii = 0.25 * (2.0 + i[:, None, None, last] + x[None, None, :, last])
        return (distance - radii).min(axis=2)

    return target


def by_place(rng: np.random.Generator, sizes: Sizes) -> Target:
    """Not equi-invariant: items at even places are worth their first feature, others its loss."""
    del rng
    signs = jnp.asarray((-1.0) ** np.arange(sizes.unselected))

    def target(x: Float[Array, "k X"], i: Float[Array, "M F"]) -> Float[Array, "M C"]:
        del x
        return jnp.repeat((signs * i[:, 0])[:, None], sizes.commands, axis=1)

    return target


class Kind(NamedTuple):
    """A family of targets, and how many features its items have."""

    make: Callable[[np.random.Generator, Sizes], Target]
    features: int


EQUI_INVARIANT: Mapping[str, Kind] = {
    "sums": Kind(sums, 1),
    "pairwise maxima": Kind(pairwise_maxima, 2),
    "sorted statistics": Kind(sorted_statistics, 1),
    "collision margins": Kind(collision_margins, 3),
}


def states(
    key: Key[Array, ""], sizes: Sizes, count: int
) -> tuple[Float[Array, "B k X"], Float[Array, "B M F"]]:
    """Random states, features uniform in [−1, 1], commands by chance."""
    selected_key, command_key, unselected_key = jax.random.split(key, 3)
    shape = (count, sizes.selected, sizes.features)
    rows = jax.random.uniform(selected_key, shape, minval=-1.0, maxval=1.0)
    chosen: Int[Array, "B k"] = jax.random.randint(command_key, shape[:2], 0, sizes.commands)
    commands = jax.nn.one_hot(chosen, sizes.commands, dtype=rows.dtype)
    others = (count, sizes.unselected, sizes.features)
    unselected = jax.random.uniform(unselected_key, others, minval=-1.0, maxval=1.0)
    return jnp.concatenate([rows, commands], axis=2), unselected


def _ridges(rng: np.random.Generator, count: int, width: int, scale: float) -> Ridges:
    directions = rng.normal(0.0, scale / np.sqrt(width), (count, width))
    return Ridges(directions, rng.uniform(-np.pi, np.pi, count))
