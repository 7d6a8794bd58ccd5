"""`train`: from nothing to a trained policy with curves, a table's numbers and checkpoints.

Compiled chunks do the work; between them plain Python logs, evaluates and saves. What happens
depends on steps alone, never on the clock, so that a run can be repeated and resumed bit for bit.
"""

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selectmdp import checkpoint, runs, sharing, signals, tasks, worlds
from selectmdp.config import TrainConfig, differences
from selectmdp.display import TrainingDisplay
from selectmdp.engines import ChunkReport, Running
from selectmdp.evaluation import Evaluation, episode_steps
from selectmdp.learners.presets import preset
from selectmdp.policy import Policy
from selectmdp.runlog import RunLog, read_rows, write_whole
from selectmdp.spec import SelectError

GLANCE_EPISODES, GLANCE_STEPS = 8, 500
"""Episodes, and steps of each at most, of an evaluation on the way."""
SAVE_STEPS = 20_000
"""Steps between two checkpoints, at most."""


@dataclass(frozen=True)
class TrainResult:
    """What a training run leaves."""

    policy: Policy
    evaluation: Evaluation
    """Of the last policy, ε = 0, on episodes that it never trained on."""
    references: Mapping[str, Evaluation]
    """Random and, where the world offers it, greedy: on the same episodes."""
    folder: Path
    seconds: float
    """Of training, over all its parts."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        config, judged = self.policy.about["config"], self.evaluation.to_json()
        named = {name: judged.pop(name) for name in ("steps", "seed")}
        return {
            **{name: config[name] for name in ("task", "algorithm", "preset", "steps", "seed")},
            **self.policy.about["spec"],
            **judged,
            **{f"evaluation_{name}": value for name, value in named.items()},
            "references": {name: told.to_json() for name, told in self.references.items()},
            "seconds": round(self.seconds, 1),
            "folder": str(self.folder),
        }


def train(
    task: Any,
    *,
    algorithm: str | None = None,
    preset: str | None = None,
    steps: int | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    evaluations: int | None = None,
    episodes: int | None = None,
    settings: Mapping[str, Any] | None = None,
    **options: Any,
) -> TrainResult:
    """Train an algorithm on a task: a world's name with its options, a Gymnasium id, or a world.

    With `resume` the run in `out` goes on; what is not given then is as it was. Ctrl-C saves, and
    raises `Stopped` with how to go on.
    """
    asked: dict[str, Any] = {
        "algorithm": algorithm,
        "preset": preset,
        "steps": steps,
        "seed": seed,
        "evaluations": evaluations,
        "episodes": episodes,
        "settings": dict(settings or {}),
        "options": {name: value for name, value in options.items() if value is not None},
    }
    if resume:
        if out is None or not Path(out).is_dir():
            raise SelectError(f"out={out}: there is no run to resume; give the folder of one")
        folder, config = Path(out), _resumed(Path(out), task, asked)
        world = worlds.world(config.task if task is None else task, config.options)
        return _Run(folder, config, world).go()
    if task is None:
        raise SelectError(f"which task? One of {', '.join(tasks.names())}, or a Gymnasium id")
    world = worlds.world(task, asked["options"])
    given = {name: value for name, value in asked.items() if value is not None}
    config = TrainConfig(**{**DEFAULTS, **given, "task": world.name})
    runs.agent_of(config, world.env)  # refuses what the task cannot serve before a folder is made
    folder = _unused(config) if out is None else Path(out)
    runs.create(folder, config)
    return _Run(folder, config, world).go()


DEFAULTS: dict[str, Any] = {
    "algorithm": "isq-u",
    "preset": "paper",
    "steps": 100_000,
    "seed": 0,
    "evaluations": 20,
    "episodes": 20,
}


class _Run:
    """One training run, from its start or from its newest checkpoint, to its end."""

    def __init__(self, folder: Path, config: TrainConfig, world: worlds.World) -> None:
        self.folder, self.config, self.world = folder, config, world
        agent = runs.agent_of(config, world.env)
        way = preset(config.preset)
        self.learner = way.learner(agent, config.full_settings, config.steps)
        self.engine = world.engine(self.learner, config.seed)
        self.keeper = runs.keeper(folder)
        self.seconds = 0.0
        self.best: float | None = None
        self.judge = world.judge(agent.actor(world.env))

    def go(self) -> TrainResult:
        """Train to the end, then judge."""
        title = f"{self.config.algorithm} on {self.config.task}, into {self.folder}"
        with self.world.opened(), signals.noted() as caught:
            running, notes = self._begin()
            return self._go(running, notes, title, caught)

    def _go(self, running: Running, notes: list[str], title: str, caught: list[int]) -> TrainResult:
        first = int(running.step)
        with (
            RunLog(self.folder, resume_step=first) as log,
            TrainingDisplay(title, self.config.steps, first) as display,
        ):
            for note in notes:
                display.println(note)
            if first == 0:
                self._glance(running, log, display)
            running = self._train(running, log, display, caught)
            return self._finish(running, display)

    def _begin(self) -> tuple[Running, list[str]]:
        if not self.keeper.steps():
            return self.engine.start(), []
        folder, damaged = self.keeper.newest_intact()
        running = checkpoint.read(folder, "training", self.engine.like())
        meta = checkpoint.manifest(folder)
        self.seconds, self.best = meta["seconds"], meta["best"]
        return running, [*damaged, f"resumed at step {int(running.step):,} from {folder}"]

    def _train(
        self, running: Running, log: RunLog, display: TrainingDisplay, caught: list[int]
    ) -> Running:
        config = self.config
        look, save = config.every(config.evaluations), config.every(20, SAVE_STEPS)
        row = config.every(200)
        step = int(running.step)
        while step < config.steps:
            started = time.monotonic()
            running, report = self.engine.run(running)
            self.seconds += time.monotonic() - started
            step = int(running.step)
            self._check(report, step)
            self._show(running, report, display)
            if step % look == 0 or step == config.steps:
                self._glance(running, log, display, report)
            elif step % row == 0:
                self._row(log, running, report)
            if step % save == 0 or step == config.steps or caught:
                running = self.engine.boundary(running)
                self._save(running)
            if caught and step < config.steps:
                raise signals.Stopped(self._how_to_go_on(step), caught[0])
        return running

    def _glance(
        self,
        running: Running,
        log: RunLog,
        display: TrainingDisplay,
        report: ChunkReport | None = None,
    ) -> None:
        """Evaluate on the way; the best so far is kept."""
        display.update(int(running.step), note="evaluating")
        most = episode_steps(self.world.env, None)
        told = self.judge(
            self._learned(running),
            episodes=GLANCE_EPISODES,
            steps=min(most, GLANCE_STEPS),
        )
        display.update(int(running.step), reward=told.mean_reward, note="")
        self._row(log, running, report, told)
        if self.best is None or told.mean_reward > self.best:
            self.best = told.mean_reward
            policy = self._policy(running)
            self.keeper.write_best({"policy": policy.params}, policy.about)

    def _row(
        self,
        log: RunLog,
        running: Running,
        report: ChunkReport | None,
        told: Evaluation | None = None,
    ) -> None:
        step = int(running.step)
        speed = step / self.seconds if self.seconds > 0 else None
        log.row(
            step,
            seconds=self.seconds,
            loss=report.loss if report and report.updates else None,
            epsilon=float(self.learner.epsilon(running.step)),
            train_reward=report.reward if report else None,
            parameter_sets=len(set(self.learner.phase_map(step))),
            steps_per_second=speed,
            eval_reward=told.mean_reward if told else None,
            eval_ci95=told.ci95 if told else None,
        )

    def _show(self, running: Running, report: ChunkReport, display: TrainingDisplay) -> None:
        step = int(running.step)
        display.update(
            step,
            loss=report.loss if report.updates else None,
            epsilon=float(self.learner.epsilon(running.step)),
            parameter_sets=len(set(self.learner.phase_map(step))),
        )

    def _check(self, report: ChunkReport, step: int) -> None:
        if report.updates and not math.isfinite(report.loss):
            kept = self.keeper.steps()
            last = f"the last good checkpoint is of step {kept[-1]:,}" if kept else "none was saved"
            raise SelectError(
                f"the loss is {report.loss} at step {step:,} ({last}, in {self.folder}): "
                "lower learning_rate, or scale the reward, and check the features for huge numbers"
            )

    def _save(self, running: Running) -> None:
        policy = self._policy(running)
        trees = {"policy": policy.params, "training": running}
        self.keeper.write(int(running.step), trees, {**policy.about, "best": self.best})

    def _policy(self, running: Running) -> Policy:
        step = int(running.step)
        phase_map = self.learner.phase_map(step)
        about = runs.policy_meta(self.config, self.world.env, step, phase_map, self.seconds)
        params = self.learner.policy(running.learner)
        return Policy(self.learner.agent, params, phase_map, about)

    def _learned(self, running: Running) -> tuple[Any, Any]:
        phase_map = self.learner.phase_map(int(running.step))
        return self.learner.policy(running.learner), sharing.as_array(phase_map)

    def _finish(self, running: Running, display: TrainingDisplay) -> TrainResult:
        policy = self._policy(running)

        def judged(name: str, judge: Any, params: Any = None) -> Evaluation:
            def progress(done: int, total: int) -> None:
                display.update(self.config.steps, note=f"evaluating {name} {done / total:.0%}")

            told: Evaluation = judge(params, episodes=self.config.episodes, progress=progress)
            return told

        evaluation = judged(self.config.algorithm, self.judge, self._learned(running))
        references = {name: judged(name, judge) for name, judge in self.world.references().items()}
        display.update(self.config.steps, note="")
        result = TrainResult(policy, evaluation, references, self.folder, self.seconds)
        content = json.dumps(result.to_json(), indent=2, allow_nan=False) + "\n"
        write_whole(self.folder / "result.json", content.encode())
        draw_curve(result)
        return result

    def _how_to_go_on(self, step: int) -> str:
        return (
            f"stopped at step {step:,} of {self.config.steps:,}; all is saved. Go on with\n"
            f"  selectmdp train --out {self.folder} --resume"
        )


def draw_curve(result: TrainResult) -> None:
    """The learning curve beside the references, as `curve.png` in the run's folder."""
    from selectmdp.curves import save_curve

    told = result.policy.about
    config, spec = told["config"], told["spec"]
    save_curve(
        result.folder / "curve.png",
        read_rows(result.folder / "metrics.csv"),
        title=f"{config['algorithm']} on {config['task']}, N={spec['num_items']}, "
        f"K={spec['num_select']}, {config['preset']} preset, seed {config['seed']}",
        unit=result.evaluation.unit,
        references={
            name: (each.mean_reward, None if math.isnan(each.ci95) else each.ci95)
            for name, each in result.references.items()
        },
    )


def _resumed(folder: Path, task: Any, asked: Mapping[str, Any]) -> TrainConfig:
    config = runs.config_of(folder)
    if asked["steps"] is not None:  # as the config counts them: in whole chunks
        asked = {**asked, "steps": -(-asked["steps"] // config.chunk) * config.chunk}
    if isinstance(task, str):
        asked = {**asked, "task": task}
    told = differences(config, asked)
    if told:
        raise SelectError(
            f"{folder} cannot be resumed with another config: {'; '.join(told)}. "
            "Leave these out, or train anew into another --out"
        )
    return config


def _unused(config: TrainConfig) -> Path:
    """A folder's name that no run has yet."""
    stem = f"{config.task.replace('/', '-')}-{config.algorithm}-seed{config.seed}"
    for number in range(1, 100_000):
        folder = Path("runs") / (stem if number == 1 else f"{stem}-{number}")
        if not folder.exists():
            return folder
    raise SelectError(f"runs/{stem} and all names like it are taken: choose one with --out")
