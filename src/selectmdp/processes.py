"""Several processes, on one host or many, under one run: how they meet, what only the first does.

All run the same program on the same command line and stay in step, since every update is a meeting.
The first alone reads and writes files and speaks; what it finds, or refuses, it tells the others.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from selectmdp import console
from selectmdp.spec import PeerFault, SelectError

ADDRESS, COUNT, INDEX = VARIABLES = (
    "JAX_COORDINATOR_ADDRESS",
    "JAX_NUM_PROCESSES",
    "JAX_PROCESS_ID",
)

Told = TypeVar("Told")


def join() -> None:
    """Meet the other processes, where the variables that name them are set; before any array is.

    Under Slurm and Open MPI the address is enough: JAX finds the other two.
    """
    given = {name: os.environ[name] for name in VARIABLES if os.environ.get(name)}
    if not given or jax.distributed.is_initialized():
        return
    if ADDRESS not in given:
        raise SelectError(
            f"{' '.join(given)} without {ADDRESS}: set it to host:port of the first process, the "
            "same for all, or unset the others"
        )
    numbers = {name: _number(name, given[name]) for name in (COUNT, INDEX) if name in given}
    try:
        jax.distributed.initialize(given[ADDRESS], numbers.get(COUNT), numbers.get(INDEX))
    except (ValueError, IndexError, RuntimeError) as error:
        raise SelectError(
            f"{' '.join(f'{name}={value}' for name, value in given.items())}: {error}; give the "
            f"address as host:port, and to each process its {INDEX} from 0 to {COUNT} − 1, before "
            "anything else uses JAX"
        ) from None
    console.aside.quiet = console.out.quiet = not is_first()


def is_first() -> bool:
    """Whether this process reads, writes and speaks."""
    return jax.process_index() == 0


def told(make: Callable[[], Told]) -> Told:
    """What the first process makes, told to all as JSON; what it refuses, all refuse."""
    if jax.process_count() == 1:
        return make()
    content, refused = b"", None
    if is_first():
        try:
            content = json.dumps({"made": make()}).encode()
        except SelectError as error:
            content, refused = json.dumps({"refused": str(error)}).encode(), error
    size = int(_from_first(np.asarray(len(content), np.int32)))
    heard = json.loads(_from_first(np.frombuffer(content.ljust(size), np.uint8)).tobytes())
    if "refused" in heard:
        raise refused or SelectError(heard["refused"])
    made: Told = heard["made"]
    return made


def agree(asked: Mapping[str, Any]) -> None:
    """Refuse, in all, where not all are asked for the same: they would make one run of several."""
    if jax.process_count() == 1:
        return
    mine = {name: repr(value) for name, value in asked.items()}
    first = told(lambda: mine)
    others = [
        f"{name}={mine.get(name, 'nothing')} here and {first.get(name, 'nothing')} in the first"
        for name in dict.fromkeys([*first, *mine])
        if mine.get(name) != first.get(name)
    ]
    if any_of(bool(others)):
        found = "; ".join(others) or "another process tells which"
        raise SelectError(
            f"the {jax.process_count()} processes of this run were not asked for the same "
            f"({found}): give all of them the same command"
        )


@contextmanager
def meeting() -> Iterator[None]:
    """While processes wait for each other: one that is gone is told of."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if jax.process_count() == 1:
            raise
        why = str(error).splitlines()[0]
        raise PeerFault(
            f"another process of this run ended, or cannot be reached any more ({why}): start all "
            "of them again, with --resume"
        ) from error


def copied(tree: Any, like: Any) -> Any:
    """The first process's arrays, bit for bit, on all; the others need only know what they are."""
    if jax.process_count() == 1:
        return tree

    def heard(leaf: Any) -> Any:
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            numbers = jnp.asarray(heard(jax.random.key_data(leaf)))
            return jax.random.wrap_key_data(numbers, impl=jax.random.key_impl(leaf))
        array = np.asarray(leaf)
        # As bytes: a sum with zeros, which is how it travels, would lose the sign of −0.
        told = _from_first(np.frombuffer(array.tobytes(), np.uint8))
        return np.frombuffer(told.tobytes(), array.dtype).reshape(array.shape)

    if not is_first():
        tree = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), like)
    return jax.tree.map(heard, tree)


def any_of(mine: bool) -> bool:
    """Whether it is so in any process; all must ask."""
    if jax.process_count() == 1:
        return mine
    from jax.experimental.multihost_utils import process_allgather

    return bool(process_allgather(np.asarray(mine)).any())


def _from_first(array: Any) -> Any:
    from jax.experimental.multihost_utils import broadcast_one_to_all

    return broadcast_one_to_all(array)


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise SelectError(f"{name}={text}: must be a whole number")
    return int(text)
