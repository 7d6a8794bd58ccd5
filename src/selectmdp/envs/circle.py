"""Circle Selection (paper §5.1, appendix C): pick K of N growing circles that overlap nothing.

A step: noise, growth, move the selected, reward, replace, clip. The constants are data, in
`circle_rules`.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, get_args

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
from selectmdp.envs.circle_rules import RULES, CircleRules, Dynamics, overlaps
from selectmdp.envs.drawing import draw_circles
from selectmdp.envs.greedy import greedy_discs
from selectmdp.iterative import command_of_item, picked
from selectmdp.scene import Scene
from selectmdp.spec import SelectError, Spec, check_count
from selectmdp.types import Action, Observation


class CircleState(NamedTuple):
    """Columns x, y, radius."""

    items: Float[Array, "N 3"]
    context: Float[Array, "U 3"]
    present: Bool[Array, " N"] | None = None
    """Which circles the episode has, where their number is drawn; None: all."""


class CircleDraws(NamedTuple):
    """All the chance of one step, as uniform numbers in [0, 1); the rules scale them."""

    item_noise: Float[Array, "N 3"]
    item_growth: Float[Array, " N"]
    context_noise: Float[Array, "U 3"]
    context_growth: Float[Array, " U"]
    item_replacement: Float[Array, "N 3"]
    context_replacement: Float[Array, "U 3"]


@dataclass(frozen=True)
class Circle:
    """N selectable and U unselectable circles in a unit square; reward in area."""

    num_items: int | tuple[int, int] = 50
    """N, the selectable circles; a range (least, most): each episode draws its own number."""
    num_context: int = 0
    """U, the unselectable circles."""
    num_select: int = 6
    """K, how many are picked in a step."""
    commands: tuple[str, ...] = tuple(DIRECTIONS)
    """Which of stay, up, down, left, right there are."""
    dynamics: Dynamics = "figures"
    """Rules: `figures` as the published figures were made, `text` as the paper's text says."""
    rules: CircleRules | None = None
    """Other constants than those of `dynamics`, which is then called `custom`."""
    time_limit: int = 2500
    """Steps of an episode."""
    spec: Spec = field(init=False, repr=False)

    unit = "area"
    legend = "thin dashed circle: where a pick moves to"

    def __post_init__(self) -> None:
        commands = check_commands(self.commands)
        if self.dynamics not in get_args(Dynamics):
            raise SelectError(f"dynamics={self.dynamics!r}: must be one of {', '.join(RULES)}")
        if self.rules is not None and not isinstance(self.rules, CircleRules):
            raise SelectError(f"rules={self.rules!r}: give CircleRules(…), or dynamics='text'")
        if self.rules is None and self.dynamics == "custom":
            raise SelectError("dynamics='custom' needs rules: give rules=CircleRules(…)")
        if check_count("time_limit", self.time_limit) < 1:
            raise SelectError(f"time_limit={self.time_limit}: must be at least 1")
        least, most = check_range(self.num_items, self.num_select)
        spec = Spec(most, 3, self.num_context, 3, self.num_select, len(commands))
        object.__setattr__(self, "num_items", most if least == most else (least, most))
        object.__setattr__(self, "commands", commands)
        rules = self.rules or RULES[self.dynamics]
        if rules != RULES.get(self.dynamics):  # a reported number must not misname its rules
            object.__setattr__(self, "dynamics", "custom")
        object.__setattr__(self, "rules", rules)
        object.__setattr__(self, "spec", spec)

    @property
    def command_names(self) -> tuple[str, ...]:
        return self.commands

    @property
    def item_range(self) -> tuple[int, int] | None:
        return self.num_items if isinstance(self.num_items, tuple) else None

    def reset(self, key: Key[Array, ""]) -> CircleState:
        item_key, context_key = jax.random.split(key)
        state = CircleState(
            items=self._scattered(item_key, self.spec.num_items),
            context=self._scattered(context_key, self.num_context),
        )
        if self.item_range is None:
            return state
        return state._replace(present=drawn_present(jax.random.fold_in(key, 2), self.item_range))

    def step(
        self, key: Key[Array, ""], state: CircleState, action: Action
    ) -> tuple[CircleState, Float[Array, ""], Float[Array, ""]]:
        state, reward = self.advance(state, action, self.draws(key))
        return state, reward, jnp.ones(())

    def observe(self, state: CircleState) -> Observation:
        seen = state.items, state.context, len(self.commands)
        return (
            everything_legal(*seen) if state.present is None else some_present(*seen, state.present)
        )

    def draws(self, key: Key[Array, ""]) -> CircleDraws:
        """The chance of one step."""
        n, u = self.spec.num_items, self.num_context
        return CircleDraws(*draws.uniforms(key, (n, 3), (n,), (u, 3), (u,), (n, 3), (u, 3)))

    def advance(
        self, state: CircleState, action: Action, chance: CircleDraws
    ) -> tuple[CircleState, Float[Array, ""]]:
        """The step under given draws: the rules of the game, in their order."""
        items, context = self._grown(state, chance)
        items = self._moved(items, action)
        contacts = self._contacts(items, context, action)
        reward = contacts.rewards(contacts.pairs.any(axis=1)).sum()
        selected, struck = picked(action, self.spec.num_items), contacts.context.any(axis=0)
        items = jnp.where(selected[:, None], self._new(chance.item_replacement), items)
        context = jnp.where(struck[:, None], self._new(chance.context_replacement), context)
        return CircleState(self._clipped(items), self._clipped(context), state.present), reward

    def partial_reward(
        self, key: Key[Array, ""], state: CircleState, action: Action
    ) -> Float[Array, " K"]:
        """The reward had only the first 1, 2, … K picks been made, under the draws of `step`."""
        items, context = self._grown(state, self.draws(key))
        contacts = self._contacts(self._moved(items, action), context, action)
        made = jnp.tril(jnp.ones((self.num_select, self.num_select), bool))

        def with_picks(made: Bool[Array, " K"]) -> Float[Array, ""]:
            hits = (contacts.pairs & made[None, :]).any(axis=1)
            return jnp.where(made, contacts.rewards(hits), 0.0).sum()

        return jax.vmap(with_picks)(made)

    def learning_reward(self, reward: Float[Array, ""]) -> Float[Array, ""]:
        """Area / π, as the published code trains."""
        return reward / jnp.pi

    def sort_key(self, observation: Observation) -> Float[Array, " N"]:
        """The radius."""
        return observation.items[:, 2]

    def permute(self, state: CircleState, order: Int[Array, " N"]) -> CircleState:
        """The same circles in another order."""
        present = None if state.present is None else state.present[order]
        return state._replace(items=state.items[order], present=present)

    def greedy(self, key: Key[Array, ""], state: CircleState) -> Action:
        """Pick after pick the circle and command that should add most to the step's reward.

        A strong, honest heuristic: it expects mean growth and no noise, and counts what a clash
        takes from picks made before. So it picks the largest circle that overlaps nothing, and
        where there is none the one that costs least.
        """
        del key
        ends = state.items[:, None, :2] + self._rules.reach * directions(self.commands)[None]
        radius = state.items[:, 2] + self._mean_growth(state)
        radius = jnp.where(radius >= self._rules.radius_max, self._full_radius(), radius)
        radii = jnp.broadcast_to(radius[:, None, None], (*ends.shape[:2], 1))
        discs = jnp.concatenate([ends, radii], axis=2)
        context = self._context_ahead(state.context)
        return greedy_discs(discs, context, self.num_select, state.present)

    def draw(self, state: CircleState, action: Action | None = None) -> Scene:
        """The circles, and the picks about to be made."""
        return draw_circles(
            np.asarray(state.items),
            np.asarray(state.context),
            picks_of(action),
            self.commands,
            self._rules.reach,
            present=None if state.present is None else np.asarray(state.present),
        )

    @property
    def _rules(self) -> CircleRules:
        assert self.rules is not None
        return self.rules

    def _scattered(self, key: Key[Array, ""], count: int) -> Float[Array, "M 3"]:
        unit = draws.uniform(key, (count, 3))
        return (unit - jnp.asarray([[0.5, 0.5, 0]])) * jnp.asarray([[1, 1, self._rules.radius_max]])

    def _growth_scale(self, state: CircleState) -> float | Float[Array, ""]:
        share = self._rules.growth_share
        if share is None:
            return 1.0
        count = self.spec.num_items if state.present is None else state.present.sum()
        return share * self.num_select / count

    def _mean_growth(self, state: CircleState) -> float | Float[Array, ""]:
        return self._growth_scale(state) * (self._rules.growth_low + self._rules.growth_high) / 2

    def _full_radius(self) -> float:
        return self._rules.radius_restart if self._rules.restarts else self._rules.radius_max

    def _grown(
        self, state: CircleState, chance: CircleDraws
    ) -> tuple[Float[Array, "N 3"], Float[Array, "U 3"]]:
        rules, scale = self._rules, self._growth_scale(state)
        amount = jnp.asarray([[rules.noise, rules.noise, rules.radius_noise]])
        items = state.items + (2 * chance.item_noise - 1) * amount
        context = state.context + (2 * chance.context_noise - 1) * amount
        growth = rules.growth_low + chance.item_growth * (rules.growth_high - rules.growth_low)
        radius = items[:, 2] + scale * growth
        radius = jnp.where(radius >= rules.radius_max, self._full_radius(), radius)
        low, high = rules.context_growth_low, rules.context_growth_high
        wider = context[:, 2] + low + chance.context_growth * (high - low)
        return (
            items.at[:, 2].set(radius),
            context.at[:, 2].set(jnp.minimum(wider, rules.radius_max)),
        )

    def _moved(self, items: Float[Array, "N 3"], action: Action) -> Float[Array, "N 3"]:
        num_items = self.spec.num_items
        steps = directions(self.commands)[command_of_item(action, num_items)]
        steps = jnp.where(picked(action, num_items)[:, None], steps, 0)
        return items.at[:, :2].add(self._rules.reach * steps)

    def _contacts(
        self, items: Float[Array, "N 3"], context: Float[Array, "U 3"], action: Action
    ) -> "_Contacts":
        made = action.items >= 0
        circles = items[action.items]
        pairs = overlaps(circles, circles) & made[:, None] & made[None, :]
        return _Contacts(
            area=jnp.where(made, jnp.pi * jnp.square(circles[:, 2]), 0.0),
            context=overlaps(circles, context) & made[:, None],
            pairs=pairs & ~jnp.eye(self.num_select, dtype=bool),
        )

    def _clipped(self, circles: Float[Array, "M 3"]) -> Float[Array, "M 3"]:
        low = jnp.asarray([[-0.5, -0.5, 0.0]])
        return jnp.clip(circles, low, jnp.asarray([[0.5, 0.5, self._rules.radius_max]]))

    def _new(self, unit: Float[Array, "M 3"]) -> Float[Array, "M 3"]:
        low, high = self._rules.replacement_low, self._rules.replacement_high
        return jnp.concatenate([unit[:, :2] - 0.5, low + unit[:, 2:] * (high - low)], axis=1)

    def _context_ahead(self, context: Float[Array, "U 3"]) -> Float[Array, "U 3"]:
        rules = self._rules
        mean = (rules.context_growth_low + rules.context_growth_high) / 2
        return context.at[:, 2].set(jnp.minimum(context[:, 2] + mean, rules.radius_max))


class _Contacts(NamedTuple):
    """The picks' areas, which unselectable circles each touches, and which other picks."""

    area: Float[Array, " K"]
    context: Bool[Array, "K U"]
    pairs: Bool[Array, "K K"]

    def rewards(self, hits_selected: Bool[Array, " K"]) -> Float[Array, " K"]:
        """Case 1 −A: touches an unselectable circle; 2 nothing: a selected one; 3 +A."""
        clear = jnp.where(hits_selected, 0.0, self.area)
        return jnp.where(self.context.any(axis=1), -self.area, clear)
