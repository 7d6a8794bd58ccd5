"""What `results/` holds, for pages: the claims with their verdicts, the figures, what is missing.

Nothing here fails where runs are missing, and no page shows a picture that is not there.
`python docs/make_results.py` draws the pictures; `make docs` does it before it fills the pages.
"""

from functools import cache
from pathlib import Path
from typing import Any

from cells import markdown

from selectmdp.experiments.figures import FIGURES
from selectmdp.report import overview, pictures, results
from selectmdp.report.claims import CLAIMS
from selectmdp.spec import SelectError

ROOT = Path(__file__).parent.parent
RESULTS, IMAGES = ROOT / "results", ROOT / "docs" / "images"
NONE_YET = "No run is in yet.\n"
MAIN = ("figure-4b.png", "figure-5b.png", "generalization.png")
"""Those that matter most."""


def claims(folder: Path = RESULTS) -> str:
    """Every claim of the paper with its verdict, by what the folder holds."""
    found = _loaded(folder)
    if found is None:
        return NONE_YET
    names = ("verdict", "text", "ours", "published")
    lines = [tuple(claim[name] for name in names) for claim in _judged(found.folder)]
    return markdown(("verdict", "claim", "here [95 % interval]", "published"), lines)


def rules() -> str:
    """When each claim holds."""
    return markdown(("claim", "holds where"), [(each.text, each.rule) for each in CLAIMS])


def gaps(folder: Path = RESULTS) -> str:
    """What is missing or damaged, a line each."""
    found = _loaded(folder)
    if found is None:
        return NONE_YET
    told = [problem.replace(str(folder), folder.name) for problem in found.problems]
    return "".join(f"- {each}\n" for each in told) or "Nothing is missing.\n"


def figures(images: Path = IMAGES) -> str:
    """Every picture that there is, as a page in docs/ shows it."""
    told = [f"![{about}]({images.name}/{name})\n" for name, about in _there(images).items()]
    return "\n".join(told) or NONE_YET


def main_figures(images: Path = IMAGES) -> str:
    """The pictures that matter most, as the README shows them."""
    there = _there(images)
    told = [f"![{there[name]}](docs/images/{name})\n" for name in MAIN if name in there]
    return "\n".join(told) or NONE_YET


def draw(folder: Path = RESULTS, images: Path = IMAGES) -> list[Path]:
    """Draw what there are runs of; a picture of runs that are gone goes as well."""
    for name in _there(images):
        (images / name).unlink()
    found = _loaded(folder)
    if found is None:
        return []
    data = overview.overview(found, _judged(folder), lambda done, total: None)
    return pictures.save(data, images)


def _there(images: Path) -> dict[str, str]:
    """The pictures in a folder, and what is on them."""
    known = {
        pictures.name_of(figure.name, world): f"{figure.title}: our curves beside the published"
        for figure in FIGURES.values()
        for world in (figure.worlds if len(figure.worlds) > 1 else [None])
    }
    known["generalization.png"] = "Trained at one N, played at others, with three networks"
    return {name: about for name, about in known.items() if (images / name).is_file()}


@cache
def _loaded(folder: Path) -> results.Results | None:
    """None: there is nothing to load."""
    try:
        return results.load(folder)
    except SelectError:
        return None


@cache
def _judged(folder: Path) -> list[dict[str, Any]]:
    found = _loaded(folder)
    return [] if found is None else overview.claims_of(found)


if __name__ == "__main__":
    for path in draw():
        print(path)
