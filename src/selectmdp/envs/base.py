"""The protocol of a Select-MDP in JAX: pure functions over a state, so that vmap and scan apply.

What only some environments know they may offer beside it; `offers` asks. Everything works without:

- `time_limit: int`: steps of an episode; its end is a truncation, never a terminal;
- `command_names: tuple[str, ...]`: what the C commands are called;
- `unit: str`, `dynamics: str`: what a reward counts, and under which rules it was earned;
- `item_range: tuple[int, int]`: least and most items of an episode, where that is drawn;
- `partial_reward(key, state, action) -> [K]`: the reward had only the first 1 … K picks been made,
  under the same random draws as `step` with the same key;
- `legal_after(observation, chosen, command) -> [N, C]`: which pairs stay legal after some picks,
  whatever their order;
- `learning_reward(reward) -> reward`: the scale in which learners learn it; reports are unscaled;
- `suits: {preset: {setting: value}}`: settings that suit this world better than a preset's own; a
  training says that it takes them, keeps them in its config, and `--set` goes before them;
- `sort_key(observation) -> [N]`: by what sorting DQN sorts, the largest first;
- `draw(state, action | None) -> Scene`: a picture of a state, with the picks about to be made;
- `legend: str`: what signs of that picture mean that do not explain themselves;
- `permute(state, order) -> state`: the same world with its items in another order;
- `greedy(key, state) -> Action`: a heuristic to compare a policy with.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from selectmdp import draws
from selectmdp.factories import told
from selectmdp.spec import SelectError, Spec, check_count
from selectmdp.types import Action, Observation, expected_shapes

State = Any

DIRECTIONS: Mapping[str, tuple[int, int]] = {
    "stay": (0, 0),
    "up": (0, 1),
    "down": (0, -1),
    "left": (-1, 0),
    "right": (1, 0),
}


class SelectEnv(Protocol):
    """A Select-MDP: `step` consumes its key and changes nothing."""

    @property
    def spec(self) -> Spec: ...

    def reset(self, key: Key[Array, ""]) -> State: ...

    def step(
        self, key: Key[Array, ""], state: State, action: Action
    ) -> tuple[State, Float[Array, ""], Float[Array, ""]]: ...

    def observe(self, state: State) -> Observation: ...


def offers(env: object, name: str) -> Any:
    """What the environment offers under this name, or None."""
    return getattr(env, name, None)


def is_jax(env: object) -> bool:
    """Whether this is a world in JAX, whose step takes key, state and action."""
    return isinstance(offers(env, "spec"), Spec) and not is_numpy(env)


def is_numpy(env: object) -> bool:
    """Whether this is a world in plain Python, whose step takes the action alone.

    Where it could take three things too (`*args`, options), a world in JAX is told by `observe`.
    """
    step, observe = offers(env, "step"), offers(env, "observe")
    if isinstance(env, type) or not callable(step):
        return False
    if not _takes(step, "key", "state", "action"):
        return True
    return _takes(step, "action") and not (callable(observe) and _takes(observe, "state"))


def everything_legal(
    items: Float[Array, "N F"], context: Float[Array, "U G"], num_commands: int
) -> Observation:
    """An observation in which every item is present and every pair is legal."""
    num_items, num_context = items.shape[0], context.shape[0]
    return Observation(
        items=items,
        context=context,
        present=jnp.ones(num_items, bool),
        context_present=jnp.ones(num_context, bool),
        legal=jnp.ones((num_items, num_commands), bool),
    )


def some_present(
    items: Float[Array, "N F"],
    context: Float[Array, "U G"],
    num_commands: int,
    present: Bool[Array, " N"],
) -> Observation:
    """An observation in which some items are padding, which shows 0, and all else is legal."""
    seen = everything_legal(jnp.where(present[:, None], items, 0.0), context, num_commands)
    return seen._replace(present=present, legal=seen.legal & present[:, None])


def check_time_limit(limit: Any) -> int | None:
    """Steps of an episode, at least one; None is no limit."""
    if limit is None:
        return None
    try:
        count = check_count("time_limit", limit)
    except SelectError as error:
        raise SelectError(f"{error}; None means no limit") from None
    if count < 1:
        raise SelectError(f"time_limit={count}: give at least 1 step, or None for no limit")
    return count


def check_command_names(names: Any, num_commands: int) -> tuple[str, ...] | None:
    """One name for each command; None: they go by their numbers."""
    if names is None:
        return None
    listed = isinstance(names, tuple | list) and all(isinstance(name, str) for name in names)
    if not listed or len(names) != num_commands:
        raise SelectError(
            f"command_names={names!r}: give {num_commands} names, one for each command"
        )
    return tuple(names)


def check_offers(env: object, name: str) -> None:
    """Refuse what a world offers as plain data and no training could use."""
    try:
        check_time_limit(offers(env, "time_limit"))
        spec = offers(env, "spec")
        check_command_names(offers(env, "command_names"), spec.num_commands)
    except SelectError as error:
        raise SelectError(f"{name} offers {error}") from None


def check_forms(env: Any, name: str) -> None:
    """Refuse a world that no program could be made of: it is traced, and nothing runs."""
    try:
        spec, key = env.spec, jax.random.key(0)
        nothing = jnp.zeros(spec.num_select, jnp.int32)
        state = jax.eval_shape(env.reset, key)
        seen = jax.eval_shape(env.observe, state)
        following, reward, discount = jax.eval_shape(env.step, key, state, Action(nothing, nothing))
        given = {"reward": reward, "discount": discount, **seen._asdict()}
        forms = {each: (part.shape, _kind(part.dtype)) for each, part in given.items()}
    except Exception as error:
        raise SelectError(
            f"{name}: tracing reset, observe and step raised {told(error)}; "
            f"`selectmdp check {name}` tells what is wrong"
        ) from error
    shapes = {"reward": (), "discount": (), **expected_shapes(spec)}
    for each, shape in shapes.items():
        kind = "bool" if each in ("present", "context_present", "legal") else "float"
        if forms[each] != (shape, kind):
            has, needs = f"{forms[each][1]} {forms[each][0]}", f"{kind} {shape}"
            raise SelectError(f"{name}: {each} is {has} and must be {needs}")
    before, after = (
        [(str(path), leaf.shape, leaf.dtype) for path, leaf in jax.tree.leaves_with_path(tree)]
        for tree in (state, following)
    )
    if before != after:
        raise SelectError(
            f"{name}: a step changes the form of the state; `selectmdp check {name}` tells where"
        )


def _kind(dtype: Any) -> str:
    return "float" if jnp.issubdtype(dtype, jnp.floating) else str(dtype)


def check_range(num_items: object, num_select: int) -> tuple[int, int]:
    """The least and the most items of an episode: one number, or a range (least, most)."""
    if not isinstance(num_items, tuple | list):
        least = most = check_count("num_items", num_items)
        return least, most
    if len(num_items) != 2:
        raise SelectError(f"num_items={num_items!r}: give one number, or two, the least and most")
    least, most = (check_count("num_items", count) for count in num_items)
    if not num_select <= least <= most:
        raise SelectError(
            f"num_items={tuple(num_items)}: an episode has at least num_select={num_select} items, "
            "and the second number is not less than the first"
        )
    return least, most


def drawn_present(key: Key[Array, ""], item_range: tuple[int, int]) -> Bool[Array, " N"]:
    """A number of items in this range, each as likely: they are the first, the rest is padding."""
    least, most = item_range
    count = least + jnp.floor(draws.uniform(key, ()) * (most - least + 1)).astype(jnp.int32)
    return jnp.arange(most) < count


def picks_of(action: Action | None) -> list[tuple[int, int]]:
    """The picks of one action on the host, as (item, command); none for None."""
    if action is None:
        return []
    pairs = zip(np.asarray(action.items), np.asarray(action.commands), strict=True)
    return [(int(item), int(command)) for item, command in pairs if item >= 0]


def check_commands(commands: tuple[str, ...]) -> tuple[str, ...]:
    """Move commands as a tuple of distinct known names."""
    if not isinstance(commands, tuple | list) or not commands:
        raise SelectError(f"commands={commands!r}: give a tuple of one or more of {_names()}")
    for name in commands:
        if name not in tuple(DIRECTIONS):  # compared, not hashed: it may be anything
            raise SelectError(f"commands={tuple(commands)!r}: {name!r} is none of {_names()}")
    if len(set(commands)) != len(commands):
        raise SelectError(f"commands={tuple(commands)!r}: a name occurs twice; give each once")
    return tuple(commands)


def directions(commands: tuple[str, ...]) -> Int[Array, "C 2"]:
    """The (x, y) step of each command."""
    return jnp.asarray([DIRECTIONS[name] for name in commands], jnp.int32)


def _takes(method: Callable[..., Any], *given: str) -> bool:
    try:
        inspect.signature(method).bind(*given)
    except TypeError:
        return False
    return True


def _names() -> str:
    return ", ".join(DIRECTIONS)
