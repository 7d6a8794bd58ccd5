"""Searching settings: the space, trials that go on after a kill, the best of them."""

import errno
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

optuna = pytest.importorskip("optuna", reason='pip install "selectmdp[sweep]"')

from selectmdp.config import TrainConfig  # noqa: E402
from selectmdp.experiments.jobs import NEEDED, Failed, Job, finished  # noqa: E402
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
    ) -> list[Failed]:
        for job in jobs:
            if self.die_after is not None and len(self.made) >= self.die_after:
                raise KeyboardInterrupt
            if finished(job, root / job.name) is None:
                self._leave(root / job.name, job, self.reward(job.config))
                self.made.append(job.name)
            done(job, root / job.name)
        return []

    def reward(self, config: TrainConfig) -> float:
        return -abs(config.full_settings.learning_rate - 1e-3) + 0.01 * config.seed

    def _leave(self, folder: Path, job: Job, reward: float) -> None:
        from selectmdp import runs, tasks

        runs.make_folder(folder)
        runs.create(folder, job.config, tasks.make(job.config.task, **job.config.options).spec)
        result = {**dict.fromkeys(NEEDED), "references": {}, "mean_reward": reward, "seconds": 1.0}
        (folder / "result.json").write_text(json.dumps(result))


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
    assert len(engine.made) == 4 * 2 - 3  # no finished run is made again
    one, other = killed.made[2], engine.made[0]  # the trial under way, with the values it had
    assert one.partition("-seed0")[0] == other.partition("-seed1")[0]
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


class Falling(Pretended):
    """An engine whose runs fail at learning rates above 0.001, for good."""

    lasting = True

    def __call__(
        self, jobs: Sequence[Job], root: Path, *, workers: Any, done: Any, look: Any
    ) -> list[Failed]:
        bad = [job for job in jobs if job.config.full_settings.learning_rate > 1e-3]
        good = [job for job in jobs if job not in bad]
        super().__call__(good, root, workers=workers, done=done, look=look)
        self.made += [job.name for job in bad]
        return [Failed(job, f"{job.name}: the loss is NaN", self.lasting) for job in bad]


def test_a_trial_that_fails_counts_and_is_told_and_not_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(FILE.replace("trials = 4", "trials = 6"))
    told = searched(path, tmp_path / "out", Falling())
    assert len(told["trials"]) + len(told["failed"]) == 6
    assert told["trials"]
    assert told["failed"]
    assert all("the loss is NaN" in each["fault"] for each in told["failed"])
    assert all(each["settings.learning_rate"] > 1e-3 for each in told["failed"])
    again = Falling()
    assert searched(path, tmp_path / "out", again) == told
    assert again.made == []


def test_a_trial_that_was_killed_between_its_fault_and_its_end_is_not_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = tmp_path / "s.toml", tmp_path / "out"
    path.write_text(FILE.replace("trials = 4", "trials = 6"))
    tell = optuna.Study.tell

    def killed(self: Any, trial: Any, *given: Any, **more: Any) -> Any:
        if more.get("state") == optuna.trial.TrialState.FAIL:
            raise KeyboardInterrupt
        return tell(self, trial, *given, **more)

    monkeypatch.setattr(optuna.Study, "tell", killed)
    with pytest.raises(KeyboardInterrupt):
        search(path, out=out, workers=1, engine=Falling(), show=Quiet())
    monkeypatch.undo()
    told = search(path, out=out, workers=1, engine=Falling(), show=Quiet())
    rates = [each["settings.learning_rate"] for each in told["trials"] + told["failed"]]
    assert len(rates) == len(set(rates)) == 6


class Stopping(Falling):
    """An engine whose runs at learning rates above 0.001 are stopped, or find the disk full."""

    lasting = False


@pytest.mark.parametrize("workers", [1, 3])
def test_a_trial_whose_runs_were_stopped_is_tried_again_with_the_same_values(
    tmp_path: Path, workers: int
) -> None:
    path, out = tmp_path / "s.toml", tmp_path / "out"
    path.write_text(FILE.replace("trials = 4", "trials = 6"))
    stopping, again = Stopping(), Stopping()
    for engine in (stopping, again):
        with pytest.raises(SelectError, match=r"is NaN\. The same command tries these again$"):
            search(path, out=out, workers=workers, engine=engine, show=Quiet())
    unmade = {each for each in stopping.made if not (out / "runs" / each).exists()}
    assert unmade <= {each for each in again.made if not (out / "runs" / each).exists()}
    told = search(path, out=out, workers=workers, engine=Pretended(), show=Quiet())
    assert (len(told["trials"]), told["failed"]) == (6, [])
    assert all((out / "runs" / each).exists() for each in unmade)


def test_a_journal_that_the_disk_does_not_take_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Any, logs: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    class Filling(Pretended):
        def __call__(self, *given: Any, **more: Any) -> list[Failed]:
            monkeypatch.setattr(optuna.storages.journal.JournalFileBackend, "append_logs", full)
            return super().__call__(*given, **more)

    (tmp_path / "s.toml").write_text(FILE)
    with pytest.raises(SelectError, match=r"cannot write .*study\.journal: No space left"):
        searched(tmp_path / "s.toml", tmp_path / "out", Filling())


def test_values_that_do_not_go_together_are_a_failed_trial(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(FILE.replace("[16, 32]", "[16, 17]").replace("trials = 4", "trials = 8"))
    told = searched(path, tmp_path / "out", Pretended())
    assert {each["settings.minibatch"] for each in told["failed"]} == {17}
    assert "minibatch=17: must divide" in told["failed"][0]["fault"]
    assert {each["settings.minibatch"] for each in told["trials"]} == {16}


def test_a_search_in_which_every_trial_fails_says_why(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(FILE.replace("low = 1e-4", "low = 2e-3"))
    with pytest.raises(SelectError, match=r"none of 4 trials came to its end.*the loss is NaN"):
        searched(path, tmp_path / "out", Falling())


def test_a_choice_may_be_a_list(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    rule = '"options.commands" = { choices = [["stay"], ["stay", "up"]] }'
    path.write_text(f'task = "circle"\nsteps = 4096\ntrials = 5\n[search]\n{rule}\n')
    engine = Pretended()
    searched(path, tmp_path / "out", engine)
    assert {name[:-12] for name in engine.made} == {
        "circle-C1-isq-u-seed0-",
        "circle-C2-isq-u-seed0-",
    }


class Bare(Pretended):
    """An engine whose runs earn what they are in the things that their plain names leave out."""

    def reward(self, config: TrainConfig) -> float:
        worth = {"up": 1, "down": 2, "stay": 3, "fast": 10, "paper": 20}
        commands = config.options.get("commands", ("stay",))
        bare = config.steps // 4096 * 100 + config.episodes * 10_000 + config.evaluations * 1e6
        return bare + worth[commands[0]] + worth[config.preset]


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize(
    ("name", "choices", "worths"),
    [
        ("steps", [4096, 8192, 12288], [100, 200, 300]),
        ("preset", ["fast", "paper"], [10, 20]),
        ("episodes", [2, 3], [20_000, 30_000]),
        ("evaluations", [2, 3], [2e6, 3e6]),
        ("options.commands", [["up"], ["down"], ["stay"]], [1, 2, 3]),
    ],
)
def test_trials_that_no_plain_name_tells_apart_have_each_its_own_runs_and_reward(
    tmp_path: Path, name: str, choices: list[Any], worths: list[float], workers: int
) -> None:
    path, out = tmp_path / "s.toml", tmp_path / "out"
    path.write_text(
        'task = "circle"\nsteps = 4096\nepisodes = 2\nevaluations = 2\ntrials = 8\n'
        f'[search]\n"{name}" = {{ choices = {json.dumps(choices)} }}\n'
    )
    engine = Bare()
    told = search(path, out=out, workers=workers, engine=engine, show=Quiet())
    written = [json.dumps(each) if isinstance(each, list) else each for each in choices]
    worth = dict(zip(written, worths, strict=True))
    rewards = {row[name]: row["reward"] for row in told["trials"]}
    assert len(rewards) > 1
    first, *others = rewards
    for other in others:
        assert rewards[other] - rewards[first] == worth[other] - worth[first]
    assert told["failed"] == []
    assert len(engine.made) == len(rewards)  # the same values twice are the same run


def test_a_search_of_other_values_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(FILE)
    with pytest.raises(KeyboardInterrupt):
        searched(path, tmp_path / "out", Pretended(die_after=2))
    path.write_text(FILE.replace("[16, 32]", "[8, 16, 32]"))
    with pytest.raises(SelectError, match=r"holds a search of other values .*another --out"):
        searched(path, tmp_path / "out", Pretended())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("steps = 4096", "steps = 8192"),
        ("seed = [0, 1]", "seed = 0"),
        ("[search]", '[search]\n"settings.averaging" = { low = 0.1, high = 0.2 }'),
        ('"settings.epochs" = { low = 1, high = 3 }', ""),
    ],
)
def test_a_file_that_changed_is_another_search_also_when_all_trials_are_made(
    tmp_path: Path, old: str, new: str
) -> None:
    path = tmp_path / "s.toml"
    path.write_text(FILE)
    searched(path, tmp_path / "out", Pretended())
    path.write_text(FILE.replace(old, new))
    with pytest.raises(SelectError, match=r"holds a search of other values .*another --out"):
        searched(path, tmp_path / "out", Pretended())


def test_more_trials_of_the_same_file_go_on(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(FILE)
    searched(path, tmp_path / "out", Pretended())
    path.write_text(FILE.replace("trials = 4", "trials = 5"))
    engine = Pretended()
    assert len(searched(path, tmp_path / "out", engine)["trials"]) == 5
    assert len(engine.made) == 2


def test_the_lock_of_a_killed_search_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(FILE)
    searched(Path("s.toml"), Path("out"), Pretended())
    Path("out/study.journal.lock").symlink_to("out/study.journal")  # it leads to nothing
    Path("s.toml").write_text(FILE.replace("trials = 4", "trials = 5"))
    assert len(searched(Path("s.toml"), Path("out"), Pretended())["trials"]) == 5
    assert not Path("out/study.journal.lock").is_symlink()


def test_a_last_line_of_the_journal_that_was_cut_off_is_dropped(tmp_path: Path) -> None:
    path, journal = tmp_path / "s.toml", tmp_path / "out" / "study.journal"
    path.write_text(FILE)
    with pytest.raises(KeyboardInterrupt):
        searched(path, tmp_path / "out", Pretended(die_after=3))
    with journal.open("ab") as file:
        file.write(b'{"op_code": 5, "work')
    assert len(searched(path, tmp_path / "out", Pretended())["trials"]) == 4
    assert all(json.loads(line) for line in journal.read_text().splitlines())


@pytest.mark.parametrize("line", ["nonsense", "[]", '{"op_code": 99}', '{"op_code": 5}'])
def test_a_damaged_journal_is_told_with_what_to_do(tmp_path: Path, line: str) -> None:
    path, journal = tmp_path / "s.toml", tmp_path / "out" / "study.journal"
    path.write_text(FILE)
    searched(path, tmp_path / "out", Pretended())
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join([*lines[:3], line, *lines[4:]]) + "\n")
    with pytest.raises(SelectError, match=r"study.journal cannot be read .*another --out"):
        searched(path, tmp_path / "out", Pretended())
    (tmp_path / "mine.txt").write_text("precious")
    journal.unlink()
    journal.symlink_to(tmp_path / "mine.txt")
    with pytest.raises(SelectError, match=r"cannot be read .*it is a link"):
        searched(path, tmp_path / "out", Pretended())
    assert (tmp_path / "mine.txt").read_text() == "precious"


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
        ('"settings.epochs" = { low = 1, high = inf }', "two finite numbers"),
        ('"settings.epochs" = { low = nan, high = 1.0 }', "two finite numbers"),
        ('"settings.epochs" = { low = -1e308, high = 1e308 }', "two finite numbers"),
        ('"settings.epochs" = { low = 1, high = 3, lgo = true }', "and nothing beside"),
        ('"settings.epochs" = { low = 1, high = 3, log = 1 }', "log = true"),
        ('"settings.epochs" = { choices = [1], low = 1 }', "and nothing beside"),
        ('"settings.epochs" = { choices = [1979-05-27] }', "of numbers, texts or lists"),
        ('"settings.epochs" = { choices = [[[1]]] }', "of numbers, texts or lists"),
        ('"settings.epochs" = { choices = [inf] }', "of numbers, texts or lists"),
        ("settings.epochs = { low = 1, high = 3 }", 'write "settings.epochs" = { … }'),
        ('algoritm = { choices = ["isq-u"] }', "no name 'algoritm' to search; there are task"),
        ('"settings.pace" = { choices = [1] }', "no setting 'pace'"),
    ],
)
def test_a_space_that_is_none_is_refused(tmp_path: Path, rule: str, message: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(f'task = "circle"\nsteps = 4096\n[search]\n{rule}\n')
    with pytest.raises(SelectError, match=message):
        searched(path, tmp_path / "out", Pretended())
