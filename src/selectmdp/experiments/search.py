"""Search for good settings with Optuna: a sweep's file with a table `search` beside it.

    task = "circle"
    steps = 100_000
    seed = [0, 1]
    trials = 20

    [search]
    "settings.learning_rate" = { low = 1e-4, high = 1e-2, log = true }
    "settings.minibatch" = { choices = [16, 32, 64] }

A trial is worth the mean reward over its runs, such as those of several seeds. The study is a
journal on disk: killed, it goes on, and a run that was begun goes on from its checkpoint.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna
from optuna.storages.journal import JournalFileBackend

from selectmdp import runs
from selectmdp.experiments import sweeps
from selectmdp.experiments.jobs import Job, finished, jobs_of
from selectmdp.experiments.reproduce import RUNS, Engine, Show
from selectmdp.experiments.search_picture import save_search
from selectmdp.files import write_whole
from selectmdp.spec import SelectError, check_count

JOURNAL = "study.journal"
TRIALS = 20


def search(
    path: Path, *, out: Path, workers: int | None, engine: Engine, show: Show, seed: int = 0
) -> dict[str, Any]:
    """Go on with the study of a file until all its trials are made; the best of them."""
    told = sweeps.read(path)
    space = _space(path, told)
    trials = check_count("trials", told.get("trials", TRIALS))
    if trials < 1:
        raise SelectError(f"{path}: trials={trials}: must be at least 1")
    runs.make_folder(out)
    with runs.alone_in(out):
        study = _study(out, seed)
        _again(study)
        while (left := trials - len(_ended(study))) > 0:
            try:
                asked = [_asked(study, space) for _ in range(min(workers or 1, left))]
            except ValueError as error:
                raise SelectError(
                    f"{out} holds a search of other values ({error}): choose another --out"
                ) from None
            for trial, rewards in zip(
                asked, _made(told, asked, out, workers, engine, show), strict=True
            ):
                study.tell(trial, sum(rewards) / len(rewards))
    best = study.best_trial
    rows = [{"number": each.number, "reward": each.value, **each.params} for each in _ended(study)]
    content = {"best": {"reward": best.value, **best.params}, "trials": rows}
    write_whole(out / "search.json", (json.dumps(content, indent=1) + "\n").encode())
    save_search(out / "search.png", rows, list(space))
    return {"what": str(path), "out": str(out), "trials": len(rows), **content}


def _made(
    told: Mapping[str, Any],
    asked: Sequence[optuna.Trial],
    out: Path,
    workers: int | None,
    engine: Engine,
    show: Show,
) -> list[list[float]]:
    """The rewards of each trial's runs, all trials side by side."""
    of_trial = [jobs_of(sweeps.configs_from(_with(told, trial.params))) for trial in asked]
    rewards: dict[str, float] = {}

    def done(job: Job, folder: Path) -> None:
        result = finished(job, folder)
        assert result is not None
        rewards[job.name] = float(result["mean_reward"])
        show.ended(job, result)

    every = {job.name: job for jobs in of_trial for job in jobs}
    show.total(len(every), 0)
    failed = engine(list(every.values()), out / RUNS, workers=workers, done=done, look=show.look)
    if failed:
        raise SelectError("; ".join(failed) + ". The same command tries these again")
    return [[rewards[job.name] for job in jobs] for jobs in of_trial]


def _study(out: Path, seed: int) -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    backend = JournalFileBackend(str(out / JOURNAL))
    study = optuna.create_study(
        study_name="search",
        storage=optuna.storages.JournalStorage(backend),
        direction="maximize",
        load_if_exists=True,
    )
    # Of its own chance each time it goes on: the same would draw the first trials once more.
    study.sampler = optuna.samplers.TPESampler(seed=seed + len(study.get_trials(deepcopy=False)))
    return study


def _again(study: optuna.Study) -> None:
    """A trial that was under way when the study was killed is asked for once more."""
    for trial in study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING]):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        study.enqueue_trial(trial.params)


def _ended(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    return study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.COMPLETE])


def _asked(study: optuna.Study, space: Mapping[str, Mapping[str, Any]]) -> optuna.Trial:
    trial = study.ask()
    for name, rule in space.items():
        if "choices" in rule:
            trial.suggest_categorical(name, rule["choices"])
        elif isinstance(rule["low"], int) and isinstance(rule["high"], int):
            trial.suggest_int(name, rule["low"], rule["high"], log=rule.get("log", False))
        else:
            trial.suggest_float(name, rule["low"], rule["high"], log=rule.get("log", False))
    return trial


def _space(path: Path, told: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    space: Mapping[str, Mapping[str, Any]] = told.get("search", {})
    if not space:
        raise SelectError(f"{path}: nothing to search; write a table [search]")
    for name, rule in space.items():
        group, _, _ = name.rpartition(".")
        if group not in sweeps.GROUPS and name not in sweeps.NAMES:
            known = ", ".join([*sweeps.NAMES, *(f"{group}.…" for group in sweeps.GROUPS)])
            raise SelectError(f"{path}: no name {name!r} to search; there are {known}")
        if not (isinstance(rule, Mapping) and (_is_choice(rule) or _is_range(rule))):
            raise SelectError(
                f"{path}: search of {name!r} is {rule!r}; give {{ low = …, high = … }}, two "
                "numbers (above 0 with log = true), or { choices = […] }"
            )
    return space


def _is_choice(rule: Mapping[str, Any]) -> bool:
    choices = rule.get("choices")
    return isinstance(choices, list) and len(choices) > 0


def _is_range(rule: Mapping[str, Any]) -> bool:
    low, high = rule.get("low"), rule.get("high")
    if not (isinstance(low, int | float) and isinstance(high, int | float)):
        return False
    return low <= high and (low > 0 or not rule.get("log", False))


def _with(told: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """A sweep's file with the values of a trial in it."""
    given = {name: dict(value) if name in sweeps.GROUPS else value for name, value in told.items()}
    for name, value in values.items():
        group, _, part = name.rpartition(".")
        if group:
            given.setdefault(group, {})[part] = value
        else:
            given[name] = value
    return given
