"""Search for good settings with Optuna: a sweep's file with a table `search` beside it.

    task = "circle"
    steps = 100_000
    seed = [0, 1]
    trials = 20

    [search]
    "settings.learning_rate" = { low = 1e-4, high = 1e-2, log = true }
    "settings.minibatch" = { choices = [16, 32, 64] }

A trial is worth the mean reward over its runs, such as those of several seeds; one whose values do
not go together, or one of whose runs fails by them, counts as a trial and is worth nothing. One
whose runs were stopped, or had no room on the disk, is tried again. The study is a journal on disk:
killed, it goes on, and a run that was begun goes on from its checkpoint.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import optuna

from selectmdp import files, runs
from selectmdp.experiments import search_space, sweeps
from selectmdp.experiments import study as studies
from selectmdp.experiments.jobs import (
    Failed,
    Job,
    again,
    fingerprint,
    finished,
    jobs_of,
    name_of,
)
from selectmdp.experiments.reproduce import RUNS, Engine, Show
from selectmdp.experiments.search_picture import save_search
from selectmdp.machine import cores
from selectmdp.spec import SelectError, check_count

TRIALS = 20
FAULT = "fault"
"""Of a trial that failed: why."""


def search(
    path: Path, *, out: Path, workers: int | None, engine: Engine, show: Show, seed: int = 0
) -> dict[str, Any]:
    """Go on with the study of a file until all its trials are made; the best of them."""
    told = sweeps.read(path)
    space = search_space.space_of(path, told)
    trials = check_count("trials", told.get("trials", TRIALS))
    if trials < 1:
        raise SelectError(f"{path}: trials={trials}: must be at least 1")
    side_by_side = cores() if workers is None else workers
    runs.make_folder(out)
    with runs.alone_in(out):
        study = studies.opened(out, told, seed)
        with files.told(out / studies.JOURNAL):
            _again(study)
        while (left := trials - len(_ended(study)) - len(_failed(study))) > 0:
            count = min(side_by_side, left)
            with files.told(out / studies.JOURNAL):
                asked = [search_space.asked(study, space) for _ in range(count)]
            shown = _Shown(show, trials - left, trials)
            worths, failed = _made(told, asked, out, workers, engine, shown)
            with files.told(out / studies.JOURNAL):
                for trial, worth in zip(asked, worths, strict=True):
                    _tell(study, trial, worth)
            if None in worths:
                raise again([each for each in failed if not each.lasting])
    return _told(study, path, out, list(space))


def _told(study: optuna.Study, path: Path, out: Path, names: Sequence[str]) -> dict[str, Any]:
    """What came of all trials, into files too."""
    failed = [
        {"number": each.number, "fault": each.user_attrs[FAULT], **each.params}
        for each in _failed(study)
    ]
    if not _ended(study):
        raise SelectError(
            f"{path}: none of {len(failed)} trials came to its end, the last since "
            f"{failed[-1]['fault']}. Change the file, and choose another --out"
        )
    best = study.best_trial
    rows = [{"number": each.number, "reward": each.value, **each.params} for each in _ended(study)]
    content = {"best": {"reward": best.value, **best.params}, "trials": rows, "failed": failed}
    files.write_whole(out / "search.json", (json.dumps(content, indent=1) + "\n").encode())
    save_search(out / "search.png", rows, names)
    return {"what": str(path), "out": str(out), **content}


class _Shown(NamedTuple):
    """Who shows the runs, and of how many trials how many ended before."""

    show: Show
    before: int
    trials: int


def _made(
    told: Mapping[str, Any],
    asked: Sequence[optuna.Trial],
    out: Path,
    workers: int | None,
    engine: Engine,
    shown: _Shown,
) -> tuple[list[float | str | None], list[Failed]]:
    """What each trial is worth, as `_worth` has it, and the runs that failed.

    The runs of all are made side by side.
    """
    planned = [_planned(told, trial) for trial in asked]
    rewards: dict[str, float] = {}

    def done(job: Job, folder: Path) -> None:
        result = finished(job, folder)
        assert result is not None
        rewards[job.name] = float(result["mean_reward"])
        shown.show.ended(job, result)

    every = {job.name: job for jobs in planned if not isinstance(jobs, str) for job in jobs}
    runs_of_one = max((len(jobs) for jobs in planned if not isinstance(jobs, str)), default=0)
    shown.show.total(runs_of_one * shown.trials, runs_of_one * shown.before)
    failed = engine(
        list(every.values()), out / RUNS, workers=workers, done=done, look=shown.show.look
    )
    worths = [jobs if isinstance(jobs, str) else _worth(jobs, rewards, failed) for jobs in planned]
    return worths, failed


def _planned(told: Mapping[str, Any], trial: optuna.Trial) -> tuple[Job, ...] | str:
    """The runs of a trial, or why its values do not go together.

    Their names have fingerprints: what other trials will choose is not known yet.
    """
    try:
        jobs = jobs_of(sweeps.configs_from(search_space.with_values(told, trial.params)))
    except SelectError as error:
        return str(error)
    return tuple(
        job._replace(name=f"{name_of(job.config)}-{fingerprint(job.config)}") for job in jobs
    )


def _worth(
    jobs: Sequence[Job], rewards: Mapping[str, float], failed: Sequence[Failed]
) -> float | str | None:
    """The mean reward of a trial's runs, what was wrong with its values, or None: not known yet."""
    if all(job.name in rewards for job in jobs):
        return sum(rewards[job.name] for job in jobs) / len(jobs)
    return "; ".join(each.told for each in failed if each.lasting and each.job in jobs) or None


def _tell(study: optuna.Study, trial: optuna.Trial, worth: float | str | None) -> None:
    """One whose values are at fault counts too; one without a worth yet stays under way."""
    if isinstance(worth, str):
        trial.set_user_attr(FAULT, worth)
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    elif worth is not None:
        study.tell(trial, worth)


def _again(study: optuna.Study) -> None:
    """A trial that was under way when the study was killed is asked for once more.

    Not one whose fault was told: it only was not yet put down as failed.
    """
    for trial in study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING]):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        if FAULT not in trial.user_attrs:
            study.enqueue_trial(trial.params)


def _ended(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    return study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.COMPLETE])


def _failed(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    """Trials that came to nothing; those that were only cut off are none of them."""
    failed = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.FAIL])
    return [each for each in failed if FAULT in each.user_attrs]
