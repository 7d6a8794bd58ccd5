"""Scenes, their pixels and their files: literal scenes, literal colours."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from selectmdp.envs.drawing import draw_circles, draw_grid
from selectmdp.raster import save_gif, save_png, to_rgb
from selectmdp.scene import Arrow, Box, Disc, Label, Scene, Shape
from selectmdp.spec import SelectError

COMMANDS = ("stay", "up", "down", "left", "right")
UNIT = (-1.0, -1.0, 1.0, 1.0)
NOTHING = np.zeros((0, 3))


def scene(*shapes: Shape, caption: str = "") -> Scene:
    return Scene(UNIT, shapes, caption)


def pixel(picture: np.ndarray, x: float, y: float) -> tuple[int, ...]:
    """The pixel at (x, y) of a square picture of `UNIT`."""
    size = picture.shape[1]
    return tuple(int(c) for c in picture[int((1 - y) / 2 * size), int((x + 1) / 2 * size)])


def ten_circles() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    circles = np.column_stack([rng.uniform(-0.5, 0.5, (13, 2)), rng.uniform(0, 0.45, 13)])
    return circles[:10], circles[10:]


def test_a_disc_has_its_colour_in_its_centre_and_not_outside() -> None:
    picture = to_rgb(scene(Disc(0.5, 0.5, 0.25, "#204060")), size=64)
    assert picture.shape == (64, 64, 3)
    assert picture.dtype == np.uint8
    assert pixel(picture, 0.5, 0.5) == (0x20, 0x40, 0x60)
    assert pixel(picture, 0.5, 0.0) == (255, 255, 255)


def test_y_points_up() -> None:
    picture = to_rgb(scene(Disc(0, 0.9, 0.1, "#000000")), size=64)
    assert picture[:8].min() == 0
    assert picture[8:].min() == 255


def test_half_opacity_mixes_with_what_is_below() -> None:
    below = Box(0, 0, 2, 2, "#ff0000")
    picture = to_rgb(scene(below, Disc(0, 0, 0.5, "#0000ff", opacity=0.5)), size=64)
    red, green, blue = pixel(picture, 0, 0)
    assert (abs(red - 127) <= 2, green, abs(blue - 128) <= 2) == (True, 0, True)


def test_later_shapes_cover_earlier_ones() -> None:
    small, large = Disc(0, 0, 0.2, "#ff0000"), Disc(0, 0, 0.8, "#0000ff")
    assert pixel(to_rgb(scene(large, small), size=32), 0, 0) == (255, 0, 0)
    assert pixel(to_rgb(scene(small, large), size=32), 0, 0) == (0, 0, 255)


def test_a_diamond_leaves_the_corners_of_its_box_free() -> None:
    box, diamond = Box(0, 0, 1, 1, "#ff0000"), Box(0, 0, 1, 1, "#ff0000", diamond=True)
    assert pixel(to_rgb(scene(box), size=64), 0.4, 0.4) == (255, 0, 0)
    assert pixel(to_rgb(scene(diamond), size=64), 0.4, 0.4) == (255, 255, 255)
    assert pixel(to_rgb(scene(diamond), size=64), 0.1, 0.1) == (255, 0, 0)


@pytest.mark.parametrize("shape", [Disc, Box])
def test_a_dashed_outline_has_less_ink_than_a_whole_one(shape: Any) -> None:
    size = (0.5,) if shape is Disc else (1.0, 1.0)
    whole = to_rgb(scene(shape(0, 0, *size, outline="#000000")), size=120)
    dashed = to_rgb(scene(shape(0, 0, *size, outline="#000000", dashed=True)), size=120)
    share = (255.0 - dashed).sum() / (255.0 - whole).sum()
    assert 0.4 < share < 0.8


def test_an_arrow_colours_its_line_and_has_a_head_at_its_end() -> None:
    picture = to_rgb(scene(Arrow(-0.8, 0, 0.8, 0, "#00aa00", width=8, head=120)), size=120)
    assert pixel(picture, -0.5, 0.0) == (0, 0xAA, 0)
    assert pixel(picture, -0.5, 0.15) == (255, 255, 255)
    assert pixel(picture, 0.4, 0.15) == (0, 0xAA, 0)
    assert to_rgb(scene(Arrow(0, 0, 0, 0, "#000000")), size=32).min() == 255


def test_a_black_arrow_is_seen_on_black_and_a_line_without_a_head_has_no_halo() -> None:
    night = Disc(0, 0, 2, fill="#000000")
    picture = to_rgb(scene(night, Arrow(-0.8, 0, 0.8, 0, "#000000", width=40, head=120)), size=600)
    assert picture[300, 200].tolist() == [0, 0, 0]
    assert picture[300, :].min(axis=1).max() == 255  # before its tip
    assert picture[:, 200].min(axis=1).max() == 255  # beside its line
    plain = to_rgb(scene(night, Arrow(-0.8, 0, 0.8, 0, "#000000", width=40, head=0)), size=600)
    assert plain.max() == 0


def test_a_label_leaves_ink_where_it_stands() -> None:
    picture = to_rgb(scene(Label(0, 0, "8", "#000000", size=100)), size=96)
    assert picture[32:64, 32:64].min() < 40
    assert picture[:24].min() == 255


def test_a_shape_outside_the_bounds_is_clipped_and_spares_the_caption() -> None:
    far = Disc(0, -1, 0.9, "#ff0000")
    picture = to_rgb(scene(far, caption="below"), size=96)
    assert picture.shape == (96 + 6, 96, 3)
    assert tuple(picture[95, 48]) == (255, 0, 0)
    assert tuple(picture[96, 2]) == (0xF2, 0xF2, 0xF0)


def test_captions_of_any_length_give_pictures_of_one_size() -> None:
    short, long = (to_rgb(scene(caption=text), size=120) for text in ("a", "many words " * 40))
    assert short.shape == long.shape
    assert (short != long).any()


def test_the_same_scene_gives_the_same_pixels() -> None:
    items, context = ten_circles()
    pictures = [
        to_rgb(draw_circles(items, context, [(1, 1), (4, 0)], COMMANDS, 0.1, "step 3"), size=120)
        for _ in range(2)
    ]
    np.testing.assert_array_equal(pictures[0], pictures[1])


def test_a_scene_survives_json() -> None:
    items, context = ten_circles()
    drawn = draw_circles(items.astype(np.float32), context, [(3, 2)], COMMANDS, 0.1)
    data = drawn.to_json()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["bounds"] == [-0.62, -0.62, 0.62, 0.62]
    assert {shape["shape"] for shape in data["shapes"]} == {"disc", "box", "arrow", "label"}


def test_each_item_is_that_of_exactly_one_shape() -> None:
    circles = draw_circles(*ten_circles(), [(7, 1), (2, 0)], COMMANDS, 0.1)
    cells = draw_grid(np.array([[0, 0], [1, 0]]), np.array([[4, 4]]), [(1, 4)], COMMANDS, 5)
    assert sorted(s.item for s in circles.shapes if s.item is not None) == list(range(10))
    assert sorted(s.item for s in cells.shapes if s.item is not None) == [0, 1]


def test_a_pick_moves_by_reach_and_is_numbered() -> None:
    drawn = draw_circles(np.array([[0.1, 0.2, 0.05]]), NOTHING, [(0, 4)], COMMANDS, 0.1)
    (arrow,) = [s for s in drawn.shapes if isinstance(s, Arrow)]
    assert (arrow.x1, arrow.y1) == pytest.approx((0.2, 0.2))
    ghosts = [s for s in drawn.shapes if isinstance(s, Disc) and s.dashed]
    assert [(g.x, g.y, g.radius) for g in ghosts] == [pytest.approx((0.2, 0.2, 0.05))]
    assert [s.text for s in drawn.shapes if isinstance(s, Label)] == ["1"]


def test_staying_draws_no_arrow_and_no_ghost() -> None:
    drawn = draw_circles(np.array([[0.1, 0.2, 0.05]]), NOTHING, [(0, 0)], COMMANDS, 0.1)
    assert not [s for s in drawn.shapes if isinstance(s, Arrow)]
    assert not [s for s in drawn.shapes if isinstance(s, Disc) and s.dashed]


def test_the_number_of_a_tiny_pick_stands_behind_it() -> None:
    drawn = draw_circles(np.array([[0.1, 0.2, 0.01]]), NOTHING, [(0, 4)], COMMANDS, 0.1)
    (label,) = [s for s in drawn.shapes if isinstance(s, Label)]
    assert (label.x, label.y) == pytest.approx((0.06, 0.2))


def test_picks_of_nothing_are_left_out() -> None:
    items, context = ten_circles()
    drawn = draw_circles(items, context, [(5, 0), (-1, 0), (6, 0)], COMMANDS, 0.1)
    assert [s.text for s in drawn.shapes if isinstance(s, Label)] == ["1", "2"]


def test_one_predator_in_a_corner_without_preys() -> None:
    drawn = draw_grid(np.array([[0, 0]]), np.zeros((0, 2), int), [(0, 3)], COMMANDS, 1)
    assert drawn.bounds == (-1.0, -1.0, 1.0, 1.0)
    assert pixel(to_rgb(drawn, size=64), -0.25, 0.0) == (0x0B, 0x4F, 0x9E)


def test_the_catch_zone_of_a_prey_in_a_corner_is_3_cells() -> None:
    drawn = draw_grid(np.array([[4, 4]]), np.array([[0, 0]]), [], COMMANDS, 5)
    zone = {(s.x, s.y) for s in drawn.shapes if isinstance(s, Box) and s.opacity < 1}
    assert zone == {(0, 1), (1, 0), (1, 1)}


@pytest.mark.parametrize(
    ("picked", "message"),
    [([(10, 0)], "items 0 to 9"), ([(0, 5)], "0 to 4"), ([(0, 0), (0, 1)], "twice")],
)
def test_impossible_picks_are_refused(picked: list[tuple[int, int]], message: str) -> None:
    items, context = ten_circles()
    with pytest.raises(SelectError, match=message):
        draw_circles(items, context, picked, COMMANDS, 0.1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Disc(0, 0, float("nan")), "finite"),
        (lambda: Disc(0, 0, -1), "negative"),
        (lambda: Disc(0, 0, 1, opacity=2), "between 0 and 1"),
        (lambda: Label(0, 0, "a", "red"), "like #e07b00"),
        (lambda: Scene((0, 0, 0, 1), ()), "x0 < x1"),
        (lambda: to_rgb(scene(), size=3), "at least 16"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SelectError, match=message):
        make()


def test_a_png_holds_the_pixels_and_leaves_no_draft(tmp_path: Path) -> None:
    drawn = scene(Disc(0, 0, 0.5, "#123456"))
    path = tmp_path / "new" / "picture.png"
    save_png(drawn, path, size=48)
    with Image.open(path) as image:
        np.testing.assert_array_equal(np.asarray(image), to_rgb(drawn, size=48))
    assert [file.name for file in path.parent.iterdir()] == ["picture.png"]


def test_a_gif_has_the_frames_given_and_their_size_and_time(tmp_path: Path) -> None:
    frames = [to_rgb(scene(Disc(x, 0, 0.3, "#ff0000")), size=40) for x in (-0.5, 0.0, 0.5)]
    save_gif(frames, tmp_path / "a.gif", fps=4)
    with Image.open(tmp_path / "a.gif") as image:
        assert (getattr(image, "n_frames", 1), image.size, image.info["duration"]) == (
            3,
            (40, 40),
            250,
        )
        image.seek(2)
        assert image.convert("RGB").getpixel((30, 20)) == pytest.approx((255, 0, 0), abs=4)


def test_an_animation_without_frames_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SelectError, match="at least 1 frame"):
        save_gif([], tmp_path / "a.gif", fps=4)
    assert not list(tmp_path.iterdir())


def test_frames_of_different_sizes_are_refused(tmp_path: Path) -> None:
    frames = [to_rgb(scene(), size=32), to_rgb(scene(), size=40)]
    with pytest.raises(SelectError, match="one shape"):
        save_gif(frames, tmp_path / "a.gif", fps=4)
    assert not list(tmp_path.iterdir())


def test_a_failed_write_keeps_the_old_file_and_leaves_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.png"
    save_png(scene(), path, size=32)
    before = path.read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Image.Image, "save", fail)
    with pytest.raises(OSError, match="disk full"):
        save_png(scene(Disc(0, 0, 1, "#000000")), path, size=32)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["a.png"]
