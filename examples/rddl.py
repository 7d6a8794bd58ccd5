"""RDDL domains of the planning competitions, each with a heuristic to compare with (extra `envs`).

selectmdp train examples.rddl:sysadmin --minutes 10
"""

from typing import Any

import numpy as np

from selectmdp.interop.rddl import Rddl

Picks = tuple[list[int], list[int]]


def sysadmin(instance: str | int = 4) -> Rddl:
    """Computers fail, the sooner the more of their neighbours are down; reboot one of them."""
    return Rddl("SysAdmin_MDP_ippc2011", instance, _reboot, reward_scale=10.0, discount=0.9)


def wildfire(instance: str | int = 1) -> Rddl:
    """Fire spreads over cells with fuel: put one out, or cut the fuel from one."""
    explores = {"exploration_share": 0.3, "epsilon_end": 0.05}  # one of many is to let it be
    domain = "Wildfire_MDP_ippc2014"
    return Rddl(domain, instance, _put_out, reward_scale=100.0, discount=0.9, **explores)


def tamarisk(instance: str | int = 1) -> Rddl:
    """An invasive plant spreads along a river: eradicate it in a reach, or restore the natives."""
    return Rddl("Tamarisk_MDP_ippc2014", instance, _eradicate, reward_scale=10.0, discount=0.95)


def advising(instance: str | int = 2) -> Rddl:
    """Courses are passed the more likely the more of their prerequisites were: take up to K."""
    explores = {"exploration_share": 0.5, "epsilon_end": 0.05}  # nothing pays until the last course
    domain = "AcademicAdvising_MDP_ippc2014"
    return Rddl(domain, instance, _take, reward_scale=5.0, discount=0.95, **explores)


def _reboot(world: Rddl) -> Picks:
    """The computer that is down and has the most neighbours that run."""
    running, connected = world.values["running"], world.values["CONNECTED"]
    neighbours = (connected | connected.T) @ running.astype(int)
    return _largest(world, [(neighbours, ~running)])


def _put_out(world: Rddl) -> Picks:
    """The fire that could spread to the most cells, a target counting as twenty others."""
    values, cells = world.values, len(world.items)
    burning, target = values["burning"].ravel(), values["TARGET"].ravel()
    could_burn = ~burning & ~values["out-of-fuel"].ravel()
    neighbours = values["NEIGHBOR"].reshape(cells, cells)
    worth = neighbours.T @ (could_burn * np.where(target, 20, 1))
    return _largest(world, [(worth, burning), (worth, np.zeros(cells, bool))])


def _eradicate(world: Rddl) -> Picks:
    """The most invaded reach is cleared; if none is, the emptiest gets natives."""
    values = world.values
    at_reach = values["SLOT-AT-REACH"].astype(int).T
    invaded = at_reach @ values["tamarisk-at"]
    empty = at_reach @ (~values["tamarisk-at"] & ~values["native-at"])
    return _largest(world, [(invaded + 100, invaded > 0), (empty, empty > 0)])


def _take(world: Rddl) -> Picks:
    """What the programme needs, directly or as a prerequisite, the readiest first."""
    values = world.values
    passed, before = values["passed"], values["PREREQ"]
    needed = values["PROGRAM_REQUIREMENT"].copy()
    if (passed | ~needed).all():
        return [], []
    for _ in range(len(passed)):
        needed |= before @ needed
    ready = (before.T @ passed.astype(int) + 1) / (before.sum(axis=0) + 1)
    return _largest(world, [(ready, needed & ~passed)])


def _largest(world: Rddl, commands: list[tuple[Any, Any]]) -> Picks:
    """Up to K items by their worth under the command where it is largest, where that may be."""
    worth = np.stack([np.where(may, value, -np.inf) for value, may in commands], axis=1)
    best = worth.max(axis=1)
    order = [int(item) for item in np.argsort(-best, kind="stable") if best[item] > -np.inf]
    picks = order[: world.spec.num_select]
    return picks, [int(worth[item].argmax()) for item in picks]
