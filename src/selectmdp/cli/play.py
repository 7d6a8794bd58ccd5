"""Commands that play: `evaluate` a policy, `check` an environment, `demo`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import tyro

from selectmdp.cli.options import DEFAULTS, Flag, World


def evaluate(
    task: Annotated[str, tyro.conf.Positional],
    /,
    world: World = DEFAULTS,
    policy: str | None = None,
    episodes: int = 20,
    seed: int = 0,
    json: Flag = False,
) -> None:
    """Mean reward of a step under a policy, ± 95 % interval over episodes.

    Args:
        task: circle, predator-prey, or the folder of a training run, whose policy is then evaluated
            in its own world, with other sizes and rules where they are given.
        world: sizes and rules.
        policy: random or greedy; in a run's folder the trained policy if not given.
        episodes: how many, each on its own seed.
        seed: the same seed meets every policy with the same chance.
        json: print one object instead of a table.
    """
    from selectmdp import console, evaluation, runs, tasks

    extrapolates = None
    player: Any
    if runs.is_run(task):
        trained = runs.load(task)
        name, env = trained.about["config"]["task"], runs.world_of(trained, asdict(world))
        player, label = (trained, Path(task).name) if policy is None else (policy, policy)
        extrapolates = env.spec.num_select != trained.spec.num_select
    else:
        name, env = task, tasks.make(task, **asdict(world))
        player = label = policy or "random"
    with console.progress(f"{label} on {name}") as bar:
        result = evaluation.evaluate(env, player, episodes=episodes, seed=seed, progress=bar)
    if json:
        sizes = tasks.describe(env)
        told = {"task": name, "policy": label, "extrapolates": extrapolates}
        console.as_json({**told, **sizes, **result.to_json()})
        return
    reward_table([(name, env.spec, label, result)])
    if extrapolates:
        console.out.print(
            f"K={env.spec.num_select} where K={trained.spec.num_select} was trained: phases borrow "
            "the parameters of the nearest ones"
        )


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


def demo(out: Path = Path("demo"), steps: int = 30_000, episodes: int = 20, seed: int = 0) -> None:
    """Train ISQ on circle selection, beside random and greedy; its curve and a film of it.

    Args:
        out: folder for the run, the curve, the films and the pictures.
        steps: of training; minutes.
        episodes: how many each policy is evaluated on.
        seed: of the training.
    """
    from selectmdp import console, envs, film, raster, references
    from selectmdp.training import train

    run = out / "circle"
    with console.progress("films") as bar:
        for task in envs.WORLDS:
            env = envs.WORLDS[task]()
            shown = list(film.scenes(env, references.reference("greedy", env), steps=40))
            film.save_film(shown, out / f"{task}-greedy.gif", title="greedy", progress=bar)
            raster.save_png(shown[2][0], out / f"{task}.png")
    resume = run.exists()
    result = train(
        "circle", out=run, resume=resume, steps=steps, seed=seed, episodes=episodes, **DEMO
    )
    env = envs.Circle(**DEMO_WORLD)
    with console.progress("film of the trained policy") as bar:
        shown = list(film.scenes(env, result.policy.actor(env), steps=60))
        film.save_film(shown, out / "circle-trained.gif", title="isq", progress=bar)
    train_table(result)
    console.out.print(f"curve: {run / 'curve.png'}")
    console.out.print(f"film: {out / 'circle-trained.gif'} (greedy: {out / 'circle-greedy.gif'})")
    console.out.print(f"next: selectmdp evaluate {run} --num-items 200")


DEMO_WORLD: dict[str, Any] = {"num_items": 50, "num_select": 6}
DEMO: dict[str, Any] = {**DEMO_WORLD, "algorithm": "isq-u", "preset": "paper"}


def reward_table(rows: list[tuple[str, Any, str, Any]]) -> None:
    """Rows of (task, sizes, policy, evaluation)."""
    from selectmdp import console

    console.table(
        f"mean reward of a step ± 95 % interval, {rows[0][3].episodes} episodes",
        ("task", "N, U, K", "dynamics", "policy", "reward", "unit"),
        [
            (
                task,
                f"{spec.num_items}, {spec.num_context}, {spec.num_select}",
                str(result.dynamics),
                policy,
                console.plus_minus(result.mean_reward, result.ci95),
                result.unit,
            )
            for task, spec, policy, result in rows
        ],
    )


def train_table(result: Any) -> None:
    """A training's policy above the references."""
    config = result.policy.about["config"]
    label = config["algorithm"]
    judged = [(label, result.evaluation), *result.references.items()]
    reward_table([(config["task"], result.policy.spec, name, told) for name, told in judged])
