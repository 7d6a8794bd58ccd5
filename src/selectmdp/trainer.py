"""One training run, from its start or its newest checkpoint to its end.

Compiled chunks do the work; between them plain Python logs, evaluates and saves. What happens
depends on steps alone, never on the clock, so that a run can be repeated and resumed bit for bit.
"""

import math
import shlex
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import jax
import numpy as np

from selectmdp import checkpoint, results, runs, sharing, signals, worlds
from selectmdp.checkpoint import CheckpointError
from selectmdp.config import TrainConfig, differences, versions
from selectmdp.display import TrainingDisplay
from selectmdp.engines import ChunkReport, Running
from selectmdp.evaluation import Evaluation
from selectmdp.machine import peak_megabytes
from selectmdp.policy import Policy
from selectmdp.results import TrainResult
from selectmdp.runlog import RunLog
from selectmdp.spec import SelectError

GLANCE_EPISODES, GLANCE_STEPS = 8, 500
"""Episodes, and steps of each at most, of an evaluation on the way."""
SAVES, SAVE_STEPS = 20, 20_000
"""Checkpoints in a training, and steps between two of them at most."""
ROWS = 200
"""Rows of metrics in a training."""


class Trainer:
    """A config on a world, into a folder."""

    log: RunLog
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
        self.episode_steps = worlds.episode_steps(world)
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
        with ExitStack() as stack:
            stack.enter_context(self.world.opened())
            self.caught = stack.enter_context(signals.noted())
            running, notes = self._begin()
            first = int(running.step)
            self.log = stack.enter_context(RunLog(self.folder, resume_step=first or None))
            self.display = stack.enter_context(TrainingDisplay(title, self.config.steps, first))
            for note in notes:
                self.display.println(note)
            if first == 0:
                self._glance(running)
            while int(running.step) < self.config.steps:
                if self.caught:
                    self._save(running)
                    raise self._stopped(int(running.step))
                running = self._chunk(running)
            return self._finish(running)

    def _begin(self) -> tuple[Running, list[str]]:
        """A fresh run, or the newest checkpoint; and what is to be said about it."""
        if not self.keeper.steps():
            return self.engine.start(), []
        folder, notes = self.keeper.newest_intact()
        running: Running = checkpoint.read(folder, "training", self.engine.like())
        config, meta = runs.meta_of(folder)
        if config != self.config:
            raise CheckpointError(f"{folder} is of another run: move it away, then resume")
        self.began -= meta["seconds"]
        self.best = meta["best"]
        changed = differences(meta["versions"], versions())
        if changed:
            notes.append(f"not bit for bit what it would have been: {'; '.join(changed)}")
        return running, [*notes, f"resumed at step {int(running.step):,} from {folder}"]

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
            self._row(running, report)
        if last or step % config.every(SAVES, SAVE_STEPS) == 0:
            running = self._save(running)
        return running

    def _check(self, running: Running, report: ChunkReport) -> None:
        """Stop where a number is not finite: nothing good can follow."""
        if not math.isfinite(report.reward):
            fault = f"the reward is {report.reward}"
        elif report.updates and not math.isfinite(report.loss):
            fault = f"the loss is {report.loss}"
        elif not _finite(self.learner.policy(running.learner)):
            fault = "a parameter is not finite"
        else:
            return
        last = "nothing was saved yet"
        with suppress(CheckpointError):
            last = f"the last good checkpoint is {self.keeper.newest_intact()[0]}"
        raise SelectError(
            f"{fault} at step {int(running.step):,} ({last}): lower learning_rate, scale the "
            "reward, or check the world's rewards and features for huge numbers"
        )

    def _show(self, running: Running, report: ChunkReport) -> None:
        step = int(running.step)
        self.display.update(
            step,
            loss=report.loss if report.updates else None,
            epsilon=float(self.learner.epsilon(running.step)),
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
        self._row(running, report, told)
        if math.isfinite(told.mean_reward) and (self.best is None or told.mean_reward > self.best):
            self.best = told.mean_reward
            policy = self._policy(running)
            self.keeper.write_best({"policy": policy.params}, policy.about)

    def _row(
        self, running: Running, report: ChunkReport | None, told: Evaluation | None = None
    ) -> None:
        step = int(running.step)
        self.log.row(
            step,
            seconds=self.seconds,
            loss=report.loss if report and report.updates else None,
            epsilon=float(self.learner.epsilon(running.step)),
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
        trees = {"policy": policy.params, "training": running}
        self.keeper.write(int(running.step), trees, {**policy.about, "best": self.best})
        return running

    def _policy(self, running: Running) -> Policy:
        step = int(running.step)
        phase_map = self.learner.phase_map(step)
        about = runs.policy_meta(self.config, self.world.env, step, phase_map, self.seconds)
        return Policy(self.learner.agent, self.learner.policy(running.learner), phase_map, about)

    def _learned(self, running: Running) -> tuple[Any, Any]:
        phase_map = self.learner.phase_map(int(running.step))
        return self.learner.policy(running.learner), sharing.as_array(phase_map)

    def _finish(self, running: Running) -> TrainResult:
        """Judge the policy and the references on the same episodes."""

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
        self.display.update(self.config.steps, note="")
        policy = self._policy(running)
        result = TrainResult(
            policy, evaluation, references, self.folder, self.seconds, peak_megabytes()
        )
        results.write(result)
        return result

    def _stopped(self, step: int) -> signals.Stopped:
        where, task = f"step {step:,} of {self.config.steps:,}", self.config.task
        how = f"selectmdp train --out {shlex.quote(str(self.folder))} --resume"
        if not worlds.has_name(task):
            how = f"selectmdp.train(the {task}, out={str(self.folder)!r}, resume=True)"
        return signals.Stopped(
            f"stopped at {where}; all is saved. Go on with\n  {how}", self.caught[0]
        )


def _finite(tree: Any) -> bool:
    return all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(tree))
