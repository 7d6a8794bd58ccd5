"""The report: numbers of its page, verdicts on made-up results, what it says of damaged ones."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import pytest
import whole
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from benchmarks import made_results
from selectmdp import agent, cli, tasks
from selectmdp.experiments import generalization, store
from selectmdp.experiments.figures import FIGURES
from selectmdp.nets.base import count
from selectmdp.report import gaps, measures, overview, pictures
from selectmdp.report.across import across
from selectmdp.report.drawn import figure_of, student
from selectmdp.report.results import Results, load
from selectmdp.spec import SelectError

HALF = 0.00410852  # 3.18245 · 0.00258199 / √4: Student's t of four seeds 0.002 apart


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return whole.make(tmp_path_factory.mktemp("made") / "results")


@pytest.fixture(scope="module")
def shown(folder: Path) -> dict[str, Any]:
    """The data of the page."""
    results = load(folder)
    return overview.overview(results, overview.claims_of(results), lambda done, total: None)


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def verdicts(results: Results) -> dict[str, str]:
    return {claim["name"]: claim["verdict"] for claim in overview.claims_of(results)}


def ours(results: Results) -> dict[str, str]:
    return {claim["name"]: claim["ours"] for claim in overview.claims_of(results)}


def rewritten(path: Path, change: Callable[[list[dict[str, str]]], list[dict[str, str]]]) -> None:
    columns = store.FINALS if "finals" in path.name else store.CURVES
    store.write(path, columns, change(store.read(path, columns)))


def series(shown: dict[str, Any], figure: str, algorithm: str) -> dict[str, Any]:
    (found,) = (each for each in shown["figures"] if each["name"] == figure)
    (world,) = found["worlds"]
    (line,) = (each for each in world["series"] if each["algorithm"] == algorithm)
    return line


# Numbers


def test_a_final_is_the_mean_over_seeds_with_its_interval_beside_the_published(shown):
    line = series(shown, "4b", "isq-i")
    assert line["mean"] == pytest.approx([0.77, 0.77 - HALF, 0.77 + HALF], abs=1e-6)
    assert line["iqm"][0] == pytest.approx(0.77)  # of 0.755, 0.765, 0.775 and 0.785 the middle two
    assert line["iqm"] == pytest.approx([0.77, 0.767, 0.773], abs=0.0006)
    assert (line["published"], line["seeds"]) == (0.76, 4)


def test_a_curve_goes_from_random_to_the_end_with_an_interval_at_each_step(shown):
    curve = series(shown, "5b", "isq-p")["curve"]
    assert len(curve) == 21
    assert curve[0] == pytest.approx([0, 0.025, 0.114, 0.114, 0.114])  # step, minutes, mean, ends
    assert curve[-1] == pytest.approx([401_408, 290.5 / 60, 0.75, 0.75 - HALF, 0.75 + HALF])
    assert all(low < mean < high for _, _, mean, low, high in curve[1:])


def test_one_seed_has_a_mean_and_no_interval():
    assert student([0.5]) == [0.5, None, None]
    assert student([1.0, 3.0]) == pytest.approx([2.0, 2 - 12.7062, 2 + 12.7062], rel=1e-5)


def test_a_pair_of_equals_wins_half_and_both_ways_sum_to_one(shown):
    (world,) = shown["figures"][5]["worlds"]
    names = [each["algorithm"] for each in world["series"]]
    eq, idqn, isq = (names.index(name) for name in ("eq", "idqn", "isq-p"))
    assert world["improvement"][eq][idqn][0] == 0.5  # both are published at 0.45
    assert world["improvement"][isq][eq] == [1.0, 1.0, 1.0]
    assert world["improvement"][eq][isq] == [0.0, 0.0, 0.0]
    assert world["improvement"][eq][eq] is None
    low, high = world["improvement"][eq][idqn][1:]
    assert world["improvement"][idqn][eq][1:] == pytest.approx([1 - high, 1 - low])


def test_references_are_those_of_the_runs(shown):
    assert shown["figures"][1]["worlds"][0]["references"] == {"random": 0.098, "greedy": 0.491}


def test_figure_4a_has_three_worlds_of_three_algorithms(shown):
    worlds = shown["figures"][0]["worlds"]
    assert [world["N"] for world in worlds] == [5, 20, 50]
    assert [len(world["series"]) for world in worlds] == [3, 3, 3]
    assert worlds[2]["series"][1]["mean"][0] == pytest.approx(0.012)  # vanilla
    assert worlds[2]["series"][1]["published"] == 0.002


def test_the_generalization_matrix_is_relative_to_training_there(shown):
    pairs, means, sums = shown["generalization"]["matrices"]
    told = {(cell["trained"], cell["played"]): cell for cell in pairs["cells"]}
    assert told[50, 50]["share"][0] == 1.0
    assert told[50, 200]["share"][0] == pytest.approx(1.03, abs=1e-4)
    assert {cell["published"] for cell in (*pairs["cells"], *sums["cells"])} == {None}
    assert told[50, 200]["reward"][0] == pytest.approx(0.8652)  # 1.03 · 0.84
    assert sums["cells"][1]["share"][0] == pytest.approx(0.41, abs=1e-4)
    sweep = shown["generalization"]["sweep"]
    assert means["cells"][1]["share"][0] == pytest.approx(1.01, abs=1e-4)
    assert [cell["published"] for cell in means["cells"]] == [None, 1.03, 0.86, None]
    assert [line["network"] for line in sweep] == [
        *("pairs", "pairs", "means", "means", "sums", "sums")
    ]
    assert [point[0] for point in sweep[0]["points"]] == [10, 20, 50, 100, 200, 500, 1000]


def test_cost_has_its_exponents_and_the_published_day(shown):
    items, picks = shown["cost"]
    assert [line["preset"] for line in items["series"]] == ["fast", "paper"]
    assert items["series"][1]["fit"][1] == pytest.approx(0.9, abs=0.005)
    assert picks["series"][1]["fit"][1] == pytest.approx(1.0, abs=0.005)
    assert items["series"][1]["points"][0] == pytest.approx((25, 1000 / 220))
    assert items["published"] == pytest.approx([200, 74.48], rel=1e-3)  # 13.4 steps a second


@pytest.mark.parametrize(
    ("algorithm", "items", "picks", "number"),
    [
        ("vanilla", 50, 6, 11_677_164),
        ("vanilla", 25, 1, 352_709),
        ("isq-i", 50, 6, 97_950),
        ("isq-u", 200, 12, 16_325),
    ],
)
def test_parameters_counted_by_hand_are_those_of_the_networks(algorithm, items, picks, number):
    assert measures.parameters(algorithm, items, picks) == number
    env = tasks.make("circle", num_items=items, num_select=picks)
    assert count(jax.eval_shape(agent.make(algorithm, env).init, jax.random.key(0))) == number


def test_commands_are_those_that_made_the_runs(shown, folder):
    figure = shown["figures"][1]
    assert figure["command"] == (
        f"selectmdp reproduce 4b --budget standard --preset fast --out {folder}"
    )
    assert figure["runs"][2]["command"] == (
        "selectmdp train circle --num-items 50 --num-select 6 --algorithm isq-p --preset fast "
        "--steps 303104 --seed 0 --evaluations 20 --episodes 20 "
        "--out runs/circle-N50-K6-isq-p-seed0"
    )
    assert shown["commands"]["cost"].startswith("selectmdp reproduce cost --budget standard")


def test_over_all_worlds_random_is_0_and_greedy_is_1(shown, copy):
    told = shown["across"]
    assert told["worlds"] == ["4b", "4c", "5a", "5b", "5c"]
    names = [row["algorithm"] for row in told["rows"]]
    assert (names[0], names[-1]) == ("isq-p", "idqn")
    rows = {row["algorithm"]: row for row in told["rows"]}
    # ISQ-I has about 0.43, 0.46, 0.51, 1.71, 1.81. Of 20 seeds the middle ten are the upper three
    # of the second world, all of the third, the lower three of the fourth.
    middle = (3 * (0.45978 + 0.00085) + 4 * 0.51333 + 3 * (1.70992 - 0.00254)) / 10
    assert rows["isq-i"]["iqm"][0] == pytest.approx(middle, abs=1e-4)
    assert rows["isq-i"]["better"] is None
    assert rows["idqn"]["better"] == [0.0, 0.0, 0.0]
    low, high = rows["isq-p"]["iqm"][1:]
    assert low < rows["isq-p"]["iqm"][0] < high
    (copy / "5a-finals.csv").unlink()
    assert across(load(copy))["worlds"] == ["4b", "4c", "5b", "5c"]
    rewritten(copy / "4c-finals.csv", lambda rows: [{**row, "greedy": ""} for row in rows])
    assert across(load(copy))["worlds"] == ["4b", "5b", "5c"]


def test_over_all_worlds_nothing_is_told_where_no_world_is_whole(tmp_path):
    assert across(load(made_results.make(tmp_path, seeds=2))) is None


# Verdicts


def test_results_above_the_published_reach_its_verdicts(folder):
    results = load(folder)
    assert results.problems == []
    told = verdicts(results)
    assert told.pop("cost-items") == "holds in part"
    assert set(told.values()) == {"holds"}
    assert len(told) == 19
    assert ours(results)["isq-u"].startswith("19 of 19; worst difference 0.040")
    assert ours(results)["isq-u"].endswith("(5a: isq-u over myopic)")
    assert ours(results)["below"].startswith("difference 0.160 [0.156, 0.164]")
    assert ours(results)["down"].startswith("share 0.860 [0.855")
    assert ours(results)["cost-items"] == "N^0.90, paper preset"
    assert ours(results)["day"] == "2.93 million, paper preset"


@pytest.mark.parametrize(
    ("levels", "verdict", "number"),
    [
        ({20: 0.08, 50: 0.08}, "holds", "2 of 2; worst share 0.471"),  # of 0.17 and 0.181
        ({20: 0.08, 50: 0.12}, "holds in part", "1 of 2 (1 contrary); worst share 0.663"),
        ({20: 0.12, 50: 0.12}, "does not hold", "0 of 2 (2 contrary); worst share 0.706"),
    ],
)
def test_vanilla_fails_where_it_earns_at_most_half(tmp_path, levels, verdict, number):
    vanilla = {("4a", size, "vanilla"): level for size, level in levels.items()}
    made_results.make_figure(tmp_path, FIGURES["4a"], vanilla)
    results = load(tmp_path)
    assert verdicts(results)["vanilla"] == verdict
    assert ours(results)["vanilla"].startswith(number)


def test_an_advantage_within_the_noise_does_not_hold(tmp_path):
    isq = [("4b", 50, name) for name in ("isq-i", "isq-u", "isq-p")]
    made_results.make_figure(
        tmp_path,
        FIGURES["4b"],
        {**dict.fromkeys(isq, 0.641), ("4b", 50, "isq-i-1"): 0.64},
    )
    (claim,) = (each for each in overview.claims_of(load(tmp_path)) if each["name"] == "commands")
    assert claim["verdict"] == "not judged"  # 0.001 apart, seeds 0.002 apart; 4c is not there
    evidence, _, _ = claim["evidence"]
    assert evidence["low"] < 0 < evidence["value"] == pytest.approx(0.001)
    assert evidence["verdict"] == "undecided"
    assert claim["ours"].startswith("0 of 6 (3 undecided, 3 not judged); worst difference 0.001")


def test_a_policy_is_judged_by_the_presets_network_with_the_papers_beside_it(folder):
    (up,) = (each for each in overview.claims_of(load(folder)) if each["name"] == "up")
    assert up["ours"].startswith("share 1.030 [1.02")
    assert "; the paper's network 1.010 [1.00" in up["ours"]
    assert [each["what"] for each in up["evidence"]] == [
        f"{network}: 50 → 200 relative to 200 → 200" for network in ("pairs", "means")
    ]
    assert [each["published"] for each in up["evidence"]] == [None, "1.03"]


def test_a_comparison_has_the_published_numbers_beside_ours(folder):
    claims = {each["name"]: each["evidence"] for each in overview.claims_of(load(folder))}
    told = {name: (each[0]["kind"], each[0]["published"]) for name, each in claims.items()}
    assert told["levels"] == ("mean", "0.83")
    assert told["dense"] == ("difference", "0.091 = 0.16 − 0.069")
    assert told["close"] == ("share", "0.826 = 0.095 / 0.115")
    assert told["below"] == ("difference", "0.160 = 0.66 − 0.5")
    assert told["rsq"] == ("share", "0.943 = 0.66 / 0.7")
    assert told["early"] == ("difference", None)
    assert told["day"] == ("", "1,160,000")


def test_training_is_stable_where_it_ends_high(folder, copy):
    (claim,) = (each for each in overview.claims_of(load(folder)) if each["name"] == "stable")
    assert claim["verdict"] == "holds"
    assert [each["value"] for each in claim["evidence"]] == pytest.approx([0.15, 0.15], abs=0.01)
    path = copy / "generalization.csv"
    rows = store.read(path, generalization.COLUMNS)
    same = {"means": "0.03", "sums": "0.04"}  # neither learned
    store.write(
        path,
        generalization.COLUMNS,
        [{**row, "mean_reward": same.get(row["network"], row["mean_reward"])} for row in rows],
    )
    assert verdicts(load(copy))["stable"] == "does not hold"


def test_what_never_learned_at_home_has_no_share_of_it(copy):
    path = copy / "generalization.csv"
    rows = store.read(path, generalization.COLUMNS)
    for row in rows:
        if (row["network"], row["trained_N"]) == ("sums", "50"):
            row["mean_reward"] = "0.04"  # random earns 0.098
    store.write(path, generalization.COLUMNS, rows)
    told = measures.generalization_of(load(copy))["matrices"]
    (cells,) = (each["cells"] for each in told if each["network"] == "sums")
    shown = {(each["trained"], each["played"]): each for each in cells}
    assert (shown[50, 50]["share"], shown[50, 50]["unlearned"]) == (None, True)
    assert (shown[200, 50]["share"], shown[200, 50]["unlearned"]) == (None, True)
    assert shown[200, 200]["share"][0] == 1.0
    assert shown[50, 200]["share"][0] < 0.1
    assert not any(each["unlearned"] for matrix in told[:2] for each in matrix["cells"])


def test_what_was_not_run_is_not_judged_and_part_of_it_is_not_the_whole(folder, copy):
    (copy / "4c-finals.csv").unlink()
    (copy / "generalization.csv").unlink()
    (copy / "cost.csv").unlink()
    told = verdicts(load(copy))
    assert told["commands"] == "holds so far"  # 4b holds, 4c is not there
    for name in ("up", "down", "stable", "means", "cost-picks", "cost-items", "day"):
        assert told[name] == "not judged"


def test_one_seed_judges_nothing_about_seeds(tmp_path):
    results = load(made_results.make(tmp_path, seeds=1))
    told = verdicts(results)
    assert {told.pop(name) for name in ("cost-picks", "day")} == {"holds"}
    assert told.pop("cost-items") == "holds in part"
    assert set(told.values()) == {"not judged"}
    assert "figure 4b: every algorithm has 1 of 4 seeds" in results.problems
    assert "figure 4a, N = 20: every algorithm has 1 of 4 seeds" in results.problems
    assert results.problems[-1] == "the paper's own preset: no runs"


def test_there_is_no_share_of_what_earns_nothing(tmp_path):
    made_results.make_figure(tmp_path, FIGURES["4a"], {("4a", 20, "isq-i"): 0.002})
    results = load(tmp_path)
    (claim,) = (each for each in overview.claims_of(results) if each["name"] == "vanilla")
    assert claim["verdict"] == "holds so far"  # at N = 50 it does
    assert [each["what"] for each in claim["evidence"]] == ["4a, N = 50: vanilla / isq-i"]
    assert claim["lacking"] == (
        "no share of 0 or less, which a seed of the second earns (4a, N = 20: vanilla / isq-i)",
    )


# Damaged and missing


def test_a_missing_seed_is_told_and_the_others_are_shown(copy):
    rewritten(
        copy / "5a-finals.csv",
        lambda rows: [row for row in rows if (row["algorithm"], row["seed"]) != ("eq", "2")],
    )
    results = load(copy)
    assert results.problems == ["figure 5a: of 4 seeds eq has 3 (not 2)"]
    line = figure_of(results, FIGURES["5a"])["worlds"][0]["series"][4]
    assert (line["algorithm"], line["seeds"]) == ("eq", 3)
    assert line["mean"][0] == pytest.approx(0.32 - 0.001 / 3)  # without the one 0.001 above


def test_a_truncated_file_is_told_and_its_whole_rows_are_shown(copy):
    path = copy / "4b-finals.csv"
    path.write_text(path.read_text()[:-40])
    results = load(copy)
    assert len(results.finals["4b"]) == 31
    assert "4b-finals.csv is cut off or damaged at line 33" in results.problems[0]
    assert results.problems[1] == "figure 4b: of 4 seeds idqn has 3 (not 3)"
    assert len(results.problems) == 2


def test_a_file_of_another_version_is_told_and_the_rest_is_shown(copy):
    path = copy / "4b-finals.csv"
    path.write_text(path.read_text().replace("mean_reward", "reward_mean", 1))
    results = load(copy)
    assert "4b-finals.csv is of another version or not ours" in results.problems[0]
    assert results.problems[1:] == [
        "figure 4b: no runs",
        "generalization: the training of circle-N50-K6-isq-p-seed0 is not kept, and 3 more like it",
    ]
    assert len(results.finals["4c"]) == 32
    figure = figure_of(results, FIGURES["4b"])
    assert (figure["runs"], figure["unit"]) == ([], "area")
    assert figure["worlds"][0]["series"][0]["mean"] is None
    assert figure["worlds"][0]["series"][0]["published"] == 0.76


def test_runs_of_another_version_of_ours_are_told(copy):
    rewritten(copy / "4c-finals.csv", lambda rows: [{**row, "selectmdp": "0.0.9"} for row in rows])
    assert load(copy).problems == ["some runs were made with selectmdp 0.0.9; this is 0.1.0"]


@pytest.mark.parametrize("text", ["abc", "nan", "inf", "", "0x1"])
def test_a_number_that_is_none_is_told_and_its_row_left_out(copy, text):
    def spoil(rows: list[dict[str, str]]) -> list[dict[str, str]]:
        return [{**rows[0], "mean_reward": text}, *rows[1:]]

    rewritten(copy / "4b-finals.csv", spoil)
    results = load(copy)
    assert results.problems[0] == (
        f"4b-finals.csv: mean_reward of circle-N50-K6-isq-i-seed0 is {text!r}; left out, since "
        "that cannot be"
    )
    assert results.problems[1:] == ["figure 4b: of 4 seeds isq-i has 3 (not 0)"]


def test_many_wrong_numbers_are_one_sentence(copy):
    rewritten(copy / "5c-curves.csv", lambda rows: [{**row, "reward": "x"} for row in rows])
    told = load(copy).problems
    assert told[0].startswith("5c-curves.csv: reward of predator-prey-K10-isq-i-seed0 is 'x', and")
    assert "587 more like it" in told[0]
    assert told[1:] == [f"figure 5c: no curve of 28 of 28 runs; {gaps.AGAIN}"]


def test_rows_that_are_not_of_the_figure_or_stand_there_twice_are_left_out(copy):
    rewritten(
        copy / "4b-finals.csv",
        lambda rows: [*rows, rows[0], {**rows[0], "run": "a", "N": "51"}],
    )
    results = load(copy)
    assert len(results.finals["4b"]) == 32
    assert results.problems == [
        "4b-finals.csv: circle-N50-K6-isq-i-seed0 stands there twice, and 1 more like it; left "
        "out, since that cannot be"
    ]


def test_a_curve_is_drawn_at_the_steps_that_all_its_seeds_have(copy):
    rewritten(copy / "4b-curves.csv", lambda rows: rows[1:])  # isq-i of seed 0 lacks step 0
    figure = figure_of(load(copy), FIGURES["4b"])
    assert [len(line["curve"]) for line in figure["worlds"][0]["series"][:2]] == [20, 21]


def test_an_empty_folder_is_refused_with_the_command_that_fills_it(tmp_path):
    with pytest.raises(SelectError, match=r"no results: `selectmdp reproduce all --out .*` makes"):
        load(tmp_path)
    with pytest.raises(SelectError, match="nothing is no folder: give one that"):
        load(tmp_path / "nothing")
    (tmp_path / "4b-finals.csv").write_text("a,b\n")
    with pytest.raises(SelectError, match="another version or not ours"):
        load(tmp_path)


@settings(max_examples=15)
@given(
    column=st.sampled_from(store.FINALS),
    text=st.text(max_size=6) | st.sampled_from(["-1", "1e999", "9" * 400, "</script>", "0"]),
)
def test_no_cell_of_a_file_can_break_the_page(tmp_path_factory, column, text):
    place = tmp_path_factory.mktemp("any")
    made_results.make_figure(place, FIGURES["5b"], {}, seeds=2)
    rewritten(place / "5b-finals.csv", lambda rows: [{**rows[0], column: text}, *rows[1:]])
    results = load(place)
    told = {"claims": overview.claims_of(results), "figure": figure_of(results, FIGURES["5b"])}
    json.dumps(told, allow_nan=False)
    assert len(results.finals["5b"]) >= 13


def test_what_stands_in_files_is_text_on_the_page(copy):
    nasty = "<script>alert(1)</script>"
    rewritten(copy / "4b-finals.csv", lambda rows: [{**rows[0], "run": nasty}, *rows[1:]])
    results = load(copy)
    page = overview.page_of(overview.overview(results, [], lambda done, total: None))
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert page.count("</script") == 2  # the data's and the script's


# The command


def test_the_command_writes_the_page_and_tells_the_verdicts(folder, tmp_path, capsys):
    out = tmp_path / "deep" / "report.html"
    cli.main(["report", str(folder), "-o", str(out), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["page"] == str(out)
    assert told["problems"] == []
    assert {claim["name"]: claim["verdict"] for claim in told["claims"]} == verdicts(load(folder))
    assert set(told["claims"][0]) == {
        *("name", "text", "verdict", "ours", "published", "rule", "evidence", "lacking")
    }
    assert out.read_text().startswith("<!DOCTYPE html>")


def test_the_command_shows_a_table_what_is_missing_and_where_the_page_is(copy, tmp_path, capsys):
    (copy / "cost.csv").unlink()
    cli.main(["report", str(copy), "--out", str(tmp_path / "r.html")])
    told = capsys.readouterr().out
    assert "│ holds " in told
    assert "not judged" in told
    assert "missing: cost: not measured" in told
    assert f"page: {tmp_path / 'r.html'} (0." in told


def test_an_empty_folder_ends_the_command_with_code_2(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["report", str(tmp_path)])
    assert ended.value.code == 2
    assert "holds no results" in capsys.readouterr().err


def test_every_world_is_drawn_where_there_are_runs(shown, tmp_path):
    made = pictures.save(shown, tmp_path)
    assert [path.name for path in made] == [
        *(f"figure-4a-N{size}.png" for size in (5, 20, 50)),
        *(f"figure-{name}.png" for name in ("4b", "4c", "5a", "5b", "5c")),
        "generalization.png",
    ]
    for path in made[3:]:
        with Image.open(path) as image:
            assert image.size == (960, 600)
            colors = {color for _, color in image.convert("RGB").getcolors(2**20)}
            assert (0x6B, 0x2D, 0x8C) in colors  # ISQ-P
    few = {"figures": shown["figures"][4:5], "generalization": {"sweep": [], "matrices": []}}
    assert [path.name for path in pictures.save(few, tmp_path)] == ["figure-5b.png"]
