"""What is kept of finished runs: two small CSV files a figure, with all that a number depends on.

`FIGURE-finals.csv` has a row for each run, `FIGURE-curves.csv` its evaluations on the way. They are
the record: a run whose row stands there is done, wherever its folder went. Each is written whole.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from selectmdp import runs
from selectmdp.experiments.jobs import Job, fingerprint
from selectmdp.files import MOST_TABLE, read_bounded, read_json, write_whole
from selectmdp.runlog import read_rows
from selectmdp.spec import PlaceFault, SelectError
from selectmdp.tasks import told_items

Row = dict[str, str]

SIZES = {"num_items": "N", "num_context": "U", "num_select": "K", "num_commands": "C"}
FINALS = (
    *("run", "task", "dynamics", *SIZES.values(), "algorithm", "preset", "settings", "seed"),
    *("steps", "mean_reward", "ci95", "unit", "random", "greedy", "episodes", "episode_steps"),
    *("seconds", "cores", "megabytes", "selectmdp", "jax", "numpy", "python", "machine", "config"),
)
CURVES = ("run", "algorithm", "N", "seed", "step", "seconds", "reward", "ci95")
METRICS = "metrics.csv"
FINALS_END, CURVES_END = "-finals.csv", "-curves.csv"


class Store:
    """The CSV files of one figure in a folder."""

    def __init__(self, folder: Path, figure: str) -> None:
        self.finals_path = folder / f"{figure}{FINALS_END}"
        self.curves_path = folder / f"{figure}{CURVES_END}"

    def finals(self) -> list[Row]:
        """Every run that is done."""
        return read(self.finals_path, FINALS)

    def curves(self) -> list[Row]:
        """Every evaluation on the way."""
        return read(self.curves_path, CURVES)

    def has(self, job: Job) -> bool:
        """Whether a run is done, whatever its name was; this name by another config is refused."""
        rows, asked = self.finals(), fingerprint(job.config)
        if any(row["config"] == asked for row in rows):
            return True
        row = next((row for row in rows if row["run"] == job.name), None)
        if row is None:
            return False
        for name in ("steps", "preset", "episodes"):
            if row[name] != str(getattr(job.config, name)):
                raise SelectError(
                    f"{self.finals_path} holds {job.name} with {name}={row[name]}, asked for is "
                    f"{getattr(job.config, name)}: choose another --out for another budget"
                )
        raise SelectError(
            f"{self.finals_path} holds {job.name} by other options or settings, or by other "
            "defaults of the preset: choose another --out, or delete its row and its run's folder"
        )

    def add(self, job: Job, folder: Path, result: Mapping[str, Any]) -> None:
        """Keep a run; the curve first, so that a row among the finals means that all is there."""
        try:
            told = curve(job, folder, result["num_items"])
            if not told or told[-1]["step"] != str(job.config.steps):
                raise PlaceFault("its last evaluation is missing")
        except SelectError as error:
            why, _, _ = str(error).partition(";")  # its advice would leave a gap in the curve
            raise PlaceFault(
                f"it came to its end, but its curve is not whole ({why}): delete this run's folder "
                f"{folder}, and the same command makes it again"
            ) from error
        _merge(self.curves_path, CURVES, job.name, told)
        _merge(self.finals_path, FINALS, job.name, [_final(job, folder, result)])


def curve(job: Job, folder: Path, num_items: Any) -> list[Row]:
    """The evaluations of a run on its way, as far as it is."""
    return [
        {
            "run": job.name,
            "algorithm": job.config.algorithm,
            "N": told_items(num_items),
            "seed": str(job.config.seed),
            "step": str(int(row["step"])),
            "seconds": f"{row['seconds']:.1f}",
            "reward": f"{row['eval_reward']:.5f}",
            "ci95": f"{row['eval_ci95']:.5f}" if "eval_ci95" in row else "",
        }
        for row in read_rows(folder / METRICS)
        if "eval_reward" in row
    ]


def told_settings(settings: Mapping[str, Any]) -> str:
    """Changes of a preset in one cell."""
    return ";".join(f"{name}={value}" for name, value in settings.items())


def _final(job: Job, folder: Path, result: Mapping[str, Any]) -> Row:
    config = job.config
    kept = read_json(folder / runs.CONFIG)["versions"]
    references = {name: told["mean_reward"] for name, told in result["references"].items()}
    numbers = {"mean_reward": result["mean_reward"], "ci95": result["ci95"], **references}
    told = {
        "run": job.name,
        "task": config.task,
        "dynamics": result["dynamics"],
        **{short: told_items(result[name]) for name, short in SIZES.items()},
        "settings": told_settings(config.settings),
        **{name: getattr(config, name) for name in ("algorithm", "preset", "seed", "steps")},
        **{name: f"{value:.5f}" for name, value in numbers.items() if value is not None},
        "unit": result["unit"],
        "episodes": config.episodes,
        "episode_steps": result["evaluation_steps"],
        **{name: result[name] for name in ("seconds", "cores", "megabytes")},
        **kept,
        "config": fingerprint(config),
    }
    return {name: str(told.get(name, "")) for name in FINALS}


def read(path: Path, columns: Sequence[str]) -> list[Row]:
    """The rows of a CSV file with these columns; none where there is no file yet."""
    rows, fault = readable(path, columns)
    if fault is not None:
        raise SelectError(fault)
    return rows


def readable(path: Path, columns: Sequence[str]) -> tuple[list[Row], str | None]:
    """The rows of a CSV file that are whole, and what is wrong with the rest."""
    if not path.exists():
        return [], None
    try:
        text = read_bounded(path, MOST_TABLE).decode()
        lines = list(csv.reader(io.StringIO(text)))
    except (OSError, ValueError, csv.Error) as error:
        return [], f"{path} cannot be read ({error}): mend it or move it away"
    if not lines or tuple(lines[0]) != tuple(columns):
        return [], (
            f"{path} is of another version or not ours: its first line should be "
            f"{','.join(columns)}; move it away, or reproduce into another --out"
        )
    if not text.endswith("\n"):
        lines[-1:] = [[]]  # its last number may lack digits
    whole = [line for line in lines[1:] if len(line) == len(columns)]
    rows = [dict(zip(columns, line, strict=True)) for line in whole]
    if len(whole) == len(lines) - 1:
        return rows, None
    place = next(number for number, line in enumerate(lines) if len(line) != len(columns))
    told = f"{path} is cut off or damaged at line {place + 1}: delete that line"
    if path.name.endswith(CURVES_END):  # a run is made again only where its final row is gone
        told += f" and its run's row in {path.name.removesuffix(CURVES_END)}{FINALS_END}"
    return rows, f"{told}, and the same command makes it again"


def write(path: Path, columns: Sequence[str], rows: Sequence[Row]) -> None:
    """A CSV file, whole or not at all."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([row[name] for name in columns] for row in rows)
    write_whole(path, text.getvalue().encode())


def _merge(path: Path, columns: Sequence[str], run: str, rows: Sequence[Row]) -> None:
    others = [row for row in read(path, columns) if row["run"] != run]
    write(path, columns, [*others, *rows])
