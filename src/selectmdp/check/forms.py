"""Checks of an environment in JAX that need no episode: it traces, and its shapes are the Spec's.

Everything here is `jax.eval_shape`: nothing is compiled, nothing runs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp

from selectmdp.check.numpy_probe import NumpyProbe
from selectmdp.check.probe import JaxProbe
from selectmdp.check.report import Wrong
from selectmdp.envs.base import check_command_names, check_time_limit, offers
from selectmdp.factories import told
from selectmdp.learners.presets import check_suits
from selectmdp.spec import SelectError, Spec
from selectmdp.types import Observation, expected_shapes

BATCH = 3


def protocol(probe: JaxProbe) -> str:
    """There is a Spec, and reset, step and observe."""
    spec = offers(probe.env, "spec")
    if not isinstance(spec, Spec):
        raise Wrong(f"`spec` is {spec!r}: give the environment a selectmdp.spec.Spec of its sizes")
    for name in ("reset", "step", "observe"):
        if not callable(offers(probe.env, name)):
            raise Wrong(f"there is no method `{name}`: add it, see selectmdp.envs.SelectEnv")
    return "spec, reset, step and observe are there"


def jit(probe: JaxProbe) -> str:
    """Reset, observe and step trace: no Python branch on what is only known when it runs."""
    with _blame("reset", "jax.jit"):
        state = jax.eval_shape(probe.env.reset, probe.key)
    with _blame("observe", "jax.jit"):
        jax.eval_shape(probe.env.observe, state)
    with _blame("step", "jax.jit"):
        following = jax.eval_shape(probe.env.step, probe.key, state, probe.some_action)
    if not isinstance(following, tuple) or len(following) != 3:
        raise Wrong("`step` must return three things: (state, reward, discount)")
    return "reset, observe and step trace"


def vmap(probe: JaxProbe) -> str:
    """The same under vmap, and a batch of them has one more axis everywhere."""
    env, form = probe.env, probe.form
    keys = jax.random.split(probe.key, BATCH)
    with _blame("reset", "jax.vmap"):
        states = jax.eval_shape(jax.vmap(env.reset), keys)
    with _blame("observe", "jax.vmap"):
        observations = jax.eval_shape(jax.vmap(env.observe), states)
    actions = jax.tree.map(lambda part: jnp.stack([part] * BATCH), probe.some_action)
    with _blame("step", "jax.vmap"):
        outcomes = jax.eval_shape(jax.vmap(env.step), keys, states, actions)
    for name, batch, one in (
        ("reset", states, form.state),
        ("observe", observations, form.observation),
        ("step", outcomes, form.outcome),
    ):
        axis_added = [(BATCH, *leaf.shape) for leaf in jax.tree.leaves(one)]
        if [leaf.shape for leaf in jax.tree.leaves(batch)] != axis_added:
            raise Wrong(f"`{name}` under jax.vmap does not add one axis in front of its results")
    return f"reset, observe and step work on a batch of {BATCH}"


def observation_shapes(probe: JaxProbe) -> str:
    """Every part of an observation has the shape that the Spec says."""
    seen = probe.form.observation
    if not isinstance(seen, Observation):
        raise Wrong(
            f"`observe` returns {type(seen).__name__}: return a selectmdp.types.Observation"
        )
    for name, shape in expected_shapes(probe.env.spec).items():
        got = getattr(getattr(seen, name), "shape", None)
        if got != shape:
            raise Wrong(
                f"observation.{name} has shape {got}, the spec says {shape}: change `observe` or "
                "the numbers in `spec`"
            )
    return "items, context, present, context_present and legal are as the spec says"


def observation_dtypes(probe: JaxProbe) -> str:
    """Features are floating-point numbers, masks are booleans."""
    seen = probe.form.observation
    for name in ("items", "context"):
        dtype = getattr(seen, name).dtype
        if not jnp.issubdtype(dtype, jnp.floating):
            raise Wrong(f"observation.{name} is {dtype}: features are floats, cast to float32")
    for name in ("present", "context_present", "legal"):
        dtype = getattr(seen, name).dtype
        if dtype != jnp.bool_:
            raise Wrong(f"observation.{name} is {dtype}: a mask is bool, cast with astype(bool)")
    return "features are floats, masks are bool"


def reward_form(probe: JaxProbe) -> str:
    """Reward and discount are single floating-point numbers."""
    _, reward, discount = probe.form.outcome
    for name, value in (("reward", reward), ("discount", discount)):
        shape = getattr(value, "shape", None)
        if shape != ():
            raise Wrong(f"the {name} of `step` has shape {shape}: return one number, shape ()")
        if not jnp.issubdtype(value.dtype, jnp.floating):
            raise Wrong(f"the {name} of `step` is {value.dtype}: cast it to float32")
    return "reward and discount are single floats"


def state_form(probe: JaxProbe) -> str:
    """A step leaves structure, shapes and dtypes of the state as they are, so that it scans."""
    _same_form("step", probe.form.state, probe.form.outcome[0])
    return "a step keeps structure, shapes and dtypes of the state: it can be scanned"


def time_limit_form(probe: JaxProbe | NumpyProbe) -> str:
    """A time limit is a number of steps, at least one."""
    with _asked():
        count = check_time_limit(offers(probe.env, "time_limit"))
    return "not offered: episodes have no time limit" if count is None else f"{count} steps"


def legal_after_form(probe: JaxProbe) -> str:
    """What `legal_after` gives is a mask of all pairs."""
    legal_after = offers(probe.env, "legal_after")
    if legal_after is None:
        return "not offered: what is legal stays legal until its item is picked"
    num_items = probe.env.spec.num_items
    chosen = jax.ShapeDtypeStruct((num_items,), jnp.bool_)
    command = jax.ShapeDtypeStruct((num_items,), jnp.int32)
    with _blame("legal_after", "jax.jit"):
        mask = jax.eval_shape(legal_after, probe.form.observation, chosen, command)
    shape = (num_items, probe.env.spec.num_commands)
    if getattr(mask, "shape", None) != shape or mask.dtype != jnp.bool_:
        raise Wrong(f"`legal_after` gives {mask}: it must be a bool array of shape {shape}")
    return "legal_after gives a mask of all pairs"


def permute_form(probe: JaxProbe) -> None:
    """`permute` gives a state like the one it is given."""
    order = jnp.arange(probe.env.spec.num_items)
    with _blame("permute", "jax.jit"):
        permuted = jax.eval_shape(probe.env.permute, probe.form.state, order)
    _same_form("permute", probe.form.state, permuted)


def command_names(probe: JaxProbe | NumpyProbe) -> str:
    """There is one name for each command."""
    with _asked():
        names = check_command_names(offers(probe.env, "command_names"), probe.env.spec.num_commands)
    return "not offered: commands go by their numbers" if names is None else "each has a name"


def suits(probe: JaxProbe | NumpyProbe) -> str:
    """Settings that suit the world are settings, of presets that there are."""
    with _asked():
        offered = check_suits(offers(probe.env, "suits"))
    return (
        f"settings of {', '.join(offered)}" if offered else "not offered: presets are as they are"
    )


@contextmanager
def _asked() -> Iterator[None]:
    """What a training would refuse is wrong."""
    try:
        yield
    except SelectError as error:
        raise Wrong(str(error)) from error


def _same_form(name: str, before: Any, after: Any) -> None:
    old_tree, new_tree = str(jax.tree.structure(before)), str(jax.tree.structure(after))
    if old_tree != new_tree:
        raise Wrong(
            f"`{name}` gives a state of structure {new_tree}, `reset` one of {old_tree}: return "
            "the same structure"
        )
    for (path, old), new in zip(
        jax.tree_util.tree_leaves_with_path(before), jax.tree.leaves(after), strict=True
    ):
        if (old.shape, old.dtype) != (new.shape, new.dtype):
            raise Wrong(
                f"`{name}` turns state{jax.tree_util.keystr(path)} from {old.dtype}{old.shape} "
                f"into {new.dtype}{new.shape}: keep shape and dtype, so that jax.lax.scan works"
            )


@contextmanager
def _blame(name: str, transformation: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise Wrong(
            f"`{name}` fails under {transformation}: {told(error)}; write it with jax.numpy, "
            "jnp.where and jax.lax instead of NumPy and Python branches on arrays"
        ) from error
