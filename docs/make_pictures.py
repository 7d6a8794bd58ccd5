"""Writes the three pictures of `docs/method.md`: I-, U- and P-sharing (paper §3.2, §3.3) as SVG.

Which set serves which phase is asked of `selectmdp.sharing`, not drawn from memory.
"""

from pathlib import Path

from selectmdp import sharing

FOLDER = Path(__file__).parent / "images"
COLORS = ("#6b2d8c", "#d55e00", "#0072b2", "#00936b")
INK, QUIET, LINE, PAPER = "#25211d", "#6d665e", "#d9d2c8", "#ffffff"
PHASES = 4
"""K of the pictures."""


def pictures() -> dict[str, str]:
    """Name of the file → SVG."""
    return {"sharing-i.svg": inside(), "sharing-u.svg": unified(), "sharing-p.svg": progressive()}


def inside() -> str:
    """One layer of one phase's network: every item the same weights; each phase its own set."""
    picks, items = COLORS[1], COLORS[2]
    parts = [text(24, 34, "one layer of phase 2: two picks are made", 15, INK)]
    parts += [box(196, 95, 84, "mean", picks, hollow=True), box(196, 241, 84, "mean", items, True)]
    for number, y in enumerate((72, 118), start=1):
        parts += [box(24, y, 96, f"pick {number}", picks), line(120, y, 196, 95, picks, True)]
    for number, y in enumerate((172, 218, 264, 310), start=1):
        parts += [box(24, y, 96, f"item {number}", items), line(120, y, 196, 241, items, True)]
        parts += [line(120, y, 348, y, items), box(348, y, 96, f"value {number}", INK, True)]
        parts += [line(280, 95, 348, y, picks, True), line(280, 241, 348, y, items, True)]
    parts.append(text(24, 366, "same colour and dash: same weights, however many items", 13, QUIET))
    parts.append(text(498, 34, "4 phases, 4 sets", 15, INK))
    for phase, owner in enumerate(sharing.first_map("independent", PHASES)):
        parts.append(box(498, 72 + 62 * phase, 118, f"phase {phase}: θ{sub(owner)}", COLORS[owner]))
    return svg(640, 386, parts, "I-sharing: within a network all items share weights")


def unified() -> str:
    """All phases by one set."""
    parts = [text(24, 34, "K = 4 phases, one set", 15, INK)]
    for phase, owner in enumerate(sharing.first_map("unified", PHASES)):
        parts.append(box(24 + 152 * phase, 76, 132, f"phase {phase}: θ{sub(owner)}", COLORS[owner]))
        if phase:
            parts.append(line(24 + 152 * phase - 20, 76, 24 + 152 * phase, 76, QUIET))
    return svg(640, 120, parts, "U-sharing: one parameter set serves all phases")


def progressive() -> str:
    """From one set to K: a row for each stage, in the order of training."""
    stages = sharing.stages(PHASES)
    splits = len(stages) - 1
    parts = [text(24, 34, "K = 4 phases, 1 → 2 → 4 sets as training goes on", 15, INK)]
    for row, owners in enumerate(stages):
        y = 80 + 66 * row
        when = "from the start" if row == 0 else f"from {_share(row, 2 * splits)} of the steps"
        parts.append(text(24, y + 5, when, 13, QUIET))
        for phase, owner in enumerate(owners):
            x = 190 + 112 * phase
            if row:
                parent = 190 + 112 * stages[row - 1][phase]
                if owner == phase and owner != stages[row - 1][phase]:
                    parts.append(line(parent + 50, y - 49, x + 50, y - 17, QUIET, dashed=True))
            parts.append(box(x, y, 100, f"{phase}: θ{sub(owner)}", COLORS[owner]))
    end = 68 + 66 * len(stages)
    parts.append(text(24, end, "dashed: a new set begins as a copy", 13, QUIET))
    return svg(640, end + 20, parts, "P-sharing: one set that splits until there are K")


def box(x: float, y: float, width: float, label: str, color: str, hollow: bool = False) -> str:
    """A rounded box around a height, with its text."""
    fill, ink = (PAPER, color) if hollow else (color, PAPER)
    place = f'x="{x}" y="{y - 17}" width="{width}" height="34" rx="9"'
    frame = f'<rect {place} fill="{fill}" stroke="{color}" stroke-width="2"/>'
    return frame + text(x + width / 2, y + 5, label, 14, ink, "middle")


def line(x1: float, y1: float, x2: float, y2: float, color: str, dashed: bool = False) -> str:
    """From a point to another."""
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    place = f'x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"'
    return f'<line {place} stroke="{color}" stroke-width="1.6"{dash}/>'


def text(x: float, y: float, words: str, size: int, color: str, anchor: str = "start") -> str:
    """Words on a line."""
    where = f'x="{x}" y="{y}" font-size="{size}" fill="{color}" text-anchor="{anchor}"'
    return f"<text {where}>{words}</text>"


def sub(number: int) -> str:
    """A small number below the line."""
    return "₀₁₂₃₄₅₆₇₈₉"[number]


def svg(width: int, height: int, parts: list[str], title: str) -> str:
    """The whole file."""
    frame = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    back = f'<rect width="{width}" height="{height}" rx="12" fill="{PAPER}" stroke="{LINE}"/>'
    font = "font-family=\"system-ui, 'DejaVu Sans', sans-serif\""
    body = "\n".join([f"<title>{title}</title>", back, *parts])
    return f'<svg xmlns="http://www.w3.org/2000/svg" {frame} role="img" {font}>\n{body}\n</svg>\n'


def _share(part: int, whole: int) -> str:
    return {(1, 4): "¼", (2, 4): "½"}[part, whole]


if __name__ == "__main__":
    for name, drawn in pictures().items():
        (FOLDER / name).write_text(drawn, encoding="utf-8")
