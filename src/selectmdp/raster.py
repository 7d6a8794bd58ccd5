"""Pixels of a scene, with Pillow: the still pictures and animations of the paper's two worlds.

Everything is drawn `OVERSAMPLE` times as large and averaged down, which makes edges smooth. The
same scene always gives the same pixels. A file appears whole or not at all.
"""

import io
import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageColor, ImageDraw, ImageFont

from selectmdp.files import write_whole
from selectmdp.scene import REFERENCE, Arrow, Box, Disc, Label, Scene, Shape
from selectmdp.spec import SelectError

OVERSAMPLE = 3
DASH, GAP = 6.0, 4.0
HALO = 2.0
"""White around an arrow with a head: what it lies on may be as dark as it is."""
CAPTION_HEIGHT, CAPTION_SIZE, CAPTION_LEAST = 30.0, 14.0, 9.0
CAPTION_INK, CAPTION_PAPER = "#333333", "#f2f2f0"

WHITE = (255, 255, 255, 255)
Pixels = npt.NDArray[np.uint8]
Point = tuple[float, float]
Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


def to_rgb(scene: Scene, size: int = REFERENCE) -> Pixels:
    """The picture [H, W, 3], `size` wide; a caption adds a strip below, the same for any text."""
    if size < 16:
        raise SelectError(f"size={size}: a picture must be at least 16 pixels wide")
    x0, y0, x1, y1 = scene.bounds
    height = max(1, round(size * (y1 - y0) / (x1 - x0)))
    pen = _Pen(scene, size, height)
    for shape in scene.shapes:
        pen.draw(shape)
    picture = np.asarray(pen.image.reduce(OVERSAMPLE))
    if not scene.caption:
        return picture
    return np.concatenate([picture, _caption(scene.caption, size)])


def save_png(scene: Scene, path: str | os.PathLike[str], size: int = REFERENCE) -> None:
    """Write the picture of a scene to `path`, making its folder where needed."""
    image = Image.fromarray(to_rgb(scene, size))
    _write(path, lambda file: image.save(file, format="PNG", optimize=True))


def save_gif(frames: Sequence[Pixels], path: str | os.PathLike[str], fps: float = 10.0) -> None:
    """Write frames [H, W, 3] as an endless animation.

    Frames share one palette, so that colours do not flicker. Time in a GIF comes in hundredths of a
    second and viewers honour no less than two. A frame equal to the one before prolongs that one.
    """
    if len(frames) == 0:
        raise SelectError("frames is empty: an animation needs at least 1 frame")
    if not 0 < fps <= 50:
        raise SelectError(f"fps={fps}: must be above 0 and at most 50, the most a GIF can show")
    shapes = {np.shape(frame) for frame in frames}
    first = np.shape(frames[0])
    if len(shapes) > 1 or len(first) != 3 or first[2] != 3:
        raise SelectError(f"frames of shapes {sorted(shapes)}: all must have one shape [H, W, 3]")
    palette = _palette(frames)
    images = [
        Image.fromarray(np.asarray(frame, np.uint8)).quantize(
            palette=palette, dither=Image.Dither.NONE
        )
        for frame in frames
    ]
    duration = 10 * round(100 / fps)

    def save(file: BinaryIO) -> None:
        images[0].save(
            file,
            format="GIF",
            save_all=True,
            append_images=images[1:],
            duration=duration,
            loop=0,
        )

    _write(path, save)


class _Pen:
    """Draws shapes of the world on an image that is `OVERSAMPLE` times too large."""

    def __init__(self, scene: Scene, width: int, height: int) -> None:
        x0, _, x1, y1 = scene.bounds
        self.left, self.top = x0, y1
        self.scale = width * OVERSAMPLE / (x1 - x0)  # pixels in a unit of the world
        self.pixel = width * OVERSAMPLE / REFERENCE
        size = (width * OVERSAMPLE, height * OVERSAMPLE)
        self.image = Image.new("RGB", size, scene.background)
        self.canvas = ImageDraw.Draw(self.image, "RGBA")  # blends by the colour's alpha

    def draw(self, shape: Shape) -> None:
        match shape:
            case Disc():
                self._disc(shape)
            case Box():
                self._box(shape)
            case Arrow():
                self._arrow(shape)
            case Label():
                self._label(shape)

    def _disc(self, disc: Disc) -> None:
        (x, y), radius = self._place(disc.x, disc.y), disc.radius * self.scale
        around = (x - radius, y - radius, x + radius, y + radius)
        if disc.fill is not None:
            self.canvas.ellipse(around, fill=_rgba(disc.fill, disc.opacity))
        if disc.outline is None or disc.width == 0:
            return
        color, width = _rgba(disc.outline), self._line(disc.width)
        if not disc.dashed:
            self.canvas.ellipse(around, outline=color, width=width)
            return
        count = max(4, round(2 * np.pi * radius / ((DASH + GAP) * self.pixel)))
        turn = 360 / count
        for dash in range(count):
            end = turn * (dash + DASH / (DASH + GAP))
            self.canvas.arc(around, turn * dash, end, fill=color, width=width)

    def _box(self, box: Box) -> None:
        corners = [self._place(x, y) for x, y in box.corners()]
        if box.fill is not None:
            self.canvas.polygon(corners, fill=_rgba(box.fill, box.opacity))
        if box.outline is None or box.line == 0:
            return
        color, width = _rgba(box.outline), self._line(box.line)
        if not box.dashed:
            ring = [*corners, corners[0], corners[1]]  # one side twice: the last corner is joined
            self.canvas.line(ring, fill=color, width=width, joint="curve")
            return
        for start, end in zip(corners, corners[1:] + corners[:1], strict=True):
            for piece in self._dashes(start, end):
                self.canvas.line(piece, fill=color, width=width)

    def _arrow(self, arrow: Arrow) -> None:
        start, end = self._place(arrow.x0, arrow.y0), self._place(arrow.x1, arrow.y1)
        color, width = _rgba(arrow.color), self._line(arrow.width)
        length = float(np.hypot(end[0] - start[0], end[1] - start[1]))
        if length == 0:
            return
        along = ((end[0] - start[0]) / length, (end[1] - start[1]) / length)
        head = min(arrow.head * self.pixel, length)
        neck = (end[0] - head * along[0], end[1] - head * along[1])
        side = (-along[1] * head * 0.55, along[0] * head * 0.55)
        left, right = (
            (neck[0] + side[0], neck[1] + side[1]),
            (neck[0] - side[0], neck[1] - side[1]),
        )
        if head > 0:
            halo = self._line(HALO)
            self.canvas.line([start, neck], fill=WHITE, width=width + 2 * halo)
            ring = [end, left, right, end, left]
            self.canvas.line(ring, fill=WHITE, width=2 * halo, joint="curve")
        if neck != start:
            self.canvas.line([start, neck], fill=color, width=width)
        if head > 0:
            self.canvas.polygon([end, left, right], fill=color)

    def _label(self, label: Label) -> None:
        font = _font(label.size * self.pixel)
        place = self._place(label.x, label.y)
        self.canvas.text(place, label.text, fill=_rgba(label.color), font=font, anchor="mm")

    def _place(self, x: float, y: float) -> Point:
        return (x - self.left) * self.scale, (self.top - y) * self.scale

    def _line(self, width: float) -> int:
        return max(1, round(width * self.pixel))

    def _dashes(self, start: Point, end: Point) -> list[tuple[Point, Point]]:
        length = float(np.hypot(end[0] - start[0], end[1] - start[1]))
        count = max(1, round(length / ((DASH + GAP) * self.pixel)))
        begin = np.arange(count) / count
        finish = begin + DASH / (DASH + GAP) / count
        across = (end[0] - start[0], end[1] - start[1])

        def at(share: float) -> Point:
            return start[0] + share * across[0], start[1] + share * across[1]

        return [(at(float(a)), at(float(b))) for a, b in zip(begin, finish, strict=True)]


def _caption(text: str, width: int) -> Pixels:
    """A strip [H, W, 3]; a long text is set smaller, then cut."""
    pixel = width * OVERSAMPLE / REFERENCE
    size = (width * OVERSAMPLE, max(1, round(CAPTION_HEIGHT * width / REFERENCE)) * OVERSAMPLE)
    room = size[0] - 16 * pixel
    text = " ".join(text.splitlines())
    points = CAPTION_SIZE * pixel
    points = max(points * min(1.0, room / _font(points).getlength(text)), CAPTION_LEAST * pixel)
    font = _font(points)
    if font.getlength(text) > room:
        while text and font.getlength(text + "…") > room:
            text = text[:-1]
        text += "…"
    image = Image.new("RGB", size, CAPTION_PAPER)
    middle = (size[0] / 2, size[1] / 2)
    ImageDraw.Draw(image).text(middle, text, fill=CAPTION_INK, font=font, anchor="mm")
    return np.asarray(image.reduce(OVERSAMPLE))


def _palette(frames: Sequence[Pixels]) -> Image.Image:
    """256 colours that serve all frames, learnt from at most 8 of them."""
    places = np.unique(np.linspace(0, len(frames) - 1, 8).round().astype(int))
    sample = np.concatenate([np.asarray(frames[place], np.uint8) for place in places])
    return Image.fromarray(sample).quantize(256)


@lru_cache(maxsize=64)  # reading the font takes longer than drawing a number with it
def _font(size: float) -> Font:
    return ImageFont.load_default(size=max(1.0, size))


def _rgba(color: str, opacity: float = 1.0) -> tuple[int, int, int, int]:
    red, green, blue = ImageColor.getrgb(color)[:3]
    return red, green, blue, round(255 * opacity)


def _write(path: str | os.PathLike[str], save: Callable[[BinaryIO], None]) -> None:
    file = io.BytesIO()
    save(file)
    write_whole(path, file.getvalue())
