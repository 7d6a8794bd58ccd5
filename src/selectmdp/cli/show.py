"""The command that shows: `watch` a trained policy."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import tyro

from selectmdp.cli.options import DEFAULTS, Flag, World
from selectmdp.cli.play import tell


def watch(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    /,
    world: World = DEFAULTS,
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("watch.html"),
    steps: int = 100,
    seed: int = 0,
    gif: Path | None = None,
    json: Flag = False,
) -> None:
    """A page that replays a trained policy, pick by pick, beside random and greedy.

    Args:
        run: the folder of a training run, or of one of its checkpoints.
        world: sizes and rules; those of the run where not given.
        out: the page, one HTML file that opens from disk.
        steps: of the episode, which its time limit may end before.
        seed: the episode is the first that `evaluate` plays on this seed.
        gif: a film of the trained policy as well.
        json: print one object instead of a table.
    """
    from selectmdp import console, film, runs
    from selectmdp.files import write_whole
    from selectmdp.report import replay

    trained = runs.load(run)
    place = runs.world_of(trained, asdict(world))
    film.check_drawn(place.env, place.name)
    with console.progress(f"{trained.agent.name} on {place.name}") as bar:
        players = replay.players(trained, place.env)
        data = replay.recorded(
            place.env, players, task=place.name, steps=steps, seed=seed, progress=bar
        )
    write_whole(out, replay.page_of(data, trained, run).encode())
    if gif is not None:
        with console.progress("film") as bar:
            actor = trained.actor(place.env)
            shown = list(film.scenes(place.env, actor, steps=data["steps"], seed=seed))
            film.save_film(shown, gif, title=trained.agent.name, progress=bar)
    _show(data, out, gif, json)


def _show(data: dict[str, Any], out: Path, gif: Path | None, json: bool) -> None:
    from selectmdp import console

    earned = {player["name"]: player["rewards"] for player in data["players"]}
    if json:
        told = {name: data[name] for name in ("task", "seed", "steps", "unit", "dynamics")}
        totals = {
            name: {"steps": len(each), "reward": round(sum(each), 6)}
            for name, each in earned.items()
        }
        files = {"page": str(out), "gif": None if gif is None else str(gif)}
        console.as_json({**told, **files, "players": totals})
        return
    console.table(
        f"one episode of {data['task']}, seed {data['seed']}",
        ("policy", "steps", "reward", "of a step", "unit"),
        [
            (name, str(len(each)), f"{sum(each):.3f}", f"{sum(each) / len(each):.3f}", data["unit"])
            for name, each in earned.items()
        ],
    )
    tell(f"page: {out} ({out.stat().st_size / 1e6:.1f} MB), to be opened in a browser")
    if gif is not None:
        tell(f"film: {gif}")
