"""The verdicts as one HTML page that needs nothing else: a table, two pictures, the controls."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape

from selectmdp.theory.pictures import PICTURES
from selectmdp.theory.plan import BREAKS, Plan, Verdict

COLUMNS = ("statement", "what was checked", "instances", "largest error", "allowed", "verdict")

CAPTIONS: Mapping[str, str] = {
    "theorem_1": "Theorem 1. Left: while a shared network is trained, the slope of the dense loss "
    "vanishes with its own. Right: the dense loss around the points arrived at. Where a line dips "
    "below 0 the point is a saddle of the dense loss: the proof excludes a slope, not that.",
    "theorem_2": "Theorem 2. Left: the largest error of networks of growing width on fresh states; "
    "the control depends on places and cannot be approximated, its lower bound is the upper dotted "
    "line, what is allowed the lower one. Right: the weights that the proof constructs.",
}

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What the browser lets the page do: no script, and nothing from elsewhere."""

STYLE = """
body { font: 16px/1.45 system-ui, sans-serif; color: #222; max-width: 60rem; margin: 0 auto;
  padding: 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.9rem; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.4rem 0.6rem;
  border-bottom: 1px solid #ddd; }
td.number { text-align: right; white-space: nowrap; }
.yes { color: #2d6a2d; } .no { color: #a02c2c; font-weight: bold; }
figure { margin: 1.5rem 0; break-inside: avoid; } img { max-width: 100%; height: auto; }
figcaption { font-size: 0.9rem; color: #555; }
@media print { body { max-width: none; font-size: 11pt; } }
"""


def page(verdicts: Mapping[str, Verdict], plan: Plan) -> str:
    """The whole page."""
    broken = "" if plan.broken is None else f"Broken on purpose: {BREAKS[plan.broken]}."
    controls = [
        (verdict.statement, name, f"{error:.1e}", f"{verdict.allowed:.0e}")
        for verdict in verdicts.values()
        for name, error in verdict.details.get("controls", {}).items()
    ]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>selectmdp verify</title><style>{STYLE}</style></head><body>",
            "<h1>The statements behind the method, checked numerically</h1>",
            f"<p>selectmdp verify, seed {plan.seed}. {escape(broken)}</p>",
            _table(COLUMNS, [row(verdict) for verdict in verdicts.values()]),
            *(_figure(name, verdicts[name]) for name in PICTURES if name in verdicts),
            "<h2>Controls: what must fail, by more than is allowed</h2>",
            _table(("statement", "with", "smallest error", "allowed"), controls),
            "</body></html>\n",
        ]
    )


def row(verdict: Verdict) -> tuple[str, ...]:
    """A verdict's line in a table."""
    return (
        verdict.statement,
        verdict.checked,
        str(verdict.instances),
        f"{verdict.max_error:.1e}",
        f"{verdict.allowed:.0e}",
        "holds" if verdict.holds else "does not hold",
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(map(_cell, cells))}</tr>" for cells in rows)
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def _cell(text: str) -> str:
    kinds = {"holds": "yes", "does not hold": "no"}
    kind = kinds.get(text, "number" if text[:1].isdigit() else "text")
    return f'<td class="{kind}">{escape(text)}</td>'


def _figure(name: str, verdict: Verdict) -> str:
    data = b64encode(PICTURES[name](verdict)).decode()
    caption = escape(CAPTIONS[name])
    return (
        f'<figure><img alt="{caption}" src="data:image/png;base64,{data}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )
