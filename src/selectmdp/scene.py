"""A picture as data: the shapes of a world such as those of the paper's figures, and no renderer.

`raster.py` makes pixels of a scene, a web page draws the same scene from `Scene.to_json`. Places
and radii are in units of the world, y pointing up; shapes are drawn in order and clipped to the
bounds. What is not part of the world (line widths, arrow heads, text) is in `REFERENCE`-ths of the
picture's width, so that it looks alike in every world. Colours are written `#rrggbb`.
"""

import math
import re
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from selectmdp.spec import SelectError

REFERENCE = 480
"""A line of width 1 is one pixel in a picture this wide."""

_COLOR = re.compile(r"#[0-9a-fA-F]{6}")


@dataclass(frozen=True)
class Disc:
    """A circle and what is inside."""

    x: float
    y: float
    radius: float
    fill: str | None = None
    """None leaves the inside as it is."""
    outline: str | None = None
    """None draws no line around."""
    opacity: float = 1.0
    """Of the fill: 0 cannot be seen, 1 hides what is below. The outline is always opaque."""
    dashed: bool = False
    width: float = 1.5
    """Of the outline."""
    item: int | None = None
    """The item that this shape stands for; one shape for each item."""

    shape: ClassVar[str] = "disc"

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True)
class Box:
    """A rectangle around (x, y), or the diamond inside it."""

    x: float
    y: float
    width: float
    height: float
    fill: str | None = None
    outline: str | None = None
    opacity: float = 1.0
    """Of the fill, as for a disc."""
    dashed: bool = False
    line: float = 1.5
    """Width of the outline."""
    diamond: bool = False
    """Corners in the middle of the rectangle's sides."""
    item: int | None = None

    shape: ClassVar[str] = "box"

    def __post_init__(self) -> None:
        _check(self)

    def corners(self) -> tuple[tuple[float, float], ...]:
        """The four corners, counter-clockwise."""
        right, up = self.width / 2, self.height / 2
        if self.diamond:
            offsets = ((right, 0.0), (0.0, up), (-right, 0.0), (0.0, -up))
        else:
            offsets = ((right, up), (-right, up), (-right, -up), (right, -up))
        return tuple((self.x + dx, self.y + dy) for dx, dy in offsets)


@dataclass(frozen=True)
class Arrow:
    """A line from (x0, y0) to (x1, y1), where its head is."""

    x0: float
    y0: float
    x1: float
    y1: float
    color: str
    width: float = 2.5
    head: float = 9.0
    """Length of the head; 0 is a plain line."""
    item: int | None = None

    shape: ClassVar[str] = "arrow"

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True)
class Label:
    """A text centred on (x, y)."""

    x: float
    y: float
    text: str
    color: str
    size: float = 13.0
    item: int | None = None

    shape: ClassVar[str] = "label"

    def __post_init__(self) -> None:
        _check(self)


Shape = Disc | Box | Arrow | Label


@dataclass(frozen=True)
class Scene:
    """What is to be seen of a world."""

    bounds: tuple[float, float, float, float]
    """(x0, y0, x1, y1): the part of the world in the picture."""
    shapes: tuple[Shape, ...]
    """The first is drawn first."""
    caption: str = ""
    """One line below the picture."""
    background: str = "#ffffff"

    def __post_init__(self) -> None:
        x0, y0, x1, y1 = self.bounds
        if not (all(map(math.isfinite, self.bounds)) and x0 < x1 and y0 < y1):
            raise SelectError(f"bounds={self.bounds}: must be finite with x0 < x1 and y0 < y1")
        _check_color("background", self.background)

    def to_json(self) -> dict[str, Any]:
        """The scene in lists, numbers and strings; each shape names its kind under `shape`."""
        return {
            "bounds": list(self.bounds),
            "reference": REFERENCE,
            "background": self.background,
            "caption": self.caption,
            "shapes": [{"shape": shape.shape, **asdict(shape)} for shape in self.shapes],
        }


def _check(shape: Shape) -> None:
    """Refuse what no renderer can draw; NumPy numbers become Python's, which JSON knows."""
    for field in fields(shape):
        value = getattr(shape, field.name)
        if field.name in ("fill", "outline", "color"):
            if value is not None or field.name == "color":
                _check_color(field.name, value)
        elif field.type is float:
            _set_number(shape, field.name, value)
        elif field.name == "item" and value is not None:
            object.__setattr__(shape, "item", int(value))


def _set_number(shape: Shape, name: str, value: Any) -> None:
    number = float(value)
    if not math.isfinite(number):
        raise SelectError(f"{type(shape).__name__} {name}={number}: must be finite")
    if name == "opacity" and not 0 <= number <= 1:
        raise SelectError(f"opacity={number}: must be between 0 and 1")
    if name in ("radius", "width", "height", "line", "head", "size") and number < 0:
        raise SelectError(f"{type(shape).__name__} {name}={number}: must not be negative")
    object.__setattr__(shape, name, number)


def _check_color(name: str, value: Any) -> None:
    if not isinstance(value, str) or _COLOR.fullmatch(value) is None:
        raise SelectError(f"{name}={value!r}: a colour is written like #e07b00")
