"""Checks of a NumPy world, and of a Gymnasium environment adapted to be one: it is played."""

import inspect

import numpy as np

from selectmdp.check.gym_env import EPISODES, LONGEST
from selectmdp.check.numpy_probe import NumpyProbe, Player, copied, equal
from selectmdp.check.report import NotChecked, Wrong
from selectmdp.factories import told
from selectmdp.interop.edge import all_picks, partial_rewards
from selectmdp.interop.spaces import check_action
from selectmdp.spec import SelectError, Spec
from selectmdp.types import Observation


def protocol(probe: NumpyProbe) -> str:
    """There is a Spec, and reset and step that take what they are given."""
    spec = getattr(probe.env, "spec", None)
    if not isinstance(spec, Spec):
        raise Wrong(f"`spec` is {spec!r}: give the world a selectmdp.Spec of its sizes")
    for name, given in (("reset", "seed"), ("step", "action")):
        method = getattr(probe.env, name, None)
        if not callable(method):
            raise Wrong(f"there is no method `{name}`: add {name}({given})")
        try:
            inspect.signature(method).bind(0)
        except TypeError:
            raise Wrong(f"`{name}` does not take one argument: write {name}({given})") from None
    return "spec, reset(seed) and step(action) are there"


def reset_form(probe: NumpyProbe) -> str:
    """What a reset shows is as the Spec says."""
    try:
        copied(probe.env.spec, probe.env.reset(probe.seed))
    except SelectError as error:
        raise Wrong(f"after reset, {error}") from error
    return "reset shows what the spec says"


def legal_after(probe: NumpyProbe) -> str:
    """It is a mask of all pairs."""
    after = getattr(probe.env, "legal_after", None)
    if after is None:
        return "not offered: what is legal stays legal until its item is picked"
    spec, shape = probe.env.spec, (probe.env.spec.num_items, probe.env.spec.num_commands)
    seen = Observation(**copied(spec, probe.env.reset(probe.seed)))  # type: ignore[arg-type]
    nothing = np.zeros(spec.num_items, bool), np.zeros(spec.num_items, np.int32)
    mask = np.asarray(after(seen, *nothing))
    if mask.shape != shape or mask.dtype != np.bool_:
        raise Wrong(f"`legal_after` gives {mask.dtype} {mask.shape}: it must be bool {shape}")
    return "legal_after gives a mask of all pairs"


def step_form(probe: NumpyProbe) -> str:
    """Steps by legal picks go well; what they give is finite and as the Spec says."""
    try:
        player = Player(probe.env, probe.seed, probe.seed)
        for number in range(1, probe.steps + 1):  # noqa: B007 - told below
            player.step()
    except SelectError as error:
        raise Wrong(f"in step {number}, {error}") from error
    except (Exception, SystemExit) as error:
        raise Wrong(
            f"step {number} raised {told(error)} on picks that `legal` allows: clear the pairs "
            "that step refuses from legal, or accept them"
        ) from error
    return f"{probe.steps} steps show what the spec says, all of it finite"


def seeds(probe: NumpyProbe) -> str:
    """The same seed gives the same episodes, another seed others."""
    if not equal(probe.trail, probe.played(probe.env, probe.seed)):
        raise Wrong(
            "reset with the same seed gave two different episodes: begin everything anew in "
            "reset, and draw every chance from a generator made there, "
            "np.random.default_rng(seed)"
        )
    others = (probe.played(probe.env, probe.seed + other) for other in (1, 2, 3))
    if all(equal(probe.trail, other) for other in others):
        return (
            "the same seed gives the same episode. Note: so do other seeds; if the world is not "
            "meant to be deterministic, draw from np.random.default_rng(seed)"
        )
    return "the same seed gives the same episodes, another seed others"


def copies(probe: NumpyProbe) -> str:
    """Copies side by side do not disturb each other."""
    one, other = probe.make(), probe.make()
    try:
        player = Player(one, probe.seed, probe.seed)
        beside = Player(other, probe.seed + 1, probe.seed)
        trail = []
        for _ in range(probe.steps):
            trail.append(player.step())
            beside.step()
    finally:
        for env in (one, other):
            getattr(env, "close", lambda: None)()
    if not equal(probe.trail, tuple(trail)):
        raise Wrong(
            "an episode differs when another copy is stepped beside it: keep all state in `self`, "
            "and draw no chance from np.random itself, which all copies share"
        )
    return "a copy beside it changes nothing"


def legal_mask(probe: NumpyProbe) -> str:
    """Something is legal at some time."""
    possible = [
        bool((step.observation["legal"] & step.observation["present"][:, None]).any())
        for step in probe.trail
    ]
    if not any(possible):
        raise Wrong(
            f"in none of {probe.steps} steps was any pair legal, so nothing can ever be picked: "
            "set legal (and present) where a pair may be chosen"
        )
    return f"something was legal in {sum(possible)} of {probe.steps} steps"


def partial_reward(probe: NumpyProbe) -> str:
    """One number for each pick, the last the step's own, and asking changes nothing."""
    if getattr(probe.env, "partial_reward", None) is None:
        return "not offered: a step's reward is its last pick's"
    player = Player(probe.env, probe.seed, probe.seed)
    trail = []
    for number in range(1, probe.steps + 1):
        state = player.space["items"].np_random.bit_generator.state
        action = player.picks()
        player.space["items"].np_random.bit_generator.state = state  # the same picks are drawn anew
        try:
            upto = partial_rewards(probe.env.partial_reward(action), len(action.items))
        except SelectError as error:
            raise Wrong(f"partial_reward before step {number}: {error}") from error
        trail.append(player.step())
        earned = trail[-1].reward
        if len(upto) and not np.isclose(upto[-1], earned, rtol=1e-4, atol=1e-6):
            raise Wrong(
                f"partial_reward promised {upto[-1]:.6g} for all picks of step {number}, which "
                f"earned {earned:.6g}: both must meet the same chance"
            )
    if not equal(probe.trail, tuple(trail)):
        raise Wrong("asking partial_reward changes the episode: it must change nothing")
    return "partial_reward ends in the step's reward and changes nothing"


def greedy(probe: NumpyProbe) -> str:
    """What the heuristic picks is legal."""
    if getattr(probe.env, "greedy", None) is None:
        return "not offered: policies are compared with random alone"
    player = Player(probe.env, probe.seed, probe.seed)
    for number in range(1, probe.steps + 1):
        player.picks()  # so that the space knows what is legal
        try:
            picks = all_picks(probe.env.greedy(), probe.env.spec.num_select)
            check_action(probe.env.spec, player.space.legal, picks, player.space.legal_after)
        except SelectError as error:
            raise Wrong(f"greedy before step {number}: {error}") from error
        player.step()
    return "greedy picks are legal"


def time_limit(probe: NumpyProbe) -> str:
    """A number of steps, whose end is no terminal."""
    limit = getattr(probe.env, "time_limit", None)
    if limit is None:
        return "not offered: episodes end where `step` says so"
    if limit > LONGEST:
        raise NotChecked(f"time_limit={limit} is too long to play to; make one with a shorter one")
    for episode in range(EPISODES):
        player = Player(probe.env, probe.seed + episode, probe.seed)
        for number in range(1, limit + 1):  # noqa: B007 - told below
            step = player.step()
            if step.terminated or step.truncated:
                break
        if number < limit or not step.terminated:
            return f"episodes are truncated at step {limit}, and not terminated by it"
    raise Wrong(
        f"the episode is terminated at step {limit}, the time limit: that end is no terminal, "
        "return terminated=False there"
    )
