"""The check of a NumPy world's `legal_after`: rules between picks (one goalkeeper, a budget)."""

from typing import Any

import numpy as np

from selectmdp.check.numpy_probe import NumpyProbe, Player, Seen, Step
from selectmdp.check.report import NotChecked, Wrong
from selectmdp.factories import told
from selectmdp.interop.spaces import open_pairs
from selectmdp.types import Observation

NEVER_RESET = (
    " if another instance is asked, which is never reset, as learners do: use what its arguments "
    "tell, observation, chosen and command, and put into the observation what they do not"
)


def rules(probe: NumpyProbe) -> str:
    """The arguments of `legal_after` tell all; picks only remove pairs, whatever their order."""
    if getattr(probe.env, "legal_after", None) is None:
        raise NotChecked("the world offers no legal_after")
    asked = probe.make()  # learners ask one that is never reset
    try:
        player = Player(probe.env, probe.seed, probe.seed)
        for number, step in enumerate(probe.trail, start=1):
            own = _masks(probe.env, player.observation, *step.action)
            try:
                masks = _masks(asked, player.observation, *step.action)
            except Exception as error:
                raise Wrong(f"`legal_after` raised {told(error)}{NEVER_RESET}") from error
            if (masks != own).any():
                raise Wrong(f"`legal_after` says something else in step {number}{NEVER_RESET}")
            _check_picks(number, step, masks, _masks(asked, step.observation, *_turned(step)))
            player.step()
    finally:
        getattr(asked, "close", lambda: None)()
    return "its arguments tell all, picks only remove pairs, and are as legal backwards"


def _masks(env: Any, seen: Seen, items: Any, commands: Any) -> Any:
    """[picks + 1, N, C]: which pairs are open before each pick, and after the last."""
    chosen, command = np.zeros(len(seen["present"]), bool), np.zeros(len(seen["present"]), np.int32)
    legal = seen["legal"] & seen["present"][:, None]
    observation = Observation(**seen)  # type: ignore[arg-type]

    def after(*picks: Any) -> Any:
        return np.asarray(env.legal_after(observation, *picks))

    masks = [open_pairs(legal, chosen, command, after)]
    for item, given in zip(items, commands, strict=True):
        chosen[item], command[item] = True, given
        masks.append(open_pairs(legal, chosen.copy(), command.copy(), after))
    return np.stack(masks)


def _turned(step: Step) -> tuple[Any, ...]:
    return tuple(part[::-1] for part in step.action)


def _check_picks(number: int, step: Step, masks: Any, backwards: Any) -> None:
    again = masks[1:] & ~masks[:-1]
    if again.any():
        pick, item, command = np.argwhere(again)[0].tolist()
        raise Wrong(
            f"`legal_after` made item {item} with command {command} legal again after pick {pick} "
            f"of step {number}: picks may only remove pairs"
        )
    picks = [(int(item), int(command)) for item, command in zip(*step.action, strict=True)]
    if not all(mask[pair] for mask, pair in zip(backwards[:-1], picks[::-1], strict=True)):
        raise Wrong(
            f"the picks {picks} of step {number} are legal in this order and not backwards: "
            "`legal_after` must depend on what was picked, not on what was picked first"
        )
