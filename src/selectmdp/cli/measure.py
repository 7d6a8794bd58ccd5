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


def _show_learner(result: dict[str, Any]) -> None:
    from selectmdp import console

    console.table(
        f"the paper's learner on {result['cores']} cores: K=6, batch 64, 48 channels",
        ("N", "sharing", "act ms", "update ms", "GFLOP/s", "peak", "fraction"),
        [
            (
                str(row["num_items"]),
                row["sharing"],
                f"{row['act_ms']:.2f}",
                f"{row['update_ms']:.2f}",
                f"{row['gflops']:.0f}",
                f"{row['peak_gflops']:.0f}",
                f"{row['fraction_of_peak']:.2f}",
            )
            for row in result["updates"]
        ],
    )
    console.table(
        "whole training, one update a step, beside the published code",
        ("N", "steps/s", "published", "ratio"),
        [
            (
                str(row["num_items"]),
                f"{row['steps_per_second']:.0f}",
                f"{row['published_steps_per_second']:.0f}",
                f"{row['ratio']:.1f}×",
            )
            for row in result["training"]
        ],
    )
    items, picks = result["growth"]["items"], result["growth"]["picks"]
    acting, replay = result["acting"], result["replay"]
    console.out.print(
        f"an update grows as N^{items['exponent']:.2f} and K^{picks['exponent']:.2f}; "
        f"acting at N={acting['num_items']}: {acting['act_ms']:.1f} ms; "
        f"replay of {replay['steps']:,} steps at N={replay['num_items']}: "
        f"{replay['megabytes']:.0f} MB",
        soft_wrap=True,
    )
