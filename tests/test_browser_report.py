"""The page of `selectmdp report` in a real browser: what it draws, and what can be switched."""

import io
from pathlib import Path
from typing import Any

import browser as chromium
import numpy as np
import pytest
from PIL import Image
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from benchmarks import made_results
from selectmdp.experiments import generalization, store
from selectmdp.report import gaps, overview
from selectmdp.report.results import load

pytestmark = pytest.mark.browser
browser = chromium.browser

NASTY = "<script>alert(1)</script>"
FIGURES = ("4a", "4b", "4c", "5a", "5b", "5c")


def written(path: Path, folder: Path) -> Path:
    results = load(folder)
    data = overview.overview(results, overview.claims_of(results), lambda done, total: None)
    path.write_text(overview.page_of(data), "utf-8")
    return path


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Whole results; one run has a nasty name, and in 5a isq-u and eq are faster than the rest."""
    place = tmp_path_factory.mktemp("page")
    folder = made_results.make(place / "results")
    finals = folder / "4b-finals.csv"
    rows = store.read(finals, store.FINALS)
    store.write(finals, store.FINALS, [{**rows[0], "run": NASTY}, *rows[1:]])
    curves = folder / "5a-curves.csv"
    faster = {"isq-u": 0.97, "eq": 0.5}
    told = [
        {**row, "seconds": str(faster.get(row["algorithm"], 1.0) * float(row["seconds"]))}
        for row in store.read(curves, store.CURVES)
    ]
    store.write(curves, store.CURVES, told)
    made_results.make_paper(folder)
    return written(place / "report.html", folder)


@pytest.fixture(scope="module")
def halved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of generalization without the policies trained at 200."""
    place = tmp_path_factory.mktemp("halved")
    made_results.make_generalization(place)
    path = place / "generalization.csv"
    rows = store.read(path, generalization.COLUMNS)
    store.write(path, generalization.COLUMNS, [row for row in rows if row["trained_N"] == "50"])
    return written(place / "report.html", place)


@pytest.fixture(scope="module")
def poor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of one figure with one seed: all else is missing."""
    place = tmp_path_factory.mktemp("poor")
    made_results.make_figure(place, made_results.FIGURES["5a"], {}, seeds=1)
    return written(place / "report.html", place)


def count(driver: Any, css: str) -> int:
    return len(driver.find_elements(By.CSS_SELECTOR, css))


def text(driver: Any, css: str) -> str:
    return driver.find_element(By.CSS_SELECTOR, css).text


def click(driver: Any, css: str) -> None:
    """As a person would, after scrolling there."""
    element = driver.find_element(By.CSS_SELECTOR, css)
    driver.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element
    )
    element.click()


def legend(driver: Any, figure: str, name: str) -> Any:
    buttons = driver.find_elements(By.CSS_SELECTOR, f"#figure-{figure} .toggle")
    return next(button for button in buttons if button.text == name)


def each(driver: Any, css: str, of: str) -> list[Any]:
    """Something of every element."""
    found = f"[...document.querySelectorAll({css!r})]"
    return driver.execute_script(f"return {found}.map((e) => e.{of})")


def is_wider_than_the_screen(driver: Any) -> bool:
    root = "document.documentElement"
    return driver.execute_script(f"return {root}.scrollWidth > {root}.clientWidth")


def test_every_figure_is_there_and_the_console_is_silent(browser, page):
    driver = browser(page)
    curves = {"4a": 9, "5a": 7, "5b": 7, "5c": 7}
    for name in FIGURES:
        figure = f"#figure-{name}"
        assert count(driver, f"{figure} polyline.curve") == curves.get(name, 8)
        assert count(driver, f"{figure} polygon.band") == curves.get(name, 8)
        assert count(driver, f"{figure} [data-published] line") == curves.get(name, 8)
    assert count(driver, "#figure-4a .chart") == 4  # over N, and the curves of three N
    assert count(driver, "#generalization .heat-map td") == 12
    assert count(driver, "#generalization polyline") == 6
    assert count(driver, "#cost polyline") == 4  # two presets over N and over K
    assert count(driver, "#parameters polyline") == 6
    assert driver.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert chromium.errors(driver) == []


def test_every_claim_has_its_verdict_in_words_and_its_evidence(browser, page):
    driver = browser(page)
    assert count(driver, "tr.claim") == 20
    assert text(driver, "#verdicts").split("\n") == ["19", "holds", "1", "holds in part"]
    assert text(driver, "#claim-cost-items .verdict") == "holds in part"
    assert count(driver, "#claim-isq-u + tr .evidence tbody tr") == 19
    assert not driver.find_element(By.CSS_SELECTOR, "#claim-isq-u + tr .evidence").is_displayed()
    click(driver, "#claim-isq-u + tr summary")
    assert driver.find_element(By.CSS_SELECTOR, "#claim-isq-u + tr .evidence").is_displayed()
    assert text(driver, "#claim-isq-u + tr .evidence tbody tr:nth-child(9)").split("\n") == [
        "holds",
        "5a: isq-u over myopic difference 0.040 [0.036, 0.044] 0.040 = 0.38 − 0.34 100 %",
    ]
    assert count(driver, "#claim-isq-u + tr .forest.holds") == 19
    assert count(driver, "#claim-cost-items + tr .forest.not") == 1


def test_the_legend_switches_a_curve_off_and_on(browser, page):
    driver = browser(page)
    button = legend(driver, "4b", "isq-u")
    assert button.get_attribute("aria-pressed") == "true"
    driver.execute_script("arguments[0].focus()", button)
    button.send_keys(Keys.ENTER)  # by keyboard
    assert button.get_attribute("aria-pressed") == "false"
    assert count(driver, "#figure-4b [data-line='isq-u']") == 0
    assert count(driver, "#figure-4b [data-published='isq-u']") == 0
    assert count(driver, "#figure-4b [data-line]") == 7
    assert count(driver, "#figure-4c [data-line]") == 8  # of another figure nothing changes
    button.send_keys(Keys.SPACE)
    assert button.get_attribute("aria-pressed") == "true"
    assert count(driver, "#figure-4b [data-line='isq-u']") == 1


def test_without_its_highest_line_a_chart_uses_the_room(browser, page):
    driver = browser(page)
    assert "1.25" in each(driver, "#figure-5c .chart text.left", "textContent")
    driver.execute_script("arguments[0].click()", legend(driver, "5c", "greedy"))
    assert "1.25" not in each(driver, "#figure-5c .chart text.left", "textContent")
    assert count(driver, "#figure-5c .chart line.greedy") == 0


def test_pointing_at_a_chart_shows_the_values_there(browser, page):
    driver = browser(page)
    chart = driver.find_element(By.CSS_SELECTOR, "#figure-4b .chart")
    tip = driver.find_element(By.CSS_SELECTOR, "#figure-4b .tip")
    assert not tip.is_displayed()
    driver.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", chart
    )
    right = chart.size["width"] // 2 - 50  # where the curves end
    ActionChains(driver).move_to_element_with_offset(chart, right, 0).perform()
    lines = tip.text.split("\n")  # of isq-i the nasty name has no curve: three seeds
    assert lines[0] == "303,104 steps"
    assert lines[1:4] == ["isq-u 0.840 ± 0.004", "isq-p 0.830 ± 0.004", "isq-i 0.771 ± 0.005"]
    assert len(lines) == 9
    ActionChains(driver).move_to_element(driver.find_element(By.TAG_NAME, "h1")).perform()
    assert not tip.is_displayed()


def test_arrow_keys_read_a_chart(browser, page):
    driver = browser(page)
    chart = driver.find_element(By.CSS_SELECTOR, "#figure-5a .chart")
    driver.execute_script("arguments[0].focus()", chart)
    chart.send_keys(Keys.ARROW_RIGHT)
    assert text(driver, "#figure-5a .tip").startswith("0 steps\n")
    chart.send_keys(Keys.ARROW_RIGHT)
    assert text(driver, "#figure-5a .tip").startswith("20,070 steps\n")
    chart.send_keys(Keys.ESCAPE)
    assert text(driver, "#figure-5a .tip") == ""


def test_figure_4a_has_random_and_greedy_at_each_n(browser, page):
    driver = browser(page)
    assert count(driver, "#figure-4a .chart line.greedy") == 3
    driver.execute_script("arguments[0].click()", legend(driver, "4a", "greedy"))
    assert count(driver, "#figure-4a .chart line.greedy") == 0
    rows = each(driver, "#figure-4a .finals tbody tr", "innerText")
    assert [row.split() for row in rows[-3:]] == [
        ["greedy", "5", "0.100"],
        ["20", "0.100"],
        ["50", "0.100"],
    ]


def test_where_all_pairs_of_runs_agree_their_number_is_shown(browser, page):
    driver = browser(page)
    cells = each(driver, "#figure-5c table.grid tbody tr:nth-child(3) td", "textContent")
    assert cells[4] == "10016 of 16 pairs"  # isq-p and eq
    shares = each(driver, "#across .finals tbody td:last-child", "textContent")
    assert shares[2:4] == ["40 %, 32 of 80 pairs", "0 %, 0 of 80 pairs"]  # isq-u, myopic


def test_over_all_worlds_dots_lie_between_random_and_greedy_and_nothing_is_claimed(browser, page):
    driver = browser(page, width=390, height=844)
    assert each(driver, "#across thead text", "textContent") == ["random", "greedy"]
    assert each(driver, "#across thead text", "getAttribute('x')") == each(
        driver, "#across tbody tr:first-child .edge", "getAttribute('x1')"
    )
    assert count(driver, "#across .claimed") == 0
    assert count(driver, "#across .edge") == 2 * count(driver, "#across circle") == 14
    box = each(driver, "#across .scroll", "getBoundingClientRect().right")
    assert max(each(driver, "#across circle", "getBoundingClientRect().right")) < box[0]
    assert len(set(each(driver, "#across .range", "getBoundingClientRect().left"))) > 1
    first = "td:nth-child(2) .edge:first-child"
    assert len(set(each(driver, f"#across {first}", "getBoundingClientRect().left"))) == 1


def test_figure_4c_says_why_its_curves_and_finals_differ(browser, page):
    driver = browser(page)
    assert "Points of a curve lie above what the table has" in text(driver, "#figure-4c")
    assert "Points of a curve lie above" not in text(driver, "#figure-4b")


def test_curves_go_over_minutes_too(browser, page):
    driver = browser(page)
    click(driver, "#figure-5a .switch button:last-child")
    assert count(driver, "#figure-5a .switch [aria-pressed='true']") == 1
    assert "minutes of a run" in each(driver, "#figure-5a .chart text", "textContent")
    chart = driver.find_element(By.CSS_SELECTOR, "#figure-5a .chart")
    driver.execute_script("arguments[0].focus()", chart)
    chart.send_keys(Keys.ARROW_LEFT)  # from the end
    told = text(driver, "#figure-5a .tip").split("\n")
    assert told[0] == "4.8 minutes"
    assert "isq-u 0.390 ± 0.004" in told  # it ended at 4.7, nearer than its last points are apart
    assert len(told) == 7  # eq ended at 2.4


def test_a_figure_says_what_its_numbers_are_of(browser, page):
    driver = browser(page)
    assert each(driver, "#figure-4b .note", "textContent")[1] == (
        "Dynamics “figures”, U = 0, K = 6, C = 5 · ours: 303,104 steps, published: 5,000,000 steps"
        " · a curve’s points: 8 episodes of 500 steps · the table: 20 episodes of 2,500 steps"
    )
    assert "8 episodes of 175 steps · the table: 20 episodes of 175 steps" in text(
        driver, "#figure-5c"
    )
    heads = each(driver, "#figure-4b .pair thead th", "textContent")
    assert heads == ["", "mean ± 95 % (t)", "published", "IQM [95 %, bootstrap]"]
    assert "a run has 303,104 to 401,408 steps (published: 5,000,000 to 10,000,000)" in text(
        driver, "#facts"
    )


def test_every_run_tells_its_world_and_settings(browser, page):
    driver = browser(page)
    cells = each(driver, "#figure-4a .runs tbody tr:first-child td", "textContent")
    assert cells[4:6] == [
        "Dynamics “figures”, U = 1, K = 1, C = 1, N = 5",
        "fast, no setting changed",
    ]


def test_every_network_has_its_heat_map_and_the_runs_that_are_in_no_figure(browser, page):
    driver = browser(page)
    told = text(driver, "#generalization")
    assert each(driver, "#generalization caption", "textContent") == [
        "pairs in the fast preset’s network",
        "means in the paper’s network",
        "sums in the paper’s network",
    ]
    assert "The published shares are of the second." in told
    assert "Every run that is in no figure (16)" in told


def test_a_reward_without_a_share_is_shown_and_what_was_not_measured_is_told(browser, halved):
    driver = browser(halved)
    cells = each(driver, "#generalization .heat-map td", "innerText")
    assert cells[0].startswith("100 %")
    assert cells[1:4] == ["0.865 ± 0.004\nshare not known", "not played", "not played"]
    assert text(driver, "#claim-day td:nth-child(3)") == "not measured"
    click(driver, "#claim-day + tr summary")
    assert "Nothing of it was measured." in text(driver, "#claim-day + tr")
    assert chromium.errors(driver) == []


@pytest.mark.parametrize("name", ["page", "poor"])
def test_a_phone_shows_the_page_without_scrolling_sideways(browser, name, request):
    driver = browser(request.getfixturevalue(name), width=390, height=844)
    assert not is_wider_than_the_screen(driver)
    driver.execute_script("document.querySelectorAll('details').forEach(box => box.open = true)")
    assert not is_wider_than_the_screen(driver)
    assert max(each(driver, ".chart svg", "getBoundingClientRect().width")) < 390
    assert chromium.errors(driver) == []


def test_a_table_that_is_cut_off_shows_that_there_is_more(browser, page):
    driver = browser(page, width=390, height=844)

    def edge() -> float:
        """How light the right edge of a table is, from 0 to 255."""
        table = driver.find_element(By.CSS_SELECTOR, "#figure-5a .scroll")
        driver.execute_script("arguments[0].scrollIntoView({behavior: 'instant'})", table)
        image = Image.open(io.BytesIO(table.screenshot_as_png)).convert("L")
        return float(np.median(np.asarray(image)[:, -3:]))

    assert edge() < 215
    driver.execute_script("document.querySelector('#figure-5a .scroll').scrollLeft = 9999")
    assert edge() > 250


def test_the_names_of_references_stand_off_the_curves(browser, page):
    driver = browser(page)
    script = """
        const chart = document.querySelector(`#figure-${arguments[0]} .chart`);
        const drawn = [...chart.querySelectorAll("[data-line] path")];
        const marks = drawn.map((mark) => mark.getBoundingClientRect());
        return [...chart.querySelectorAll("[data-reference]")].map((name) => {
          const { left, right, top, bottom } = name.getBoundingClientRect();
          return marks.filter((mark) => {
            const [x, y] = [(mark.left + mark.right) / 2, (mark.top + mark.bottom) / 2];
            return x > left && x < right && y > top && y < bottom;
          }).length;
        });
    """
    for name in ("4b", "4c", "5a", "5b", "5c"):
        assert driver.execute_script(script, name) == [0, 0]


def test_a_run_alone_is_told_what_makes_it_round_as_beside_others(browser, page):
    driver = browser(page)
    told = [
        each(driver, f"#figure-4b details:nth-of-type({place}) > p:last-of-type", "textContent")[0]
        for place in (2, 3)
    ]
    assert told[0] == told[1]
    assert (
        "with XLA_FLAGS=--xla_cpu_multi_thread_eigen=false NPROC=1 in front of its command"
        in told[0]
    )


def test_a_name_that_is_markup_is_shown_as_text(browser, page):
    driver = browser(page)
    click(driver, "#figure-4b details:nth-of-type(2) summary")
    assert text(driver, "#figure-4b .runs tbody th") == NASTY
    assert count(driver, ".runs script") == 0


def test_what_is_missing_stands_at_the_top_and_the_rest_is_shown(browser, poor):
    driver = browser(poor)
    told = text(driver, "#problems").split("\n")
    assert told[0] == "What is missing"
    assert "figure 4b: no runs" in told
    assert "figure 5a: every algorithm has 1 of 4 seeds" in told
    assert count(driver, "#figure-5a polyline.curve") == 7
    assert count(driver, "#figure-5a .band") == 0  # one seed has no interval
    assert count(driver, "#figure-4b [data-published]") == 8
    assert text(driver, "#verdicts") == "20\nnot judged"
    assert chromium.errors(driver) == []


def test_whole_results_have_nothing_missing_to_tell(browser, page):
    driver = browser(page)
    told = text(driver, "#problems")
    assert told.split("\n") == [
        "What is missing",
        f"figure 4b: no curve of 1 of 32 runs; {gaps.AGAIN}",
        "the paper's own preset: of 5,000,000 steps isq-i is at 0, isq-p is at 2,000,000",
    ]


def test_the_papers_own_preset_has_a_place_once_a_run_of_it_has_begun(browser, page, poor):
    driver = browser(page)
    assert count(driver, "#paper [data-published]") == 3
    assert [row.split() for row in each(driver, "#paper tbody tr", "innerText")] == [
        ["isq-i", "–", "–", "0.76", "not", "begun", "–"],
        ["isq-u", "0.800", "0.800", "0.83", "5,000,000", "0.1"],
        ["isq-p", "–", "0.747", "0.82", "2,000,000", "(40", "%)", "0.0"],
    ]
    chart = driver.find_element(By.CSS_SELECTOR, "#paper .chart")
    driver.execute_script("arguments[0].focus()", chart)
    chart.send_keys(Keys.ARROW_LEFT)  # the end, which isq-p has not reached
    assert text(driver, "#paper .tip").split("\n") == ["5,000,000 steps", "isq-u 0.800"]
    click(driver, "#paper .toggle")
    assert count(driver, "#paper [data-published]") == 2
    assert "Paper’s preset" in text(driver, "#contents")
    assert chromium.errors(driver) == []
    driver = browser(poor)
    assert count(driver, "#paper") == 0
    assert "Paper’s preset" not in text(driver, "#contents")


@pytest.mark.parametrize("name", ["page", "poor", "halved"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_is_not_blank(browser, name, width, request, tmp_path):
    driver = browser(request.getfixturevalue(name), width=width)
    picture = chromium.pictured(driver, tmp_path / f"{name}-{width}.png")
    assert picture.width == width
    assert picture.height > 3000
    colors = sorted(picture.getcolors(2**20), reverse=True)
    assert len(colors) > 500
    assert sum(count for count, _ in colors[2:]) > 0.02 * picture.width * picture.height  # ink


def test_on_paper_no_table_is_wider_than_its_place(browser, page, tmp_path):
    driver = browser(page, width=717)  # A4 within Chromium's margins
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        chromium.pictured(driver, tmp_path / "print.png")
        room = each(driver, ".scroll", "clientWidth")
        assert room[-2] < 360  # two tables of parameters side by side
        assert each(driver, ".scroll", "scrollWidth") == room
        assert not is_wider_than_the_screen(driver)
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_on_paper_the_evidence_is_open(browser, page):
    driver = browser(page)
    driver.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert count(driver, "#claims details[open]") == 20
    assert count(driver, "#figure-4b details[open]") == 1  # the commands
    driver.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert count(driver, "details[open]") == 0
