"""One training run, from its start or its newest checkpoint to its end.

Compiled chunks do the work; between them plain Python logs, evaluates and saves. What happens
depends on steps alone, never on the clock, so that a run can be repeated and resumed bit for bit.
"""

import math
import shlex
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import jax
import numpy as np

from selectmdp import checkpoint, devices, processes, results, runs, sharing, signals, worlds
from selectmdp.checkpoint import CheckpointError
from selectmdp.config import TrainConfig, differences, versions
from selectmdp.display import TrainingDisplay
from selectmdp.engines import ChunkReport, Running
from selectmdp.envs.base import offers
from selectmdp.evaluation import Evaluation, episode_steps
from selectmdp.factories import is_factory
from selectmdp.machine import enough_memory, peak_megabytes
from selectmdp.policy import Policy
from selectmdp.results import TrainResult
from selectmdp.runlog import RunLog
from selectmdp.spec import SelectError, WorldFault

GLANCE_EPISODES, GLANCE_STEPS = 8, 500
"""Episodes, and steps of each at most, of an evaluation on the way."""
SAVES, SAVE_STEPS = 20, 20_000
"""Checkpoints in a training, and steps between two of them at most."""
ROWS = 200
"""Rows of metrics in a training."""


class Trainer:
    """A config on a world, into a folder."""

    log: RunLog | None = None
    """Of the first process."""
    display: TrainingDisplay
    caught: list[int]
    """Signals that ask for an end."""

    def __init__(
        self, folder: Path, config: TrainConfig, world: worlds.World, began: float | None = None
    ) -> None:
        """`began` is when the run was asked for, by `time.monotonic`; now if not given."""
        self.folder, self.config, self.world = folder, config, world
        self.learner = runs.learner_of(config, world.env)
        self.engine = world.engine(self.learner, config.seed)
        self.judge = world.judge(self.learner.agent.actor(world.env))
        self.keeper = runs.keeper(folder)
        self.episode_steps = episode_steps(world.env)
        self.began = time.monotonic() if began is None else began
        self.speed: float | None = None
        self.best: float | None = None

    @property
    def seconds(self) -> float:
        """Of the run so far, over all its parts, with compilation and evaluations."""
        return time.monotonic() - self.began

    def go(self) -> TrainResult:
        """Train to the end, then judge."""
        title = f"{self.config.algorithm} on {self.config.task}, into {self.folder}"
        if self.engine.devices > 1:
            title += f", on {self.engine.devices} devices"
        with ExitStack() as stack:
            stack.enter_context(processes.meeting())
            stack.enter_context(enough_memory(self.world.env.spec))
            stack.enter_context(self._blaming())
            stack.enter_context(self.world.opened())
            self.caught = stack.enter_context(signals.noted())
            running, notes = self._begin()
            first = int(running.step)
            processes.told(lambda: self._open_log(stack, first))
            self.display = stack.enter_context(TrainingDisplay(title, self.config.steps, first))
            for note in notes:
                self.display.println(note)
            if first == 0:
                self._glance(running)
            while int(running.step) < self.config.steps:
                if processes.any_of(bool(self.caught)):
                    self._save(running)
                    raise self._stopped(int(running.step))
                running = self._chunk(running)
            return self._finish(running)

    def _open_log(self, stack: ExitStack, first: int) -> None:
        self.log = stack.enter_context(RunLog(self.folder, resume_step=first or None))

    def _begin(self) -> tuple[Running, list[str]]:
        """A fresh run, or the newest checkpoint; and what is to be said about it."""
        read: list[Running] = []

        def newest() -> dict[str, Any] | None:
            if not self.keeper.steps():
                return None
            folder, notes = self.keeper.newest_intact()
            read.append(checkpoint.read(folder, "training", self.engine.like()))
            config, meta = runs.meta_of(folder)
            if config != self.config:
                raise CheckpointError(f"{folder} is of another run: move it away, then resume")
            then = {**meta["versions"], "devices": meta.get("devices", 1)}
            changed = differences(then, {**versions(), "devices": self.engine.devices})
            if changed:
                notes.append(f"not bit for bit what it would have been: {'; '.join(changed)}")
            notes.append(f"resumed at step {meta['step']:,} from {folder}")
            return {"seconds": meta["seconds"], "best": meta.get("best"), "notes": notes}

        found = processes.told(newest)
        idle = jax.device_count() - self.engine.devices
        notes = [f"{idle} devices stay idle: a Gymnasium world trains on one"] if idle else []
        if found is None:
            changed = ", ".join(f"{name}={value}" for name, value in self.config.settings.items())
            if changed:
                notes.append(f"with {changed} in place of the {self.config.preset} preset's own")
            return self.engine.start(), notes
        self.began -= found["seconds"]
        self.best = found["best"]
        like = self.engine.like()
        running = devices.placed(processes.copied(read, [like])[0], like)
        return running, [*notes, *found["notes"]]

    def _chunk(self, running: Running) -> Running:
        """One chunk, and what is due after it."""
        config, started = self.config, time.monotonic()
        running, report = self.engine.run(running)
        self.speed = config.chunk / (time.monotonic() - started)
        self._check(running, report)
        self._show(running, report)
        step = int(running.step)
        last = step == config.steps
        if last or step % config.every(config.evaluations) == 0:
            self._glance(running, report)
        elif step % config.every(ROWS) == 0:
            processes.told(lambda: self._row(running, report))
        if last or step % config.every(SAVES, SAVE_STEPS) == 0:
            running = self._save(running)
        return running

    def _check(self, running: Running, report: ChunkReport) -> None:
        """Stop where a number is not finite: nothing good can follow."""
        if not math.isfinite(report.reward):
            made = [n for n in ("learning_reward", "partial_reward") if offers(self.world.env, n)]
            also = f", or what {' or '.join(made)} makes of it," if made else ""
            fault = f"the reward{also} is {report.reward}"
        elif report.updates and not math.isfinite(report.loss):
            fault = f"the loss is {report.loss}"
        elif not _finite(self.learner.policy(running.learner)):
            fault = "a parameter is not finite"
        else:
            return
        raise SelectError(
            f"{fault} at step {int(running.step):,} ({self._last_good()}): lower learning_rate, "
            "scale the reward, or check the world's rewards and features for huge numbers"
        )

    @contextmanager
    def _blaming(self) -> Iterator[None]:
        """A fault of the world, with what is left of the run."""
        try:
            yield
        except WorldFault as fault:
            raise WorldFault(f"{fault} ({self._last_good()})") from fault

    def _last_good(self) -> str:
        with suppress(CheckpointError):
            return f"the last good checkpoint is {self.keeper.newest_intact()[0]}"
        return "nothing was saved yet"

    def _show(self, running: Running, report: ChunkReport) -> None:
        step = int(running.step)
        self.display.update(
            step,
            loss=report.loss if report.updates else None,
            epsilon=self._epsilon(running),
            parameter_sets=len(set(self.learner.phase_map(step))),
        )

    def _glance(self, running: Running, report: ChunkReport | None = None) -> None:
        """Evaluate on the way; the best so far is kept."""
        self.display.update(int(running.step), note="evaluating")
        told = self.judge(
            self._learned(running),
            episodes=GLANCE_EPISODES,
            steps=min(self.episode_steps, GLANCE_STEPS),
        )
        self.display.update(int(running.step), reward=told.mean_reward, note="")
        processes.told(lambda: self._keep(running, report, told))

    def _keep(self, running: Running, report: ChunkReport | None, told: Evaluation) -> None:
        """In the first process, which alone need know the best."""
        self._row(running, report, told)
        if math.isfinite(told.mean_reward) and (self.best is None or told.mean_reward > self.best):
            self.best = told.mean_reward
            policy = self._policy(running)
            self.keeper.write_best({"policy": policy.params}, policy.about)

    def _row(
        self, running: Running, report: ChunkReport | None, told: Evaluation | None = None
    ) -> None:
        assert self.log is not None
        step = int(running.step)
        self.log.row(
            step,
            seconds=self.seconds,
            loss=report.loss if report and report.updates else None,
            epsilon=self._epsilon(running),
            train_reward=report.reward if report else None,
            parameter_sets=len(set(self.learner.phase_map(step))),
            steps_per_second=self.speed,
            eval_reward=told.mean_reward if told else None,
            eval_ci95=told.ci95 if told else None,
        )

    def _save(self, running: Running) -> Running:
        """A checkpoint; what to go on from, so that a resumed run does the same."""
        running = self.engine.boundary(running)
        policy = self._policy(running)
        step, best = int(running.step), self.best
        trees = {"policy": policy.params, "training": devices.gathered(running)}

        def write() -> None:
            self.keeper.write(step, trees, {**policy.about, "best": best})

        processes.told(write)
        return running

    def _epsilon(self, running: Running) -> float:
        return float(self.learner.epsilon(devices.here(running.step)))

    def _policy(self, running: Running) -> Policy:
        step = int(running.step)
        phase_map = self.learner.phase_map(step)
        about = runs.policy_meta(
            self.config, self.world.env, step, phase_map, self.seconds, self.engine.devices
        )
        return Policy(self.learner.agent, self._params(running), phase_map, about)

    def _learned(self, running: Running) -> tuple[Any, Any]:
        phase_map = self.learner.phase_map(int(running.step))
        return self._params(running), sharing.as_array(phase_map)

    def _params(self, running: Running) -> Any:
        """The policy's, on one device of this process."""
        return devices.here(self.learner.policy(running.learner))

    def _finish(self, running: Running) -> TrainResult:
        """Judge, and write down what came of it."""
        judged = None
        with suppress(signals.Stopped):
            judged = self._judged(running)
        if processes.any_of(judged is None) or judged is None:
            raise self._stopped(self.config.steps)
        self.display.update(self.config.steps, note="")
        result = TrainResult(
            self._policy(running), *judged, self.folder, self.seconds, peak_megabytes()
        )
        processes.told(lambda: results.write(result))
        return result

    def _judged(self, running: Running) -> tuple[Evaluation, dict[str, Evaluation]]:
        """The policy and the references on the same episodes."""

        def judged(name: str, judge: worlds.Judge, params: Any = None) -> Evaluation:
            def progress(done: int, total: int) -> None:
                self.display.update(self.config.steps, note=f"evaluating {name} {done / total:.0%}")
                if self.caught:
                    raise self._stopped(self.config.steps)

            return judge(
                params, episodes=self.config.episodes, steps=self.episode_steps, progress=progress
            )

        evaluation = judged(self.config.algorithm, self.judge, self._learned(running))
        others = worlds.references(self.world)
        references = {name: judged(name, judge) for name, judge in others.items()}
        return evaluation, references

    def _stopped(self, step: int) -> signals.Stopped:
        where, task = f"step {step:,} of {self.config.steps:,}", self.config.task
        named = f"{shlex.quote(task)} " if is_factory(task) else ""
        how = f"selectmdp train {named}--out {shlex.quote(str(self.folder))} --resume"
        if not named and not worlds.has_name(task):
            how = f"selectmdp.train(the {task}, out={str(self.folder)!r}, resume=True)"
        return signals.Stopped(
            f"stopped at {where}; all is saved. Go on with\n  {how}",
            next(iter(self.caught), signal.SIGTERM),  # another process may have caught it
        )


def _finite(tree: Any) -> bool:
    return all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(tree))
