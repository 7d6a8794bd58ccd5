"""Everything that reads a run's files or a folder of results, let loose on damaged ones.

All in one process of its own, whose memory is bounded: what a file claims must not become an
allocation, and no answer may be anything but the truth or a typed error.
"""

import os
import random
import resource
import shutil
import tracemalloc
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import made_results
from benchmarks.faults import damage, tables
from benchmarks.faults.lab import Lab, Tally, heard
from selectmdp import checkpoint, runs, worlds
from selectmdp.card import model_card
from selectmdp.settings import Hosting
from selectmdp.spec import SelectError
from selectmdp.training import world_to_resume

MOST_MEMORY, MOST_TEXT = 10_000_000, 100_000_000
"""Bytes that reading a damaged run may take, whose files have a few 10 kB; and a megabyte of JSON,
which becomes half of that, or tables and their page."""
TEXTS = ("a billion entries", *tables.DAMAGES)
ROOM = 2 << 30
"""Bytes of addresses that the process may add to those it has."""


def damaged(lab: Lab, trials: int, seed: int, done: Callable[[], None]) -> list[Tally]:
    """So many trials of each damage, of checkpoints and configs and then of tables of results."""
    _ = lab.references
    place = lab.folder("damaged")
    place.mkdir()
    with lab.working(process, lab.whole("paper"), place, trials, seed) as (child, told):
        ended = heard(child, told, on_each=lambda kind: done() if kind == "trial" else None)
    tallies = [value for kind, value in ended.told if kind == "tally"]
    if ended.how != "end":
        last = Tally("damage", 1, untyped=1, notes=[f"the reader itself ended: {ended.said}"])
        tallies.append(last)
    return tallies


def process(whole: Path, place: Path, trials: int, seed: int, told: Connection) -> None:
    """In a process of its own."""
    os.chdir(place)
    damage.set_trap(place)
    jax.config.update("jax_platforms", "cpu")
    reader = Reader(whole)
    _warm_up(reader, whole, place)  # compiles, so that what follows is reading alone
    _limit()
    tracemalloc.start()
    for name, each in {**damage.DAMAGES, **tables.DAMAGES}.items():
        tally, most = Tally(name, about="damaged files"), 0
        rng = random.Random(f"{name} {seed}")
        meet: Callable[[Path, Tally], object] = reader.meet
        copy: Callable[[Path], Path] = partial(shutil.copytree, whole)
        if name in tables.DAMAGES:
            meet, copy = tables.meet, partial(made_results.make, seeds=1)
        for _ in range(trials):
            here = copy(place / "run")
            each(rng, here)
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            meet(here, tally)
            most = max(most, tracemalloc.get_traced_memory()[1] - before)
            _look_for_mark(tally, place)
            _clear(place)
            tally.trials += 1
            told.send(("trial", None))
        tally.untyped += most > (MOST_TEXT if name in TEXTS else MOST_MEMORY)
        tally.notes.append(f"at most {most / 1e6:.0f} MB of memory")
        if name in damage.HARMLESS:
            tally.loaded_corrupt = 0
        told.send(("tally", tally))
    told.send(("end", None))


def _warm_up(reader: "Reader", whole: Path, place: Path) -> None:
    """What is whole must be read: who refuses everything would never be wrong."""
    tally = Tally("warm-up")
    table = made_results.make(place / "all")
    read = reader.meet(whole, tally) == READERS and tables.meet(table, tally)
    if not read or tally.notes:
        raise SelectError(f"what is whole was refused, or misread: {tally.notes}")
    _clear(place)


class Reader:
    """Knows the truth: the numbers of every checkpoint of the run that is whole."""

    def __init__(self, whole: Path) -> None:
        config, _ = runs.config_of(whole)
        world = worlds.world(config.task, config.options)
        self.like = world.engine(runs.learner_of(config, world.env), config.seed).like()
        self.config, self.newest = config, damage.newest(whole).name
        self.policies, self.states = {}, {}
        for folder in sorted((whole / "checkpoints").iterdir()):
            self.policies[_step(folder)] = _numbers(runs.load(folder).params)
            if folder.name != "best":
                self.states[_step(folder)] = _numbers(self._state(folder))

    def meet(self, run: Path, tally: Tally) -> int:
        """Every reader in turn; what one gives back is compared with the truth.

        How many gave something back.
        """
        newest, answers = run / "checkpoints" / self.newest, 0
        for name, read in (
            ("verify", lambda: _verified(newest, tally.fault)),
            ("load checkpoint", lambda: self._policy(newest)),
            ("load run", lambda: self._policy(run)),
            ("resume", lambda: self._resumed(run)),
            ("card", lambda: model_card(run)),
        ):
            try:
                truth = read()
            except SelectError as error:
                if isinstance(error.__cause__, MemoryError):
                    tally.untyped += 1
                    tally.notes.append(f"{tally.fault}, {name}: memory")
            except Exception as error:
                tally.untyped += 1
                tally.notes.append(f"{tally.fault}, {name}: {error!r:.300}")
            else:
                answers += 1
                if truth is False:
                    tally.loaded_corrupt += 1
                    tally.notes.append(f"{tally.fault}, {name}: other numbers")
        return answers

    def _policy(self, path: Path) -> bool:
        policy = runs.load(path)
        return _numbers(policy.params) == self.policies.get(policy.about["step"])

    def _resumed(self, run: Path) -> bool:
        """As training goes on: config, newest whole checkpoint, and that they belong together."""
        with runs.alone_in(run):
            runs.check_links(run)
            config, _ = runs.config_of(run)
            world_to_resume(run, None, config, Hosting())
            folder, _ = runs.keeper(run).newest_intact()
            state, (kept, meta) = self._state(folder), runs.meta_of(folder)
        if kept != config:
            raise SelectError(f"{folder} is of another run")
        return config == self.config and _numbers(state) == self.states.get(meta["step"])

    def _state(self, folder: Path) -> Any:
        return checkpoint.read(folder, "training", self.like)


READERS = 5
"""How many meet a run."""


def _verified(folder: Path, fault: str) -> bool:
    """Whether it is right that a checkpoint passes for whole."""
    checkpoint.verify(folder)
    return fault not in damage.ACCIDENTS


def _numbers(tree: Any) -> list[bytes]:
    return [
        np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf).tobytes()
        for leaf in jax.tree.leaves(tree)
    ]


def _is_key(leaf: Any) -> bool:
    return bool(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def _step(folder: Path) -> int:
    return int(checkpoint.manifest(folder)["step"])


def _limit() -> None:
    """From here on an allocation by a file's claim is an error."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _look_for_mark(tally: Tally, place: Path) -> None:
    if (place / damage.MARK).exists():
        tally.code_run += 1
        tally.notes.append(f"{tally.fault}: code from a file was run, or its link followed")


def _clear(place: Path) -> None:
    for path in place.iterdir():
        if path.is_dir() and not path.is_symlink() and path.name != "__pycache__":
            shutil.rmtree(path)
        elif path.suffix != ".py" and path.name != "__pycache__":
            path.unlink()
