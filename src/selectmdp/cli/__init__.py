"""The command `selectmdp`; JAX is imported inside the commands: `--help` answers at once."""

import io
import os
import sys
from collections.abc import Callable

import tyro

from selectmdp.cli.deploy import card, export
from selectmdp.cli.experiment import reproduce, sweep
from selectmdp.cli.learn import parameters, presets, train
from selectmdp.cli.measure import bench
from selectmdp.cli.play import check, demo, evaluate
from selectmdp.cli.show import report, watch
from selectmdp.cli.verify import verify
from selectmdp.machine import enough_memory
from selectmdp.signals import Stopped
from selectmdp.spec import PeerFault, PlaceFault, SelectError

COMMANDS: dict[str, Callable[..., None]] = {
    "train": train,
    "evaluate": evaluate,
    "watch": watch,
    "presets": presets,
    "parameters": parameters,
    "check": check,
    "export": export,
    "card": card,
    "reproduce": reproduce,
    "report": report,
    "sweep": sweep,
    "verify": verify,
    "bench": bench,
    "demo": demo,
}


def main(arguments: list[str] | None = None, *, place: int = 2) -> None:
    """Run one command; a broken rule ends with its message and exit code 2.

    Who starts it as a process may want another code, `place`, where files or folders are at fault.
    A signal ends it with the code that shells know it by, after what could be saved is saved.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # ± on a terminal that has none is no reason to die
            stream.reconfigure(errors="replace")
    try:
        with enough_memory():
            tyro.extras.subcommand_cli_from_dict(
                COMMANDS,
                prog="selectmdp",
                description="Choose K of N things and tell each what to do, again and again.",
                args=sys.argv[1:] if arguments is None else arguments,
            )
    except PeerFault as error:
        ended = _ended(str(error), 1)
        if arguments is None:  # JAX would wait for who is gone, then abort
            sys.stdout.flush()
            os._exit(1)
        raise ended from None
    except SelectError as error:
        raise _ended(str(error), place if isinstance(error, PlaceFault) else 2) from None
    except Stopped as saved:
        raise _ended(str(saved), 128 + saved.signal_number) from None
    except KeyboardInterrupt as stopped:
        ended = _ended(" ".join(["stopped", *map(str, stopped.args)]), 130)
        if arguments is None:  # a thread of JAX may be compiling: shutting down under it crashes
            sys.stdout.flush()
            os._exit(130)
        raise ended from None


def _ended(message: str, code: int) -> SystemExit:
    print(f"selectmdp: {message}", file=sys.stderr)
    return SystemExit(code)
