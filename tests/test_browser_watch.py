"""The page of `selectmdp watch` in a real browser: what it draws, and how it is played."""

import base64
import io
import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import browser as chromium
import jax.numpy as jnp
import numpy as np
import pytest
import tiny
from ladder import Ladder, lazy, literal
from PIL import Image
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import selectmdp as sm
from selectmdp import film
from selectmdp.raster import to_rgb
from selectmdp.references import reference
from selectmdp.report import replay

pytestmark = pytest.mark.browser
haste = tiny.haste
browser = chromium.browser

CIRCLE = sm.Circle(num_items=8, num_context=2, num_select=3)
HUNT = sm.PredatorPrey(num_items=6, num_context=3, num_select=2)
TEAM = sm.League(num_items=8, formation=(1, 1, 1, 0), time_limit=6)
WORLDS: dict[str, Any] = {"circle": CIRCLE, "hunt": HUNT, "league": TEAM}
STEPS = 4
TRAINED, GREEDY = 0, 2


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of each world, and one of a ladder whose numbers are literal."""
    folder = tmp_path_factory.mktemp("pages")
    paths = {}
    for name, env in WORLDS.items():
        policy = tiny.untrained("isq-u", env)
        players = replay.players(policy, env)
        data = replay.recorded(env, players, task=name, steps=STEPS, seed=1)
        paths[name] = folder / f"{name}.html"
        paths[name].write_text(replay.page_of(data, policy, "runs/</script><b>x"), "utf-8")
    data = replay.recorded(Ladder(), [literal(), lazy()], task="ladder", steps=3)
    paths["ladder"] = folder / "ladder.html"
    paths["ladder"].write_text(replay.page_of(data, policy, "runs/ladder"), "utf-8")
    return paths


def text(driver: Any, css: str) -> str:
    return driver.find_element(By.CSS_SELECTOR, css).text


def press(driver: Any, *keys: str) -> None:
    """Keys one after the other, into what has the focus; the first of a pair is held down."""
    for key in keys:
        chain = ActionChains(driver)
        if key.startswith(Keys.SHIFT):
            chain.key_down(Keys.SHIFT).send_keys(key[1:]).key_up(Keys.SHIFT).perform()
        else:
            chain.send_keys(key).perform()


def click(driver: Any, name: str) -> None:
    driver.find_element(By.ID, name).click()


def place(driver: Any) -> tuple[int, int]:
    """Step and pick that the page says it shows."""
    words = text(driver, "#now").split()
    return int(words[1]), int(words[5])


def picture(driver: Any, player: int) -> np.ndarray:
    """The pixels of a player's canvas [H, W, 3]."""
    script = "return document.querySelectorAll('canvas')[arguments[0]].toDataURL('image/png')"
    encoded = driver.execute_script(script, player).split(",")[1]
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(encoded))).convert("RGB"))


def until(true: Callable[[], bool]) -> None:
    """Wait for something that a running page will do; fail after a long while."""
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


# What is drawn


@pytest.mark.parametrize("name", ["circle", "hunt", "league", "ladder"])
def test_a_page_draws_its_worlds_and_complains_of_nothing(browser, pages, name):
    driver = browser(pages[name])
    players = 2 if name == "ladder" else 3
    assert len(driver.find_elements(By.TAG_NAME, "canvas")) == players
    for player in range(players):
        colors = np.unique(picture(driver, player).reshape(-1, 3), axis=0)
        assert len(colors) > 20
    assert driver.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert chromium.errors(driver) == []


def test_the_page_says_what_a_dashed_circle_is_once(browser, pages):
    driver = browser(pages["circle"])
    captions = [each.text for each in driver.find_elements(By.CSS_SELECTOR, ".caption")]
    assert captions == ["thin dashed circle: where a pick moves to", "", ""]


@pytest.mark.parametrize("name", ["circle", "hunt"])
@pytest.mark.parametrize("step", [0, 3])
def test_a_canvas_shows_what_the_raster_shows(browser, pages, name, step):
    env = WORLDS[name]
    driver = browser(pages[name])
    press(driver, *[Keys.SHIFT + Keys.RIGHT] * step, *[Keys.RIGHT] * (env.spec.num_select - 1))
    assert place(driver) == (step + 1, env.spec.num_select)
    scenes = list(film.scenes(env, reference("greedy", env), steps=STEPS, seed=1))
    shown = picture(driver, GREEDY)
    wanted = to_rgb(scenes[step][0], shown.shape[1])
    assert shown.shape == wanted.shape
    other = to_rgb(scenes[1][0], shown.shape[1])
    assert difference(shown, wanted) < min(2, difference(shown, other) / 2)


def test_a_league_tells_match_score_and_points_below_its_pitch(browser, pages):
    driver = browser(pages["league"])
    captions = driver.find_elements(By.CSS_SELECTOR, ".caption")
    assert [each.text for each in captions] == ["match 1 of 6"] * 3
    press(driver, *[Keys.SHIFT + Keys.RIGHT] * 2)
    for each in driver.find_elements(By.CSS_SELECTOR, ".player"):
        earned = each.find_element(By.CSS_SELECTOR, ".total").text
        told = each.find_element(By.CSS_SELECTOR, ".caption").text
        pattern = rf"match 3 of 6 · last \d+ : \d+ · {earned} points"
        assert re.fullmatch(pattern, told), (told, earned)


def test_every_kind_of_shape_is_drawn_as_the_raster_draws_it(browser, pages):
    driver = browser(pages["ladder"])
    shown = picture(driver, 1)
    height, width, _ = shown.shape
    assert abs(height - width * 5 / 6) <= 1
    made = sm.Action(jnp.asarray([1, -1]), jnp.asarray([0, 0]))
    scene = replace(Ladder().draw(jnp.zeros((), int), made), caption="")
    wanted = to_rgb(scene, width)[:height]
    assert difference(shown, wanted) < 2
    tile = width // 6  # a unit of the world; rung 1 has its label above it, rung 0 has none
    above = [
        shown[int(2.8 * tile) : int(3.2 * tile), x * tile + tile // 2 :][:, :tile] for x in (0, 2)
    ]
    assert [bool(part.min() < 80) for part in above] == [False, True]
    for x, y in np.ndindex(6, 5):  # no unit square differs much: a shape amiss would
        square = np.s_[y * tile : (y + 1) * tile, x * tile : (x + 1) * tile]
        assert difference(shown[square], wanted[square]) < 4, (x, y)


def difference(one: np.ndarray, other: np.ndarray) -> float:
    """The mean over pixels, in 255ths."""
    return float(np.abs(one.astype(float) - other.astype(float)).mean())


def test_values_are_colours_between_the_worst_and_the_best_of_the_phase(browser, pages):
    driver = browser(pages["ladder"])
    worst, middle, best = (247, 243, 238), (207, 131, 194), (52, 12, 92)

    def rung(number: int) -> tuple[int, ...]:
        """The colour in the middle of a rung, its opacity of 0.85 on #fffaf0 undone."""
        shown = picture(driver, TRAINED)
        unit = shown.shape[1] / 6
        pixel = shown[int(4 * unit), int((1 + 2 * number) * unit)]
        return tuple(
            round((c - 0.15 * p) / 0.85) for c, p in zip(pixel, (255, 250, 240), strict=True)
        )

    assert all(
        np.abs(np.subtract(rung(number), color)).max() <= 3
        for number, color in enumerate((worst, middle, best))
    )
    assert (text(driver, ".low"), text(driver, ".high")) == ("worst 1", "best 3")
    assert len(driver.find_elements(By.CSS_SELECTOR, ".strip i")) == 3
    press(driver, Keys.RIGHT)  # now 1.5, −1, and rung 2 is picked: as the world draws it
    assert np.abs(np.subtract(rung(0), best)).max() <= 3
    assert np.abs(np.subtract(rung(1), worst)).max() <= 3
    drawn = 0.5 * np.asarray([255, 204, 0]) + 0.5 * np.asarray([255, 250, 240])
    unit = picture(driver, TRAINED).shape[1] / 6
    assert np.abs(picture(driver, TRAINED)[int(4 * unit), int(5 * unit)] - drawn).max() <= 3
    assert (text(driver, ".low"), text(driver, ".high")) == ("worst -1", "best 1.500")


# How it is played


def test_play_goes_on_pause_holds_and_the_end_is_the_end(browser, pages):
    driver = browser(pages["circle"])
    before = picture(driver, TRAINED)
    driver.execute_script("document.getElementById('speed').value = '10'")
    click(driver, "play")
    assert driver.find_element(By.ID, "play").get_attribute("aria-label") == "Pause"
    until(lambda: place(driver) > (1, 1))
    click(driver, "play")
    held = place(driver)
    assert (picture(driver, TRAINED) != before).any()
    time.sleep(0.5)
    assert place(driver) == held
    click(driver, "play")
    until(lambda: place(driver) == (STEPS, 3))
    until(lambda: driver.find_element(By.ID, "play").get_attribute("aria-label") == "Play")
    click(driver, "play")  # from the end it starts again
    until(lambda: place(driver) < (STEPS, 3))
    assert chromium.errors(driver) == []


def test_buttons_go_by_picks_and_by_steps(browser, pages):
    driver = browser(pages["circle"])
    seen = [place(driver)]
    for name in ("forward", "forward", "forward", "back", "step-forward", "forward", "step-back",
                 "step-back", "step-back", "back"):  # fmt: skip
        click(driver, name)
        seen.append(place(driver))
    assert seen == [(1, 1), (1, 2), (1, 3), (2, 1), (1, 3), (2, 1), (2, 2), (2, 1), (1, 1), (1, 1),
                    (1, 1)]  # fmt: skip


def test_keys_play_and_go(browser, pages):
    driver = browser(pages["circle"])
    press(driver, Keys.RIGHT, Keys.RIGHT, Keys.LEFT)
    assert place(driver) == (1, 2)
    press(driver, Keys.SHIFT + Keys.RIGHT)
    assert place(driver) == (2, 1)
    press(driver, Keys.END)
    assert place(driver) == (STEPS, 3)
    press(driver, Keys.HOME, " ")
    until(lambda: place(driver) > (1, 1))
    press(driver, " ")
    held = place(driver)
    time.sleep(0.8)
    assert place(driver) == held


def test_on_a_control_a_key_counts_once(browser, pages):
    driver = browser(pages["circle"])
    driver.execute_script("document.getElementById('seek').focus()")
    press(driver, Keys.RIGHT)
    assert place(driver) == (1, 2)
    driver.execute_script("document.getElementById('forward').focus()")
    press(driver, " ")  # a button under the keyboard's focus is pressed by space
    assert place(driver) == (1, 3)
    assert driver.find_element(By.ID, "play").get_attribute("aria-label") == "Play"
    click(driver, "back")  # after a click by mouse space plays
    press(driver, " ")
    assert driver.find_element(By.ID, "play").get_attribute("aria-label") == "Pause"


def test_the_slider_and_the_curve_go_to_a_place(browser, pages):
    driver = browser(pages["circle"])
    driver.execute_script(
        "const seek = document.getElementById('seek'); seek.value = 7;"
        "seek.dispatchEvent(new Event('input'));"
    )
    assert place(driver) == (3, 2)
    chart = driver.find_element(By.CSS_SELECTOR, ".chart")
    right = int(0.1 * chart.size["width"])  # of the middle
    ActionChains(driver).move_to_element_with_offset(chart, right, 0).click().perform()
    assert place(driver) == (STEPS // 2 + 1, 3)


# What is said


def test_rewards_are_told_step_by_step(browser, pages):
    driver = browser(pages["ladder"])

    def told(player: int) -> list[str]:
        return [text(driver, f".p{player}.player .{name}") for name in ("earned", "total", "mean")]

    assert told(0) == ["…", "0", "–"]
    assert text(driver, "#now") == "Step 1 of 3, pick 1 of 2: item 2, 1, worth 3. Reward so far 0."
    press(driver, Keys.RIGHT)
    assert (told(0), told(1)) == (["7", "7", "7"], ["2", "2", "2"])
    assert text(driver, "#now").endswith("item 0, 0, worth 1.500. Reward 7, so far 7.")
    press(driver, Keys.END)  # the first player's episode has ended
    assert (told(0), told(1)) == (["–", "14", "7"], ["2", "6", "2"])
    assert text(driver, "#now") == "Step 3 of 3, pick 2 of 2: ended. Reward 14."
    assert text(driver, ".p0.player .caption") == "ended after 2 steps"
    assert text(driver, ".p1.player .caption") == "height 0"


def test_every_control_has_a_name_and_the_place_is_read_out(browser, pages):
    driver = browser(pages["hunt"])
    tree = driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    controls = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in tree
        if node["role"]["value"] in ("button", "slider", "combobox", "image", "canvas")
    ]
    assert [name for role, name in controls if role == "button"] == [
        "Back one step", "Back one pick", "Play", "Forward one pick", "Forward one step",
    ]  # fmt: skip
    assert ("slider", "Position in the episode") in controls
    assert ("combobox", "Speed") in controls
    assert ("image", "The world under isq-u, with its picks") in controls
    assert all(name for _, name in controls)
    now = driver.find_element(By.ID, "now")
    assert now.get_attribute("aria-live") == "polite"
    click(driver, "play")
    assert now.get_attribute("aria-live") == "off"
    slider = driver.find_element(By.ID, "seek")
    click(driver, "play")
    step, pick = place(driver)
    assert slider.get_attribute("aria-valuetext") == f"step {step}, pick {pick}"


def test_a_run_named_like_a_tag_is_shown_as_text(browser, pages):
    driver = browser(pages["circle"])
    assert text(driver, "#facts").startswith("runs/</script><b>x · N")
    assert driver.find_elements(By.TAG_NAME, "b") == []
    assert text(driver, "h1") == "isq-u on circle"


@pytest.mark.parametrize(("width", "height"), [(390, 844), (800, 1000), (1280, 900)])
def test_nothing_is_wider_than_the_screen(browser, pages, width, height):
    driver = browser(pages["hunt"], width, height)
    assert driver.execute_script("return document.documentElement.scrollWidth") == width
    lefts = {card.rect["x"] for card in driver.find_elements(By.CSS_SELECTOR, ".card")}
    assert (len(lefts) == 1) == (width == 390)  # one column on a phone
    for button in driver.find_elements(By.TAG_NAME, "button"):
        assert min(button.size.values()) >= 44
        assert button.rect["y"] - driver.execute_script("return scrollY") < height


@pytest.mark.parametrize("name", [*WORLDS, "ladder"])
def test_the_whole_page_is_not_blank(browser, pages, name, tmp_path):
    picture = chromium.pictured(browser(pages[name]), tmp_path / f"{name}.png")
    assert len(picture.getcolors(2**20)) > 200


def test_data_survives_the_page(browser, pages):
    driver = browser(pages["circle"])
    inside = driver.execute_script("return document.getElementById('data').textContent")
    assert json.loads(inside)["run"] == "runs/</script><b>x"
