"""The command that measures: `bench`."""

from typing import Annotated, Any, Literal

import tyro

from selectmdp.cli.options import Flag


def bench(
    what: Annotated[Literal["envs", "learner"], tyro.conf.Positional],
    /,
    seconds: float = 1.0,
    json: Flag = False,
) -> None:
    """Measure speed on this machine.

    Args:
        what: envs: environment steps per second, beside a plain NumPy version of the same world.
            learner: acting, updating and whole training of the paper's learner, beside the
            machine's own speed at a matrix product.
        seconds: how long each measurement takes at least.
        json: print one object instead of a table.
    """
    from selectmdp import console
    from selectmdp.bench import envs, learner

    measure, show = {
        "envs": (envs.measure, _show_envs),
        "learner": (learner.measure, _show_learner),
    }[what]
    with console.progress(f"bench {what}") as bar:
        result = measure(seconds, bar)
    if json:
        console.as_json(result)
    else:
        show(result)


def _show_envs(result: dict[str, Any]) -> None:
    from selectmdp import console

    rows = [
        (
            row["world"],
            f"{row['batch']:,}",
            f"{row['steps_per_second']:,.0f}",
            f"{row['ratio']:,.1f}×",
        )
        for row in result["rows"]
    ]
    console.table(
        f"environment steps per second on {result['cores']} cores",
        ("world", "batch", "steps/s", "NumPy twin ×"),
        rows,
    )
