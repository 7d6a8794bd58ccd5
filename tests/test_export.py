"""An exported policy picks in onnxruntime what it picks here, for every N, batch and mask."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import onnx
import onnxruntime
import pytest
import tiny
from hypothesis import example, given, settings
from hypothesis import strategies as st
from worlds import Shelf

import selectmdp as sm
from selectmdp import agent, checkpoint, cli, runs
from selectmdp.algorithms import Shape
from selectmdp.checkpoint import CheckpointError
from selectmdp.config import TrainConfig
from selectmdp.export import export_policy, export_run, model
from selectmdp.policy import Policy
from selectmdp.spec import SelectError, Spec

haste = tiny.haste

CIRCLE = sm.Circle(num_items=6, num_select=4)
HUNT = sm.PredatorPrey(num_items=5, num_context=2, num_select=4)
MAPS = {"isq-p": (0, 0, 2, 2), "isq-u": (0,) * 4, "idqn": (0,) * 4}
"""Progressive sharing in the middle of its splits; all others have a set for each phase."""
EXPORTED = ("isq-i", "isq-u", "isq-p", "isq-i-1", "eq", "eq-local", "idqn")
NETWORKS = pytest.mark.parametrize("pairs", [False, True], ids=["isq", "pairwise"])


def untrained(
    name: str, env: Any, pairs: bool, seed: int = 1, shape: Any = None, **about: Any
) -> Policy:
    """A policy whose parameters are any numbers, of either network."""
    made = agent.make(name, env, shape=Shape(8, pairs=pairs, hidden=(16,), **(shape or {})))
    rng = np.random.default_rng(seed)
    params = jax.tree.map(
        lambda leaf: np.asarray(rng.normal(0.0, 0.4, leaf.shape), np.float32),
        jax.eval_shape(made.init, jax.random.key(0)),
    )
    return Policy(made, params, MAPS.get(name, (0, 1, 2, 3)), about)


def session(policy: Policy, num_select: int | None = None) -> onnxruntime.InferenceSession:
    made = model.made(policy, num_select)
    onnx.checker.check_model(made, full_check=True)
    return onnxruntime.InferenceSession(made.SerializeToString())


def states(
    spec: Spec, batch: int, num_items: int, num_context: int = 3, legal: float = 0.5, seed: int = 0
) -> dict[str, Any]:
    """Random states, a fifth of whose rows are absent."""
    rng = np.random.default_rng(seed)
    seen: dict[str, Any] = {
        "items": rng.uniform(-1, 1, (batch, num_items, spec.item_features)).astype(np.float32),
        "present": rng.random((batch, num_items)) < 0.8,
        "legal": rng.random((batch, num_items, spec.num_commands)) < legal,
    }
    if spec.num_context:
        shape = (batch, num_context, spec.context_features)
        seen["context"] = rng.uniform(-1, 1, shape).astype(np.float32)
        seen["context_present"] = rng.random((batch, num_context)) < 0.8
    return seen


def check_same(
    policy: Policy, running: Any, seen: dict[str, Any], num_select: int | None = None
) -> Any:
    """Both pick the same and for the same reason; the items picked."""
    items, commands, values = running.run(None, seen)
    picks = policy.select(seen, num_select, q_values=True)
    np.testing.assert_array_equal(items, picks.items)
    np.testing.assert_array_equal(commands, picks.commands)
    largest = np.abs(values[np.isfinite(values)]).max(initial=1.0)  # of sums the values are large
    np.testing.assert_allclose(values, picks.q_values, rtol=1e-4, atol=1e-5 * largest)
    return items


# The same picks


@NETWORKS
@pytest.mark.parametrize("name", EXPORTED)
def test_an_exported_policy_picks_the_same(name: str, pairs: bool) -> None:
    policy = untrained(name, HUNT, pairs)
    items = check_same(policy, session(policy), states(HUNT.spec, 16, 30))
    assert (items >= 0).all()


@NETWORKS
def test_so_does_one_that_sees_no_context(pairs: bool) -> None:
    policy = untrained("isq-p", CIRCLE, pairs)
    items = check_same(policy, session(policy), states(CIRCLE.spec, 16, 30))
    assert (items >= 0).all()


@NETWORKS
def test_so_does_one_with_sums_over_sets(pairs: bool) -> None:
    policy = untrained("isq-u", HUNT, pairs, shape={"sums": True})
    check_same(policy, session(policy), states(HUNT.spec, 16, 30))


def test_so_does_one_with_normalised_layers() -> None:
    policy = untrained("isq-u", HUNT, pairs=True, shape={"layer_norm": True})
    check_same(policy, session(policy), states(HUNT.spec, 16, 30))


def test_myopic_differs_in_what_it_learned_alone() -> None:
    graphs = [model.made(untrained(name, HUNT, True)).graph for name in ("myopic", "isq-i")]
    assert graphs[0] == graphs[1]


@NETWORKS
def test_one_file_serves_every_number_of_items_of_things_and_of_states(pairs: bool) -> None:
    policy = untrained("isq-u", HUNT, pairs)
    running = session(policy)
    for num_items, num_context, batch in ((5, 1, 7), (20, 2, 1), (50, 9, 3), (200, 4, 2)):
        seen = states(HUNT.spec, batch, num_items, num_context)
        items, commands, values = running.run(None, seen)
        # Here it is compiled once, for states that are padded to one size.
        picks = policy.select(padded(seen, 7, 1000, 9), q_values=True)
        np.testing.assert_array_equal(items, picks.items[:batch])
        np.testing.assert_array_equal(commands, picks.commands[:batch])
        own = picks.q_values[:batch, :, :num_items]
        np.testing.assert_allclose(values, own, rtol=1e-4, atol=1e-5)
    check_same(policy, running, states(HUNT.spec, 7, 1000, 9))


def padded(seen: dict[str, Any], batch: int, num_items: int, num_context: int) -> dict[str, Any]:
    """With more states, items and things, of which none is present."""
    rows = {name: num_context if "context" in name else num_items for name in seen}
    return {
        name: np.pad(
            part,
            [
                (0, batch - part.shape[0]),
                (0, rows[name] - part.shape[1]),
                *[(0, 0)] * (part.ndim - 2),
            ],
        )
        for name, part in seen.items()
    }


HUNTERS = {pairs: untrained("isq-i", HUNT, pairs) for pairs in (False, True)}
RUNNING = {pairs: session(policy) for pairs, policy in HUNTERS.items()}


@settings(max_examples=15)
@given(pairs=st.booleans(), legal=st.floats(0.0, 0.5), seed=st.integers(0, 9999))
@example(pairs=False, legal=0.1, seed=0)
@example(pairs=True, legal=0.1, seed=0)
def test_picks_end_where_nothing_legal_is_left(pairs: bool, legal: float, seed: int) -> None:
    seen = states(HUNT.spec, 40, 5, legal=legal, seed=seed)
    items = check_same(HUNTERS[pairs], RUNNING[pairs], seen)
    free = (seen["legal"] & seen["present"][..., None]).any(axis=2).sum(axis=1)
    made = (items >= 0).sum(axis=1)
    assert made.tolist() == np.minimum(free, 4).tolist()
    if (legal, seed) == (0.1, 0):
        assert set(made.tolist()) == {0, 1, 2, 3, 4}


def test_an_empty_batch_gives_no_picks() -> None:
    items, _, values = RUNNING[True].run(None, states(HUNT.spec, 0, 6))
    assert (items.shape, values.shape) == ((0, 4), (0, 4, 6, 5))


def test_equal_items_are_picked_in_their_order() -> None:
    policy = untrained("isq-u", CIRCLE, pairs=True)
    seen = {"items": np.full((1, 9, 3), 0.25, np.float32), "present": np.ones((1, 9), bool)}
    items = check_same(policy, session(policy), {**seen, "legal": np.ones((1, 9, 5), bool)})
    assert items.tolist() == [[0, 1, 2, 3]]


@NETWORKS
def test_padding_may_hold_anything(pairs: bool) -> None:
    clean = states(HUNT.spec, 5, 9)
    dirty = {**clean, "items": clean["items"].copy(), "context": clean["context"].copy()}
    dirty["items"][~clean["present"]] = np.nan
    dirty["context"][~clean["context_present"]] = np.inf
    both = (RUNNING[pairs].run(None, seen) for seen in (clean, dirty))
    for once, again in zip(*both, strict=True):
        np.testing.assert_array_equal(once, again)


@pytest.mark.parametrize("num_select", [1, 7])
def test_another_number_of_picks_borrows_the_nearest_phases(num_select: int) -> None:
    policy = untrained("isq-i", CIRCLE, pairs=False)
    running = session(policy, num_select)
    items = check_same(policy, running, states(CIRCLE.spec, 2, 20), num_select)
    assert items.shape == (2, num_select)


def test_the_values_of_a_network_that_can_be_worked_out_by_hand() -> None:
    """One item feature x, two commands, one φ layer of one channel that passes x on.

    ψ gives (x − m, 2x − s) for the mean m of the unselected and the sum of a mean s over picked x.
    """
    env = sm.Circle(num_items=3, num_select=2, commands=("stay", "up"))
    made = agent.make("isq-u", env, shape=Shape(1, layers=1))
    first = np.asarray([[1.0], [0.0], [0.0]])
    nothing = {"means": np.zeros((8, 1)), "bias": np.zeros(1)}
    params = {
        "phi": [
            {
                "unselected": {"own": first, **nothing},
                "selected": {"own": np.concatenate([first, np.zeros((2, 1))]), **nothing},
            }
        ],
        "psi": {
            "own": np.asarray([[1.0, 2.0]]),
            "means": np.asarray([[-1.0, 0.0], [0.0, -1.0]]),
            "bias": np.zeros(2),
        },
    }
    stacked = jax.tree.map(lambda leaf: np.asarray(leaf, np.float32)[None], params)
    policy = Policy(made, stacked, (0, 0), {})
    items = np.asarray([[[0.1, 9, 9], [0.4, 9, 9], [0.7, 9, 9]]], np.float32)
    seen = {"items": items, "present": np.ones((1, 3), bool), "legal": np.ones((1, 3, 2), bool)}
    chosen, commands, values = session(policy).run(None, seen)
    np.testing.assert_allclose(
        values[0, 0], [[-0.3, 0.2], [0.0, 0.8], [0.3, 1.4]], rtol=1e-5, atol=1e-6
    )
    # Item 2 is picked: the mean is 0.25 now, and 0.7 is the mean of the picked.
    np.testing.assert_allclose(values[0, 1, :2], [[-0.15, -0.5], [0.15, 0.1]], rtol=1e-5, atol=1e-6)
    assert np.isneginf(values[0, 1, 2]).all()
    assert (chosen.tolist(), commands.tolist()) == ([[2, 1]], [[1, 0]])


# What the file tells


def test_the_file_tells_what_it_is_and_what_it_takes() -> None:
    policy = untrained("isq-p", HUNT, True, command_names=["stay"], config={"seed": 3}, step=7)
    made = model.made(policy)
    told = {each.key: json.loads(each.value) for each in made.metadata_props}
    assert told["spec"] == {
        "num_items": 5,
        "item_features": 2,
        "num_context": 2,
        "context_features": 2,
        "num_select": 4,
        "num_commands": 5,
        "allow_pass": False,
    }
    assert told["algorithm"] == "isq-p"
    assert told["phase_map"] == [0, 0, 2, 2]
    assert (told["command_names"], told["config"], told["step"]) == (["stay"], {"seed": 3}, 7)
    assert made.producer_name == "selectmdp"
    running = onnxruntime.InferenceSession(made.SerializeToString())
    assert {each.name: (each.type, each.shape) for each in running.get_inputs()} == {
        "items": ("tensor(float)", ["batch", "N", 2]),
        "context": ("tensor(float)", ["batch", "U", 2]),
        "present": ("tensor(bool)", ["batch", "N"]),
        "context_present": ("tensor(bool)", ["batch", "U"]),
        "legal": ("tensor(bool)", ["batch", "N", 5]),
    }
    assert {each.name: (each.type, each.shape) for each in running.get_outputs()} == {
        "pick_items": ("tensor(int64)", ["batch", 4]),
        "pick_commands": ("tensor(int64)", ["batch", 4]),
        "q_values": ("tensor(float)", ["batch", 4, "N", 5]),
    }
    assert all(each.doc_string for each in (*made.graph.input, *made.graph.output))


def test_without_context_none_is_asked_for(tmp_path: Path) -> None:
    made = export_policy(untrained("isq-u", CIRCLE, True), tmp_path / "policy.onnx")
    assert [each.name for each in made.graph.input] == ["items", "present", "legal"]
    assert onnx.load(tmp_path / "policy.onnx") == made


def test_the_same_policy_gives_the_same_file(tmp_path: Path) -> None:
    for name in ("one", "two"):
        export_policy(untrained("isq-i", HUNT, True), tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


# What cannot be exported


@pytest.mark.parametrize("name", ["vanilla", "sorting", "idqn-own"])
def test_a_network_of_fixed_sizes_is_refused(name: str) -> None:
    with pytest.raises(
        SelectError, match=f"cannot be exported: {name} has weights for each of the N"
    ):
        model.made(untrained(name, CIRCLE, pairs=False))


def test_what_is_no_policy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SelectError, match=r"policy='run': give what selectmdp\.load gives"):
        export_policy("run", tmp_path / "policy.onnx")


def test_items_drawn_at_random_are_refused() -> None:
    with pytest.raises(SelectError, match="cannot be exported: rsq draws its items at random"):
        model.made(untrained("rsq", CIRCLE, pairs=True))


def test_rules_in_code_are_refused() -> None:
    with pytest.raises(SelectError, match=r"offers legal_after, code .* with env=world in load"):
        model.made(untrained("isq-u", Shelf(num_select=4), pairs=True))


def test_a_run_whose_rules_are_code_is_refused_without_asking_for_its_world(tmp_path: Path) -> None:
    run = saved(tmp_path / "run", Shelf(num_select=4), "Shelf")
    with pytest.raises(SelectError, match="its world offers legal_after, code"):
        export_run(run, tmp_path / "policy.onnx")
    assert not (tmp_path / "policy.onnx").exists()


@pytest.mark.parametrize("num_select", [0, -1, 2.5])
def test_a_number_of_picks_that_cannot_be_is_refused(num_select: Any) -> None:
    with pytest.raises(SelectError, match=f"num_select={num_select}: must "):
        model.made(untrained("isq-u", CIRCLE, pairs=True), num_select)


def test_without_onnx_it_says_what_to_install(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(SelectError, match=r'pip install "selectmdp\[export\]"'):
        export_policy(untrained("isq-u", CIRCLE, True), tmp_path / "policy.onnx")


# The command and the example


@pytest.fixture(scope="module")
def run(tmp_path_factory: Any) -> Path:
    return saved(tmp_path_factory.mktemp("export") / "run", CIRCLE, "circle")


def saved(folder: Path, env: Any, task: str) -> Path:
    """A checkpoint of a training that was never made."""
    config = TrainConfig(task, {}, "isq-u", "fast", {"channels": 8}, 1024, 0)
    params = untrained("isq-u", env, pairs=True).params
    checkpoint.save(folder, {"policy": params}, runs.policy_meta(config, env, 0, (0,) * 4, 0.0))
    return folder


def refused(arguments: list[str], capsys: Any) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    return shown.err


def test_the_command_writes_a_file_that_the_example_finds_to_pick_the_same(
    run: Path, tmp_path: Path, capsys: Any
) -> None:
    file = tmp_path / "new" / "policy.onnx"
    cli.main(["export", str(run), "-o", str(file), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["bytes"] == file.stat().st_size
    assert [each["name"] for each in told["tensors"] if each["way"] == "in"] == [
        "items",
        "present",
        "legal",
    ]
    done = inferred(file, "--num-items", "9", "--compare", str(run))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("isq-u, N = 9:\n  item ")
    assert done.stdout.endswith("the same picks as selectmdp's own\n")
    few = inferred(file, "--num-items", "1", "--compare", str(run))
    assert few.returncode == 0, few.stderr
    assert few.stdout.endswith("  nothing legal is left\nthe same picks as selectmdp's own\n")


def test_the_example_ends_with_1_where_the_picks_are_others(run: Path, tmp_path: Path) -> None:
    file, state = tmp_path / "policy.onnx", tmp_path / "state.json"
    export_policy(untrained("isq-u", CIRCLE, True, seed=2), file)
    items = np.random.default_rng(5).uniform(-0.5, 0.5, (30, 3)).tolist()
    state.write_text(json.dumps({"items": items}))
    assert inferred(file, "--state", str(state)).returncode == 0
    assert inferred(file, "--state", str(state), "--compare", str(run)).returncode == 1


def test_the_example_tells_a_pass_from_having_nothing_to_pick(tmp_path: Path) -> None:
    file, state = tmp_path / "policy.onnx", tmp_path / "state.json"
    nothing = {"items": [[0.1, 0.2, 0.3]] * 5, "legal": [[False] * 5] * 5}
    state.write_text(json.dumps(nothing))
    may = SimpleNamespace(spec=replace(CIRCLE.spec, allow_pass=True), command_names=None)
    for env, said in ((CIRCLE, "  nothing legal is left\n"), (may, "  pass (value ")):
        export_policy(untrained("isq-u", env, True), file)
        assert inferred(file, "--state", state).stdout.partition("\n")[2].startswith(said)


@pytest.mark.parametrize(
    ("state", "has"),
    [
        ({"item": [[0.1, 0.2, 0.3]]}, r"\['item'\]"),
        ({"items": [[0.1, 0.2, 0.3]], "Legal": [[False] * 5]}, r"\['Legal', 'items'\]"),
        ([[0.1, 0.2, 0.3]], "list"),
    ],
)
def test_the_example_refuses_a_state_of_other_names(state: Any, has: str, tmp_path: Path) -> None:
    file, told = tmp_path / "policy.onnx", tmp_path / "state.json"
    export_policy(untrained("isq-u", CIRCLE, True), file)
    told.write_text(json.dumps(state))
    refused = inferred(file, "--state", told)
    assert refused.returncode == 1
    said = f"the state has {has}: it needs items, and may have items, present, legal alone\n"
    assert re.fullmatch(said, refused.stderr)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"items": [[0.1, None, 0.3]]}, r"items has numbers that are not finite"),
        ({"items": [["a", 0.2, 0.3]]}, r"items is no array of numbers: "),
        ({"items": [[0.1, 0.2]]}, r"items has shape \(1, 2\): it must be \('rows', 3\)"),
        ({"items": []}, r"items has shape \(0,\): it must be \('rows', 3\)"),
        (
            {"items": [[0.1, 0.2, 0.3]] * 2, "legal": [[1] * 5]},
            r"legal must be 0 or 1, or false or true, in shape \(2, 5\)",
        ),
        ({"items": [[0.1, 0.2, 0.3]], "present": [2]}, r"present must be 0 or 1"),
    ],
)
def test_the_example_refuses_what_the_graph_would_take(
    state: Any, said: str, tmp_path: Path
) -> None:
    file, told = tmp_path / "policy.onnx", tmp_path / "state.json"
    export_policy(untrained("isq-u", CIRCLE, True), file)
    told.write_text(json.dumps(state))
    refused = inferred(file, "--state", told)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert re.match(said, refused.stderr)


def test_the_example_says_what_is_not_there(tmp_path: Path) -> None:
    assert "is no file: `selectmdp export RUN" in inferred(tmp_path / "no.onnx").stderr
    file = tmp_path / "policy.onnx"
    export_policy(untrained("isq-u", CIRCLE, True), file)
    assert "no.json is no state: " in inferred(file, "--state", tmp_path / "no.json").stderr
    assert "--num-items 0" in inferred(file, "--num-items", 0).stderr


def inferred(*arguments: Any) -> subprocess.CompletedProcess[str]:
    script = Path(__file__).parent.parent / "examples" / "onnx_inference.py"
    command = [sys.executable, str(script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_example_needs_nothing_of_ours() -> None:
    script = (Path(__file__).parent.parent / "examples" / "onnx_inference.py").read_text()
    assert [line for line in script.splitlines() if line.startswith(("import", "from"))] == [
        "import argparse",
        "import json",
        "import sys",
        "from pathlib import Path",
        "import numpy as np",
        "import onnxruntime",
    ]


def test_the_command_shows_a_table(run: Path, tmp_path: Path, capsys: Any) -> None:
    cli.main(["export", str(run), "-o", str(tmp_path / "policy.onnx"), "--num-select", "3"])
    shown = capsys.readouterr().out
    assert "batch, 3, N, 5" in shown


@pytest.mark.parametrize(
    ("name", "said"),
    [("", "is a folder: give the name of a file"), ("file/policy.onnx", "cannot write")],
)
def test_a_place_that_cannot_be_written_is_refused(
    run: Path, tmp_path: Path, capsys: Any, name: str, said: str
) -> None:
    (tmp_path / "file").write_text("")
    assert said in refused(["export", str(run), "-o", str(tmp_path / name)], capsys)


def test_what_is_no_run_or_damaged_is_refused(run: Path, tmp_path: Path, capsys: Any) -> None:
    assert "holds no run" in refused(["export", str(tmp_path)], capsys)
    shutil.copytree(run, tmp_path / "step")
    file = tmp_path / "step" / "policy.safetensors"
    file.write_bytes(file.read_bytes()[:-7])
    with pytest.raises(CheckpointError, match=r"policy\.safetensors is damaged"):
        export_run(tmp_path / "step", tmp_path / "policy.onnx")


BLOCKS = re.findall(
    r"```python\n(.*?)```",
    (Path(__file__).parent.parent / "docs" / "deploy.md").read_text(encoding="utf-8"),
    re.DOTALL,
)


@pytest.mark.parametrize(("block", "count"), list(zip(BLOCKS, (4, 2), strict=True)))
def test_what_the_documentation_shows_runs(
    run: Path, tmp_path: Path, monkeypatch: Any, block: str, count: int
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(run, tmp_path / "runs" / "c")
    export_run("runs/c", "policy.onnx")
    names: dict[str, Any] = {}
    exec(compile(block, "deploy.md", "exec"), names)
    picked = names["items"][0].tolist() if "items" in names else [i for i, _ in names["chosen"]]
    assert len(set(picked)) == count
