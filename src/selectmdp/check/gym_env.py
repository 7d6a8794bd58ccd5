"""Checks of a Gymnasium environment with our spaces: what it shows, and its episodes."""

from typing import Any

import numpy as np

from selectmdp.check.gym_probe import GymProbe, Step, open_pairs
from selectmdp.check.report import NotChecked, Wrong
from selectmdp.factories import told
from selectmdp.interop.spaces import SelectSpace
from selectmdp.types import expected_shapes

EPISODES = 4
"""How many episodes are played to the time limit before its end is believed to be a terminal."""
LONGEST = 5_000
"""A time limit beyond this is not played to."""


def spaces(probe: GymProbe) -> str:
    """The action space is ours, and the observation space has the parts the Spec says."""
    space = getattr(probe.env, "action_space", None)
    if not isinstance(space, SelectSpace):
        raise Wrong(
            f"action_space is {space!r}: use selectmdp.interop.spaces.SelectSpace(spec), and check "
            "one environment, not a vector of them"
        )
    offered = getattr(getattr(probe.env, "observation_space", None), "spaces", None)
    if not isinstance(offered, dict):
        raise Wrong(
            "observation_space is no gymnasium.spaces.Dict: use "
            "selectmdp.interop.spaces.observation_space(spec)"
        )
    for name, shape in _parts(probe).items():
        got = getattr(offered.get(name), "shape", None)
        if got != shape:
            raise Wrong(
                f"observation_space[{name!r}] has shape {got}, the spec says {shape}: use "
                "selectmdp.interop.spaces.observation_space(spec)"
            )
    return "SelectSpace, and observations as its spec says"


def step_form(probe: GymProbe) -> str:
    """Reset gives two things, step five, of the kinds that Gymnasium says."""
    reset = probe.env.reset(seed=probe.seed)
    if not (isinstance(reset, tuple) and len(reset) == 2 and isinstance(reset[0], dict)):
        raise Wrong("reset must return (observation, info), the observation being a dict")
    missing = set(_parts(probe)) - set(reset[0])
    if missing:
        raise Wrong(f"the observation lacks {sorted(missing)}: add them, as the spec says")
    probe.env.action_space.seed(probe.seed)
    outcome = probe.env.step(probe.random_picks(reset[0]))
    if not (isinstance(outcome, tuple) and len(outcome) == 5 and isinstance(outcome[0], dict)):
        raise Wrong("step must return (observation, reward, terminated, truncated, info)")
    _, reward, terminated, truncated, info = outcome
    if np.shape(reward) != () or np.asarray(reward).dtype.kind not in "fiu":
        raise Wrong(f"the reward is {reward!r}: return one number, a float")
    for name, flag in (("terminated", terminated), ("truncated", truncated)):
        if not isinstance(flag, bool | np.bool_):
            raise Wrong(f"{name} is {flag!r}: return True or False")
    if not isinstance(info, dict):
        raise Wrong(f"info is {info!r}: return a dict, {{}} if there is nothing to tell")
    return "reset and step return what Gymnasium says"


def accepted(probe: GymProbe) -> str:
    """Whatever the mask calls legal, step accepts."""
    try:
        probe.trail  # noqa: B018
    except Exception as error:
        raise Wrong(
            f"step raised {told(error)} on picks that observation['legal'] allows: clear the pairs "
            "that step refuses from legal, or accept them"
        ) from error
    return f"random legal picks are accepted for {probe.steps} steps"


def observation_shapes(probe: GymProbe) -> str:
    """Every part has the shape that the Spec says."""
    for name, shape in _parts(probe).items():
        for step in probe.trail:
            for seen in (step.observation, step.next_observation):
                got = np.asarray(seen.get(name)).shape
                if got != shape:
                    raise Wrong(
                        f"observation[{name!r}] has shape {got}, the spec says {shape}: change the "
                        "observation, or the sizes of the action space's spec"
                    )
    return "every part is as the spec says"


def observation_dtypes(probe: GymProbe) -> str:
    """Features are of the space's dtype, masks are bool or 0 and 1."""
    offered = probe.env.observation_space.spaces
    for name in _parts(probe):
        values = np.asarray(probe.trail[-1].next_observation[name])
        if name in ("items", "context"):
            if values.dtype != offered[name].dtype or values.dtype.kind != "f":
                raise Wrong(
                    f"observation[{name!r}] is {values.dtype}, the space says "
                    f"{offered[name].dtype}: features are floats, give np.float32 in both"
                )
        elif values.dtype.kind not in "biu" or not np.isin(values, (0, 1)).all():
            raise Wrong(f"observation[{name!r}] is {values.dtype}: a mask is bool, or 0 and 1")
    return "features are floats as the space says, masks are 0 and 1"


def finite(probe: GymProbe) -> str:
    """No NaN and no infinity."""
    for number, step in enumerate(probe.trail, start=1):
        for name, values in (*_features(probe, step), ("reward", step.reward)):
            if not np.isfinite(np.asarray(values, np.float64)).all():
                raise Wrong(
                    f"{name} is not finite at step {number}: look for a division by 0, a root or a "
                    "logarithm there; put 0 where an item is absent"
                )
    return f"no NaN or infinity in {probe.steps} steps"


def seeds(probe: GymProbe) -> str:
    """The same seed gives the same episode, another seed another."""
    if not _equal(probe.trail, probe.fresh_trail(probe.seed)):
        raise Wrong(
            "reset with the same seed gave two different episodes: call super().reset(seed=seed) "
            "and draw every chance from self.np_random"
        )
    others = (probe.fresh_trail(probe.seed + other) for other in (1, 2, 3))
    if all(_equal(probe.trail, other) for other in others):
        return (
            "the same seed gives the same episode. Note: so do other seeds; if the world is not "
            "meant to be deterministic, draw from self.np_random"
        )
    return "the same seed gives the same episode, another seed another"


def legal_mask(probe: GymProbe) -> str:
    """Something is legal at some time, and the action space knows what."""
    possible = [bool(open_pairs(step.observation).any()) for step in probe.trail]
    if not any(possible):
        raise Wrong(
            f"in none of {probe.steps} steps was any pair legal, so nothing can ever be picked: "
            "set legal (and present) where a pair may be chosen"
        )
    for number, step in enumerate(probe.trail, start=1):
        if not np.array_equal(step.space_legal, open_pairs(step.observation)):
            raise Wrong(
                f"at step {number} action_space.legal is not what the observation calls legal (and "
                "present): set self.action_space.legal in reset and in step, so that sample() is "
                "legal"
            )
    return f"something was legal in {sum(possible)} of {probe.steps} steps"


def time_limit(probe: GymProbe) -> str:
    """An episode is truncated exactly at the time limit, and never terminated by it."""
    limit = _limit(probe.env)
    if limit is None:
        raise NotChecked("there is no time_limit and no spec.max_episode_steps")
    if limit > LONGEST:
        raise NotChecked(f"time_limit={limit} is too long to play to; make one with a shorter one")
    lasted = 0
    for episode in range(EPISODES):
        number, step = _last_step(probe, limit, probe.seed + episode)
        if step.truncated and number < limit:
            raise Wrong(f"the episode was truncated at step {number}, before time_limit={limit}")
        if number < limit:
            continue
        lasted += 1
        if not step.terminated:
            if step.truncated:
                return f"truncated at step {limit}, and not terminated"
            raise Wrong(
                f"the episode goes on after step {limit}, the time limit: return truncated=True"
            )
    if lasted < EPISODES:
        raise NotChecked(f"random episodes end before step {limit}, the time limit")
    raise Wrong(
        f"the episode is terminated at step {limit}, the time limit: that end is no terminal, "
        "return terminated=False and truncated=True"
    )


def permutation(probe: GymProbe) -> str:
    """A Gymnasium environment cannot be asked."""
    raise NotChecked(
        "the state of a Gymnasium environment cannot be put in another order; check the "
        "environment in JAX behind it, if there is one"
    )


def _limit(env: Any) -> int | None:
    registered = getattr(getattr(env, "spec", None), "max_episode_steps", None)
    bare = getattr(env, "unwrapped", env)
    own = getattr(bare, "time_limit", None) or getattr(
        getattr(bare, "env", None), "time_limit", None
    )
    known = [int(limit) for limit in (registered, own) if limit]
    return min(known) if known else None


def _last_step(probe: GymProbe, limit: int, seed: int) -> tuple[int, Step]:
    for number, step in enumerate(probe.play(seed), start=1):
        if step.terminated or step.truncated or number == limit:
            return number, step
    raise AssertionError("play has no end")


def _parts(probe: GymProbe) -> dict[str, tuple[int, ...]]:
    shapes = expected_shapes(probe.spec)
    if probe.spec.num_context == 0:  # nothing to see: both may be left out
        del shapes["context"], shapes["context_present"]
    return shapes


def _features(probe: GymProbe, step: Step) -> list[tuple[str, Any]]:
    seen = (step.observation, step.next_observation)
    names = [name for name in ("items", "context") if name in _parts(probe)]
    return [(f"observation[{name!r}]", part[name]) for part in seen for name in names]


def _equal(left: tuple[Step, ...], right: tuple[Step, ...]) -> bool:
    return all(same(a, b) for a, b in zip(left, right, strict=True))


def same(left: Any, right: Any) -> bool:
    """Equal through and through: dicts, tuples, arrays; NaN equals NaN."""
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, tuple):
        return all(same(a, b) for a, b in zip(left, right, strict=True))
    a, b = np.asarray(left), np.asarray(right)
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
