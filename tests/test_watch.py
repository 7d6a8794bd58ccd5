"""What `selectmdp watch` shows: literal data, paired seeds, and text that stays text."""

import json
from dataclasses import fields
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import tiny
from hypothesis import given
from hypothesis import strategies as st
from ladder import Ladder, lazy, literal
from PIL import Image
from worlds import Shelf

import selectmdp as sm
from selectmdp import cli, film, runs, scene, worlds
from selectmdp.references import reference
from selectmdp.report import replay
from selectmdp.report.page import asset, page
from selectmdp.spec import SelectError

haste = tiny.haste

CIRCLE = sm.Circle(num_items=8, num_select=2)


@pytest.fixture(scope="module")
def run() -> Path:
    return tiny.finished()


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    """Five steps of an untrained policy, random and greedy."""
    policy = tiny.untrained("isq-u", CIRCLE)
    return replay.recorded(CIRCLE, replay.players(policy, CIRCLE), task="circle", steps=5, seed=3)


def shapes_of(data: dict[str, Any], player: int, step: int, phase: int) -> list[dict[str, Any]]:
    """The shapes of a frame as `Scene.to_json` has them: what the page does, again."""
    _, *runs = data["players"][player]["frames"][step][phase]
    numbers = [
        first + each
        for first, count in zip(runs[::2], runs[1::2], strict=True)
        for each in range(count)
    ]
    found = []
    for style, item, *place in (data["shapes"][number] for number in numbers):
        shape = dict(data["styles"][style])
        shape["item"] = None if item < 0 else item
        shape.update(zip(data["places"][shape["shape"]], place, strict=True))
        found.append(shape)
    return found


# Data


def test_a_ladder_of_three_rungs_is_told_in_literal_numbers() -> None:
    data = replay.recorded(Ladder(), [literal()], task="ladder", steps=9, seed=5)
    assert {name: data[name] for name in ("task", "seed", "steps", "unit")} == {
        "task": "ladder",
        "seed": 5,
        "steps": 2,  # where the episode ends
        "unit": "points",
    }
    assert (data["num_items"], data["num_select"], data["commands"]) == (3, 2, ["0", "1"])
    [player] = data["players"]
    assert player["name"] == "literal"
    assert player["rewards"] == [3 * 2 + 1 * 1] * 2
    assert player["picks"] == [[[2, 1], [0, 0]]] * 2
    assert player["values"] == [[[1, 2, 3], [1.5, -1, None]]] * 2
    # Shapes 0 to 2 are the rungs, 3 the first label, 4 to 7 the tiles, 8 the second label.
    assert player["frames"] == [
        [[0, 0, 8], [0, 0, 4, 8, 1, 4, 4]],
        [[1, 0, 8], [1, 0, 4, 8, 1, 4, 4]],
    ]
    assert data["stages"][1] == {
        "bounds": [-1, -1, 5, 4],
        "background": "#fffaf0",
        "caption": "height 1",
    }
    assert data["shapes"][2:5] == [[0, 2, 4, 0, 0.5], [1, -1, 4, 1], [2, -1, 0, 3, 1, 2]]
    assert data["shapes"][7:] == [[5, -1, -0.5, 1.4, 4.5, 1.6], [6, -1, 0, 1]]
    assert data["styles"][6] == {"shape": "label", "text": "0", "color": "#000000", "size": 13}
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_every_kind_of_shape_can_be_told() -> None:
    kinds = {kind.shape: {field.name for field in fields(kind)} for kind in get_args(scene.Shape)}
    assert kinds.keys() == replay.PLACES.keys()
    for kind, names in replay.PLACES.items():
        assert set(names) < kinds[kind]


def test_a_frame_is_the_scene_with_the_picks_so_far(shown: dict[str, Any]) -> None:
    player = reference("greedy", CIRCLE)
    moments = film.moments(CIRCLE, lambda *seen: (player(*seen), None), steps=5, seed=3)
    for step, moment in enumerate(moments):
        for phase in range(2):
            made = sm.Action(moment.action.items.at[phase + 1 :].set(-1), moment.action.commands)
            drawn = CIRCLE.draw(moment.state, made).to_json()["shapes"]
            told = shapes_of(shown, 2, step, phase)
            assert len(told) == len(drawn)
            for one, other in zip(told, drawn, strict=True):
                assert one.keys() == other.keys()
                for name, value in other.items():
                    close = pytest.approx(value, abs=6e-5) if type(value) is float else value
                    assert one[name] == close, (step, phase, name)


def test_values_are_those_of_the_best_command_of_each_item() -> None:
    policy = tiny.untrained("isq-i", CIRCLE)
    [trained, *_] = replay.players(policy, CIRCLE)
    data = replay.recorded(CIRCLE, [trained], task="circle", steps=4, seed=1)["players"][0]
    moments = list(film.moments(CIRCLE, trained.act, steps=4, seed=1))
    assert len(moments) == 4
    for step, moment in enumerate(moments):
        picks = policy.select(CIRCLE.observe(moment.state), q_values=True)
        assert [item for item, _ in data["picks"][step]] == picks.items.tolist()
        assert [command for _, command in data["picks"][step]] == picks.commands.tolist()
        best = np.asarray(picks.q_values).max(axis=2)
        for phase in range(2):
            told = np.asarray(data["values"][step][phase], float)  # null becomes NaN
            assert np.flatnonzero(np.isnan(told)).tolist() == picks.items[:phase].tolist()
            np.testing.assert_allclose(
                told, np.where(np.isinf(best[phase]), np.nan, best[phase]), rtol=1e-3, atol=1e-3
            )
            assert np.nanargmax(told) == data["picks"][step][phase][0]


def test_only_the_trained_policy_has_values(shown: dict[str, Any]) -> None:
    assert [player["name"] for player in shown["players"]] == ["isq-u", "random", "greedy"]
    assert [player["values"] is None for player in shown["players"]] == [False, True, True]


def test_what_is_allowed_in_this_world_counts_and_not_where_it_was_learned() -> None:
    learned = Shelf(num_items=4, num_select=3)
    policy = tiny.untrained("isq-u", learned)
    other = Shelf(num_items=3, num_select=3, sell_only=3)  # one may be sold, none be taken
    [trained, *_] = replay.players(policy, other)
    moment = next(film.moments(other, trained.act, steps=1))
    assert (moment.action.items >= 0).tolist() == [True, False, False]
    assert np.isneginf(moment.told[1:]).all()
    assert np.isneginf(moment.told[0, :, 0]).all()
    assert np.isfinite(moment.told[0, :, 1]).all()


def test_hundred_steps_of_fifty_circles_stay_below_three_megabytes() -> None:
    env = sm.Circle(num_items=50, num_select=6)
    policy = tiny.untrained("isq-u", env)
    made = [
        len(
            replay.page_of(
                replay.recorded(env, replay.players(policy, env), task="circle", steps=steps),
                policy,
                "run",
            )
        )
        for steps in (2, 10)
    ]
    whole = made[0] + (made[1] - made[0]) * 98 / 8
    assert whole < 3e6


# Seeds, ends


def test_all_start_in_the_same_state(shown: dict[str, Any]) -> None:
    starts = []
    for player in range(3):
        shapes = [shape for shape in shapes_of(shown, player, 0, 0) if shape["item"] is not None]
        starts.append({s["item"]: (s["x"], s["y"], s["radius"]) for s in shapes})
    assert len(starts[0]) == 8
    assert starts[0] == starts[1] == starts[2]
    first = [player["picks"][0] for player in shown["players"]]
    assert first[0] != first[1] != first[2]  # they differ in what they do
    again = replay.recorded(
        CIRCLE, replay.players(tiny.untrained("isq-u", CIRCLE), CIRCLE), task="circle", steps=1
    )
    other = {s["item"]: s["x"] for s in shapes_of(again, 0, 0, 0) if s["item"] is not None}
    assert other != {item: place[0] for item, place in starts[0].items()}  # another seed


def test_the_episode_is_the_first_that_evaluate_plays() -> None:
    env = sm.Circle(num_items=8, num_select=2, time_limit=12)
    policy = tiny.untrained("isq-u", env)
    data = replay.recorded(env, replay.players(policy, env), task="circle", steps=99, seed=7)
    assert data["steps"] == 12  # the time limit
    for player, told in zip((policy, "random", "greedy"), data["players"], strict=True):
        judged = sm.evaluate(env, player, episodes=1, seed=7)
        assert np.mean(told["rewards"]) == pytest.approx(judged.mean_reward, rel=1e-4), player


def test_players_whose_episodes_end_apart_keep_their_own_length() -> None:
    data = replay.recorded(Ladder(), [literal(), lazy()], task="ladder", steps=5)
    assert [player["rewards"] for player in data["players"]] == [[7, 7], [2] * 5]
    assert data["steps"] == 5
    assert data["players"][1]["picks"][4] == [[1, 0], [-1, 0]]
    assert data["players"][1]["frames"][4][0] == data["players"][1]["frames"][4][1]


def test_a_world_without_a_heuristic_is_watched_beside_random_alone() -> None:
    names = [each.name for each in replay.players(tiny.untrained("isq-u", Shelf()), Shelf())]
    assert names == ["isq-u", "random"]


def test_progress_is_told_for_all_players_together() -> None:
    heard: list[tuple[int, int]] = []
    replay.recorded(
        Ladder(), [literal(), literal()], task="ladder", steps=2,
        progress=lambda done, total: heard.append((done, total)),
    )  # fmt: skip
    assert heard == [(1, 4), (2, 4), (3, 4), (4, 4)]


# What goes wrong


def test_a_world_without_a_drawing_is_refused_with_the_fix() -> None:
    policy = tiny.untrained("isq-u", Shelf())
    with pytest.raises(SelectError, match=r"shop offers no draw\(state, action\).*scene\.Scene"):
        replay.recorded(Shelf(), replay.players(policy, Shelf()), task="shop")
    with pytest.raises(SelectError, match=r"Shelf offers no draw\(state, action\)"):
        next(film.scenes(Shelf(), reference("random", Shelf()), steps=1))


def test_a_reward_that_is_no_number_is_refused() -> None:
    with pytest.raises(SelectError, match="step 1 under literal earns nan"):
        replay.recorded(Ladder(worth=float("nan")), [literal()], task="ladder", steps=1)


@pytest.mark.parametrize("steps", [0, -1])
def test_no_steps_are_refused(steps: int) -> None:
    with pytest.raises(SelectError, match=f"steps={steps}: must"):
        replay.recorded(Ladder(), [literal()], task="ladder", steps=steps)


# The page


class Read(HTMLParser):
    """What a browser finds: tags, the data, the title."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: dict[str, str] = {}
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.inside = dict(attrs).get("id") or tag

    def handle_data(self, data: str) -> None:
        self.texts[self.inside] = self.texts.get(self.inside, "") + data

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""


def plain(title: str, data: Any) -> str:
    return page(title, body="<p>hello</p>", style="p{}", script="let one = 1;", data=data)


PIECES = [
    "</script>",
    "<script>",
    "<!--",
    "-->",
    "</title>",
    "<b>",
    "&",
    "&lt;",
    '"',
    "\\",
    "\u2028",
    "é",
]
NASTY = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)


@given(NASTY, st.dictionaries(NASTY, NASTY, max_size=3))
def test_whatever_text_is_given_stays_text(title: str, data: dict[str, str]) -> None:
    written = plain(title, data)
    read = Read(written)
    assert read.tags == Read(plain("", {})).tags
    assert json.loads(read.texts["data"]) == data
    assert read.texts.get("title", "") == title


def test_what_would_end_a_script_is_written_another_way() -> None:
    written = plain("a <b> & c", ["</script>", "<!--", "\u2028"])
    assert '["\\u003c/script>","\\u003c!--","\\u2028"]' in written
    assert "<title>a &lt;b&gt; &amp; c</title>" in written
    assert written.count("</script") == 2


def test_a_script_or_style_that_ends_itself_is_refused() -> None:
    for script in ("'</SCRIPT>'", "// <!--"):
        with pytest.raises(ValueError, match="script holds"):
            page("", body="", style="", script=script, data=None)
    with pytest.raises(ValueError, match="style holds"):
        page("", body="", style="</style>", script="", data=None)
    with pytest.raises(ValueError, match="JSON"):
        page("", body="", style="", script="", data=float("nan"))


def test_a_page_asks_nothing_of_the_network() -> None:
    scripts = ("dom.js", "scene.js", "plots.js", "cards.js", "watch.js")
    files = ("watch.html", "page.css", "watch.css", *scripts)
    whole = asset(*files)
    for harmless in ("http://www.w3.org/2000/svg", "url(#past)"):
        assert harmless in whole
        whole = whole.replace(harmless, "")
    for word in ("http", "url(", "@import", "src=", "href=", "fetch(", "import "):
        assert word not in whole
    assert "default-src 'none'" in plain("", None)


# The command


def test_the_command_writes_a_page_and_a_film(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, gif = tmp_path / "new" / "page.html", tmp_path / "film.gif"
    arguments = ["watch", str(run), "-o", str(out), "--steps", "3", "--seed", "2"]
    cli.main([*arguments, "--gif", str(gif), "--json"])
    told = json.loads(capsys.readouterr().out)
    data = json.loads(Read(out.read_text(encoding="utf-8")).texts["data"])
    assert (told["page"], told["gif"], told["task"]) == (str(out), str(gif), "circle")
    assert (told["steps"], told["seed"], data["steps"], data["seed"]) == (3, 2, 3, 2)
    assert (data["run"], data["step"], data["learned"]["num_items"]) == (str(run), 400, 6)
    for player in data["players"]:
        earned = told["players"][player["name"]]
        assert earned["steps"] == 3
        assert earned["reward"] == pytest.approx(sum(player["rewards"]), abs=1e-5)
    with Image.open(gif) as film:
        assert film.format == "GIF"
        assert film.n_frames == 3
    cli.main(arguments)
    said = capsys.readouterr().out
    assert f"page: {out} (" in said
    assert "greedy" in said


def test_a_film_is_refused_a_name_that_is_of_something_else(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["watch", str(run), "-o", str(tmp_path / "a.html"), "--gif", "film.png"])
    assert "--gif film.png: a film is a GIF" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_in_a_larger_world(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.html"
    best = str(run / "checkpoints" / "best")
    sizes = ["--num-items", "9", "--num-select", "3", "--steps", "2"]
    cli.main(["watch", best, *sizes, "-o", str(out), "--json"])
    assert json.loads(capsys.readouterr().out)["gif"] is None
    data = json.loads(Read(out.read_text(encoding="utf-8")).texts["data"])
    assert (data["num_items"], data["num_select"], len(data["players"][0]["frames"][0])) == (
        9,
        3,
        3,
    )
    assert data["learned"] == {"num_items": 6, "num_select": 2}


def test_a_run_named_like_a_script_is_text(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "<script>alert(1)<" / "script><img src=x>"
    folder.parent.mkdir()
    folder.symlink_to(run)
    out = tmp_path / "page.html"
    cli.main(["watch", str(folder), "-o", str(out), "--steps", "1"])
    written = out.read_text(encoding="utf-8")
    assert "<script>alert" not in written
    assert "<img" not in written
    assert json.loads(Read(written).texts["data"])["run"] == str(folder)


def test_mistakes_end_with_a_message_and_no_page(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "page.html"
    cases = {
        (str(tmp_path),): "holds no run: give the folder that train wrote",
        ("circle",): "circle holds no run",
        (str(run), "--steps", "0"): "steps=0: must be at least 1",
        (str(run), "--seed", "-1"): "seed=-1: must not be negative",
        (str(run), "--captors", "2"): "circle has no such option",
        (str(run), "--out", "/dev/null/page.html"): "cannot write /dev/null/page.html",
    }
    for arguments, said in cases.items():
        with pytest.raises(SystemExit) as ended:
            cli.main(["watch", "-o", str(out), *arguments])
        assert ended.value.code == 2
        assert said in capsys.readouterr().err
    monkeypatch.setattr(runs, "world_of", lambda *_: worlds.JaxWorld("shop", Shelf()))
    with pytest.raises(SystemExit):
        cli.main(["watch", str(run), "-o", str(out)])
    assert "shop offers no draw(state, action)" in capsys.readouterr().err
    assert not out.exists()


def test_a_gymnasium_environment_cannot_be_watched() -> None:
    place = worlds.world("selectmdp/Circle-v0", tiny.WORLD)
    with pytest.raises(SelectError, match=r"selectmdp/Circle-v0 offers no draw.* in JAX"):
        film.check_drawn(place.env, place.name)


def test_a_film_starts_where_the_page_does(shown: dict[str, Any]) -> None:
    scenes = list(film.scenes(CIRCLE, reference("greedy", CIRCLE), steps=5, seed=3))
    told = shown["players"][2]["rewards"]
    assert len(told) == 5
    assert [reward for _, reward in scenes] == pytest.approx(told, rel=1e-4)
