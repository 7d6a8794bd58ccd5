"""What a learner is: it acts in E environments for T steps, learns from the T · E steps, again.

`act` and `learn` are pure and compile; `between` runs in plain Python between two compiled chunks,
for what happens rarely (a target network's copy, a split of parameter sets).
"""

from typing import Any, NamedTuple, Protocol

from jaxtyping import Array, Bool, Float, Int, Key

from selectmdp.agent import Agent
from selectmdp.devices import Shares
from selectmdp.nets.base import Params
from selectmdp.sharing import PhaseMap
from selectmdp.spec import SelectError
from selectmdp.types import Action, Observation, Transition

State = Any


class Played(NamedTuple):
    """T steps of E environments, as a learner acted in them: [T, E, …]."""

    steps: Transition
    aside: Any
    """What `act` gave beside the picks."""
    marginal: Float[Array, "T E K"] | None
    """What each pick added to the step's reward, for a learner that asks; None: it is not known."""


class Learner(Protocol):
    """One way to learn an agent's parameters, for a fixed number of steps."""

    @property
    def agent(self) -> Agent: ...

    @property
    def num_envs(self) -> int:
        """E, environments that act side by side."""
        ...

    @property
    def rollout(self) -> int:
        """T, steps of each environment between two updates."""
        ...

    @property
    def chunk(self) -> int:
        """Steps, over all environments, that compile into one call; `between` follows each."""
        ...

    @property
    def discount(self) -> float:
        """γ, from one step to the next."""
        ...

    @property
    def marginal(self) -> bool:
        """Whether it learns from what each pick adds to the reward (`partial_reward`)."""
        ...

    @property
    def shares(self) -> Shares:
        """The devices that learn together; `act` and `learn` then run on one of them."""
        ...

    @property
    def shares_worlds(self) -> bool:
        """Whether each device has environments of its own; else all play the same."""
        ...

    def shared(self, shares: Shares) -> "Learner":
        """The same on so many devices; where they cannot have equal shares it is refused."""
        ...

    def init(self, key: Key[Array, ""], transition: Transition) -> State:
        """Before the first step; `transition` is [E, …] and only its shapes count."""
        ...

    def epsilon(self, step: Int[Array, ""]) -> Float[Array, ""]:
        """How often a pick is random at this step."""
        ...

    def act(
        self,
        key: Key[Array, ""],
        state: State,
        observation: Observation,
        step: Int[Array, ""],
    ) -> tuple[Action, Any]:
        """The picks of E environments, and anything that `learn` wants to know of them."""
        ...

    def learn(
        self, key: Key[Array, ""], state: State, played: Played, step: Int[Array, ""]
    ) -> tuple[State, Float[Array, ""], Bool[Array, ""]]:
        """From T · E steps; gives the loss, and whether anything was learned yet."""
        ...

    def between(self, state: State, step: int) -> State:
        """What is due at this step, the end of a chunk."""
        ...

    def cut(self, state: State, observation: Observation) -> State:
        """All episodes end here, seeing this [E, …], though no step ended them."""
        ...

    def policy(self, state: State) -> Params:
        """The parameters to act with when it matters."""
        ...

    def phase_map(self, step: int) -> PhaseMap:
        """Which set serves which phase at this step."""
        ...


def check_shares(name: str, total: int, shares: Shares) -> None:
    """A number that all devices have an equal part of."""
    if total % shares.count:
        fits = -(-total // shares.count) * shares.count
        raise SelectError(
            f"{name}={total}: must be a multiple of the {shares.count} devices that JAX has; "
            f"--set {name}={fits} (and what must fit it), or let JAX see fewer of them"
        )
