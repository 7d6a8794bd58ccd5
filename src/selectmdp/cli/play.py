"""Commands that play: `evaluate` a policy, `check` an environment, `demo`."""

import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from selectmdp.cli.options import DEFAULTS, Flag, OwnWorld, World
from selectmdp.spec import SelectError


def evaluate(
    task: Annotated[str, tyro.conf.Positional],
    /,
    world: World = DEFAULTS,
    policy: str | None = None,
    episodes: int = 20,
    seed: int = 0,
    own: OwnWorld = None,
    workers: int | None = None,
    timeout: float = 60.0,
    json: Flag = False,
) -> None:
    """Mean reward of a step under a policy, ± 95 % interval over episodes.

    Args:
        task: circle, predator-prey, league, module:factory, the id of a Gymnasium environment, or
            the folder of a run, whose policy is then evaluated in its own world, with other sizes
            and rules where they are given.
        world: sizes and rules.
        policy: random or greedy; in a run's folder the trained policy if not given.
        episodes: how many, each on its own seed.
        seed: the same seed meets every policy with the same chance.
        own: of a run: the world to play in; one of your own must be named, also the run's.
        workers: processes for a world that is not in JAX; one a core if not given, 0: none beside
            this one. No result depends on it.
        timeout: seconds that making, resetting or stepping one environment may take in a worker.
        json: print one object instead of a table.
    """
    from selectmdp import console, factories, runs, tasks, worlds
    from selectmdp.settings import Hosting

    trained = None
    player: Any
    hosting = Hosting(workers, timeout)
    if runs.is_run(task):
        trained, place = runs.played(task, asdict(world), own, hosting)
        player, label = (trained, Path(task).name) if policy is None else (policy, policy)
    elif own is not None:
        raise SelectError(f"--world {own}: is for the folder of a run, and {task} is none")
    elif worlds.has_name(task) or factories.is_factory(task):
        given = {name: value for name, value in asdict(world).items() if value is not None}
        place = worlds.world(task, given, hosting)
        player = label = policy or "random"
    else:
        known = ", ".join(tasks.names())
        raise SelectError(
            f"task {task!r} is none of {known}, no module:factory, no Gymnasium id, and no folder "
            "of a run"
        )
    with console.progress(f"{label} on {place.name}") as bar:
        result = worlds.evaluated(place, player, episodes=episodes, seed=seed, progress=bar)
    picks = place.env.spec.num_select
    extrapolates = None if trained is None else picks != trained.spec.num_select
    if json:
        told = {"task": place.name, "policy": label, "extrapolates": extrapolates}
        console.as_json({**told, **tasks.describe(place.env), **result.to_json()})
        return
    items = tasks.describe(place.env)["num_items"]
    reward_table([(place.name, place.env.spec, label, result)], items)
    if trained is not None and extrapolates:
        tell(
            f"K={picks} where K={trained.spec.num_select} was trained: phases borrow the "
            "parameters of the nearest ones"
        )


def check(
    target: Annotated[str, tyro.conf.Positional],
    /,
    world: World = DEFAULTS,
    seed: int = 0,
    timeout: float = 60.0,
    json: Flag = False,
) -> None:
    """Check a world of yours against the rules of a Select-MDP.

    Args:
        target: module:factory, a class or a function that makes the world: in JAX, in NumPy, or of
            Gymnasium; or one of our names, as league.
        world: what the factory is given, if it takes that.
        seed: where the checks' randomness begins.
        timeout: seconds that making, resetting or stepping a world that is not in JAX may take.
        json: print one object instead of lines for people.
    """
    from selectmdp import console, tasks
    from selectmdp.check import check_select_env
    from selectmdp.envs import WORLDS
    from selectmdp.factories import found, made

    given = {name: value for name, value in asdict(world).items() if value is not None}
    factory = WORLDS[target] if tasks.is_known(target) else found(target)
    with console.progress(f"checks of {target}") as bar:
        report = check_select_env(
            lambda: made(factory, repr(target), given), seed=seed, timeout=timeout, progress=bar
        )
    if json:
        console.as_json(report.to_json())
    else:
        print(report)
    if not report.passed:
        raise SystemExit(1)


def demo(
    out: Path = Path("demo"), minutes: float | None = None, episodes: int = 20, seed: int = 0
) -> None:
    """Train ISQ on circle selection, beside random and greedy; its curve and a film of it.

    Args:
        out: folder for the run, the curve, the films and the pictures.
        minutes: of training, 2.5 if not given; its steps are fixed once, by the speed of the first
            seconds.
        episodes: how many each policy is evaluated on.
        seed: of the training.
    """
    from selectmdp import console, envs, film, raster, references, runs
    from selectmdp.training import train

    run = out / "circle"
    resume = runs.is_run(run)
    if resume:
        runs.config_of(run)  # one that cannot be read is told before the films
    elif minutes is None:
        minutes = DEMO_MINUTES
    with console.progress("films") as bar:
        for task in envs.WORLDS:
            env = envs.WORLDS[task]()
            shown = list(film.scenes(env, references.reference("greedy", env), steps=40))
            film.save_film(shown, out / f"{task}-greedy.gif", title="greedy", progress=bar)
            raster.save_png(shown[2][0], out / f"{task}.png")
    result = train(
        "circle", out=run, resume=resume, minutes=minutes, seed=seed, episodes=episodes, **DEMO
    )
    env = envs.Circle(**DEMO_WORLD)
    with console.progress("film of the trained policy") as bar:
        shown = list(film.scenes(env, result.policy.actor(env), steps=60))
        film.save_film(shown, out / "circle-trained.gif", title="isq", progress=bar)
    train_table(result)
    tell(
        f"curve: {run / 'curve.png'}",
        f"film: {out / 'circle-trained.gif'} (greedy: {out / 'circle-greedy.gif'})",
        f"next: {next_command(result)}",
    )


DEMO_MINUTES = 2.5
DEMO_WORLD: dict[str, Any] = {"num_items": 50, "num_select": 6}
DEMO: dict[str, Any] = {**DEMO_WORLD, "evaluations": 10}


def reward_table(rows: list[tuple[str, Any, str, Any]], items: Any = None) -> None:
    """Rows of (task, sizes, policy, evaluation); `items` is N where it is not that of the sizes."""
    from selectmdp import console
    from selectmdp.tasks import told_items

    console.table(
        f"mean reward of a step ± 95 % interval, {rows[0][3].episodes} episodes",
        ("task", "N, U, K", "dynamics", "policy", "reward", "unit"),
        [
            (
                task,
                f"{told_items(items or spec.num_items)}, {spec.num_context}, {spec.num_select}",
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
    rows = [(config["task"], result.policy.spec, name, told) for name, told in judged]
    reward_table(rows, config["options"].get("num_items"))


def next_command(result: Any) -> str:
    """What to try after a training: the policy with twice the items, if it can."""
    from selectmdp import factories, tasks

    command = f"selectmdp evaluate {shlex.quote(str(result.folder))}"
    spec, task = result.policy.spec, result.policy.about["config"]["task"]
    if factories.is_factory(task):
        return f"{command} --world {shlex.quote(task)}"
    twice = replace(spec, num_items=2 * spec.num_items)
    try:
        result.policy.agent.network.check(spec, twice)
    except SelectError:
        return command
    return f"{command} --num-items {twice.num_items}" if tasks.is_known(task) else command


def tell(*lines: str) -> None:
    """Lines for people; a long one is not broken, so that it can be copied."""
    from selectmdp import console

    for line in lines:
        console.out.print(line, soft_wrap=True)
