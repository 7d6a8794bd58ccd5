"""The symmetrised losses of theorem 1 (paper §4): L_Ω of a dense network, L_Θ of a shared one.

L_Ω(ω) is the squared error to Q* over a batch of states in all orders of S_k × S_{N−k}, and
L_Θ(θ) = L_Ω(ω(θ)). Parameters are flat float64 vectors here: make and use a landscape where
float64 is enabled. The activation is smooth, as in the proof.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from selectmdp.theory import networks, targets
from selectmdp.theory.equi_invariance import untie
from selectmdp.theory.networks import Sizes
from selectmdp.theory.targets import Kind

Function = Callable[[Any], Any]
Flat = Float[np.ndarray, " parameters"]


@dataclass(frozen=True)
class Setting:
    """A phase, a network, a function to approximate and states to see it on."""

    sizes: Sizes
    target: str
    states: int
    """B, before all their orders are added."""
    penalty: float = 0.0
    """Of |ω|²: without it, many of these losses fall for ever while weights grow, and no point is
    stationary. It is the same for all orders, so lemma 1 and the theorem hold with it as well."""


@dataclass(frozen=True, eq=False)
class Landscape:
    """Both losses of one setting, with slopes and curvatures.

    ω(θ) is linear, so those of L_Θ follow from those of L_Ω by the chain rule.
    """

    projection: Float[np.ndarray, "omega theta"]
    """ω(θ) is this times θ."""
    dense_loss: Function
    """L_Ω."""
    apart: Callable[[Any, Any], Any]
    """The largest |Q_ω − Q_θ| of some θ and ω, on the loss's states."""
    untied: Function
    """ω with one weight changed alone."""
    moves: Int[np.ndarray, "orders omega"]
    """σ(ω) is ω[moves[σ]]."""

    @cached_property
    def tangent(self) -> Float[np.ndarray, "omega rank"]:
        """An orthonormal basis of ω(Θ)."""
        basis, lengths, _ = np.linalg.svd(self.projection, full_matrices=False)
        return basis[:, lengths > 1e-10 * lengths[0]]

    @cached_property
    def dense_losses(self) -> Function:
        """L_Ω of many ω at once."""
        return jax.jit(jax.vmap(self.dense_loss))

    @cached_property
    def dense_slope(self) -> Function:
        """L_Ω and its gradient."""
        return jax.jit(jax.value_and_grad(self.dense_loss))

    @cached_property
    def dense_curvature(self) -> Function:
        return jax.jit(jax.hessian(self.dense_loss))

    def shared_slope(self, theta: Flat) -> tuple[float, Flat]:
        """L_Θ and its gradient."""
        loss, slope = self.dense_slope(self.projection @ theta)
        return float(loss), self.projection.T @ np.asarray(slope)

    def shared_curvature(self, theta: Flat) -> Float[np.ndarray, "theta theta"]:
        curvature = np.asarray(self.dense_curvature(self.projection @ theta))
        return self.projection.T @ curvature @ self.projection


def landscape(setting: Setting, kind: Kind, seed: int) -> Landscape:
    """The losses of a setting, for a target of this kind."""
    sizes, rng = setting.sizes, np.random.default_rng(seed)
    key = jax.random.key(seed)
    x, i = in_all_orders(*targets.states(key, sizes, setting.states), sizes)
    wanted = jax.jit(jax.vmap(kind.make(rng, sizes)))(x, i)
    wanted = (wanted - wanted.mean()) / wanted.std()
    theta, tree = ravel_pytree(networks.init(rng, sizes))
    project = partial(networks.projected, sizes=sizes)
    omega, dense_tree = ravel_pytree(jax.jit(project)(tree(theta)))

    def dense_loss(omega: Array) -> Array:
        values = jax.vmap(partial(networks.dense, dense_tree(omega), activation=jnp.tanh))(x, i)
        return ((values - wanted) ** 2).sum(axis=(1, 2)).mean() + setting.penalty * (omega @ omega)

    def apart(theta: Array, omega: Array) -> Array:
        dense = partial(networks.dense, dense_tree(omega), activation=jnp.tanh)
        shared = partial(networks.shared, tree(theta), activation=jnp.tanh)
        return jnp.abs(jax.vmap(dense)(x, i) - jax.vmap(shared)(x, i)).max()

    slopes = jax.jit(jax.jacfwd(lambda theta: ravel_pytree(project(tree(theta)))[0]))(theta)
    places = jax.tree.map(np.asarray, dense_tree(jnp.arange(len(omega), dtype=omega.dtype)))
    turned = (networks.turned(places, order, sizes) for order in networks.orders(sizes))
    moves = [np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(each)]) for each in turned]
    return Landscape(
        projection=np.asarray(slopes),
        dense_loss=jax.jit(dense_loss),
        apart=jax.jit(apart),
        untied=lambda omega: ravel_pytree(untie(dense_tree(omega)))[0],
        moves=np.array(moves).astype(int),
    )


def in_all_orders(
    x: Float[Array, "B k X"], i: Float[Array, "B M F"], sizes: Sizes
) -> tuple[Float[Array, "O k X"], Float[Array, "O M F"]]:
    """Every state in every order."""
    orders = networks.orders(sizes)
    picks, items = (np.array([order[part] for order in orders], int) for part in (0, 1))
    return jnp.concatenate([x[:, order] for order in picks]), jnp.concatenate(
        [i[:, order] for order in items]
    )
