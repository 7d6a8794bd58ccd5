"""Selective Predator-Prey (paper §5.1, appendix C): move K of N predators to surround preys.

Preys move first, then the selected predators in random order; a prey with enough selected predators
on its 8 neighbouring cells is caught and reappears elsewhere. Unselected predators neither move nor
catch.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from selectmdp import draws
from selectmdp.envs.base import (
    DIRECTIONS,
    check_commands,
    check_range,
    directions,
    drawn_present,
    everything_legal,
    picks_of,
    some_present,
)
from selectmdp.envs.drawing import draw_grid
from selectmdp.envs.greedy import greedy_hunt
from selectmdp.scene import Scene
from selectmdp.spec import SelectError, Spec, check_count
from selectmdp.types import Action, Observation

PREY_STAYS = 0.6
PREY_COMMANDS = tuple(DIRECTIONS)


class PredatorPreyState(NamedTuple):
    """Cells (x, y) of the grid; a predator that the episode does not have is at (−1, −1)."""

    predators: Int[Array, "N 2"]
    preys: Int[Array, "U 2"]


class PredatorPreyDraws(NamedTuple):
    """All the chance of one step."""

    prey_command: Int[Array, " U"]
    order: Int[Array, " K"]
    """The order in which the picks move."""
    reappear: Float[Array, " U"]
    """Where a caught prey reappears: this share of the way through the free cells, by x · G + y."""


MOST_CELLS = 3000
"""On a side: places are drawn of all cells, which are to be had in memory."""


@dataclass(frozen=True)
class PredatorPrey:
    """N predators hunt U preys on a G × G grid; the reward is the number caught."""

    num_items: int | tuple[int, int] = 10
    """N, the predators; a range (least, most): each episode draws its own number."""
    num_context: int = 4
    """U, the preys."""
    num_select: int = 4
    """K, how many predators move in a step."""
    grid: int = 10
    """G, cells on a side."""
    captors: int = 2
    """Selected predators beside a prey that catch it: 2 as published, 3 as the text says."""
    commands: tuple[str, ...] = tuple(DIRECTIONS)
    """Which of stay, up, down, left, right there are."""
    time_limit: int = 175
    """Steps of an episode."""
    spec: Spec = field(init=False, repr=False)

    unit = "caught"

    def __post_init__(self) -> None:
        commands = check_commands(self.commands)
        least, most = check_range(self.num_items, self.num_select)
        spec = Spec(most, 2, self.num_context, 2, self.num_select, len(commands))
        for name in ("grid", "captors", "time_limit"):
            if check_count(name, getattr(self, name)) < 1:
                raise SelectError(f"{name}={getattr(self, name)}: must be at least 1")
        if self.grid > MOST_CELLS:
            raise SelectError(f"grid={self.grid}: must be at most {MOST_CELLS}")
        if most + self.num_context > self.grid**2:
            raise SelectError(
                f"grid={self.grid}: {most} predators and {self.num_context} preys do not "
                f"fit on {self.grid**2} cells; take a larger grid"
            )
        if self.captors > min(self.num_select, 8):
            raise SelectError(
                f"captors={self.captors}: at most num_select={self.num_select} predators move and "
                "a prey has 8 neighbouring cells, so nothing could ever be caught; take fewer"
            )
        object.__setattr__(self, "num_items", most if least == most else (least, most))
        object.__setattr__(self, "commands", commands)
        object.__setattr__(self, "spec", spec)

    @property
    def dynamics(self) -> str:
        return f"captors-{self.captors}"

    @property
    def command_names(self) -> tuple[str, ...]:
        return self.commands

    @property
    def item_range(self) -> tuple[int, int] | None:
        return self.num_items if isinstance(self.num_items, tuple) else None

    def reset(self, key: Key[Array, ""]) -> PredatorPreyState:
        most = self.spec.num_items
        cells = jax.random.permutation(key, self.grid**2)[: most + self.num_context]
        places = jnp.stack([cells // self.grid, cells % self.grid], axis=1).astype(jnp.int32)
        state = PredatorPreyState(places[:most], places[most:])
        if self.item_range is None:
            return state
        present = drawn_present(jax.random.fold_in(key, 2), self.item_range)
        return state._replace(predators=jnp.where(present[:, None], state.predators, -1))

    def step(
        self, key: Key[Array, ""], state: PredatorPreyState, action: Action
    ) -> tuple[PredatorPreyState, Float[Array, ""], Float[Array, ""]]:
        state, reward = self.advance(state, action, self.draws(key))
        return state, reward, jnp.ones(())

    def observe(self, state: PredatorPreyState) -> Observation:
        seen = self._scaled(state.predators), self._scaled(state.preys), len(self.commands)
        if self.item_range is None:
            return everything_legal(*seen)
        return some_present(*seen, state.predators[:, 0] >= 0)

    def draws(self, key: Key[Array, ""]) -> PredatorPreyDraws:
        """The chance of one step."""
        shapes = (self.num_context,), (self.num_select,), (self.num_context,)
        unit, turns, reappear = draws.uniforms(key, *shapes)
        moving = 1 + jnp.floor((unit - PREY_STAYS) / (1 - PREY_STAYS) * 4).astype(jnp.int32)
        return PredatorPreyDraws(
            prey_command=jnp.where(unit < PREY_STAYS, 0, jnp.clip(moving, 1, 4)),
            order=draws.order(turns),
            reappear=reappear,
        )

    def advance(
        self, state: PredatorPreyState, action: Action, chance: PredatorPreyDraws
    ) -> tuple[PredatorPreyState, Float[Array, ""]]:
        """The step under given draws: preys move, predators move, catches, reappearances."""
        state = self._after_moves(state, action, chance)
        caught = self._beside(state, action).sum(axis=0) >= self.captors
        preys = self._reappeared(state, caught, chance.reappear)
        return state._replace(preys=preys), caught.sum().astype(jnp.float32)

    def partial_reward(
        self, key: Key[Array, ""], state: PredatorPreyState, action: Action
    ) -> Float[Array, " K"]:
        """The reward had only the first 1, 2, … K picks been made, under the draws of `step`."""
        chance = self.draws(key)
        phases = jnp.arange(self.num_select)

        def with_picks(count: Int[Array, ""]) -> Float[Array, ""]:
            items = jnp.where(phases < count, action.items, -1)
            _, reward = self.advance(state, Action(items, action.commands), chance)
            return reward

        return jax.vmap(with_picks)(phases + 1)

    def learning_reward(self, reward: Float[Array, ""]) -> Float[Array, ""]:
        """(caught − 0.005) / K, as the published code trains."""
        return (reward - 0.005) / self.num_select

    def permute(self, state: PredatorPreyState, order: Int[Array, " N"]) -> PredatorPreyState:
        """The same predators in another order."""
        return state._replace(predators=state.predators[order])

    def greedy(self, key: Key[Array, ""], state: PredatorPreyState) -> Action:
        """Groups of `captors` predators, each sent towards the prey that it can reach soonest."""
        del key
        ends = state.predators[:, None] + directions(self.commands)[None]  # [N, C, 2]
        inside = ((ends >= 0) & (ends < self.grid)).all(axis=2)
        everyone = jnp.concatenate(state)
        taken = (ends[:, :, None] == everyone[None, None]).all(axis=3).any(axis=2)
        blocked = ~inside | taken  # by itself too: then it stays where it is
        ends = jnp.where(blocked[..., None], state.predators[:, None], ends)
        there = state.predators[:, 0] >= 0
        return greedy_hunt(ends, state.preys, self.captors, self.num_select, there)

    def draw(self, state: PredatorPreyState, action: Action | None = None) -> Scene:
        """The grid, and the picks about to be made."""
        predators, preys = np.asarray(state.predators), np.asarray(state.preys)
        return draw_grid(predators, preys, picks_of(action), self.commands, self.grid)

    def _scaled(self, cells: Int[Array, "M 2"]) -> Float[Array, "M 2"]:
        return 2.0 * cells / max(self.grid - 1, 1) - (1.0 if self.grid > 1 else 0.0)

    def _after_moves(
        self, state: PredatorPreyState, action: Action, chance: PredatorPreyDraws
    ) -> PredatorPreyState:
        """Preys move one after the other, then the picks in their drawn order."""
        # A cell as one number on a board with a border: off the grid is a border cell.
        side = self.grid + 2
        stride = jnp.asarray([[side, 1]])
        cells = ((jnp.concatenate(state) + 1) * stride).sum(axis=1)
        rows = jnp.arange(side * side) // side
        columns = jnp.arange(side * side) % side
        border = (rows % (side - 1) == 0) | (columns % (side - 1) == 0)
        prey_steps = (directions(PREY_COMMANDS) * stride).sum(axis=1)[chance.prey_command]
        pick_steps = (directions(self.commands) * stride).sum(axis=1)[action.commands]
        most = self.spec.num_items
        movers = [*range(most, most + self.num_context)]
        movers += [*action.items[chance.order]]
        steps = [*prey_steps, *pick_steps[chance.order]]
        for mover, step in zip(movers, steps, strict=True):
            target = cells[mover] + step
            goes = ~border[target] & ~(cells == target).any()
            mine = jnp.arange(cells.shape[0]) == mover  # a mover of −1 is nobody
            cells = jnp.where(goes & mine, target, cells)
        places = jnp.stack([cells // side, cells % side], axis=1) - 1
        return PredatorPreyState(places[:most], places[most:])

    def _beside(self, state: PredatorPreyState, action: Action) -> Bool[Array, "K U"]:
        places = state.predators[action.items]
        gap = jnp.abs(places[:, None] - state.preys[None]).max(axis=2)
        return (gap == 1) & (action.items >= 0)[:, None]

    def _reappeared(
        self, state: PredatorPreyState, caught: Bool[Array, " U"], place: Float[Array, " U"]
    ) -> Int[Array, "U 2"]:
        nowhere = self.grid**2
        hunters, cells = (self._index(places) for places in state)
        hunters = jnp.where(hunters < 0, nowhere, hunters)  # whom the episode does not have
        taken = jnp.concatenate([hunters, jnp.where(caught, nowhere, cells)])
        for prey in range(self.num_context):
            # A taken cell has as many free ones before it as its number less the taken before it;
            # so the free cell of rank r has before it the taken ones for which that is at most r.
            free = nowhere - (taken < nowhere).sum()
            rank = jnp.minimum(jnp.floor(place[prey] * free).astype(jnp.int32), free - 1)
            free_before = taken - (taken[None] < taken[:, None]).sum(axis=1)
            new = rank + ((free_before <= rank) & (taken < nowhere)).sum()
            taken = taken.at[self.spec.num_items + prey].set(
                jnp.where(caught[prey], new, cells[prey])
            )
        cells = taken[self.spec.num_items :]
        return jnp.stack([cells // self.grid, cells % self.grid], axis=1)

    def _index(self, places: Int[Array, "M 2"]) -> Int[Array, " M"]:
        return places[:, 0] * self.grid + places[:, 1]
