"""An I-shared network and the dense one of the same structure (paper §4, appendix A).

The shared one is the library's: its parameters θ are those of `nets.isq`, its layers those of
`nets.layers`; only the activation can be another. The dense one has a weight of its own for every
two units; ω(θ) is the place in its larger space Ω where it is the shared network. ω is linear, and
the orders of the items act on Ω by exchanging units. For one state (x, i): x holds the rows of the
selected items with their commands, i those of the unselected ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from selectmdp.nets import layers
from selectmdp.nets.isq import ISQ
from selectmdp.spec import Spec

Activation = Callable[[Array], Array]
Theta = dict[str, Any]
Omega = list[dict[str, Array]]
Orders = tuple[tuple[int, ...], tuple[int, ...]]
"""(σ_x, σ_i): which row stands at each place, of the selected and of the unselected items."""


@dataclass(frozen=True)
class Sizes:
    """One phase of an IS-MDP, and the network for it."""

    selected: int
    """k, the items selected before."""
    unselected: int
    """N − k."""
    features: int
    """Numbers that describe an item; a selected one has its command beside them, one-hot."""
    commands: int
    channels: int
    hidden: int = 2
    """φ layers before ψ."""


def init(rng: np.random.Generator, sizes: Sizes, scale: float = 1.0) -> Theta:
    """Random parameters of a shared network, biases too."""
    spec = Spec(
        num_items=sizes.selected + sizes.unselected,
        item_features=sizes.features,
        num_context=0,
        context_features=1,
        num_select=sizes.selected + 1,
        num_commands=sizes.commands,
    )
    shapes = jax.eval_shape(
        lambda key: ISQ(sizes.channels, sizes.hidden).init(key, spec), jax.random.key(0)
    )

    def drawn(leaf: Any) -> Array:
        spread = scale / np.sqrt(leaf.shape[0]) if len(leaf.shape) == 2 else 0.3 * scale
        return jnp.asarray(rng.normal(0.0, spread, leaf.shape))

    return jax.tree.map(drawn, shapes)


def shared(
    theta: Theta, x: Float[Array, "k X"], i: Float[Array, "M F"], activation: Activation
) -> Float[Array, "M C"]:
    """Q_θ of one state."""
    seen = ["unselected", "selected"]
    sets = {
        name: layers.Rows(rows, jnp.full(len(rows), 1.0 / max(len(rows), 1)))
        for name, rows in zip(seen, (i, x), strict=True)
    }
    for layer in theta["phi"]:
        means = layers.means(sets, seen)
        sets = {
            name: part._replace(rows=activation(layers.apply(layer[name], part.rows, means)))
            for name, part in sets.items()
        }
    return layers.apply(theta["psi"], sets["unselected"].rows, layers.means(sets, seen))


def dense(
    omega: Omega, x: Float[Array, "k X"], i: Float[Array, "M F"], activation: Activation
) -> Float[Array, "M C"]:
    """Q_ω of one state; its units are those of the shared network, unselected rows first."""
    units = jnp.concatenate([i.ravel(), x.ravel()])
    for layer in omega[:-1]:
        units = activation(units @ layer["weight"] + layer["bias"])
    return (units @ omega[-1]["weight"] + omega[-1]["bias"]).reshape(len(i), -1)


def projected(theta: Theta, sizes: Sizes) -> Omega:
    """ω(θ): the dense network with Q_ω(θ) = Q_θ; it is linear in θ."""
    counts = {"unselected": sizes.unselected, "selected": sizes.selected}
    phi = [_dense_layer(layer, counts) for layer in theta["phi"]]
    return [*phi, _dense_layer({"unselected": theta["psi"]}, counts)]


def orders(sizes: Sizes) -> list[Orders]:
    """All of S_k × S_{N−k}."""
    both = permutations(range(sizes.selected)), permutations(range(sizes.unselected))
    return list(product(*both))


def turned(omega: Omega, order: Orders, sizes: Sizes) -> Omega:
    """σ(ω): the units exchanged as the rows are, so that σ(Q_ω(s)) = Q_σ(ω)(σ(s))."""
    channels, last = sizes.channels, len(omega) - 1
    units = [_units(order, sizes.features, sizes.features + sizes.commands)]
    units += [_units(order, channels, channels)] * last
    units += [_units(((), order[1]), sizes.commands, 0)]
    return [
        {"weight": layer["weight"][before][:, after], "bias": layer["bias"][after]}
        for layer, before, after in zip(omega, units[:-1], units[1:], strict=True)
    ]


def _dense_layer(layer: dict[str, layers.Affine], counts: dict[str, int]) -> dict[str, Array]:
    """The weights from every row to every row; `layer` has the sets that come out of it."""
    out = [name for name in counts if name in layer]
    return {
        "weight": jnp.concatenate(
            [_from_all_rows(layer[name], name, counts) for name in out], axis=1
        ),
        "bias": jnp.concatenate([jnp.tile(layer[name]["bias"], counts[name]) for name in out]),
    }


def _from_all_rows(
    affine: layers.Affine, name: str, counts: dict[str, int]
) -> Float[Array, "in out"]:
    """To the rows of one set: a row's own weights from itself, the means' from all rows alike."""
    rows, blocks, start = counts[name], [], 0
    widths = _widths(affine, name)
    for source, count in counts.items():
        part = affine["means"][start : start + widths[source]]
        start += widths[source]
        block = jnp.kron(jnp.ones((count, rows)) / max(count, 1), part)
        if source == name:
            block = block + jnp.kron(jnp.eye(rows), affine["own"])
        blocks.append(block)
    return jnp.concatenate(blocks)


def _widths(affine: layers.Affine, name: str) -> dict[str, int]:
    """Numbers in a row of each set before the layer."""
    own, seen = affine["own"].shape[0], affine["means"].shape[0]
    other = "selected" if name == "unselected" else "unselected"
    return {name: own, other: seen - own}


def _units(order: Orders, unselected: int, selected: int) -> Int[np.ndarray, " units"]:
    """Which unit stands at each place, for rows of so many units each."""
    selected_rows, unselected_rows = (np.array(rows, int) for rows in order)
    first = unselected_rows[:, None] * unselected + np.arange(unselected)
    then = len(unselected_rows) * unselected
    rest = then + selected_rows[:, None] * selected + np.arange(selected)
    return np.concatenate([first.ravel(), rest.ravel()])
