"""Fills the tables in pages that people write, from committed results: the faults in README.md.

`make docs` runs it, and a test holds the committed pages against the committed results. A table
stands between `<!-- NAME -->` and `<!-- end of NAME -->`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from selectmdp.spec import SelectError

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks" / "results"


def faults() -> str:
    """What became of each kind of fault."""
    return faults_told(json.loads((BENCHMARKS / "faults.json").read_bytes()))


def faults_told(told: Mapping[str, Any]) -> str:
    """A row for each kind of fault, of `python -m benchmarks.faults --json`."""
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for each in told["faults"]:
        kinds.setdefault(each["about"], []).append(each)
    lines = [
        (
            about if len(rows) == 1 else f"{about}, in {len(rows)} ways",
            *(f"{sum(row[name] for row in rows):,}" for name in COUNTED),
        )
        for about, rows in kinds.items()
    ]
    return markdown(("fault", *COUNTED.values()), lines)


COUNTED = {
    "trials": "trials",
    "lost": "lost",
    "loaded_corrupt": "loaded though corrupt",
    "untyped": "error without a message",
    "code_run": "code run",
}

TABLES: dict[str, tuple[Path, Callable[[], str]]] = {"faults": (ROOT / "README.md", faults)}


def filled(page: str, name: str, table: str) -> str:
    """A page with a table in its place."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SelectError(f"a page has no place {begin.strip()} … {end.strip()}")
    return f"{before}{begin}\n{table}\n{end}{after}"


def markdown(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = [names, ["---"] * len(names), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


if __name__ == "__main__":
    for name, (path, make) in TABLES.items():
        path.write_text(filled(path.read_text(encoding="utf-8"), name, make()), encoding="utf-8")
