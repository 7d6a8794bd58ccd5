"""League, the example that opens the paper (§1): pick eleven of a squad, each with a position.

A season of matches against opponents that are seen ahead. Who plays tires, who is tired plays worse
and gets hurt, who rests recovers: the best eleven of today is not the best plan for the season. The
reward is the points of a match: 3, 1 or 0.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from selectmdp import draws
from selectmdp.envs import league_rules
from selectmdp.envs.base import check_range, drawn_present, picks_of, some_present
from selectmdp.envs.league_drawing import draw_team
from selectmdp.envs.league_rules import (
    AHEAD,
    ATTACK,
    DEFENCE,
    LOAD,
    MOST_OUT,
    POSITIONS,
    REST,
    TIRED,
)
from selectmdp.iterative import best_pair, command_of_item, picked
from selectmdp.scene import Scene
from selectmdp.spec import SelectError, Spec, check_count
from selectmdp.types import Action, Observation


class LeagueState(NamedTuple):
    """The squad, and the season so far."""

    skills: Float[Array, "N 4"]
    form: Float[Array, " N"]
    fatigue: Float[Array, " N"]
    out: Int[Array, " N"]
    """Matches that a player is still out of action."""
    opponents: Float[Array, "M 2"]
    """Attack and defence of each match's opponent."""
    match: Int[Array, ""]
    score: Int[Array, " 2"]
    """Goals for and against in the last match."""
    points: Float[Array, ""]
    present: Bool[Array, " N"] | None = None
    """Who belongs to the squad, where its size is drawn; None: all."""


class LeagueDraws(NamedTuple):
    """All the chance of one match, as uniform numbers."""

    goals: Float[Array, " 2"]
    load: Float[Array, " N"]
    hurt: Float[Array, " N"]
    length: Float[Array, " N"]
    form: Float[Array, " N"]


@dataclass(frozen=True)
class League:
    """Manage a squad of N players over a season."""

    num_items: int | tuple[int, int] = 25
    """N, the players of the squad; a range (least, most): each season draws its own number."""
    formation: tuple[int, ...] = (1, 4, 4, 2)
    """How many goalkeepers, defenders, midfielders and forwards play."""
    time_limit: int = 38
    """Matches of a season; the club goes on after it."""
    spec: Spec = field(init=False, repr=False)

    unit = "points"
    command_names = POSITIONS

    def __post_init__(self) -> None:
        formation = tuple(check_count("formation", count) for count in self.formation)
        if len(formation) != len(POSITIONS) or sum(formation) < 1:
            raise SelectError(
                f"formation={self.formation}: give the players in each of {', '.join(POSITIONS)}"
            )
        if check_count("time_limit", self.time_limit) < 1:
            raise SelectError(f"time_limit={self.time_limit}: must be at least 1")
        object.__setattr__(self, "formation", formation)
        least, most = check_range(self.num_items, sum(formation))
        object.__setattr__(self, "num_items", most if least == most else (least, most))
        spec = Spec(most, 7, AHEAD, 3, sum(formation), len(POSITIONS))
        object.__setattr__(self, "spec", spec)

    @property
    def item_range(self) -> tuple[int, int] | None:
        return self.num_items if isinstance(self.num_items, tuple) else None

    def reset(self, key: Key[Array, ""]) -> LeagueState:
        most, matches, present = self.spec.num_items, self.time_limit + AHEAD, None
        shapes = (most,), (most, 4), (most,), (matches, 2)
        place, talent, fatigue, opponents = draws.uniforms(key, *shapes)
        homes = jnp.asarray(league_rules.homes(most))
        if self.item_range is not None:
            present = drawn_present(jax.random.fold_in(key, 2), self.item_range)
            place = jnp.where(present, place, 2.0)  # after all who are there
            homes = league_rules.homes_of(present.sum(), most)
        return LeagueState(
            skills=league_rules.skills(homes[draws.order(place)], talent),
            form=jnp.zeros(most),
            fatigue=0.3 * fatigue,
            out=jnp.zeros(most, jnp.int32),
            opponents=0.45 + 0.3 * opponents,
            match=jnp.zeros((), jnp.int32),
            score=jnp.zeros(2, jnp.int32),
            points=jnp.zeros(()),
            present=present,
        )

    def step(
        self, key: Key[Array, ""], state: LeagueState, action: Action
    ) -> tuple[LeagueState, Float[Array, ""], Float[Array, ""]]:
        state, points = self.advance(state, action, self.draws(key))
        return state, points, jnp.ones(())

    def observe(self, state: LeagueState) -> Observation:
        players = [state.skills, state.form[:, None], state.fatigue[:, None]]
        players.append(state.out[:, None] / MOST_OUT)
        opponents = self._opponents(state, AHEAD)
        soon = (jnp.arange(AHEAD) / (AHEAD - 1))[:, None]
        present = jnp.ones(self.spec.num_items, bool) if state.present is None else state.present
        seen = some_present(
            jnp.concatenate(players, axis=1),
            jnp.concatenate([opponents, soon], axis=1),
            len(POSITIONS),
            present,
        )
        return seen._replace(legal=seen.legal & (state.out == 0)[:, None])

    def legal_after(
        self, observation: Observation, chosen: Bool[Array, " N"], command: Int[Array, " N"]
    ) -> Bool[Array, "N C"]:
        """Positions that are not full yet: one goalkeeper is enough."""
        taken = (jax.nn.one_hot(command, len(POSITIONS)) * chosen[:, None]).sum(axis=0)
        open_positions = taken < jnp.asarray(self.formation)
        return jnp.broadcast_to(open_positions[None], observation.legal.shape)

    def draws(self, key: Key[Array, ""]) -> LeagueDraws:
        """The chance of one match."""
        squad = (self.spec.num_items,)
        return LeagueDraws(*draws.uniforms(key, (2,), squad, squad, squad, squad))

    def advance(
        self, state: LeagueState, action: Action, chance: LeagueDraws
    ) -> tuple[LeagueState, Float[Array, ""]]:
        """The match under given draws, then what it leaves: tired, hurt and rested players."""
        attack, defence = self.strength(state, action)
        theirs = self._opponents(state, 1)[0]
        scored = league_rules.goals(attack - theirs[1], chance.goals[0])
        conceded = league_rules.goals(theirs[0] - defence, chance.goals[1])
        points = jnp.where(scored > conceded, 3.0, jnp.where(scored == conceded, 1.0, 0.0))
        played = picked(action, self.spec.num_items)
        load = jnp.asarray(LOAD)[command_of_item(action, self.spec.num_items)]
        tired = state.fatigue + jnp.where(played, load * (0.8 + 0.4 * chance.load), -REST)
        hurt = played & (chance.hurt < 0.01 + 0.15 * jnp.square(state.fatigue))
        length = 1 + jnp.floor(chance.length * MOST_OUT).astype(jnp.int32)
        return LeagueState(
            skills=state.skills,
            form=jnp.clip(0.85 * state.form + 0.5 * (chance.form - 0.5), -1.0, 1.0),
            fatigue=jnp.clip(tired, 0.0, 1.0),
            out=jnp.where(hurt, length, jnp.maximum(state.out - 1, 0)),
            opponents=state.opponents,
            match=state.match + 1,
            score=jnp.stack([scored, conceded]),
            points=state.points + points,
            present=state.present,
        ), points

    def strength(
        self, state: LeagueState, action: Action
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Attack and defence of a line-up, 0 to about 1; a place left empty counts nothing."""
        made = (action.items >= 0).astype(jnp.float32)
        shape = self._today(state)[action.items, action.commands] * made
        attack, defence = self._counts()[:, action.commands] @ shape
        return attack, defence

    def learning_reward(self, reward: Float[Array, ""]) -> Float[Array, ""]:
        """A third of the points."""
        return reward / 3.0

    def permute(self, state: LeagueState, order: Int[Array, " N"]) -> LeagueState:
        """The same squad in another order."""
        squad = {name: getattr(state, name)[order] for name in ("skills", "form", "fatigue", "out")}
        present = None if state.present is None else state.present[order]
        return state._replace(**squad, present=present)

    def greedy(self, key: Key[Array, ""], state: LeagueState) -> Action:
        """Always the best eleven: the strongest of today, with no thought of tomorrow."""
        del key
        return self._eleven(state, self._today(state))

    def same_eleven(
        self, key: Key[Array, ""], state: LeagueState, observation: Observation
    ) -> Action:
        """The most skilled of those who are fit, tired or not: a policy to compare with."""
        del key, observation
        return self._eleven(state, state.skills)

    def draw(self, state: LeagueState, action: Action | None = None) -> Scene:
        """The pitch with the line-up, the bench, the next opponents, and the season so far."""
        caption = f"match {int(state.match) + 1} of {self.time_limit}"
        if state.match > 0:
            scored, conceded = np.asarray(state.score).tolist()
            caption += f" · last {scored} : {conceded} · {int(state.points)} points"
        return draw_team(
            np.asarray(state.skills),
            np.asarray(state.fatigue),
            np.asarray(state.out),
            np.asarray(self._opponents(state, AHEAD)),
            picks_of(action),
            self.formation,
            ("goal", "back", "middle", "front"),
            caption,
            None if state.present is None else np.asarray(state.present),
        )

    def _opponents(self, state: LeagueState, count: int) -> Float[Array, "count 2"]:
        """The next of them; after the last one the first comes again."""
        coming = state.match + jnp.arange(count)
        return state.opponents[coming % state.opponents.shape[0]]

    def _today(self, state: LeagueState) -> Float[Array, "N 4"]:
        """Each player's strength in each position now."""
        condition = (1.0 - TIRED * state.fatigue) * (1.0 + 0.1 * state.form)
        return state.skills * condition[:, None]

    def _counts(self) -> Float[Array, "2 4"]:
        """How much a player counts in attack and in defence; a whole line-up counts 1 in each."""
        sides = np.asarray([ATTACK, DEFENCE])
        whole = (sides * np.asarray(self.formation)).sum(axis=1, keepdims=True)
        return jnp.asarray(sides / np.maximum(whole, 1e-6), jnp.float32)

    def _eleven(self, state: LeagueState, strength: Float[Array, "N 4"]) -> Action:
        """Pick after pick the player and position that add most, until the line-up is full."""
        value = strength * self._counts().sum(axis=0)[None]

        def pick(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Action]:
            free, room = carry
            mask = free[:, None] & (room > 0)[None]
            item, command = best_pair(value, mask)
            item = jnp.where(mask.any(), item, -1).astype(jnp.int32)
            command = jnp.where(mask.any(), command, 0).astype(jnp.int32)
            free = free & (jnp.arange(self.spec.num_items) != item)
            room = room - ((jnp.arange(len(POSITIONS)) == command) & (item >= 0))
            return (free, room), Action(item, command)

        fit = (state.out == 0) & (True if state.present is None else state.present)
        start = fit, jnp.asarray(self.formation)
        return jax.lax.scan(pick, start, None, length=self.spec.num_select)[1]
