"""Nothing in a file becomes code: no pickle, no evaluated text, no import, no mark-up of a page."""

import ast
import dataclasses
import json
import os
import re
import shutil
import socket
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jax
import pytest
import tiny

import selectmdp as sm
from benchmarks import made_results
from benchmarks.faults.damage import newest, sealed
from selectmdp import cli, machine, runs, worlds
from selectmdp.evaluation import Evaluator
from selectmdp.experiments import local, store, sweeps
from selectmdp.experiments.jobs import Job
from selectmdp.report import overview, replay
from selectmdp.report.replay import page_of
from selectmdp.report.results import load
from selectmdp.runlog import RunLog
from selectmdp.spec import SelectError
from selectmdp.theory.page import page as verify_page
from selectmdp.theory.plan import Plan, Verdict

haste = tiny.haste
SOURCE = Path(sm.__file__).parent
UNPICKLING = {"pickle", "cloudpickle", "dill", "shelve", "marshal", "joblib", "yaml", "torch"}
CODE = {"eval", "exec", "compile", "__import__"}
IMPORTERS = {"__init__.py", "factories.py"}
"""By whom modules are imported by name: our own rooms, and `module:factory` of a command line."""
NASTY = "<script>alert(1)</script>"


@cache
def nodes() -> list[tuple[str, ast.AST]]:
    """Every piece of our source, with its file."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        found += [(str(path.relative_to(SOURCE)), node) for node in ast.walk(tree)]
    return found


def test_nothing_imports_what_unpickles() -> None:
    for where, node in nodes():
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        assert not UNPICKLING & {name.split(".")[0] for name in names}, where


def test_nothing_evaluates_text_and_nothing_loads_arrays_with_objects() -> None:
    for where, node in nodes():
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            assert name not in CODE, f"{where}: {name}"
            assert name not in ("np.load", "numpy.load", "jnp.load"), where
            if name.endswith("import_module"):
                assert where in IMPORTERS, where
        if isinstance(node, ast.keyword):
            assert node.arg not in ("shell", "allow_pickle"), where


def test_the_search_above_finds_what_it_looks_for() -> None:
    calls = [ast.unparse(node.func) for _, node in nodes() if isinstance(node, ast.Call)]
    assert "importlib.import_module" in calls
    assert len(nodes()) > 10_000


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that can be imported, and must not be."""
    (tmp_path / "a_trap.py").write_text("def make(): ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return "a_trap"


@pytest.mark.parametrize(
    "task",
    ["a_trap:make", "a_trap:Trap-v0", "a_trap", "GymV21Environment-v0", "GymV26Environment-v0"],
)
def test_a_module_that_a_file_names_is_not_imported(trap: str, tmp_path: Path, task: str) -> None:
    run = tmp_path / "run"
    run.mkdir()
    config, spec = runs.config_of(tiny.finished())
    runs.create(run, dataclasses.replace(config, task=task), spec)
    assert not worlds.has_name(task)
    with pytest.raises(SelectError, match="which no name stands for here"):
        sm.train(None, out=run, resume=True)
    with pytest.raises(SelectError):
        sm.load(run)
    refused = "no file may name code to be run" if ":" in task else "is none of circle"
    (tmp_path / "sweep.toml").write_text(f'task = "{task}"\n')
    with pytest.raises(SelectError, match=refused):
        sweeps.configs_of(tmp_path / "sweep.toml")
    assert trap not in sys.modules


def test_no_value_of_a_sweep_becomes_another_option_of_the_command_that_it_makes(trap: str) -> None:
    told = {"task": "--json", "options": {"json": f"{trap}:make"}}
    with pytest.raises(SelectError, match="task '--json' is none of circle"):
        sweeps.configs_from(told)
    for options in ({"json": f"{trap}:make"}, {"dynamics": "--json"}, {"num_items": "--resume"}):
        with pytest.raises(SelectError):
            sweeps.configs_from({"task": "circle", "options": options})


def test_advice_to_type_a_name_from_a_file_is_quoted(tmp_path: Path) -> None:
    config, spec = runs.config_of(tiny.finished())
    runs.create(tmp_path / "run", dataclasses.replace(config, task="a:b; reboot"), spec)
    with pytest.raises(SelectError, match=re.escape("selectmdp train 'a:b; reboot' --out")):
        sm.train(None, out=tmp_path / "run", resume=True)


def test_a_config_without_its_hash_is_not_believed(tmp_path: Path) -> None:
    config, spec = runs.config_of(tiny.finished())
    runs.create(tmp_path / "run", config, spec)
    path = tmp_path / "run" / runs.CONFIG
    told = json.loads(path.read_bytes())
    del told["sha256"]
    path.write_text(json.dumps(told))
    with pytest.raises(SelectError, match="its SHA-256 is not the one in it"):
        runs.config_of(tmp_path / "run")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "4a-finals.csv")
    os.mkfifo(tmp_path / runs.CONFIG)
    assert "it is not a plain file" in str(store.readable(tmp_path / "4a-finals.csv", ())[1])
    with pytest.raises(SelectError, match="it is not a plain file"):
        runs.content_of(tmp_path)


def test_a_run_that_goes_on_writes_through_no_link_and_into_no_pipe(tmp_path: Path) -> None:
    mine, run = tmp_path / "mine.txt", tmp_path / "run"
    mine.write_text("precious")
    run.mkdir()
    (run / runs.HOLDER).symlink_to(mine)
    with runs.alone_in(run):
        assert not (run / runs.HOLDER).is_symlink()
        assert runs._holder(run) == f"process {os.getpid()}"
    if hasattr(os, "mkfifo"):
        os.mkfifo(run / runs.HOLDER)
        assert runs._holder(run) == "another process"
        with runs.alone_in(run):
            assert runs._holder(run) == f"process {os.getpid()}"
    (run / runs.HOLDER).write_text("7 " + "x" * 1000)
    assert runs._holder(run) == "another process"
    (tmp_path / "away").mkdir()
    for name in ("checkpoints", "tensorboard"):
        (run / name).symlink_to(tmp_path / "away")
        with pytest.raises(SelectError, match=f"{name} is a link: put the folder itself there"):
            sm.train(None, out=run, resume=True)
        (run / name).unlink()
    assert mine.read_text() == "precious"
    assert list((tmp_path / "away").iterdir()) == []


def test_events_are_written_through_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tensorboard").mkdir()
    (tmp_path / "mine.txt").write_text("precious")
    name = "tensorboard/events.out.tfevents.9999999999.here.0001"
    (tmp_path / name).symlink_to(tmp_path / "mine.txt")
    monkeypatch.setattr(socket, "gethostname", lambda: "here")
    with pytest.raises(SelectError, match=r"cannot write .*tensorboard: File exists"):
        RunLog(tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "precious"


def test_what_a_run_says_is_written_through_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    (tmp_path / "x.log").symlink_to(tmp_path / "mine.txt")
    monkeypatch.setattr(Job, "command", lambda self, folder: ["nonsense"])
    process, log = local.spawn(
        Job("x", runs.config_of(tiny.finished())[0]), tmp_path / "x", one_thread=True
    )
    assert process.wait() == 2
    assert "nonsense" in log.read_text()
    assert (tmp_path / "mine.txt").read_text() == "precious"


HUGE = 2_000_000_000


@pytest.mark.parametrize(
    "options",
    [
        {"num_items": HUGE},
        {"num_items": [2, HUGE]},
        {"num_items": 6, "num_context": HUGE},
        {"num_items": HUGE, "num_select": HUGE},
        {"num_items": 6, "time_limit": HUGE},
    ],
    ids=str,
)
def test_a_world_of_a_size_that_no_run_has_is_refused_before_it_is_made(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: dict[str, Any],
) -> None:
    run = shutil.copytree(tiny.finished(), tmp_path / "run")

    def forge(told: dict[str, Any]) -> None:
        told["config"]["options"] = options

    sealed(newest(run) / "manifest.json", lambda content: forge(content["meta"]))
    sealed(run / runs.CONFIG, forge)
    monkeypatch.setattr(worlds, "world", lambda *given: pytest.fail("a world was made"))
    resume = ["train", "--resume", "--out", str(run)]
    for typed in (["evaluate", str(run)], ["evaluate", str(newest(run))], resume):
        with pytest.raises(SystemExit) as ended:
            cli.main([*typed, "--episodes", "1"])
        assert ended.value.code == 2
        assert "more than the 10,000,000 that a run may have" in capsys.readouterr().err


def test_sizes_that_could_not_be_read_again_are_not_trained_in(tmp_path: Path) -> None:
    with pytest.raises(SelectError, match=r"N=20000000, U=0, K=6, .* choose smaller ones"):
        sm.train("circle", num_items=20_000_000, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "error",
    [
        jax.errors.JaxRuntimeError(
            "RESOURCE_EXHAUSTED: Out of memory allocating 24000000000 bytes."
        ),
        jax.errors.JaxRuntimeError("INTERNAL: Error: Out of memory allocating 24000000000 bytes."),
        MemoryError("Unable to allocate 24000000000 bytes"),
    ],
    ids=str,
)
def test_memory_that_is_not_there_is_told_with_the_sizes_and_what_to_do(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
) -> None:
    def lacking(*given: Any, **more: Any) -> Any:
        raise error

    sizes = "N=7, U=0, K=6"
    monkeypatch.setattr(replay, "recorded", lacking)
    monkeypatch.setattr(Evaluator, "__call__", lacking)
    for typed, told in (
        (["evaluate", "circle", "--num-items", "7"], sizes),
        (["train", "circle", "--num-items", "7", "--out", str(tmp_path / "run")], sizes),
        (["watch", str(tiny.finished()), "--out", str(tmp_path / "page.html")], "this"),
    ):
        with pytest.raises(SystemExit) as ended:
            cli.main(typed)
        assert ended.value.code == 2
        said = capsys.readouterr().err
        assert f"there is not the memory for {told} (" in said
        assert "24000000000 bytes" in said
        assert "choose fewer items or picks, episodes" in said


def test_another_fault_of_a_program_is_not_taken_for_a_lack_of_memory() -> None:
    with pytest.raises(RuntimeError, match="another"), machine.enough_memory():
        raise RuntimeError("another")


def nowhere() -> Path:
    raise RuntimeError("Could not determine home directory.")


def test_compiled_programs_are_kept_where_only_this_user_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kept = machine.compiled_cache()
    assert kept == tmp_path / "selectmdp" / "compiled"
    assert kept.stat().st_mode & 0o777 == 0o700
    kept.chmod(0o777)
    assert machine.compiled_cache() is None
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert machine.compiled_cache() is None
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", nowhere)
    assert machine.compiled_cache() is None


def scripts(page: str) -> int:
    return page.lower().count("<script")


def test_a_run_named_script_is_text_in_the_report(tmp_path: Path) -> None:
    folder = made_results.make(tmp_path / "results")
    for path, columns in (
        (folder / "4b-finals.csv", store.FINALS),
        (folder / "4b-curves.csv", store.CURVES),
    ):
        rows = store.read(path, columns)
        store.write(path, columns, [{**row, "run": NASTY + row["run"]} for row in rows])
    results = load(folder)
    data = overview.overview(results, overview.claims_of(results), lambda done, total: None)
    page = overview.page_of(data)
    assert "alert(1)" in page
    assert NASTY not in page
    assert scripts(page) == 2


def test_a_run_named_script_is_text_in_a_page_to_watch() -> None:
    policy = sm.load(tiny.finished())
    recording: dict[str, Any] = {"task": NASTY, "players": []}
    page = page_of(recording, policy, NASTY)
    assert NASTY not in page
    assert "&lt;script&gt;" in page
    assert scripts(page) == 2


def test_what_a_statement_says_is_text_in_the_page_of_verify() -> None:
    verdict = Verdict(
        **{field.name: _nasty(field.name) for field in dataclasses.fields(Verdict) if field.init}
    )
    page = verify_page({"nasty": verdict}, Plan())
    assert "&lt;script&gt;" in page
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in page
    assert scripts(page) == 0


def _nasty(name: str) -> Any:
    told = {"statement": NASTY, "checked": NASTY, "details": {"controls": {NASTY: 1.0}}}
    return told.get(name, 1)


def test_a_result_named_script_is_no_reason_to_end_without_a_message(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"config": NASTY, "spec": NASTY}))
    with pytest.raises(SelectError, match="cannot be read"):
        runs.config_of(tmp_path)
