"""`reproduce` and `sweep`: many runs, made where they are missing, kept as each run ends."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from selectmdp import runs
from selectmdp.experiments import cost, generalization, local, sweeps
from selectmdp.experiments.figures import FIGURES, GENERALIZATION, WHAT, Budget, chosen
from selectmdp.experiments.jobs import Failed, Job, again, finished, jobs_of
from selectmdp.experiments.store import Store
from selectmdp.spec import SelectError

RUNS = "runs"
"""The folder of the runs themselves, beside the CSV files."""
Engine = Callable[..., list[Failed]]
"""Runs jobs, as `local.run_all` does."""


class Task(NamedTuple):
    """A job, and what is kept of it."""

    job: Job
    stores: tuple[str, ...]
    """The figures whose CSV files it belongs to."""
    generalizes: bool
    """Whether its policy is played at other N as well."""


class Show(Protocol):
    """What a person sees meanwhile."""

    def total(self, count: int, done: int) -> None: ...

    def look(self, running: Sequence[local.UnderWay]) -> None: ...

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
    engine: Engine = local.run_all,
) -> dict[str, Any]:
    """Run what is missing of the paper's experiments in `out`; what is kept is not run again."""
    names = chosen(what)
    tasks = tasks_of(names, budget, preset)
    runs.make_folder(out)
    with runs.alone_in(out), show as shown:
        told = _carried_out(tasks, out, budget, workers, shown, engine)
        if "cost" in names:
            cost.measure(out, budget, preset, shown.measuring)
    return {"what": what, "budget": budget, "preset": preset, **told}


def sweep(
    target: str,
    *,
    budget: Budget,
    preset: str,
    out: Path,
    workers: int | None,
    show: AbstractContextManager[Show],
    engine: Engine,
) -> dict[str, Any]:
    """The runs of a file, or of a figure, on any engine."""
    if target in (*WHAT, "all"):
        return reproduce(
            target,
            budget=budget,
            preset=preset,
            out=out,
            workers=workers,
            show=show,
            engine=engine,
        )
    tasks = [Task(job, ("sweep",), False) for job in jobs_of(sweeps.configs_of(Path(target)))]
    runs.make_folder(out)
    with runs.alone_in(out), show as shown:
        told = _carried_out(tasks, out, budget, workers, shown, engine)
    return {"what": target, **told}


def _carried_out(
    tasks: Sequence[Task],
    out: Path,
    budget: Budget,
    workers: int | None,
    shown: Show,
    engine: Engine,
) -> dict[str, Any]:
    left = [task for task in tasks if not _is_kept(out, task, budget)]
    shown.total(len(tasks), len(tasks) - len(left))
    of_job = {task.job.name: task for task in left}
    unkept: list[Failed] = []

    def done(job: Job, folder: Path) -> None:
        result = finished(job, folder)
        assert result is not None
        try:
            for name in of_job[job.name].stores:
                Store(out, name).add(job, folder, result)
            if of_job[job.name].generalizes:
                generalization.play(out, job, folder, budget)
        except SelectError as error:  # of this run: the others go on
            unkept.append(Failed(job, f"{job.name}: {error}"))
            local.tell(unkept[-1].told)
        else:
            shown.ended(job, result)

    jobs = [task.job for task in left]  # where there are none, no engine need be started
    failed = engine(jobs, out / RUNS, workers=workers, done=done, look=shown.look) if jobs else []
    if failed or unkept:
        raise again([*failed, *unkept])
    return {"out": str(out), "runs": len(tasks), "run_now": len(left)}


def tasks_of(names: Sequence[str], budget: Budget, preset: str) -> list[Task]:
    """Every run once, with all that wants it; seed after seed, so that all figures fill evenly.

    A run that generalizes is kept with its figure, and those that are in none by themselves.
    """
    wanted: dict[str, Task] = {}
    for name in names:
        if name in FIGURES:
            for job in jobs_of(FIGURES[name].configs(budget, preset)):
                wanted[job.name] = Task(job, (name,), False)
    if "generalization" in names:
        for figure in GENERALIZATION:
            for job in jobs_of(figure.configs(budget, preset)):
                store = "generalization" if job.config.settings else figure.name
                wanted[job.name] = Task(job, (store,), True)
    return sorted(wanted.values(), key=lambda task: task.job.config.seed)


def _is_kept(out: Path, task: Task, budget: Budget) -> bool:
    stored = [Store(out, name).has(task.job) for name in task.stores]
    played = not task.generalizes or generalization.is_played(out, task.job, budget)
    return all(stored) and played
