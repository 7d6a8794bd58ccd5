"""Searching settings: the space, trials that go on after a kill, the best of them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

optuna = pytest.importorskip("optuna", reason='pip install "selectmdp[sweep]"')

from selectmdp.experiments.jobs import Job  # noqa: E402
from selectmdp.experiments.search import search  # noqa: E402
from selectmdp.spec import SelectError  # noqa: E402

FILE = """
task = "circle"
steps = 4096
seed = [0, 1]
trials = 4
options = { num_items = 6, num_select = 2 }

[search]
"settings.learning_rate" = { low = 1e-4, high = 1e-2, log = true }
"settings.minibatch" = { choices = [16, 32] }
"settings.epochs" = { low = 1, high = 3 }
"""


class Quiet:
    """Shows nothing."""

    def total(self, count: int, done: int) -> None: ...

    def look(self, running: Any) -> None: ...

    def ended(self, job: Job, result: Any) -> None: ...

    def measuring(self, done: int, total: int) -> None: ...


class Pretended:
    """An engine whose runs earn most at a learning rate of 0.001; it may be killed on the way."""

    def __init__(self, die_after: int | None = None) -> None:
        self.made: list[str] = []
        self.die_after = die_after

    def __call__(
        self, jobs: Sequence[Job], root: Path, *, workers: Any, done: Any, look: Any
    ) -> list[str]:
        for job in jobs:
            if self.die_after is not None and len(self.made) >= self.die_after:
                raise KeyboardInterrupt
            settings = job.config.full_settings
            reward = -abs(settings.learning_rate - 1e-3) + 0.01 * job.config.seed
            self._leave(root / job.name, job, reward)
            self.made.append(job.name)
            done(job, root / job.name)
        return []

    def _leave(self, folder: Path, job: Job, reward: float) -> None:
        from selectmdp import runs, tasks

        runs.make_folder(folder)
        runs.create(folder, job.config, tasks.make(job.config.task, **job.config.options).spec)
        (folder / "result.json").write_text(json.dumps({"mean_reward": reward}))


def searched(path: Path, out: Path, engine: Any) -> dict[str, Any]:
    return search(path, out=out, workers=1, engine=engine, show=Quiet())


def test_every_trial_has_its_seeds_and_the_best_is_told(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(FILE)
    engine = Pretended()
    told = searched(path, tmp_path / "out", engine)
    assert len(engine.made) == 4 * 2
    assert len(told["trials"]) == 4
    best = max(told["trials"], key=lambda row: row["reward"])
    assert told["best"]["reward"] == best["reward"]
    assert best["reward"] == pytest.approx(0.005 - abs(best["settings.learning_rate"] - 1e-3))
    assert {row["settings.minibatch"] for row in told["trials"]} <= {16, 32}
    assert all(1 <= row["settings.epochs"] <= 3 for row in told["trials"])
    assert json.loads((tmp_path / "out" / "search.json").read_text())["best"] == told["best"]
    assert (tmp_path / "out" / "search.png").read_bytes()[:4] == b"\x89PNG"


def test_a_search_that_was_killed_goes_on_with_the_trial_it_was_at(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(FILE)
    killed = Pretended(die_after=3)  # within the second trial
    with pytest.raises(KeyboardInterrupt):
        searched(path, tmp_path / "out", killed)
    engine = Pretended()
    told = searched(path, tmp_path / "out", engine)
    assert len(told["trials"]) == 4
    assert engine.made[0] == killed.made[2]  # the trial under way, with the values it had
    again = Pretended()
    assert searched(path, tmp_path / "out", again)["best"] == told["best"]
    assert again.made == []
    rates = [row["settings.learning_rate"] for row in told["trials"]]
    assert len(set(rates)) == 4  # going on draws no values a second time


def test_trials_side_by_side_are_no_more_than_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(FILE)
    told = search(path, out=tmp_path / "out", workers=3, engine=Pretended(), show=Quiet())
    assert len(told["trials"]) == 4


def test_a_search_of_other_values_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(FILE)
    with pytest.raises(KeyboardInterrupt):
        searched(path, tmp_path / "out", Pretended(die_after=2))
    path.write_text(FILE.replace("[16, 32]", "[8, 16, 32]"))
    with pytest.raises(SelectError, match=r"holds a search of other values .*another --out"):
        searched(path, tmp_path / "out", Pretended())


def test_a_search_without_trials_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(FILE.replace("trials = 4", "trials = 0"))
    with pytest.raises(SelectError, match="trials=0: must be at least 1"):
        searched(path, tmp_path / "out", Pretended())


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("", "nothing to search"),
        ('"settings.epochs" = 3', "search of 'settings.epochs' is 3"),
        ('"settings.epochs" = { low = 1 }', "give { low = "),
        ('"settings.epochs" = { low = 3, high = 1 }', "give { low = "),
        ('"settings.epochs" = { low = 0, high = 1, log = true }', "above 0 with log"),
        ('"settings.epochs" = { choices = [] }', "or { choices = "),
        ('algoritm = { choices = ["isq-u"] }', "no name 'algoritm' to search; there are task"),
        ('"settings.pace" = { choices = [1] }', "no setting 'pace'"),
    ],
)
def test_a_space_that_is_none_is_refused(tmp_path: Path, rule: str, message: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(f'task = "circle"\nsteps = 4096\n[search]\n{rule}\n')
    with pytest.raises(SelectError, match=message):
        searched(path, tmp_path / "out", Pretended())
