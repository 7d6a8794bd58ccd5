"""The command `selectmdp`; JAX is imported inside the commands: `--help` answers at once."""

import io
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from selectmdp.spec import SelectError

Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff]


@dataclass(frozen=True)
class TaskOptions:
    """Sizes and rules of the world; what is not given takes the world's default."""

    num_items: int | None = None
    """N, items to choose from."""
    num_context: int | None = None
    """U, things seen that cannot be chosen."""
    num_select: int | None = None
    """K, items chosen in a step."""
    commands: tuple[str, ...] | None = None
    """Which of stay, up, down, left, right there are."""
    time_limit: int | None = None
    """Steps of an episode."""
    dynamics: str | None = None
    """Circle: `figures` as the published figures were made, `text` as the paper's text says."""
    grid: int | None = None
    """Predator-prey: cells on a side."""
    captors: int | None = None
    """Predator-prey: selected predators that catch a prey, 2 or 3."""


DEFAULTS = TaskOptions()

Task = Annotated[str, tyro.conf.Positional]
World = Annotated[TaskOptions, tyro.conf.arg(name="")]


def evaluate(
    task: Task,
    /,
    world: World = DEFAULTS,
    policy: str = "random",
    episodes: int = 20,
    seed: int = 0,
    json: Flag = False,
) -> None:
    """Mean reward of a step under a policy, ± 95 % interval over episodes.

    Args:
        task: circle or predator-prey.
        world: sizes and rules.
        policy: random or greedy.
        episodes: how many, each on its own seed.
        seed: the same seed meets every policy with the same chance.
        json: print one object instead of a table.
    """
    from selectmdp import console, evaluation, tasks

    env = tasks.make(task, **asdict(world))
    with console.progress(f"{policy} on {task}") as bar:
        result = evaluation.evaluate(env, policy, episodes=episodes, seed=seed, progress=bar)
    if json:
        sizes = tasks.describe(env)
        console.as_json({"task": task, "policy": policy, **sizes, **result.to_json()})
        return
    _reward_table([(task, env, policy, result)])


def check(
    target: Annotated[str, tyro.conf.Positional], /, seed: int = 0, json: Flag = False
) -> None:
    """Check an environment of yours against the rules of a Select-MDP.

    Args:
        target: module:factory, something that makes the environment when called with nothing.
        seed: where the checks' randomness begins.
        json: print one object instead of lines for people.
    """
    from selectmdp import console
    from selectmdp.check import check_select_env, load_factory

    with console.progress(f"checks of {target}") as bar:
        report = check_select_env(load_factory(target), seed=seed, progress=bar)
    if json:
        console.as_json(report.to_json())
    else:
        print(report)
    if not report.passed:
        raise SystemExit(1)


def bench(
    what: Annotated[Literal["envs"], tyro.conf.Positional],
    /,
    seconds: float = 1.0,
    json: Flag = False,
) -> None:
    """Measure speed on this machine.

    Args:
        what: envs: environment steps per second, beside a plain NumPy version of the same world.
        seconds: how long each measurement takes at least.
        json: print one object instead of a table.
    """
    from selectmdp import console
    from selectmdp.bench.envs import measure

    with console.progress(f"bench {what}") as bar:
        result = measure(seconds, bar)
    if json:
        console.as_json(result)
        return
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


def demo(out: Path = Path("demo"), episodes: int = 20) -> None:
    """Random and greedy on both worlds, a film and a picture of each.

    Args:
        out: folder for the films and pictures.
        episodes: how many each policy is evaluated on.
    """
    from selectmdp import console, evaluation, film, raster, references, tasks

    rows = []
    for task in ("circle", "predator-prey"):
        env = tasks.make(task)
        for policy in references.REFERENCES:
            with console.progress(f"{policy} on {task}") as bar:
                result = evaluation.evaluate(env, policy, episodes=episodes, progress=bar)
            rows.append((task, env, policy, result))
        with console.progress(f"film of {task}") as bar:
            shown = list(film.scenes(env, references.reference("greedy", env), steps=40))
            film.save_film(shown, out / f"{task}.gif", title="greedy", progress=bar)
            raster.save_png(shown[2][0], out / f"{task}.png")
    _reward_table(rows)
    for task in ("circle", "predator-prey"):
        console.out.print(f"film: {out / task}.gif")
    console.out.print("next: selectmdp evaluate circle --policy greedy --num-items 200")


COMMANDS: dict[str, Callable[..., None]] = {
    "evaluate": evaluate,
    "check": check,
    "bench": bench,
    "demo": demo,
}


def main(arguments: list[str] | None = None) -> None:
    """Run one command; a broken rule ends with its message and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                errors="replace"
            )  # ± on a terminal that has none is no reason to die
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


def _reward_table(rows: list[tuple[str, Any, str, Any]]) -> None:
    from selectmdp import console

    console.table(
        f"mean reward of a step ± 95 % interval, {rows[0][3].episodes} episodes",
        ("task", "N, U, K", "dynamics", "policy", "reward", "unit"),
        [
            (
                task,
                f"{env.spec.num_items}, {env.spec.num_context}, {env.spec.num_select}",
                str(result.dynamics),
                policy,
                console.plus_minus(result.mean_reward, result.ci95),
                result.unit,
            )
            for task, env, policy, result in rows
        ],
    )
