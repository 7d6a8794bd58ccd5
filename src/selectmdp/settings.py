"""Every number that a learner is set by, documented and checked (paper, hyperparameters)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import Any

from selectmdp.algorithms import Shape
from selectmdp.spec import SelectError, check_count

MOST_LAYERS = 100
"""Layers are built one by one: a file that asks for a billion would never be read to its end."""


def setting(default: Any, about: str, most: float = float("inf"), *, zero: bool = False) -> Any:
    """A documented field; numbers are more than 0, or 0 where it may be, and at most `most`."""
    return field(default=default, metadata={"about": about, "most": most, "zero": zero})


@dataclass(frozen=True)
class PaperSettings:
    """The paper's learner; defaults are the paper's, or what its published code does."""

    channels: int = setting(48, "numbers for each item in a hidden layer")
    layers: int = setting(2, "hidden (φ) layers before the output", MOST_LAYERS)
    hidden: tuple[int, ...] = setting(
        (), "hidden widths of vanilla and sorting; none: two of 6 × the flattened input"
    )
    sums: bool = setting(False, "sum over a set where the paper has its mean")
    batch_size: int = setting(64, "steps in an update, with all their phases (published code: 32)")
    learning_rate: float = setting(1e-3, "of Adam")
    adam_epsilon: float = setting(0.01, "of Adam; so large that the rewards' scale matters")
    discount: float = setting(0.99, "γ, from one step to the next; between phases it is 1", 1.0)
    replay_capacity: int = setting(
        50_000, "steps remembered; a tenth of the training, at most this, is random acting first"
    )
    target_period: int = setting(1000, "steps between two copies of the target network")
    epsilon_end: float = setting(0.1, "share of random picks at the end, falling from 1", 1.0)
    exploration_share: float = setting(
        0.29, "share of the steps after the warm-up in which it falls, geometrically", 1.0
    )
    num_envs: int = setting(1, "environments that act side by side")
    chunk: int = setting(250, "steps compiled into one call; must divide target_period")

    def __post_init__(self) -> None:
        check_settings(self)
        if self.target_period % self.chunk:
            raise SelectError(f"chunk={self.chunk}: must divide target_period={self.target_period}")
        if self.chunk % self.num_envs:
            raise SelectError(f"num_envs={self.num_envs}: must divide chunk={self.chunk}")
        if self.replay_capacity < 2 * self.num_envs:  # a ring must hold a step and what follows it
            raise SelectError(
                f"replay_capacity={self.replay_capacity}: must be at least 2 × num_envs = "
                f"{2 * self.num_envs}"
            )

    @property
    def shape(self) -> Shape:
        return Shape(self.channels, self.layers, self.hidden, sums=self.sums)


@dataclass(frozen=True)
class FastSettings:
    """Parallel Q(λ) without replay; the same for every world that offers no settings of its own."""

    channels: int = setting(64, "numbers for each row in a hidden layer")
    pairs: bool = setting(True, "items meet picks and context in pairs; false: the paper's network")
    layer_norm: bool = setting(False, "of the network of pairs, where its parts are joined")
    layers: int = setting(2, "hidden (φ) layers of the paper's network", MOST_LAYERS)
    hidden: tuple[int, ...] = setting(
        (), "hidden widths of vanilla and sorting; none: two of 6 × the flattened input"
    )
    sums: bool = setting(False, "sum over a set where the network has its mean")
    num_envs: int = setting(128, "environments that act side by side")
    rollout: int = setting(8, "steps of each environment between two rounds of learning")
    minibatch: int = setting(16, "steps in an update, with all their phases")
    epochs: int = setting(4, "how often a round learns from each of its steps")
    learning_rate: float = setting(2e-3, "of RAdam at the start; it falls linearly to 0")
    max_gradient: float = setting(10.0, "longer gradients are cut to this length")
    discount: float = setting(0.99, "γ, from one step to the next; between phases it is 1", 1.0)
    lambda_steps: float = setting(
        0.7, "how much of what later steps earned is believed, 0: nothing", 1.0, zero=True
    )
    lambda_phases: float = setting(
        0.95, "the same from one pick to the next of its step", 1.0, zero=True
    )
    marginal: bool = setting(
        True, "a pick learns what it adds to the reward, where a world tells (partial_reward)"
    )
    epsilon_end: float = setting(0.005, "share of random picks at the end, falling from 1", 1.0)
    exploration_share: float = setting(0.1, "share of the training in which it falls", 1.0)
    averaging: float = setting(
        0.05, "share of a round's parameters in the moving average that is the policy", 1.0
    )
    chunk: int = setting(4096, "steps compiled into one call, of whole rounds")

    def __post_init__(self) -> None:
        check_settings(self)
        per_round = self.num_envs * self.rollout
        if per_round % self.minibatch:
            raise SelectError(
                f"minibatch={self.minibatch}: must divide num_envs × rollout = {per_round}"
            )
        if self.chunk % per_round:
            raise SelectError(
                f"chunk={self.chunk}: must be a multiple of num_envs × rollout = {per_round}"
            )

    @property
    def shape(self) -> Shape:
        return Shape(
            self.channels, self.layers, self.hidden, self.pairs, self.layer_norm, self.sums
        )


SLOW_WORLD: Mapping[str, Any] = {"num_envs": 32, "chunk": 1024}
"""Changes of the fast preset for a world of hundreds of steps a second: four times the rounds."""


MOST_SECONDS = 1_000_000
"""Of a timeout: systems count some of them in milliseconds, in 32 bits."""


@dataclass(frozen=True)
class Hosting:
    """How environments that are not in JAX are run; no result depends on it."""

    workers: int | None = None
    """Processes; 0: none beside this one; None: one a core, where a world can be made in them."""
    timeout: float = 60.0
    """Seconds that making, resetting or stepping one environment may take in a worker."""

    def __post_init__(self) -> None:
        if self.workers is not None:
            check_count("workers", self.workers)
        if isinstance(self.timeout, bool) or not isinstance(self.timeout, Real):
            raise SelectError(f"timeout={self.timeout!r}: must be a number of seconds")
        if not 0.0 < self.timeout <= MOST_SECONDS:
            raise SelectError(
                f"timeout={self.timeout}: must be more than 0 and at most {MOST_SECONDS}"
            )


def check_settings(settings: Any) -> None:
    """Each field of the kind of its default, positive, and at most what it may be."""
    for each in fields(settings):
        name, value = each.name, getattr(settings, each.name)
        if isinstance(each.default, tuple):
            if not isinstance(value, tuple | list):
                raise SelectError(f"{name}={value!r}: must be a tuple of whole numbers")
            if len(value) > MOST_LAYERS:
                raise SelectError(f"{name} has {len(value)} widths: give at most {MOST_LAYERS}")
            widths = tuple(_checked(name, 1, width, {}) for width in value)
            object.__setattr__(settings, name, widths)
        else:
            checked = _checked(name, each.default, value, each.metadata)
            object.__setattr__(settings, name, checked)


def with_changes(kind: type[Any], changes: Mapping[str, Any]) -> Any:
    """Settings of this kind with some fields changed; an unknown name is refused."""
    names = [each.name for each in fields(kind)]
    for name in changes:
        if name not in names:
            raise SelectError(f"no setting {name!r}: there are {', '.join(names)}")
    return kind(**changes)


KINDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    tuple: "whole numbers separated by commas",
}
"""What a person is told to type for a field of each type."""


def parsed(kind: type[Any], texts: tuple[str, ...]) -> dict[str, Any]:
    """Changes as a person types them, `name=value`; widths are separated by commas."""
    defaults = {each.name: each.default for each in fields(kind)}
    changes: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in defaults:
            known = ", ".join(defaults)
            raise SelectError(f"--set {text}: give name=value, the names are {known}")
        try:
            changes[name] = _read(defaults[name], value)
        except ValueError:
            wanted = KINDS[type(defaults[name])]
            raise SelectError(f"--set {text}: {value!r} is not {wanted}") from None
    return changes


def _read(default: Any, text: str) -> Any:
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return text.lower() == "true"
    if isinstance(default, tuple):
        return tuple(int(part) for part in text.split(",") if part)
    return type(default)(text)


def _checked(name: str, default: Any, value: Any, rules: Mapping[str, Any]) -> Any:
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise SelectError(f"{name}={value!r}: must be True or False")
        return value
    if isinstance(default, int):
        if check_count(name, value) < 1:
            raise SelectError(f"{name}={value}: must be at least 1")
        most = min(rules.get("most", math.inf), 2**31 - 1)
        if value > most:
            raise SelectError(f"{name}={value}: must be at most {most}")
        return int(value)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SelectError(f"{name}={value!r}: must be a number")
    number = float(value)
    most, zero = rules["most"], rules["zero"]
    enough = number >= 0.0 if zero else number > 0.0
    if not enough or not number <= most or number == math.inf:
        limit = "finite" if most == math.inf else f"at most {most:g}"
        raise SelectError(f"{name}={value}: must be {'0 or ' * zero}more than 0 and {limit}")
    return number
