"""The rules of the league in numbers, and what they draw: a squad's skills, a side's goals."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

POSITIONS = ("goalkeeper", "defender", "midfielder", "forward")
SQUAD = (0.12, 0.32, 0.32, 0.24)
"""Share of the squad that is at home in each position."""
ATTACK, DEFENCE = (0.0, 0.2, 0.8, 1.6), (1.6, 0.9, 0.5, 0.0)
"""How much a player counts, by position."""
LOAD = (0.12, 0.30, 0.38, 0.32)
"""How much a match tires, by position."""
REST = 0.28
"""Of fatigue, gone in a match not played."""
TIRED = 0.4
"""Share of the strength that a player with fatigue 1 lacks."""
GOALS, MARGIN = 1.3, 2.5
"""Goals of a side that is as strong as the other; each tenth of strength more is e^0.25 times."""
MOST_GOALS = 10
AHEAD = 3
"""Opponents that are seen: the next and those after."""
MOST_OUT = 5
"""Matches that an injury lasts at most."""


def homes(num_items: int) -> Int[np.ndarray, " N"]:
    """The position in which each player is at home, in shares of the squad."""
    edges = np.cumsum(SQUAD)
    return np.searchsorted(edges, (np.arange(num_items) + 0.5) / num_items).clip(0, 3)


def homes_of(count: Int[Array, ""], places: int) -> Int[Array, " N"]:
    """The same for a squad whose size is drawn: of this many places the first `count` have one."""
    shares = (jnp.arange(places) + 0.5) / count
    return (shares[:, None] > jnp.asarray(np.cumsum(SQUAD)[:-1])[None]).sum(axis=1)


def skills(home: Int[Array, " N"], talent: Float[Array, "N 4"]) -> Float[Array, "N 4"]:
    """Best at home, less elsewhere; who keeps the goal does little else, and the reverse."""
    at_home = jax.nn.one_hot(home, len(POSITIONS)) > 0
    best = 0.5 + 0.4 * jnp.take_along_axis(talent, home[:, None], axis=1)
    keeper = (home == 0)[:, None]
    goal = jnp.arange(len(POSITIONS))[None] == 0
    elsewhere = jnp.where(keeper | goal, 0.1 + 0.15 * talent, best * (0.4 + 0.45 * talent))
    return jnp.where(at_home, best, elsewhere)


def goals(margin: Float[Array, ""], number: Float[Array, ""]) -> Int[Array, ""]:
    """A Poisson draw by its distribution function."""
    mean = GOALS * jnp.exp(MARGIN * margin)
    count = jnp.arange(MOST_GOALS)
    log_chance = count * jnp.log(mean) - mean - jax.lax.lgamma(count + 1.0)
    return (jnp.cumsum(jnp.exp(log_chance)) <= number).sum()
