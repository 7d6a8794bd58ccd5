"""`reproduce`: the experiments of the paper, run where they are missing, kept as each run ends."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from selectmdp import runs
from selectmdp.experiments import cost, generalization, local
from selectmdp.experiments.figures import FIGURES, GENERALIZATION, Budget, chosen
from selectmdp.experiments.jobs import Job, finished, jobs_of
from selectmdp.experiments.store import Store
from selectmdp.spec import SelectError

RUNS = "runs"
"""The folder of the runs themselves, beside the CSV files."""


class Task(NamedTuple):
    """A job, and which figures want it."""

    job: Job
    figures: tuple[str, ...]
    generalizes: bool


class Show(Protocol):
    """What a person sees meanwhile."""

    def total(self, count: int, done: int) -> None: ...

    def look(self, running: Sequence[local.Running]) -> None: ...

    def ended(self, job: Job, result: Mapping[str, Any]) -> None: ...

    def measuring(self, done: int, total: int) -> None: ...


def reproduce(
    what: str,
    *,
    budget: Budget,
    preset: str,
    out: Path,
    workers: int | None,
    show: AbstractContextManager[Show],
) -> dict[str, Any]:
    """Run what is missing of `what` in `out`; what stands in its CSV files is not run again."""
    names = chosen(what)
    every = _tasks(names, budget, preset)
    runs.make_folder(out)
    with runs.alone_in(out), show as shown:
        left = [task for task in every if not _is_kept(out, task, budget)]
        shown.total(len(every), len(every) - len(left))
        of_job = {task.job.name: task for task in left}

        def done(job: Job, folder: Path) -> None:
            result = finished(job, folder)
            assert result is not None
            for figure in of_job[job.name].figures:
                Store(out, figure).add(job, folder, result)
            if of_job[job.name].generalizes:
                generalization.play(out, job, folder, budget)
            shown.ended(job, result)

        jobs = [task.job for task in left]
        failed = local.run_all(jobs, out / RUNS, workers=workers, done=done, look=shown.look)
        if "cost" in names:
            cost.measure(out, budget, preset, shown.measuring)
    if failed:
        raise SelectError("; ".join(failed) + ". The same command tries these again")
    return {
        "what": what,
        "budget": budget,
        "preset": preset,
        "out": str(out),
        "runs": len(every),
        "run_now": len(left),
    }


def _tasks(names: Sequence[str], budget: Budget, preset: str) -> list[Task]:
    """Every run once, with all that wants it; seed after seed, so that all figures fill evenly."""
    wanted: dict[str, Task] = {}
    for name in names:
        if name in FIGURES:
            for job in jobs_of(FIGURES[name].configs(budget, preset)):
                wanted[job.name] = Task(job, (name,), False)
    if "generalization" in names:
        for figure in GENERALIZATION:
            for job in jobs_of(figure.configs(budget, preset)):
                figures = wanted[job.name].figures if job.name in wanted else ()
                wanted[job.name] = Task(job, figures, True)
    return sorted(wanted.values(), key=lambda task: task.job.config.seed)


def _is_kept(out: Path, task: Task, budget: Budget) -> bool:
    stored = [Store(out, figure).has(task.job) for figure in task.figures]
    played = not task.generalizes or generalization.is_played(out, task.job, budget)
    return all(stored) and played
