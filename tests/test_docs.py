"""The docs: no dead link, no page forgotten, what is made from the source as the source is."""

import json
import re
from collections import Counter
from pathlib import Path

import jax
import jax.numpy as jnp
import make_api
import make_choice
import make_pictures
import make_results
import make_tables
import pytest

import selectmdp as sm
from benchmarks import made_results
from selectmdp import agent as agents
from selectmdp.algorithms import Shape
from selectmdp.experiments import generalization, sweeps
from selectmdp.experiments.store import FINALS, read, told_settings, write
from selectmdp.iterative import picked
from selectmdp.report.claims import CLAIMS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *ROOT.glob("*.md")])
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")


def prose(path: Path) -> str:
    """A page without its code."""
    return re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def anchors(path: Path) -> set[str]:
    """What its headings are called in links."""
    headings = re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    words = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {each.strip().replace(" ", "-") for each in words}


def dead(path: Path) -> list[str]:
    """Links of a page to files or headings that are not there."""
    found = []
    for target in LINK.findall(prose(path)):
        if re.match(r"[a-z]+:", target):
            continue  # elsewhere
        name, _, anchor = target.partition("#")
        file = path.parent / name if name else path
        if not file.exists() or (anchor and anchor not in anchors(file)):
            found.append(target)
    return found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_link_is_dead(path):
    assert dead(path) == []


def test_dead_links_would_be_found(tmp_path):
    (tmp_path / "other.md").write_text("# A heading, here\n\n`x`\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md) [b](other.md#a-heading-here) ![c [d]](gone.png) "
        "[e](other.md#gone) [f](#gone)"
        "\n```\n[g](code.md)\n```\n[h](https://example.org)"
    )
    assert dead(page) == ["gone.png", "other.md#gone", "#gone"]


def test_the_first_page_and_the_site_have_every_page():
    listed = set(LINK.findall(prose(DOCS / "index.md")))
    pages = {path.name for path in DOCS.glob("*.md")}
    assert pages - {"index.md"} <= listed
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("nav:")[2]
    assert pages == set(re.findall(r"([\w-]+\.md)", nav))


def test_the_api_page_is_what_the_source_says():
    assert (DOCS / "api.md").read_text(encoding="utf-8") == make_api.page()  # `make docs` writes it


def test_the_api_page_says_something_of_every_public_name():
    sections = (DOCS / "api.md").read_text(encoding="utf-8").split("\n## ")[1:]
    told = dict(section.split("\n", 1) for section in sections)
    assert set(told) == {*sm.__all__, *make_api.MORE} - {"__version__"}
    for name, text in told.items():
        words = re.sub(r"```.*?```", "", text, flags=re.DOTALL).strip()
        assert words[:1] not in ("", "-"), name


def test_the_api_page_has_every_name_that_a_page_imports():
    blocks = "".join(re.findall(r"```python\n.*?```", "".join(
        path.read_text(encoding="utf-8") for path in PAGES), re.DOTALL))  # fmt: skip
    imported = re.findall(r"^from selectmdp\.[\w.]+ import (.+)$", blocks, re.MULTILINE)
    names = {name for line in imported for name in line.split(", ")}
    assert {"everything_legal", "picked", "Scene"} <= names
    assert names <= {*sm.__all__, *make_api.MORE}


def test_the_pictures_of_sharing_are_those_of_the_script():
    for name, drawn in make_pictures.pictures().items():
        assert (DOCS / "images" / name).read_text(encoding="utf-8") == drawn


def test_the_example_of_items_that_come_and_go_runs_and_its_rules_hold():
    page = (DOCS / "come-and-go.md").read_text(encoding="utf-8")
    code, _ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict = {}
    exec(code, names)
    world = names["Depot"]()
    lines = code[code.index("class Depot") : code.index("report =")].strip().splitlines()
    assert len(lines) < 40
    agent = agents.make("isq-u", world, shape=Shape(8, pairs=True))
    params, phase_map = agent.init(jax.random.key(0)), jnp.zeros(3, int)

    def played(state, key):
        act_key, step_key = jax.random.split(key)
        seen = world.observe(state)
        action = agent.act(act_key, params, phase_map, seen, 1.0).action
        load = jnp.where(picked(action, 8), state.weight, 0.0).sum()
        return world.step(step_key, state, action)[0], (seen.present.sum(), action.items, load)

    keys = jax.random.split(jax.random.key(1), 400)
    _, (count, items, load) = jax.lax.scan(played, world.reset(keys[0]), keys)
    assert len(set(count.tolist())) > 3
    assert set((items >= 0).sum(axis=1).tolist()) == {0, 1, 2, 3}
    assert 0.8 < float(load.max()) <= 1.2


def test_the_numpy_world_of_a_varying_number_of_items_runs_and_draws_every_number():
    page = (DOCS / "come-and-go.md").read_text(encoding="utf-8")
    _, code = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict = {}
    exec(code, names)  # it checks itself
    world = names["Market"]()
    counts = [int(world.reset(seed)["present"].sum()) for seed in range(200)]
    assert set(counts) == set(range(3, 13))
    assert sm.evaluate(names["Market"], episodes=2, workers=0).steps == 20


def test_the_advice_is_what_the_results_say():
    page = (DOCS / "which-algorithm.md").read_text(encoding="utf-8")
    assert page == make_choice.page()  # `make docs` writes it


def test_advice_takes_a_side_only_where_the_interval_leaves_out_0(tmp_path):
    levels = {("4b", 50, "isq-u"): 0.80, ("4b", 50, "isq-i"): 0.799, ("4c", 200, "isq-u"): 0.7}
    levels |= {("4c", 200, "isq-i"): 0.8}
    page = make_choice.page(made_results.make(tmp_path / "results", levels))
    small = "| Circle selection, N = 50, K = 6 | 0.800 | 0.799 | +0.001 [−0.003, +0.005] |"
    assert f"{small} no difference seen |" in page
    large = "| Circle selection, N = 200, K = 6 | 0.700 | 0.800 | −0.100 [−0.104, −0.096] |"
    assert f"{large} `isq-i` |" in page
    assert "| `isq-i` | 0.800 [0.796, 0.804] | 4 | 5 |" in page  # the table of that world


def test_advice_shows_no_share_of_what_never_learned(tmp_path):
    folder = made_results.make(tmp_path / "results")
    path = folder / "generalization.csv"
    rows = read(path, generalization.COLUMNS)
    never = {"sums": "-0.0001"}  # random earns 0.098
    rows = [{**row, "mean_reward": never.get(row["network"], row["mean_reward"])} for row in rows]
    write(path, generalization.COLUMNS, rows)
    page = make_choice.page(folder)
    assert "| sums | 50 | 200 | 0.000 [0.000, 0.000] | not learned there |" in page
    assert re.search(r"\| means \| 50 \| 200 \| .* \| \d+ % \[\d+ %, \d+ %\] \|", page)


def test_without_runs_there_is_no_advice(tmp_path):
    assert make_choice.page(tmp_path).endswith("nothing to advise from.\n")
    two = make_choice.page(made_results.make(tmp_path / "two", seeds=2))
    assert "needs 3 seeds of each side" in two
    assert "difference" not in two.partition("## Questions")[2]


@pytest.mark.parametrize("path", make_tables.PAGES, ids=lambda path: path.name)
def test_the_tables_of_a_page_are_what_the_results_say(path):
    assert path.read_text(encoding="utf-8") == make_tables.page(path)  # `make docs` writes it


def test_the_table_of_learning_has_a_number_for_each_seed(tmp_path):
    row = {"minutes": 4.96, "references": {"greedy": 0.5}, "steps": 598_016}
    made = {
        "name": "circle-50",
        "minutes": 5,
        "published": {"isq-i": 0.7, "isq-u": 0.83},
        "rows": [
            {**row, "mean_reward": 1.0, "minutes_to": {"isq-i": 1.0, "isq-u": 2.04}},
            {**row, "mean_reward": 0.8, "minutes_to": {"isq-i": 1.5, "isq-u": None}},
        ],
    }
    (tmp_path / "a.json").write_text(json.dumps(made))
    told = (
        "| `circle-50` | 5 | 0.83 | 2.0, never | 1.000, 0.800 | 0.500 | 5.0, 5.0 | 598 k, 598 k |"
    )
    assert told in make_tables.learning(tmp_path)


def test_the_table_of_other_peoples_worlds_judges_episode_by_episode(tmp_path):
    run = {
        "command": "selectmdp train examples.rddl:sysadmin --minutes 10",
        "task": "examples.rddl:sysadmin",
        **{"num_items": 20, "num_select": 1, "steps": 1024, "seconds": 90.0},
        **{"mean_reward": 2.0, "ci95": 0.0314, "episode_rewards": [1.0, 2.0, 3.0]},
        "references": {
            "random": {"mean_reward": -110.0, "ci95": 17.3},
            "greedy": {"mean_reward": 1.5, "ci95": 1.26, "episode_rewards": [0.4, 1.5, 2.6]},
        },
    }
    (tmp_path / "a.json").write_text(json.dumps(run))
    (tmp_path / "b.json").write_text(json.dumps(run | {"episode_rewards": [0.5, 1.5, 2.8]}))
    (tmp_path / "faults.json").write_text("{}")
    told = make_tables.trained(tmp_path).splitlines()[2:]
    head = (
        "| `examples.rddl:sysadmin --minutes 10` | 20, 1 | −110 ± 17 | 1.5 ± 1.3 | 2.000 ± 0.031 |"
    )
    assert told[0] == f"{head} 0.50 ± 0.25 | 1,024 | 1.5 |"  # gaps 0.6, 0.5, 0.4; t(2) = 4.303
    assert told[1] == f"{head} 0.10 ± 0.25: level | 1,024 | 1.5 |"


def test_faults_of_a_kind_are_counted_together():
    none = dict.fromkeys(("lost", "loaded_corrupt", "untyped", "code_run"), 0)
    rows = [
        {"about": "killed", "trials": 1200, **none},
        {"about": "damaged files", "trials": 40, **none, "untyped": 1},
        {"about": "damaged files", "trials": 30, **none, "untyped": 2},
    ]
    told = make_tables.faults_told({"faults": rows})
    assert "| killed | 1,200 | 0 | 0 | 0 | 0 |" in told
    assert "| damaged files, in 2 ways | 70 | 0 | 0 | 3 | 0 |" in told


@pytest.mark.parametrize("name", ["ablation", "ablation-hunt"])
def test_the_table_of_the_ablation_has_every_run_that_is_swept(name):
    swept = sweeps.configs_of(ROOT / "benchmarks" / f"{name}.toml")
    wanted = Counter(
        told_settings(each.settings) if each.algorithm == "isq-u" else each.algorithm
        for each in swept
    )
    assert set(wanted) <= set(make_tables.MEANINGS)
    kept = make_tables.changes_in(ROOT / "benchmarks" / "results" / name)
    assert {change: len(rows) for change, rows in kept.items()} == wanted


def test_the_table_of_the_ablation_tells_all_seeds_and_how_far_off_they_are(tmp_path):
    row = dict.fromkeys(FINALS, "") | {"algorithm": "isq-u"}
    made = [("", 1, 0.77), ("", 0, 0.75), ("marginal=False", 0, 0.5), ("marginal=False", 1, 0.6)]
    rows = [
        {**row, "run": f"{n}", "settings": change, "seed": f"{seed}", "mean_reward": f"{reward}"}
        for n, (change, seed, reward) in enumerate(made)
    ]
    write(tmp_path / "sweep-finals.csv", FINALS, rows)
    table = make_tables.ablation({"a world": tmp_path})
    assert "| the preset |  | 0.750, 0.770 |  |" in table
    assert "| `marginal=False` | 0.500, 0.600 | −0.210 |" in table
    with pytest.raises(sm.SelectError, match="has no run of the preset"):
        make_tables.changes_in(tmp_path / "elsewhere")


def test_the_claims_in_a_page_have_verdict_and_numbers(tmp_path):
    table = make_results.claims(made_results.make(tmp_path / "results"))
    assert len(table.splitlines()) == 2 + len(CLAIMS)
    assert "| holds | The published rewards of ISQ are reached |" in table


def test_without_results_pages_say_so_and_part_of_them_is_shown_with_what_is_missing(tmp_path):
    assert make_results.claims(tmp_path) == make_results.gaps(tmp_path) == "No run is in yet.\n"
    assert make_results.figures(tmp_path) == make_results.main_figures(tmp_path)
    assert make_results.draw(tmp_path, tmp_path) == []
    part, images = tmp_path / "part", tmp_path / "images"
    part.mkdir()
    for name in ("4a", "5b"):
        made_results.make_figure(part, made_results.FIGURES[name], {})
    assert "| holds so far | The published rewards of ISQ are reached | 1 of 5" in (
        make_results.claims(part)
    )
    assert "- figure 4b: no runs\n" in make_results.gaps(part)
    drawn = [f"figure-4a-N{size}.png" for size in (5, 20, 50)] + ["figure-5b.png"]
    assert [path.name for path in make_results.draw(part, images)] == drawn
    assert re.findall(r"\(images/(.*)\)", make_results.figures(images)) == drawn
    assert re.findall(r"\((.*)\)", make_results.main_figures(images)) == [
        "docs/images/figure-5b.png"
    ]
    assert make_results.draw(tmp_path, images) == []  # the runs are gone, and their pictures too
    assert list(images.iterdir()) == []


def test_a_page_without_a_place_for_its_table_is_refused():
    with pytest.raises(sm.SelectError, match="no place <!-- claims -->"):
        make_tables.filled("# A page\n<!-- claims -->\n", "claims", "")
