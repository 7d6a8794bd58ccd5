"""RDDL domains (pyRDDLGym, rddlrepository) as worlds: item = object tuple, command = action fluent.

`put-out(?x, ?y)` and `cut-out(?x, ?y)` make an item of each pair of objects and two commands; K is
the instance's `max-nondef-actions`, and a pass leaves the rest at their defaults, as RDDL allows.
Where action fluents have different parameters, items are the tuples of each, and a pair is legal
where the fluent has the item's parameters. An item is picked once in a step: two fluents of the
same objects at once, which RDDL would allow if K > 1, are not offered. Action preconditions, which
pyRDDLGym does not enforce unless asked, make no pair illegal. What an item shows is told in
`rddl_features.py`.
"""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pyRDDLGym

from selectmdp.interop.rddl_features import Features
from selectmdp.settings import SLOW_WORLD
from selectmdp.spec import SelectError, Spec
from selectmdp.types import Action

Heuristic = Callable[["Rddl"], tuple[list[int], list[int]]]


class Rddl:
    """An instance of an RDDL domain whose actions are boolean."""

    def __init__(
        self,
        domain: str,
        instance: str | int,
        heuristic: Heuristic | None = None,
        reward_scale: float = 1.0,
        **suits: float,
    ) -> None:
        """Names of rddlrepository, or paths of two `.rddl` files.

        A heuristic, to compare with, gets this world and gives (items, commands). What learners
        see of a reward is divided by `reward_scale`; what is reported is not. `suits` are settings
        of the fast preset that suit the domain.
        """
        try:
            self.env: Any = pyRDDLGym.make(domain, str(instance), vectorized=True)
        except Exception as error:  # theirs are of many kinds
            raise SelectError(
                f"pyRDDLGym cannot make domain {domain!r}, instance {str(instance)!r}: {error}. "
                "Give names of rddlrepository, or paths of two .rddl files"
            ) from error
        model = self.env.model
        for name, kind in model.action_ranges.items():
            if kind != "bool":
                raise SelectError(
                    f"{domain}: action {name} is {kind}, and a pick is done or not: take a domain "
                    "whose actions are all bool"
                )
        if self.env.sampler.is_pomdp:
            raise SelectError(f"{domain}: its state is hidden (a POMDP): take the MDP of it")
        self.command_names = tuple(model.action_fluents)
        parameters = [tuple(model.variable_params[name]) for name in self.command_names]
        signatures = tuple(dict.fromkeys(parameters))
        objects = model.type_to_objects
        tuples = [
            (signature, names)
            for signature in signatures
            for names in product(*(objects[kind] for kind in signature))
        ]
        self.items = tuple(names for _, names in tuples)
        """The objects of each item, by name."""
        self._legal = np.array([[kind == takes for takes in parameters] for kind, _ in tuples])
        initial = self.env.sampler.init_values
        self.values: dict[str, npt.NDArray[Any]] = {
            name: np.asarray(initial[name]) for name in (*model.non_fluents, *model.state_fluents)
        }
        """Every non-fluent, and every state fluent as it is now."""
        self._features = Features(model, signatures, self.values)
        self.feature_names = self._features.names
        self.time_limit = int(self.env.horizon)
        self.unit = "reward"
        self.suits = {"fast": {**SLOW_WORLD, **suits}}
        self.spec = Spec(
            num_items=len(self.items),
            item_features=len(self.feature_names),
            num_context=0,
            context_features=0,
            num_select=int(min(self.env.max_allowed_actions, len(self.items))),
            num_commands=len(self.command_names),
            allow_pass=True,
        )
        if not reward_scale > 0:
            raise SelectError(f"reward_scale={reward_scale}: must be more than 0")
        self.learning_reward = lambda reward: reward / reward_scale
        self._heuristic = heuristic

    @property
    def greedy(self) -> Callable[[], tuple[list[int], list[int]]] | None:
        """The heuristic's picks now, if there is one; a copy of this world asks about itself."""
        return None if self._heuristic is None else partial(self._heuristic, self)

    def reset(self, seed: int) -> dict[str, Any]:
        """The instance's first state; the seed is of all chance after it."""
        seen, _ = self.env.reset(seed=int(seed))
        return self._seen(seen)

    def step(self, action: Action) -> tuple[dict[str, Any], float, bool, bool]:
        """Each pick turns one action fluent of its objects away from its default."""
        fluents = {name: np.copy(value) for name, value in self.env.sampler.noop_actions.items()}
        for item, command in zip(action.items, action.commands, strict=True):
            name, objects = self.command_names[command], self.indices(int(item))
            fluents[name][objects] = ~fluents[name][objects]
        seen, reward, terminated, truncated, _ = self.env.step(fluents)
        return self._seen(seen), float(reward), bool(terminated), bool(truncated)

    def indices(self, item: int) -> tuple[int, ...]:
        """Where the item's objects stand in arrays of fluents."""
        places = self.env.model.object_to_index
        return tuple(places[name] for name in self.items[item])

    def close(self) -> None:
        """Close theirs."""
        self.env.close()

    def _seen(self, seen: dict[str, Any]) -> dict[str, Any]:
        for name, value in seen.items():  # one without parameters comes as [1]
            self.values[name] = np.asarray(value).reshape(self.values[name].shape)
        return {"items": self._features(self.values), "legal": self._legal}
