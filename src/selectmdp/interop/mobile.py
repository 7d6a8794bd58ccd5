"""mobile-env as a world: pick up to K of N users of a mobile network, command = base station.

In theirs every user sends a number in every step: 0 leaves it as it is, b connects it to base
station b, or disconnects it where it is connected already. Here a controller may send K of these in
a step; who is not picked is left as it is, and a pass sends fewer. A station shares its rate among
those connected to it, a user adds up what its stations give, and the reward is the mean utility
(−1 … 1, logarithmic in the rate) of the users who are there. A pair is legal where the station is
in the user's range: elsewhere theirs would do nothing.

What a user shows, for each station in their order: whether it is connected; its utility if that
station served it alone (−1: out of range), and as loaded as it is now; the station's load; and what
all users together would gain or lose if the pair were ordered. And last the utility it had.
Stations are commands and keep their places; users are items, and a policy for them does not care
about their order.

Three things of theirs are not as they seem, so nothing here relies on them: `reset(seed=…)` seeds
nothing (each episode here is a new environment, seeded by its config); the central handler's
observation puts users who are away before those who are there (here users are read by their id);
and its check that users neither come nor go never fails (here who is away is not `present`).
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium
import mobile_env  # noqa: F401 - registers its environments
import numpy as np
import numpy.typing as npt
from mobile_env.core.channels import OkumuraHata
from mobile_env.handlers.central import MComCentralHandler

from selectmdp.settings import SLOW_WORLD
from selectmdp.spec import SelectError, Spec
from selectmdp.types import Action

SCENARIOS = ("small", "medium", "large")
Table = npt.NDArray[np.float64]
ENOUGH = 1e-9
"""Less than this is rounding."""


class Mobile:
    """`mobile-<scenario>-central-v0`, in which K users are told something in a step."""

    unit = "mean utility"
    suits: ClassVar = {"fast": {**SLOW_WORLD, "discount": 0.5, "epsilon_end": 0.05}}

    def __init__(
        self,
        scenario: str = "small",
        num_select: int = 2,
        config: Mapping[str, Any] | None = None,
        heuristic: str = "waiting",
    ) -> None:
        """`config` is theirs: movement, arrival, …; seed and handler in it do not count.

        The heuristic to compare with serves who is `waiting`, or looks one step ahead by the
        simulation's own formula, `planned`.
        """
        for name, given, known in (
            ("scenario", scenario, SCENARIOS),
            ("heuristic", heuristic, HEURISTICS),
        ):
            if given not in known:
                raise SelectError(f"{name}={given!r}: there are {', '.join(known)}")
        self._heuristic = heuristic
        self._id = f"mobile-{scenario}-central-v0"
        self._config = {"channel": RememberedChannel, **(config or {}), "handler": NothingShown}
        self._begin(0)
        self.time_limit = int(self.env.EP_MAX_TIME)
        stations = len(self._stations)
        self.spec = Spec(
            num_items=len(self._users),
            item_features=5 * stations + 1,
            num_context=0,
            context_features=0,
            num_select=num_select,
            num_commands=stations,
            allow_pass=True,
        )
        self.command_names = tuple(f"station {place}" for place in range(1, stations + 1))

    def reset(self, seed: int) -> dict[str, Any]:
        """A new environment, since theirs is seeded at construction alone."""
        self._begin(seed)
        return self._seen()

    def step(self, action: Action) -> tuple[dict[str, Any], float, bool, bool]:
        """Theirs, with 0 for all who were not picked."""
        sent = np.zeros(self.spec.num_items, int)
        sent[action.items] = 1 + action.commands
        _, reward, terminated, truncated, _ = self.env.step(sent.tolist())
        return self._seen(), float(reward), terminated, truncated

    def partial_reward(self, action: Action) -> Table:
        """Mean utility after the first 1 … picks: users move only after it was counted."""
        connected, rewards = self._connected.copy(), np.zeros(len(action.items))
        for place, pair in enumerate(zip(action.items, action.commands, strict=True)):
            connected[pair] = ~connected[pair]
            rewards[place] = self._mean_utility(connected)
        return rewards

    def greedy(self) -> tuple[list[int], list[int]]:
        """By the heuristic that was asked for."""
        return HEURISTICS[self._heuristic](self)

    def waiting(self) -> tuple[list[int], list[int]]:
        """Who has no connection gets its best station; the best channels first."""
        best, rate = self._rates.argmax(axis=1), self._rates.max(axis=1)
        waiting = (rate > 0) & ~self._connected.any(axis=1)
        order = [int(user) for user in np.argsort(-rate, kind="stable") if waiting[user]]
        picks = order[: self.spec.num_select]
        return picks, [int(best[user]) for user in picks]

    def planned(self) -> tuple[list[int], list[int]]:
        """Orders that raise the sum of utilities most, one after the other, while one does."""
        connected, picks = self._connected.copy(), list[tuple[int, int]]()
        for _ in range(self.spec.num_select):
            gains = self._gains(connected)
            gains[[user for user, _ in picks]] = 0.0
            user, station = (int(part) for part in np.unravel_index(gains.argmax(), gains.shape))
            if gains[user, station] < ENOUGH:
                break
            connected[user, station] ^= True
            picks.append((user, station))
        return [user for user, _ in picks], [station for _, station in picks]

    def _begin(self, seed: int) -> None:
        config = {**self._config, "seed": int(seed)}
        made: Any = gymnasium.make(self._id, config=config)
        self.env = made.unwrapped
        self.env.reset()
        self._users = [self.env.users[name] for name in sorted(self.env.users)]
        self._stations = [self.env.stations[name] for name in sorted(self.env.stations)]

    def _seen(self) -> dict[str, Any]:
        env, active = self.env, set(self.env.active)
        present = np.array([user in active for user in self._users])
        self._rates = rates = np.array([self._rates_to(user, active) for user in self._users])
        # Theirs releases who is out of range before it heeds what is sent.
        joined = [
            [user in env.connections[each] for each in self._stations] for user in self._users
        ]
        self._connected = connected = np.array(joined) & (rates > 0)
        load = connected.sum(axis=0)
        shared = rates / np.maximum(load + ~connected, 1)
        had = [env.utilities.get(user, -1.0) for user in self._users]
        items = np.concatenate(
            [
                connected,
                self._scaled(rates),
                self._scaled(shared),
                np.broadcast_to(load / len(self._users), connected.shape),
                self._gains(connected),
                np.array(had)[:, None],
            ],
            axis=1,
        )
        return {"items": items * present[:, None], "present": present, "legal": rates > 0}

    def _rates_to(self, user: Any, active: set[Any]) -> list[float]:
        """What each station would give this user alone; 0: it is too far, or away."""
        if user not in active:
            return [0.0] * len(self._stations)
        channel = self.env.channel
        return [channel.datarate(each, user, channel.snr(each, user)) for each in self._stations]

    def _mean_utility(self, connected: npt.NDArray[np.bool_]) -> float:
        given = (self._rates * connected / np.maximum(connected.sum(axis=0), 1)).sum(axis=1)
        there = [user in self.env.active for user in self._users]
        return float(self._scaled(given)[there].mean())

    def _gains(self, connected: npt.NDArray[np.bool_]) -> Table:
        """What each order would add to the sum of utilities: [users, stations]; 0: out of range."""
        load = connected.sum(axis=0)
        part = self._rates * connected / np.maximum(load, 1)
        given = part.sum(axis=1, keepdims=True)
        has = self._scaled(given)
        after = np.where(connected, load - 1, load + 1)  # by the order of a user's own
        own = self._scaled(given - part + ~connected * self._rates / np.maximum(after, 1)) - has
        joined = self._rates * connected / (load + 1)  # what the connected get beside one more
        left = self._rates * connected / np.maximum(load - 1, 1)
        crowded, relieved = (self._scaled(given - part + each) - has for each in (joined, left))
        others = np.where(connected, relieved.sum(axis=0) - relieved, crowded.sum(axis=0))
        return np.where(self._rates > 0, own + others, 0.0)

    def _scaled(self, rates: Table) -> Table:
        """Utilities (−1 … 1) of rates."""
        utility = self.env.utility
        w1, w2, w3 = utility.coeffs
        served = np.where(rates > 0, rates, 1.0)
        worth = np.clip(w1 * np.log(w2 + served) / np.log(w3), utility.lower, utility.upper)
        return utility.scale(np.where(rates > 0, worth, utility.lower))


HEURISTICS = {"waiting": Mobile.waiting, "planned": Mobile.planned}


class RememberedChannel(OkumuraHata):
    """Their channel with a memory: users stand on whole metres, so the same ratio comes again."""

    known: ClassVar[dict[Any, float]] = {}

    def snr(self, bs: Any, ue: Any) -> float:
        """As theirs, to the last bit."""
        station = (bs.x, bs.y, bs.tx_power, bs.frequency, bs.height)
        case = (*station, ue.noise, ue.height, int(ue.x), int(ue.y))
        ratio = self.known.get(case)
        if ratio is None:
            ratio = self.known[case] = float(super().snr(bs, ue))
        return ratio


class NothingShown(MComCentralHandler):
    """Their central handler, which does not make the observation that nobody reads here."""

    @classmethod
    def observation(cls, env: Any) -> None:
        """What is shown is read from the simulation itself."""
        return None
