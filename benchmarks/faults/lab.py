"""Where faults are tried: runs in processes, what they told before they ended, and the judgement.

The judge knows every state that the undisturbed run ever wrote, by its SHA-256. After a fault each
checkpoint that can be read must be one of them, and the newest at least as new as the last that
was complete.
"""

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock
from typing import Any, NamedTuple

from benchmarks.faults import subject
from benchmarks.faults.subject import RUNS, WRITER, Plan
from selectmdp import checkpoint
from selectmdp.checkpoint import CheckpointError, Keeper, manifests
from selectmdp.spec import SelectError

HUNG = 300.0
"""Seconds without a word after which a process counts as hung."""
REAPING = Lock()
"""Whoever starts a process asks after all others, and how one ended can be read only once."""


class Heard(NamedTuple):
    """How a process ended: `end`, `killed`, `refused` (a typed error) or `broken`."""

    how: str
    said: str
    step: int
    """Of its last complete checkpoint; −1: none."""
    told: list[tuple[str, Any]]


@dataclass
class Reference:
    """The run that nothing disturbed."""

    steps: dict[int, dict[str, str]]
    best: dict[int, dict[str, str]]
    operations: int
    seconds: float
    """From its first checkpoint to its last."""
    end: dict[str, Any]


@dataclass
class Tally:
    """What became of the trials of one fault."""

    fault: str
    trials: int = 0
    lost: int = 0
    loaded_corrupt: int = 0
    untyped: int = 0
    """Errors without a message for people, and processes that hung."""
    code_run: int = 0
    notes: list[str] = field(default_factory=list)
    """What went wrong, a line each; or what was measured."""
    about: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain data, the first few notes only."""
        return {**self.__dict__, "notes": self.notes[:10]}

    @property
    def is_clean(self) -> bool:
        """Nothing went wrong; where nothing was tried, nothing is known."""
        wrong = self.lost or self.loaded_corrupt or self.untyped or self.code_run
        return self.trials > 0 and not wrong


class Lab:
    """A scratch folder, the compiled programs, and the undisturbed runs to compare with."""

    def __init__(self, root: Path) -> None:
        self.root, self.cache = root, root / "programs"
        self.cache.mkdir(parents=True, exist_ok=True)
        for folder in (root, self.cache):
            folder.chmod(0o777)  # the user without rights compiles too
        self._context, self._lock, self._count = subject.context(), Lock(), 0

    def folder(self, name: str) -> Path:
        """A place for one run, which is not there yet."""
        with self._lock:
            self._count += 1
            return self.root / f"{name}-{self._count}"

    @cached_property
    def references(self) -> dict[str, Reference]:
        """By preset."""
        return {preset: self._undisturbed(preset) for preset in (*RUNS, WRITER)}

    def whole(self, preset: str) -> Path:
        """The folder of the undisturbed run."""
        return self.root / f"undisturbed-{preset}"

    @contextmanager
    def started(self, out: Path, preset: str, plan: Plan = Plan()) -> Iterator[Any]:  # noqa: B008
        """A training under way, and what it tells."""
        with self.working(subject.process, out, preset, self.cache, plan) as pair:
            yield pair

    @contextmanager
    def working(self, work: Callable[..., None], *given: Any) -> Iterator[Any]:
        """A process that does some work, and what it tells; it ends with the block."""
        mine, its = self._context.Pipe(duplex=False)
        process = self._context.Process(target=work, args=(*given, its))
        with REAPING:
            process.start()
        its.close()
        try:
            yield process, mine
        finally:
            with REAPING:
                if process.is_alive():
                    process.kill()
                process.join()
            mine.close()

    def run(
        self,
        out: Path,
        preset: str,
        plan: Plan = Plan(),  # noqa: B008 - it does not change
        moment: float | None = None,
    ) -> Heard:
        """One process to its end; killed so many seconds after its first chunk began."""
        with self.started(out, preset, plan) as (process, told):
            return heard(process, told, moment)

    def _undisturbed(self, preset: str) -> Reference:
        out = self.whole(preset)
        ended = self.run(out, preset)
        if ended.how != "end":
            raise SelectError(f"the undisturbed run did not end: {ended.said}; see {out}.log")
        steps = {value[0]: value for kind, value in ended.told if kind == "step"}
        times = [value[2] for value in steps.values()]
        return Reference(
            steps={step: value[1] for step, value in steps.items()},
            best={value[0]: value[1] for kind, value in ended.told if kind == "best"},
            operations=next(value for kind, value in ended.told if kind == "end"),
            seconds=max(times) - min(times),
            end=subject.end_of(out),
        )

    def judge(self, tally: Tally, out: Path, preset: str, least: int) -> int:
        """The newest step that can be gone on from (−1: none), once all that loads is compared."""
        reference, keeper = self.references[preset], Keeper(out / "checkpoints")
        newest = -1
        for step in keeper.steps():
            folder = out / "checkpoints" / f"step-{step:012d}"
            if _loads(folder):
                newest = max(newest, step)
                self._compare(tally, folder, reference.steps.get(step))
        best, kept = out / "checkpoints" / "best", -1
        if _loads(best):
            kept = checkpoint.manifest(best)["step"]
            self._compare(tally, best, reference.best.get(kept))
        due = max((step for step in reference.best if step <= newest), default=-1)
        if kept < due:  # it is written before the checkpoint of its step
            tally.lost += 1
            tally.notes.append(f"{best}: that of step {due} was complete, now it is {kept}")
        if newest < least:
            tally.lost += 1
            tally.notes.append(f"{out}: step {least} was complete, the newest now is {newest}")
        return newest

    def judge_end(self, tally: Tally, out: Path, preset: str) -> None:
        """A run that was resumed ends as the undisturbed one did, bit for bit."""
        try:
            same = subject.end_of(out) == self.references[preset].end
        except (OSError, ValueError, KeyError) as error:
            same, out = False, Path(f"{out} ({error})")
        if not same:
            tally.lost += 1
            tally.notes.append(f"{out} did not end as the undisturbed run")
        elif out.exists():
            shutil.rmtree(out)
            Path(f"{out}.log").unlink(missing_ok=True)

    def finish(self, tally: Tally, out: Path, preset: str) -> None:
        """Go on to the end, and judge it."""
        ended = self.run(out, preset)
        if ended.how == "end":
            self.judge_end(tally, out, preset)
        else:
            tally.lost += 1
            tally.notes.append(f"{out} did not go on: {ended.said}")

    def _compare(self, tally: Tally, folder: Path, known: dict[str, str] | None) -> None:
        if subject.hashes(manifests.found(folder)[0]) != known:
            tally.loaded_corrupt += 1
            tally.notes.append(f"{folder} loads, and is not what the undisturbed run wrote")


def heard(
    process: Any,
    told: Any,
    moment: float | None = None,
    on_each: Callable[[str], object] = lambda kind: None,
) -> Heard:
    """All that a process tells until it ends."""
    messages: list[tuple[str, Any]] = []
    until, quiet = None, time.monotonic()
    while True:
        now = time.monotonic()
        if until is not None and now >= until:
            process.kill()
            until = None
        if now - quiet > HUNG:
            process.kill()
            messages.append(("broken", "hung"))
        left = 1.0 if until is None else max(until - now, 0.0)
        if not told.poll(min(left, 1.0)):
            continue
        quiet = time.monotonic()
        try:
            messages.append(told.recv())
        except (EOFError, OSError):
            break
        on_each(messages[-1][0])
        if messages[-1][0] == "begun" and moment is not None:
            until = time.monotonic() + moment
    with REAPING:
        process.join()
    last = dict(messages)
    step = last["step"][0] if "step" in last else -1
    for how in ("broken", "refused", "end"):
        if how in last:
            return Heard(how, str(last[how]), step, messages)
    how = "killed" if process.exitcode == -signal.SIGKILL else "broken"
    return Heard(how, f"exit code {process.exitcode}", step, messages)


@contextmanager
def opened() -> Iterator[Lab]:
    """A lab, gone afterwards."""
    root = Path(mkdtemp(prefix="selectmdp-faults-"))
    try:
        yield Lab(root)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _loads(folder: Path) -> bool:
    try:
        checkpoint.verify(folder)
    except CheckpointError:
        return False
    return True
