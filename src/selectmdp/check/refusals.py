"""Bad picks are refused with a clear error: the edge validates, compiled code trusts."""

from typing import Any

import numpy as np

from selectmdp.check.gym_env import same
from selectmdp.check.gym_probe import GymProbe, Picks, open_pairs
from selectmdp.check.report import NotChecked, Wrong
from selectmdp.factories import told

MEND = "call selectmdp.interop.spaces.check_action at the start of step"


def duplicates(probe: GymProbe) -> str:
    """The same item twice is refused."""
    if probe.spec.num_select < 2:
        raise NotChecked("one item is picked a step, so none can be picked twice")
    _, picks = probe.stand_where(_made(2), "fewer than two picks were ever possible")
    _refuses(probe, _with(picks, 1, picks["items"][0], picks["commands"][0]), "an item twice")
    return "an item picked twice is refused"


def out_of_range(probe: GymProbe) -> str:
    """Items and commands that do not exist are refused."""
    spec = probe.spec
    for item, command, what in (
        (spec.num_items, 0, f"item {spec.num_items} of {spec.num_items} (they count from 0)"),
        (-2, 0, "item -2"),
        (0, spec.num_commands, f"command {spec.num_commands} of {spec.num_commands}"),
        (0, -1, "command -1"),
    ):
        _, picks = probe.stand_where(_made(1), "nothing could ever be picked")
        place = 0 if 0 not in picks["items"] else int((picks["items"] == 0).argmax())
        _refuses(probe, _with(picks, place, item, command), what)
    return "items and commands that do not exist are refused"


def illegal(probe: GymProbe) -> str:
    """A pair that the mask calls illegal is refused."""
    observation, picks = probe.stand_where(
        lambda seen, picks: not open_pairs(seen).all() and picks["items"][0] >= 0,
        "every pair was legal",
    )
    item, command = np.argwhere(~open_pairs(observation))[0].tolist()
    place = 0 if item not in picks["items"] else int((picks["items"] == item).argmax())
    what = f"item {item} with command {command}, which is not legal,"
    _refuses(probe, _with(picks, place, item, command), what)
    return "a pair that is not legal is refused"


def harmless(probe: GymProbe) -> str:
    """A refused action changes nothing: the next step is as if it had not been tried."""
    outcomes = []
    for tried in (False, True):
        _, picks = probe.stand_where(_made(1), "nothing could ever be picked")
        if tried:
            _refuses(probe, _with(picks, 0, probe.spec.num_items, 0), "an item that is not there")
        outcomes.append(probe.env.step(picks)[:4])
    if not same(*outcomes):
        raise Wrong(
            "the step after a refused action differs from the step without it: refuse before "
            "anything is drawn or changed"
        )
    return "a refused action changes nothing"


def _refuses(probe: GymProbe, picks: Picks, what: str) -> None:
    try:
        probe.env.step(picks)
    except (ValueError, AssertionError) as refusal:
        if str(refusal).strip():
            return
        raise Wrong(f"{what} raised {told(refusal)} without a word: {MEND}") from refusal
    except Exception as accident:
        raise Wrong(
            f"{what} raised {told(accident)}, which tells nobody what to do: {MEND}"
        ) from accident
    raise Wrong(f"step accepted {what}: {MEND}, which refuses it and says why")


def _made(count: int) -> Any:
    return lambda _, picks: int((np.asarray(picks["items"]) >= 0).sum()) >= count


def _with(picks: Picks, place: int, item: int, command: int) -> Picks:
    changed = {name: np.array(part) for name, part in picks.items()}
    changed["items"][place], changed["commands"][place] = item, command
    return changed
