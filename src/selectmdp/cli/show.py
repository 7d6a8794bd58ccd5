"""Commands that show: `watch` a trained policy, and the `report` of all experiments."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import tyro

from selectmdp.cli.options import DEFAULTS, Flag, OwnWorld, World
from selectmdp.cli.play import tell


def watch(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    /,
    world: World = DEFAULTS,
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("watch.html"),
    steps: int = 100,
    seed: int = 0,
    gif: Path | None = None,
    own: OwnWorld = None,
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
        own: the world to play in, one in JAX; one of your own must be named, also the run's.
        json: print one object instead of a table.
    """
    from selectmdp import console, film, runs
    from selectmdp.files import write_whole
    from selectmdp.report import replay
    from selectmdp.spec import SelectError

    if gif is not None and gif.suffix.lower() != ".gif":
        raise SelectError(f"--gif {gif}: a film is a GIF; give a name that ends in .gif")
    trained, place = runs.played(run, asdict(world), own)
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


def report(
    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")],
    /,
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("report.html"),
    figures: Path | None = None,
    json: Flag = False,
) -> None:
    """A page with a verdict on every claim of the paper, and every figure beside the published.

    Args:
        folder: what `selectmdp reproduce` wrote.
        out: the page, one HTML file that opens from disk.
        figures: a folder for every figure as PNG, one a world.
        json: print one object instead of a table.
    """
    from selectmdp import console
    from selectmdp.files import write_whole
    from selectmdp.report import overview, pictures, results

    with console.progress(f"report of {folder}") as bar:
        found = results.load(folder)
        claims = overview.claims_of(found)
        data = overview.overview(found, claims, bar)
    write_whole(out, overview.page_of(data).encode())
    drawn = [] if figures is None else pictures.save(data, figures)
    if json:
        told = {"folder": str(folder), "page": str(out), "figures": [str(path) for path in drawn]}
        console.as_json({**told, "claims": claims, "problems": found.problems})
        return
    console.table(
        f"claims of the paper, by {folder}",
        ("verdict", "claim, and what we measure [with its 95 % interval]"),
        [(claim["verdict"], f"{claim['text']}: {claim['ours']}") for claim in claims],
        wrap=True,
    )
    for problem in found.problems:
        tell(f"missing: {problem}")
    for path in drawn:
        tell(f"figure: {path}")
    tell(f"page: {out} ({out.stat().st_size / 1e6:.1f} MB), to be opened in a browser")


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
