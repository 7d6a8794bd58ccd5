"""The command `selectmdp`; JAX is imported inside the commands: `--help` answers at once."""

import io
import sys
from collections.abc import Callable

import tyro

from selectmdp.cli.learn import parameters, presets, train
from selectmdp.cli.measure import bench
from selectmdp.cli.play import check, demo, evaluate
from selectmdp.spec import SelectError

COMMANDS: dict[str, Callable[..., None]] = {
    "train": train,
    "evaluate": evaluate,
    "presets": presets,
    "parameters": parameters,
    "check": check,
    "bench": bench,
    "demo": demo,
}


def main(arguments: list[str] | None = None) -> None:
    """Run one command; a broken rule ends with its message and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # ± on a terminal that has none is no reason to die
            stream.reconfigure(errors="replace")
    try:
        tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            prog="selectmdp",
            description="Choose K of N things and tell each what to do, again and again.",
            args=sys.argv[1:] if arguments is None else arguments,
        )
    except SelectError as error:
        print(f"selectmdp: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("selectmdp: stopped", file=sys.stderr)
        raise SystemExit(130) from None
