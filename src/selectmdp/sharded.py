"""A learner on a JAX world, on several devices at once: the compiled chunk, mapped over them.

Each device plays its share of the environments and learns from its share of every batch; gradients
are averaged at each update, so that all keep the same parameters. Environments and exploration meet
the chance that they would meet on one device. Batches do not: each device shuffles its own steps,
since one order over all would send every observation to every device.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding

from selectmdp.devices import ALIKE, SHARED, Shares, here, mesh, placed
from selectmdp.engines import ChunkReport, Compiled, Running
from selectmdp.learners.base import Learner


@dataclass(frozen=True)
class Sharded:
    """As `Compiled`, on the first `devices` that JAX has, of all processes together."""

    env: Any
    learner: Learner
    seed: int
    devices: int

    def __post_init__(self) -> None:
        self._one  # noqa: B018 - a learner that cannot be shared is refused

    def start(self) -> Running:
        """Fresh worlds, fresh parameters: those of one device."""
        key = jax.random.key(self.seed)
        impl = jax.random.key_impl(key)

        def start(numbers: Any) -> Running:
            return self._one.begin(jax.random.wrap_key_data(numbers, impl=impl))

        places = jax.tree.map(lambda leaf: leaf.sharding, self._like)
        # Plain numbers, which several processes hold alike.
        return jax.jit(start, out_shardings=places)(np.asarray(jax.random.key_data(key)))

    def like(self) -> Running:
        """Shapes, types and places."""
        return self._like

    @cached_property
    def _like(self) -> Running:
        def at(spec: Any, leaf: Any) -> Any:
            place = spec if leaf.size else ALIKE  # as JAX has arrays without numbers
            return leaf.update(sharding=NamedSharding(self._mesh, place))

        shapes = jax.eval_shape(self._one.begin, jax.random.key(self.seed))
        parts = zip(self._specs, shapes, strict=True)
        return Running(*(jax.tree.map(partial(at, spec), part) for spec, part in parts))

    def run(self, running: Running) -> tuple[Running, ChunkReport]:
        """One chunk, then what the learner has to do between two."""
        running, (reward, loss, updates) = self._chunk(running)
        report = ChunkReport(float(reward), float(loss), int(updates))
        return running._replace(learner=self._between(running)), report

    def boundary(self, running: Running) -> Running:
        """The state as it is: episodes go on where they were."""
        return running

    def compiled(self) -> Any:
        """A chunk's program, which tells what each device needs before it is run."""
        return self._chunk.lower(self._like).compile()

    def _between(self, running: Running) -> Any:
        """The learner's own work on one device's copy; what it changed goes to all."""
        before = here(running.learner)
        after = self.learner.between(before, int(running.step))

        def told(new: Any, old: Any, everywhere: Any, like: Any) -> Any:
            return everywhere if new is old else placed(new, like)

        return jax.tree.map(told, after, before, running.learner, self._like.learner)

    @cached_property
    def _one(self) -> Compiled:
        """What runs on each device."""
        return Compiled(self.env, self.learner.shared(Shares(self.devices)), self.seed)

    @property
    def _specs(self) -> Any:
        """Where each part of a run lies, in the form of a `Running`."""
        worlds: Any = SHARED if self.learner.shares_worlds else ALIKE
        alike: Any = ALIKE
        return Running(key=alike, step=alike, worlds=worlds, ages=worlds, learner=alike)

    @cached_property
    def _mesh(self) -> Any:
        return mesh(self.devices)

    @cached_property
    def _chunk(self) -> Any:
        # Unchecked: the check would refuse worlds whose own loops begin with constants.
        mapped = jax.shard_map(
            self._one.rounds,
            mesh=self._mesh,
            in_specs=(self._specs,),
            out_specs=(self._specs, ALIKE),
            check_vma=False,
        )
        return jax.jit(mapped, donate_argnums=0)
