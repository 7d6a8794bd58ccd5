"""What `selectmdp watch` shows, as plain data: an episode under several policies, pick by pick.

One pick of K is K picks of one (paper §2.1), so a step has K frames: the world with the picks so
far, and what each item was worth when the last of them was taken. All policies start in the same
state and meet the same chance, as far as their own picks allow. Much in one frame is also in the
next: styles, shapes and stages are told once, and a frame names them by their numbers.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from selectmdp import film
from selectmdp.envs.base import offers
from selectmdp.evaluation import episode_steps
from selectmdp.policy import Policy
from selectmdp.references import REFERENCES, reference
from selectmdp.report.page import asset, page
from selectmdp.scene import REFERENCE, Scene
from selectmdp.spec import SelectError
from selectmdp.tasks import describe
from selectmdp.types import Action

FIGURES = 5
"""Of a reward, of a place beside the picture's width, of a value beside the largest."""

PLACES = {
    "disc": ("x", "y", "radius"),
    "box": ("x", "y", "width", "height"),
    "arrow": ("x0", "y0", "x1", "y1"),
    "label": ("x", "y"),
}
"""What differs between shapes of one style, by kind."""


class Player(NamedTuple):
    """A policy to be watched; what it tells beside its picks are values [K, N, C], or None."""

    name: str
    act: film.TellingActor


def players(policy: Policy, env: Any) -> tuple[Player, ...]:
    """A trained policy, and the references that the world offers."""
    found = [Player(policy.agent.name, policy.telling_actor(env))]
    for name in REFERENCES:
        with suppress(SelectError):
            found.append(_silent(name, reference(name, env)))
    return tuple(found)


def recorded(
    env: Any,
    players: Sequence[Player],
    *,
    task: str,
    steps: int = 100,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """At most `steps` of one episode under each player, in lists, numbers and strings."""
    film.check_drawn(env, task)
    length = min(episode_steps(env, steps), offers(env, "time_limit") or steps)
    pictures = _Pictures()
    told = []
    for place, player in enumerate(players):

        def done(number: int, before: int = place * length) -> None:
            progress(before + number, len(players) * length)

        told.append(_played(env, player, pictures, length, seed, done))
    return {
        "task": task,
        "seed": seed,
        "steps": max(len(player["rewards"]) for player in told),
        **describe(env),
        "commands": list(offers(env, "command_names") or map(str, range(env.spec.num_commands))),
        "legend": str(offers(env, "legend") or ""),
        "players": told,
        **pictures.to_json(),
    }


def page_of(recording: dict[str, Any], policy: Policy, run: str) -> str:
    """The page that shows a recording of a policy from this run."""
    learned = {"num_items": policy.spec.num_items, "num_select": policy.spec.num_select}
    about = {"run": run, "step": policy.about.get("step"), "learned": learned}
    return page(
        f"{policy.agent.name} on {recording['task']}",
        body=asset("watch.html"),
        style=asset("page.css", "watch.css"),
        script=asset("dom.js", "scene.js", "plots.js", "cards.js", "watch.js"),
        data={**about, **recording},
    )


def _played(
    env: Any,
    player: Player,
    pictures: "_Pictures",
    steps: int,
    seed: int,
    progress: Callable[[int], None],
) -> dict[str, Any]:
    """One player's episode, which may end before its time: a row for each step.

    `picks` are (item, command), item −1 where they had ended; `values` are those of each
    item's best command, null where it had none that was allowed.
    """
    rewards, picks, frames, values = [], [], [], []
    shown = film.moments(env, player.act, steps=steps, seed=seed)
    for number, moment in enumerate(shown, start=1):
        if not math.isfinite(moment.reward):
            raise SelectError(
                f"step {number} under {player.name} earns {moment.reward}: a reward must be finite"
            )
        rewards.append(_short(moment.reward, _decimals(abs(moment.reward))))
        made = np.stack([moment.action.items, moment.action.commands], axis=1)
        picks.append(made.tolist())
        frames.append([pictures.add(env.draw(moment.state, part)) for part in _parts(made)])
        if moment.told is not None:
            items = env.spec.num_items  # without the row of a pass
            values.append(np.asarray(moment.told)[:, :items].max(axis=2))
        progress(number)
    return {
        "name": player.name,
        "rewards": rewards,
        "picks": picks,
        "frames": frames,
        "values": _plain(np.stack(values)) if values else None,
    }


class _Pictures:
    """Scenes that share what they have in common."""

    def __init__(self) -> None:
        self._styles: dict[Any, int] = {}
        self._shapes: dict[Any, int] = {}
        self._stages: dict[Any, int] = {}

    def add(self, scene: Scene) -> list[int]:
        """A scene as [stage, first shape, how many, first shape, how many, …]."""
        plain = scene.to_json()
        decimals = _decimals(plain["bounds"][2] - plain["bounds"][0])
        stage = (*plain["bounds"], plain["background"], plain["caption"])
        frame = [_number(self._stages, stage), -1, 0]
        for shape in plain["shapes"]:
            number = self._shape(shape, decimals)
            if number == frame[-2] + frame[-1]:
                frame[-1] += 1
            else:
                frame += [number, 1]
        return [frame[0], *frame[3:]]

    def to_json(self) -> dict[str, Any]:
        """A shape is [style, item or −1, the numbers of its place]."""
        return {
            "reference": REFERENCE,
            "places": {kind: list(names) for kind, names in PLACES.items()},
            "styles": [dict(style) for style in self._styles],
            "shapes": [list(shape) for shape in self._shapes],
            "stages": [
                {"bounds": list(bounds), "background": background, "caption": caption}
                for *bounds, background, caption in self._stages
            ],
        }

    def _shape(self, shape: dict[str, Any], decimals: int) -> int:
        names = PLACES[shape["shape"]]
        place = tuple(_short(shape[name], decimals) for name in names)
        style = tuple(part for part in shape.items() if part[0] not in (*names, "item"))
        item = -1 if shape["item"] is None else shape["item"]
        return _number(self._shapes, (_number(self._styles, style), item, *place))


def _silent(name: str, actor: Callable[..., Action]) -> Player:
    return Player(name, lambda *seen: (actor(*seen), None))


def _parts(made: Int[np.ndarray, "K 2"]) -> Iterator[Action]:
    """The first pick, the first two, … all K."""
    phases = np.arange(len(made))
    for phase in phases:
        items = np.where(phases <= phase, made[:, 0], -1)
        yield Action(jnp.asarray(items), jnp.asarray(made[:, 1]))


def _plain(values: Float[np.ndarray, "T K N"]) -> list[Any]:
    decimals = _decimals(float(np.abs(values[np.isfinite(values)]).max(initial=0.0)))
    return [
        [
            [_short(value, decimals) if math.isfinite(value) else None for value in row]
            for row in step
        ]
        for step in values.tolist()
    ]


def _number(known: dict[Any, int], thing: Any) -> int:
    """Things are numbered in the order in which they come first."""
    return known.setdefault(thing, len(known))


def _decimals(size: float) -> int:
    """How many leave a number of this size `FIGURES` figures."""
    return FIGURES - math.ceil(math.log10(size)) if size > 0 else FIGURES


def _short(number: float, decimals: int) -> float:
    """Rounded; 3 rather than 3.0, and no −0."""
    short = round(number, decimals)
    return int(short) if short == int(short) else short
