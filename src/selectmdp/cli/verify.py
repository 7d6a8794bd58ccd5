"""The command `verify`: are the statements that the method rests on so?"""

from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from selectmdp.cli.options import Flag
from selectmdp.spec import SelectError

Broken = Annotated[
    Literal["untie", "asymmetric", "discount", "target"] | None, tyro.conf.arg(name="break")
]


def verify(
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None,
    broken: Broken = None,
    size: Literal["small", "default"] = "default",
    seed: int = 0,
    pictures: Path | None = None,
    json: Flag = False,
) -> None:
    """Check the paper's statements numerically; exit code 1 if one does not hold.

    Args:
        out: a file for the table and the pictures as one HTML page.
        broken: take away what a statement needs, to see its check fail. untie: one weight of the
            shared network; asymmetric: worlds that do not treat items alike; discount: 0 between
            phases; target: a function that depends on where an item stands.
        size: small takes about half of the time.
        seed: of the random worlds, networks and functions.
        pictures: a folder for the pictures as PNG.
        json: print one object instead of a table.
    """
    _check_places(out, pictures)

    from selectmdp import console
    from selectmdp.theory.plan import plan
    from selectmdp.theory.verify import verify as run

    planned = plan(size, seed, broken)
    with console.progress("verify") as bar:
        verdicts = run(planned, bar)
    if json:
        told = {name: verdict.to_json() for name, verdict in verdicts.items()}
        console.as_json({"seed": seed, "size": size, "broken": broken, **told})
    else:
        _show(verdicts)
    _save(verdicts, planned, out, pictures)
    if not all(verdict.holds for verdict in verdicts.values()):
        raise SystemExit(1)


def _check_places(out: Path | None, pictures: Path | None) -> None:
    """What cannot be written is told before minutes of work."""
    from tempfile import TemporaryFile

    from selectmdp.files import told

    if out is not None and out.is_dir():
        raise SelectError(f"-o {out} is a folder: name a file in it, such as {out / 'verify.html'}")
    for folder in (out and out.parent, pictures):
        if folder is not None and not folder.is_dir():
            raise SelectError(f"there is no folder {folder}: make it first, or name another")
        if folder is not None:
            with told(folder), TemporaryFile(dir=folder):
                pass


def _show(verdicts: dict[str, Any]) -> None:
    from selectmdp import console
    from selectmdp.cli.play import tell
    from selectmdp.theory.page import row

    lines = [row(verdict) for verdict in verdicts.values()]
    console.table(
        "the statements behind the method",
        ("verdict", "instances", "largest error", "allowed", "statement, and what was checked"),
        [
            (verdict, instances, error, allowed, f"{statement}: {checked}")
            for statement, checked, instances, error, allowed, verdict in lines
        ],
        wrap=True,
    )
    theorem = verdicts["theorem_1"].details
    tell(
        f"theorem 1 is about slopes: {theorem['saddles']} of {len(theorem['points'])} stationary "
        "points are saddles of the dense loss"
    )


def _save(verdicts: dict[str, Any], planned: Any, out: Path | None, pictures: Path | None) -> None:
    from selectmdp.files import write_whole
    from selectmdp.theory.page import page
    from selectmdp.theory.pictures import PICTURES

    if out is not None:
        write_whole(out, page(verdicts, planned).encode())
    if pictures is not None:
        for name, draw in PICTURES.items():
            write_whole(pictures / f"{name.replace('_', '-')}.png", draw(verdicts[name]))
