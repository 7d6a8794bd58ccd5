"""The command that measures: `bench`."""

from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from selectmdp.cli.options import Flag


def bench(
    what: Annotated[
        Literal["envs", "learner", "learning", "policy", "host", "scale"], tyro.conf.Positional
    ],
    /,
    seconds: float = 1.0,
    task: str = "circle-50",
    seeds: tuple[int, ...] = (0, 1, 2),
    minutes: float | None = None,
    out: Path | None = None,
    json: Flag = False,
) -> None:
    """Measure speed on this machine.

    Args:
        what: envs: environment steps per second, beside a plain NumPy version of the same world.
            learner: acting, updating and whole training of the paper's learner, beside the
            machine's own speed at a matrix product.
            learning: reward against wall-clock of `train` on a task of the paper, beside the
            published levels; runs are kept under runs/learning, one broken off goes on.
            policy: cold start of a process that loads and selects once, time of one select, both
            beside onnxruntime on the exported policy where that is installed.
            host: a step of a host environment in our loop, beside the bare environment.
            scale: time of a step, memory of a device and bytes between devices for up to 100,000
            items and 1,000 environments a device, on all devices that JAX has.
        seconds: envs, learner, policy, host, scale: how long each measurement takes at least.
        task: learning: circle-50, circle-200, predator-prey-4, -7 or -10, circle-50-text.
        seeds: learning: one training for each.
        minutes: learning: of each training; those in which the published level is to be reached,
            if not given.
        out: learning: a folder for the result as JSON, and a picture of all results in it.
        json: print one object instead of a table.
    """
    from selectmdp import console
    from selectmdp.bench import envs, host, learner, learning, policy, scale

    if what == "learning":
        told = learning.measure(task, seeds, minutes, out)
        console.as_json(told) if json else _show_learning(told)
        return
    measure, show = {
        "envs": (envs.measure, _show_envs),
        "learner": (learner.measure, _show_learner),
        "policy": (policy.measure, _show_policy),
        "host": (host.measure, _show_host),
        "scale": (scale.measure, _show_scale),
    }[what]
    with console.progress(f"bench {what}") as bar:
        result = measure(seconds, bar)
    if json:
        console.as_json(result)
    else:
        show(result)


def _show_learning(result: dict[str, Any]) -> None:
    from selectmdp import console

    def minutes(number: float | None) -> str:
        return "–" if number is None else f"{number:.1f}"

    levels = result["published"]
    told = ", ".join(f"{level} ({name})" for name, level in levels.items())
    console.table(
        f"{result['name']}, {result['minutes']:g} minutes"
        + (f"; minutes until the published {told}" if told else ""),
        (
            *("seed", "reward", "minutes", "k steps", "k/s"),
            *(str(level) for level in levels.values()),
        ),
        [
            (
                str(row["seed"]),
                console.plus_minus(row["mean_reward"], row["ci95"]),
                minutes(row["minutes"]),
                f"{row['steps'] / 1000:,.0f}",
                f"{row['steps_per_second'] / 1000:,.1f}",
                *(minutes(row["minutes_to"][name]) for name in levels),
            )
            for row in result["rows"]
        ],
    )


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


def _show_policy(result: dict[str, Any]) -> None:
    from selectmdp import console

    parts = ("seconds", "import_seconds", "load_seconds", "select_seconds", "cpu_seconds")
    console.table(
        f"cold start on {result['cores']} cores: a process that loads and selects once, seconds",
        ("way", "whole", "import", "load", "first select", "processor"),
        [(row["way"], *(f"{row[part]:.2f}" for part in parts)) for row in result["cold"]],
    )
    console.table(
        "one select of one state, K=6, milliseconds",
        ("way", "N", "median", "best", "processor"),
        [
            (
                row["way"],
                str(row["num_items"]),
                *(f"{row[part]:.2f}" for part in ("median_ms", "best_ms", "cpu_ms")),
            )
            for row in result["warm"]
        ],
    )


def _show_host(result: dict[str, Any]) -> None:
    from selectmdp import console

    console.table(
        f"a step of a host environment on {result['cores']} cores, microseconds",
        ("world", "copies", "workers", "bare", "our loop", "overhead", "ratio"),
        [
            (
                row["world"],
                str(row["copies"]),
                str(row["workers"]),
                *(f"{row[part]:.1f}" for part in ("bare_us", "loop_us", "overhead_us")),
                f"{row['ratio']:.2f}×",
            )
            for row in result["rows"]
        ],
    )
    for row in result["training"]:
        console.out.print(f"{row['world']}: {row['step_us']:.0f} µs a step of the fast preset")


def _show_scale(result: dict[str, Any]) -> None:
    from selectmdp import console

    console.table(
        f"one select of one state, K={result['num_select']}, on {result['cores']} cores",
        ("N", "median ms", "best ms", "processor ms", "peak MB"),
        [
            (
                f"{row['num_items']:,}",
                *(f"{row[part]:.2f}" for part in ("median_ms", "best_ms", "cpu_ms")),
                f"{row['peak_megabytes']:,.0f}",
            )
            for row in result["acting"]
        ],
    )
    console.table(
        f"training on {result['devices']} × {result['platform']}, for one: a round, time of a step",
        ("N", "envs × T", "batch", "state MB", "work MB", "told B", "updates", "ms", "CPU ms"),
        [
            (
                f"{row['num_items']:,}",
                f"{row['num_envs']:,} × {row['rollout']}",
                str(row["minibatch"]),
                *(f"{row[part]:,.1f}" for part in ("state_megabytes", "working_megabytes")),
                *(f"{row[part]:,}" for part in ("all_reduce_bytes", "updates_a_round")),
                *(
                    f"{row[part]:,.1f}" if part in row else "–"
                    for part in ("step_ms", "step_cpu_ms")
                ),
            )
            for row in result["run"] + result["compiled"]
        ],
    )
