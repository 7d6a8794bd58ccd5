"""One phase a step (paper §2.1, eq. 1): K single choices replace one choice of K, for any agent.

The Gymnasium face of `selectmdp.iterative`, for agents of other libraries that choose one of a
fixed number of actions and heed a mask, such as MaskablePPO of sb3-contrib.
"""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from selectmdp.envs.base import SelectEnv
from selectmdp.interop.gymnasium import SelectGymEnv, frame
from selectmdp.interop.spaces import SelectSpace
from selectmdp.spec import SelectError
from selectmdp.types import Action

OWN = ("chosen", "command", "phase")

Seen = dict[str, Any]


class IterativeSelect(gymnasium.Wrapper[Seen, Any, Any, Any], RecordConstructorArgs):
    """Makes each step one pick: action `item * C + command` out of N · C, and N · C to pass.

    It takes a JAX `SelectEnv`, or any Gymnasium environment whose action space is a `SelectSpace`
    (one that forbids pairs keeps `action_space.legal` current). Observations are a dict: all that
    the base environment shows except `legal` (under `observation` if that is no dict), and
    `chosen` [N], `command` [N] (0 where not chosen), `phase`. Legality is in `action_masks()`.

    The reward is 0 until the step's last pick, which gets all of it. An outside agent with one
    discount should use γ^(1/K): as reward comes at the last phase only, this is exactly equivalent
    to γ a step (returns are multiplied by γ^((K−1)/K), which changes no preference).

    Where fewer than K legal pairs remain the picks end there, with item −1 for the rest; the last
    pick taken gets the reward (such a step of j picks is discounted by γ^(j/K)). Where nothing is
    legal before the first pick there is nothing to choose: every action then means "go on", the
    mask is all True, and the base environment makes its step with no picks. Rewards and time limits
    so stay where they belong, and agents never see an empty mask.

    Where the space allows a pass, it is one more action, N · C: always legal, and the step's last.
    """

    def __init__(self, env: gymnasium.Env[Any, Any] | SelectEnv) -> None:
        RecordConstructorArgs.__init__(self)
        base = env if isinstance(env, gymnasium.Env) else SelectGymEnv(env)
        gymnasium.Wrapper.__init__(self, base)
        picks = base.action_space
        if not isinstance(picks, SelectSpace):
            raise SelectError(
                f"action_space={picks}: must be a SelectSpace; give the environment one, "
                "or remove the wrapper that replaced it"
            )
        self._picks_space, sizes = picks, picks.sizes
        self.num_items, self.num_commands = sizes.num_items, sizes.num_commands
        self.num_select = sizes.num_select
        self.observation_space = self._with_selection(base.observation_space)
        self.allow_pass = sizes.allow_pass
        self.action_space = spaces.Discrete(self.num_items * self.num_commands + self.allow_pass)
        self._base_observation: Any = None
        self._over = True
        self._clear()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Seen, dict[str, Any]]:
        """A new episode of the base environment, at phase 0."""
        self._base_observation, info = self.env.reset(seed=seed, options=options)
        self._over = False
        self._clear()
        return self._observe(), info

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Which of the N · C (+ 1) actions may be taken now, as maskable agents expect it."""
        pairs = self._open_pairs().reshape(-1)
        if self.allow_pass:
            return np.append(pairs, True)
        return pairs if pairs.any() else np.ones(pairs.size, bool)

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """One pick; the base environment moves when it was the step's last."""
        if self._over:
            raise SelectError("step without an episode under way: call reset() first")
        pairs = self._open_pairs()
        item, command = self._check(action, pairs)
        if pairs.any() and item < self.num_items:
            self._items.append(item)
            self._commands.append(command)
            self._chosen[item], self._command[item] = True, command
            more = self.allow_pass or self._open_pairs().any()
            if len(self._items) < self.num_select and more:
                return self._observe(), 0.0, False, False, {}
        return self._move()

    def render(self) -> Any:
        """As the base environment; during a step of ours, its state with the picks so far."""
        base = self.env.unwrapped
        if not self._items or not isinstance(base, SelectGymEnv) or base.render_mode is None:
            return self.env.render()
        made = Action(np.array(self._items), np.array(self._commands))  # type: ignore[arg-type]
        return frame(base.env, base.state, made)

    def _move(self) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        missing = self.num_select - len(self._items)
        picks = {
            "items": np.array(self._items + [-1] * missing, np.int64),
            "commands": np.array(self._commands + [0] * missing, np.int64),
        }
        try:
            self._base_observation, reward, terminated, truncated, info = self.env.step(picks)
        except BaseException:
            self._unpick()
            raise
        self._over = bool(terminated or truncated)
        self._clear()
        return self._observe(), float(reward), bool(terminated), bool(truncated), info

    def _check(self, action: Any, pairs: npt.NDArray[np.bool_]) -> tuple[int, int]:
        number = np.asarray(action)
        if number.shape != () or number.dtype.kind not in "iu":
            raise SelectError(
                f"action={action!r}: must be one whole number, item * {self.num_commands} + command"
            )
        last = pairs.size - 1 + self.allow_pass
        if not 0 <= number <= last:
            raise SelectError(f"action={number}: must be from 0 to {last}")
        item, command = divmod(int(number), self.num_commands)
        if item == self.num_items:
            return item, command
        if (self.allow_pass or pairs.any()) and not pairs[item, command]:
            why = "was chosen in an earlier phase" if self._chosen[item] else "is not legal now"
            raise SelectError(
                f"action={number}: item {item} with command {command} {why}; "
                "take an action that action_masks() allows"
            )
        return item, command

    def _open_pairs(self) -> npt.NDArray[np.bool_]:
        return self._picks_space.open_pairs(self._chosen, self._command)

    def _unpick(self) -> None:
        if self._items:
            item = self._items.pop()
            self._commands.pop()
            self._chosen[item], self._command[item] = False, 0

    def _clear(self) -> None:
        self._items: list[int] = []
        self._commands: list[int] = []
        self._chosen = np.zeros(self.num_items, bool)
        self._command = np.zeros(self.num_items, np.int32)

    def _observe(self) -> Seen:
        base = self._base_observation
        shown = dict(base) if isinstance(base, dict) else {"observation": base}
        shown.pop("legal", None)
        return {
            **{name: np.array(part) for name, part in shown.items()},
            "chosen": self._chosen.astype(np.int8),
            "command": self._command.astype(np.int64),
            "phase": np.int64(len(self._items)),
        }

    def _with_selection(self, base: spaces.Space[Any]) -> spaces.Dict:
        parts = dict(base.spaces) if isinstance(base, spaces.Dict) else {"observation": base}
        parts.pop("legal", None)
        taken = [name for name in OWN if name in parts]
        if taken:
            raise SelectError(f"observation keys {taken} are the wrapper's own: rename them")
        return spaces.Dict(
            {
                **parts,
                "chosen": spaces.MultiBinary(self.num_items),
                "command": spaces.MultiDiscrete([self.num_commands] * self.num_items),
                "phase": spaces.Discrete(self.num_select),
            }
        )
