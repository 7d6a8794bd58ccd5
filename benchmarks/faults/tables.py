"""Tables of results with something wrong in them, as `selectmdp report` meets them.

They have no hashes: people read, mend and commit them. So a number that is another number cannot be
told; but nothing may end the report without a message, and nothing in them becomes part of a page.
"""

import os
import random
from collections.abc import Callable
from pathlib import Path

from benchmarks.faults.lab import Tally
from selectmdp.report import overview
from selectmdp.report.results import load
from selectmdp.spec import SelectError

ODD = (
    *("", "nan", "-1", "1e999", "9" * 5000, "0x1", "<script>alert(1)</script>", "</script>"),
    *("\x00", "\x1b[2J", '"', "'", "\u2028", "x" * 200_000, "../../x", "=1+1", "null", "0"),
)


def table_damaged(rng: random.Random, folder: Path) -> None:
    """Cut off, a flipped bit, nothing at all, or gigabytes."""
    path = _any(rng, folder)
    data = bytearray(path.read_bytes())
    how = rng.choice(["cut", "flip", "zero", "huge"])
    if how == "flip":
        bit = rng.randrange(8 * len(data))
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
    else:
        sizes = {"cut": rng.randrange(len(data)), "zero": 0, "huge": 3 << 30}
        os.truncate(path, sizes[how])


def odd_cells(rng: random.Random, folder: Path) -> None:
    """Cells that hold what should not be there."""
    path = _any(rng, folder)
    lines = path.read_text().split("\n")
    for _ in range(rng.randint(1, 5)):
        row = rng.randrange(len(lines))
        cells = lines[row].split(",")
        cells[rng.randrange(len(cells))] = rng.choice(ODD)
        lines[row] = ",".join(cells)
    path.write_text("\n".join(lines))


DAMAGES: dict[str, Callable[[random.Random, Path], None]] = {
    "table damaged": table_damaged,
    "odd cells": odd_cells,
}


def meet(folder: Path, tally: Tally) -> bool:
    """Read it, judge it, make the page; whether there is one."""
    try:
        results = load(folder)
        claims = overview.claims_of(results)
        page = overview.page_of(overview.overview(results, claims, lambda done, total: None))
    except SelectError:
        return False
    except Exception as error:
        tally.untyped += 1
        tally.notes.append(f"{tally.fault}: {error!r:.300}")
        return False
    if page.lower().count("<script") != 2:  # ours: the data and the code
        tally.code_run += 1
        tally.notes.append(f"{tally.fault}: a script of the table's own in the page")
    return True


def _any(rng: random.Random, folder: Path) -> Path:
    return rng.choice(sorted(folder.glob("*.csv")))
