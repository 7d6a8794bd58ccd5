"""Way (b) in: any Gymnasium environment as a NumPy world, by two small functions."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from selectmdp.interop.edge import all_picks
from selectmdp.spec import SelectError, Spec
from selectmdp.types import Action

FORWARDED = (
    *("command_names", "legal_after", "sort_key", "learning_reward", "dynamics", "unit", "suits"),
)


class Adapted:
    """A Gymnasium environment that shows items and takes picks."""

    def __init__(
        self,
        env: Any,
        spec: Spec,
        observe: Callable[[Any], Any],
        act: Callable[[Action], Any],
        greedy: Callable[[Any], Any] | None = None,
    ) -> None:
        self.env, self.spec = env, spec
        self.time_limit: int | None = getattr(env.spec, "max_episode_steps", None)
        self._observe, self._act, self._heuristic = observe, act, greedy
        self.seen: Any = None
        """What theirs showed last."""

    def reset(self, seed: int) -> Any:
        """A new episode, seeded."""
        self.seen, _ = self.env.reset(seed=seed)
        return self._observe(self.seen)

    def step(self, action: Action) -> tuple[Any, Any, Any, Any]:
        """One step of theirs."""
        self.seen, reward, terminated, truncated, _ = self.env.step(self._act(action))
        return self._observe(self.seen), reward, terminated, truncated

    @property
    def greedy(self) -> Callable[[], Any] | None:
        """The heuristic's picks now, if there is one; a copy of this world asks about itself."""
        return None if self._heuristic is None else partial(self._heuristic, self.seen)

    def close(self) -> None:
        """Close theirs."""
        self.env.close()


def from_gymnasium(
    env: Any,
    spec: Spec,
    observe: Callable[[Any], Any],
    act: Callable[[Action], Any],
    greedy: Callable[[Any], Any] | None = None,
    **offers: Any,
) -> Adapted:
    """Any Gymnasium environment as a world: `observe` makes items of what it shows, `act` its
    action of our picks.

    `observe(theirs)` gives a dict with `items` [N, F] and, where there is more to tell, `context`,
    `legal`, `present` and `context_present`; `act(picks)` gets `picks.items` and `picks.commands`;
    `greedy(theirs)`, a heuristic to compare with, gives (items, commands). What else a world may
    offer is given by name: `command_names`, `time_limit`, `legal_after`, `unit`, …
    """
    if isinstance(env, type) or not hasattr(env, "action_space"):
        raise SelectError(f"env={env!r}: give a Gymnasium environment")
    for name, function in (("observe", observe), ("act", act), ("greedy", greedy)):
        if not callable(function) and (name != "greedy" or function is not None):
            raise SelectError(f"{name}={function!r}: give a function")
    if not isinstance(spec, Spec):
        raise SelectError(f"spec={spec!r}: give a selectmdp.Spec of the sizes")
    adapted = Adapted(env, spec, observe, act, greedy)
    for name, offer in offers.items():
        if name not in OFFERS:
            raise SelectError(f"{name}={offer!r}: a world may offer {', '.join(OFFERS)}")
        setattr(adapted, name, offer)
    return adapted


OFFERS = (*FORWARDED, "time_limit", "partial_reward")


def hosted(env: Any, name: str) -> Any:
    """A host environment of either kind as a NumPy world; what is neither is refused."""
    gymnasium = sys.modules.get("gymnasium")  # not imported: then it is none of theirs
    if gymnasium is not None and isinstance(env, gymnasium.Env):
        return _spoken(env)
    for needed in ("reset", "step"):
        if not callable(getattr(env, needed, None)):
            raise SelectError(
                f"{name} makes a {type(env).__name__} without {needed}(): give a function that "
                "makes a world"
            )
    if not isinstance(getattr(env, "spec", None), Spec):
        raise SelectError(
            f"{name} makes a {type(env).__name__} whose `spec` is no selectmdp.Spec: give it one, "
            "with its sizes"
        )
    return env


def _spoken(env: Any) -> Adapted:
    """An environment that speaks our spaces already needs no functions."""
    from selectmdp.interop.spaces import SelectSpace

    space = getattr(env, "action_space", None)
    if not isinstance(space, SelectSpace):
        raise SelectError(
            f"the action space is {type(space).__name__}: tell by "
            "selectmdp.from_gymnasium(env, spec, observe, act) what the items and the picks are"
        )
    spec = space.sizes

    def act(picks: Action) -> dict[str, Any]:
        return all_picks(tuple(picks), spec.num_select)._asdict()

    spoken = Adapted(env, spec, lambda seen: seen, act)
    inside = env.unwrapped
    held = getattr(inside, "env", None)  # ours hold a JAX world
    base = held if isinstance(getattr(held, "spec", None), Spec) else inside
    for name in FORWARDED:
        if getattr(base, name, None) is not None:
            setattr(spoken, name, getattr(base, name))
    spoken.time_limit = getattr(base, "time_limit", None) or spoken.time_limit
    return spoken
