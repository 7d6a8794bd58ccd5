"""What `selectmdp report` does with rows that are strange, mixed, doubled, cut off or missing."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import whole

from benchmarks import made_results, paper_progress
from selectmdp import runs, tasks
from selectmdp.experiments import cost, generalization, store, sweeps
from selectmdp.experiments.jobs import jobs_of
from selectmdp.experiments.store import Row
from selectmdp.report import overview, pictures
from selectmdp.report.results import load
from selectmdp.runlog import RunLog
from selectmdp.spec import SelectError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return whole.make(tmp_path_factory.mktemp("made") / "results")


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


COLUMNS = {"generalization.csv": generalization.COLUMNS, "cost.csv": cost.COLUMNS}


def rewritten(path: Path, change: Callable[[list[Row]], list[Row]]) -> None:
    kind = store.FINALS if "finals" in path.name else store.CURVES
    columns = COLUMNS.get(path.name, kind)
    store.write(path, columns, change(store.read(path, columns)))


# Of another world


def test_a_figure_copied_over_another_is_left_out(copy):
    shutil.copy(copy / "5a-finals.csv", copy / "5c-finals.csv")
    results = load(copy)
    assert results.finals["5c"] == []
    assert results.problems == [
        "5c-finals.csv: predator-prey-K4-isq-i-seed0 has K = '4' where this figure has K = '10', "
        "and 27 more like it; left out, since that cannot be",
        "figure 5c: no runs",
    ]


@pytest.mark.parametrize(
    ("column", "text"),
    [("dynamics", "text"), ("K", "3"), ("U", "1"), ("C", "1"), ("settings", "sums=True")],
)
def test_a_run_of_another_world_or_with_other_settings_is_left_out(copy, column, text):
    rewritten(copy / "4b-finals.csv", lambda rows: [{**rows[0], column: text}, *rows[1:]])
    results = load(copy)
    assert len(results.scores("4b", "isq-i")) == 3
    told = results.problems[0]
    assert f"circle-N50-K6-isq-i-seed0 has {column} = '{text}' where this figure has" in told
    assert results.problems[1:] == ["figure 4b: of 4 seeds isq-i has 3 (not 0)"]


# Of another length or preset


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"steps": "8192"}, "1 of 8,192 steps by preset fast"),
        ({"preset": "paper"}, "1 of 303,104 steps by preset paper"),
    ],
)
def test_a_run_of_other_steps_or_preset_than_most_is_left_out(copy, change, told):
    rewritten(copy / "4a-finals.csv", lambda rows: [{**rows[0], **change}, *rows[1:]])
    results = load(copy)
    assert results.problems == [
        f"4a-finals.csv, N = 5: most rows are of 303,104 steps by preset fast; left out {told}",
        "figure 4a, N = 5: of 4 seeds isq-i has 3 (not 0)",
    ]
    assert len(results.scores("4a", "isq-i", 20)) == 4


def test_plays_of_a_policy_of_other_steps_are_left_out(copy):
    def short(rows: list[Row]) -> list[Row]:
        return [{**row, "steps": "8192"} if row["run"] == rows[0]["run"] else row for row in rows]

    rewritten(copy / "generalization.csv", short)
    results = load(copy)
    assert len(results.played("pairs", 50, 200)) == 3
    assert results.problems == [
        "generalization.csv, trained_N = 50: most rows are of 303,104 steps by preset fast; left "
        "out 7 of 8,192 steps by preset fast",
        "generalization: of 4 seeds pairs trained at 50 has 3 (not 0)",
    ]


# Seeds that count twice, or are not there


def test_a_seed_under_two_names_counts_once(copy):
    rewritten(
        copy / "5b-finals.csv", lambda rows: [*rows, {**rows[0], "run": "b", "mean_reward": "9"}]
    )
    results = load(copy)
    assert results.scores("5b", "isq-i") == [0.627, 0.629, 0.631, 0.633]
    assert results.problems == [
        "5b-finals.csv: b is seed 0 as predator-prey-K7-isq-i-seed0 is; left out, since that "
        "cannot be"
    ]


def test_a_seed_that_was_played_twice_counts_once(copy):
    rewritten(copy / "generalization.csv", lambda rows: [*rows, *rows[:7]])
    results = load(copy)
    assert len(results.played("means", 50, 50)) == 4
    assert results.problems == [
        "generalization.csv: circle-N50-K6-isq-p-seed0 stands there twice, and 6 more like it; "
        "left out, since that cannot be"
    ]


def test_policies_that_generalization_lacks_are_told(copy):
    gone = {("sums", "200", "1"), ("sums", "200", "3"), ("means", "50", "0")}
    rewritten(
        copy / "generalization.csv",
        lambda rows: [
            row for row in rows if (row["network"], row["trained_N"], row["seed"]) not in gone
        ],
    )
    assert load(copy).problems == [
        "generalization: of 4 seeds means trained at 50 has 3 (not 0), "
        "sums trained at 200 has 2 (not 1, 3)"
    ]


def test_one_seed_of_each_policy_is_one_sentence(tmp_path):
    made_results.make_generalization(tmp_path, seeds=1)
    assert "generalization: every network has 1 of 4 seeds" in load(tmp_path).problems


def test_a_policy_that_was_not_played_everywhere_is_told(copy):
    rewritten(copy / "generalization.csv", lambda rows: rows[:-2])
    assert load(copy).problems == [
        "generalization: sums trained at 200, seed 3, was not played at N = 500, 1000"
    ]


def test_a_run_that_generalizes_is_listed_once_and_one_of_other_settings_is_left_out(copy):
    told = shown(copy)
    listed = [run["run"] for each in told["figures"] for run in each["runs"]]
    runs = told["generalization"]["runs"]
    assert len(runs) == 16
    assert not {run["run"] for run in runs} & set(listed)
    assert runs[0]["command"].endswith(
        "--set pairs=false --set channels=48 --out "
        "runs/circle-N50-K6-isq-p-pairs=False-channels=48-seed0"
    )
    assert (told["facts"]["runs"], len(listed)) == (200, 184)
    rewritten(
        copy / "generalization-finals.csv", lambda rows: [{**rows[0], "settings": ""}, *rows[1:]]
    )
    assert load(copy).problems == [
        "generalization-finals.csv: circle-N50-K6-isq-p-pairs=False-channels=48-seed0 is isq-p on "
        "circle with N = 50, which is not of this figure; left out, since that cannot be",
        "generalization: the training of circle-N50-K6-isq-p-pairs=False-channels=48-seed0 is not "
        "kept",
    ]


def test_plays_of_an_unknown_network_are_left_out(copy):
    rewritten(copy / "generalization.csv", lambda rows: [*rows, {**rows[0], "network": "medians"}])
    assert load(copy).problems == [
        "generalization.csv: circle-N50-K6-isq-p-seed0 has medians and was trained at N = 50, "
        "which is not of this experiment; left out, since that cannot be"
    ]


# Curves


def test_a_curve_cut_at_a_lines_end_is_told_and_says_nothing_of_the_beginning(copy):
    run = "predator-prey-K10-isq-p-seed2"
    before = load(copy).early("5c", "isq-p")

    def cut(rows: list[Row]) -> list[Row]:
        """Its second half is lost."""
        return [row for row in rows if row["run"] != run or int(row["step"]) < 200_000]

    rewritten(copy / "5c-curves.csv", cut)
    results = load(copy)
    assert results.problems == [
        f"figure 5c: the curve of {run} is cut off; how fast it learns is not judged by that"
    ]
    assert results.early("5c", "isq-p") == [before[0], before[1], before[3]]
    assert len(results.scores("5c", "isq-p")) == 4


def test_a_curve_without_a_point_that_others_have_is_cut(copy):
    rewritten(copy / "4b-curves.csv", lambda rows: [*rows[:3], *rows[4:]])
    results = load(copy)
    assert results.cut["4b"] == ["circle-N50-K6-isq-i-seed0"]
    assert len(results.early("4b", "isq-i")) == 3


# Cost


def test_sizes_that_a_preset_was_not_measured_at_are_told(copy):
    def some(rows: list[Row]) -> list[Row]:
        """Of the paper's preset N = 25 to 200 and K = 1 alone."""
        few = {("25", "6"), ("50", "6"), ("100", "6"), ("200", "6"), ("50", "1")}
        return [row for row in rows if row["preset"] == "fast" or (row["N"], row["K"]) in few]

    rewritten(copy / "cost.csv", some)
    assert load(copy).problems == [
        "cost, paper preset: 6 of 11 sizes not measured: N = 400, K = 6; N = 800, K = 6; "
        "N = 50, K = 2; N = 50, K = 4; N = 50, K = 8; N = 50, K = 12"
    ]


# What the page makes of it


def shown(folder: Path) -> dict[str, Any]:
    results = load(folder)
    return overview.overview(results, overview.claims_of(results), lambda done, total: None)


def test_the_commands_of_cost_are_those_that_made_its_rows_the_judged_first(copy):
    made = "selectmdp reproduce cost --budget"
    assert shown(copy)["commands"]["cost"].split("\n") == [
        f"{made} standard --preset paper --out {copy}",
        f"{made} standard --preset fast --out {copy}",
    ]
    rewritten(
        copy / "cost.csv",
        lambda rows: [{**row, "seconds": "20.0"} for row in rows if row["preset"] == "fast"],
    )
    assert shown(copy)["commands"]["cost"] == f"{made} full --preset fast --out {copy}"


def test_the_command_of_generalization_is_that_which_made_its_rows(copy):
    (config, *_) = made_results.GENERALIZATION[0].configs("smoke", "paper")
    rewritten(
        copy / "generalization.csv",
        lambda rows: [{**rows[0], "preset": "paper", "steps": str(config.steps)}],
    )
    told = shown(copy)["commands"]
    assert "generalization --budget smoke --preset paper" in told["generalization"]
    assert "all --budget standard --preset fast" in told["all"]


def test_all_of_it_again_is_what_the_page_of_results_lists(copy):
    made = f"--out {copy}"
    assert shown(copy)["commands"]["all"].split("\n") == [
        f"selectmdp reproduce all --budget standard --preset fast {made}",
        f"selectmdp reproduce cost --budget standard --preset paper {made}",
        f"selectmdp sweep benchmarks/paper.toml {made}/paper",
        f"selectmdp report {copy} -o report.html --figures images",
    ]


def test_what_was_not_measured_is_not_called_too_few(copy):
    def day() -> str:
        return next(each["ours"] for each in shown(copy)["claims"] if each["name"] == "day")

    rewritten(copy / "cost.csv", lambda rows: rows[:1])
    assert day() == "too few sizes measured"
    (copy / "cost.csv").unlink()
    assert day() == "not measured"


def test_plays_of_the_smallest_budget_are_shown(tmp_path):
    made_results.make_generalization(tmp_path, seeds=1)
    rewritten(
        tmp_path / "generalization.csv",
        lambda rows: [{**row, "episode_steps": "50"} for row in rows],
    )
    told = shown(tmp_path)["generalization"]
    assert [cell["share"][0] for cell in told["matrices"][0]["cells"]][0::3] == [1.0, 1.0]
    assert [len(line["points"]) for line in told["sweep"]] == [7] * 6


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The pictures that are drawn, as Matplotlib has them."""
    drawn: list[Any] = []
    monkeypatch.setattr(
        pictures.curves, "write_png", lambda path, canvas: drawn.append(canvas.figure)
    )
    return drawn


def texts(place: Any) -> list[str]:
    return [each.get_text() for each in place.texts]


def test_a_picture_of_one_seed_says_so(tmp_path, written):
    made_results.make_figure(tmp_path, made_results.FIGURES["4b"], {}, seeds=1)
    pictures.save(shown(tmp_path), tmp_path)
    (picture,) = written
    assert "reward of a step (area), one seed; dashed: published" in texts(picture)


def test_a_picture_shows_a_reward_of_which_no_share_is_known(tmp_path, written):
    made_results.make_generalization(tmp_path)
    rewritten(
        tmp_path / "generalization.csv",
        lambda rows: [row for row in rows if row["trained_N"] == "50"],
    )
    pictures.save(shown(tmp_path), tmp_path)
    (picture,) = written
    assert texts(picture.axes[0]) == ["100 %", "0.865", "–", "–"]


def test_published_shares_stand_in_the_heat_map_of_the_papers_network(copy, tmp_path, written):
    pictures.save({**shown(copy), "figures": []}, tmp_path)
    (picture,) = written
    pairs, means, sums, _ = (texts(axes) for axes in picture.axes)
    assert means == ["100 %", "101 %", "paper 103 %", "90 %", "paper 86 %", "100 %"]
    assert len(pairs) == len(sums) == 4


# The paper's own preset


@pytest.fixture
def begun(copy: Path) -> Path:
    """Results in which one of its runs is at its end, one on its way, one not begun."""
    shutil.rmtree(copy / "paper")
    made_results.make_paper(copy)
    return copy


def test_the_papers_preset_without_a_run_is_told_unless_a_figure_was_made_with_it(copy):
    shutil.rmtree(copy / "paper")
    assert shown(copy)["paper"] is None
    assert load(copy).problems == ["the paper's own preset: no runs"]
    rewritten(copy / "4a-finals.csv", lambda rows: [{**row, "preset": "paper"} for row in rows])
    assert load(copy).problems == []


def test_the_papers_preset_is_shown_as_far_as_its_runs_got(begun):
    told = shown(begun)
    assert told["problems"] == [
        "the paper's own preset: of 5,000,000 steps isq-i is at 0, isq-p is at 2,000,000"
    ]
    paper = told["paper"]
    assert paper["command"] == f"selectmdp sweep benchmarks/paper.toml --out {begun}/paper"
    found = {each["algorithm"]: each for each in paper["world"]["series"]}
    assert found["isq-u"]["mean"] == [pytest.approx(0.8), None, None]  # one seed
    assert found["isq-p"]["mean"] is None
    assert [found[name]["steps"] for name in ("isq-i", "isq-u", "isq-p")] == [
        0,
        5_000_000,
        2_000_000,
    ]
    assert [len(found[name]["curve"]) for name in ("isq-i", "isq-u", "isq-p")] == [0, 21, 9]
    assert [each["published"] for each in found.values()] == [0.76, 0.83, 0.82]
    assert paper["world"]["references"] == {"random": 0.098, "greedy": 0.491}
    assert told["facts"]["preset"] == ["fast"]  # its runs are not among those of the figures


def test_progress_of_a_run_that_has_ended_since_is_passed_over(begun):
    columns = store.CURVES
    ended = store.read(begun / "paper" / "sweep-curves.csv", columns)
    store.write(begun / "paper" / "progress.csv", columns, ended[:4])
    paper = shown(begun)["paper"]
    assert [len(each["curve"]) for each in paper["world"]["series"]] == [0, 21, 0]


def test_runs_that_are_not_of_the_papers_preset_are_left_out_there(begun):
    rewritten(
        begun / "paper" / "sweep-finals.csv",
        lambda rows: [{**rows[0], "preset": "fast"}, *rows[1:]],
    )
    rewritten(
        begun / "paper" / "progress.csv", lambda rows: [{**row, "algorithm": "eq"} for row in rows]
    )
    results = load(begun)
    assert results.paper is None
    assert results.problems == [
        "paper/sweep-finals.csv: circle-N50-K6-isq-u-seed0 is not of benchmarks/paper.toml; left "
        "out, since that cannot be",
        "paper/progress.csv: circle-N50-K6-isq-p-seed0 is not of benchmarks/paper.toml, and 8 more "
        "like it; left out, since that cannot be",
        "the paper's own preset: no runs",
    ]


def test_the_sweep_of_the_papers_preset_has_three_runs_of_5_million_steps():
    jobs = jobs_of(sweeps.configs_of(made_results.PAPER))
    assert [job.name for job in jobs] == [
        f"circle-N50-K6-{name}-seed0" for name in ("isq-i", "isq-u", "isq-p")
    ]
    assert {(job.config.preset, job.config.steps) for job in jobs} == {("paper", 5_000_000)}


def test_progress_is_written_of_runs_that_are_not_at_their_end(begun, capsys):
    place = begun / "paper"
    with pytest.raises(SelectError, match="paper/runs holds no runs"):
        paper_progress.main(place)  # as in a fresh clone: what is known stays
    jobs = jobs_of(sweeps.configs_of(made_results.PAPER))
    for job in jobs:
        run = place / "runs" / job.name
        run.mkdir(parents=True)
        runs.create(run, job.config, tasks.make("circle", **job.config.options).spec)
        with RunLog(run) as log:
            log.row(0, seconds=2.5, eval_reward=0.1, eval_ci95=0.01)
            log.row(20_000, seconds=50.0, loss=0.5)
            log.row(100_000, seconds=250.0, eval_reward=0.25)
    paper_progress.main(place)
    assert capsys.readouterr().out.split("\n")[:2] == [
        "circle-N50-K6-isq-i-seed0: 100,000 steps",
        "circle-N50-K6-isq-p-seed0: 100,000 steps",  # isq-u is among the finals
    ]
    rows = store.read(place / "progress.csv", store.CURVES)
    assert [(row["algorithm"], row["step"], row["reward"], row["ci95"]) for row in rows[:2]] == [
        ("isq-i", "0", "0.10000", "0.01000"),
        ("isq-i", "100000", "0.25000", ""),
    ]
    assert len(rows) == 4
    assert "isq-i is at 100,000, isq-p is at 100,000" in load(begun).problems[0]
