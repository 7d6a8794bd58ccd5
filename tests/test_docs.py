"""The docs: no dead link, no page forgotten, what is made from the source as the source is."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *ROOT.glob("*.md")])
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")


def prose(path: Path) -> str:
    """A page without its code."""
    return re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def anchors(path: Path) -> set[str]:
    """What its headings are called in links."""
    headings = re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    words = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {each.strip().replace(" ", "-") for each in words}


def dead(path: Path) -> list[str]:
    """Links of a page to files or headings that are not there."""
    found = []
    for target in LINK.findall(prose(path)):
        if re.match(r"[a-z]+:", target):
            continue  # elsewhere
        name, _, anchor = target.partition("#")
        file = path.parent / name if name else path
        if not file.exists() or (anchor and anchor not in anchors(file)):
            found.append(target)
    return found


def made(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_link_is_dead(path):
    assert dead(path) == []


def test_dead_links_would_be_found(tmp_path):
    (tmp_path / "other.md").write_text("# A heading, here\n\n`x`\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md) [b](other.md#a-heading-here) ![c [d]](gone.png) "
        "[e](other.md#gone) [f](#gone)"
        "\n```\n[g](code.md)\n```\n[h](https://example.org)"
    )
    assert dead(page) == ["gone.png", "other.md#gone", "#gone"]


def test_the_first_page_and_the_site_have_every_page():
    listed = set(LINK.findall(prose(DOCS / "index.md")))
    pages = {path.name for path in DOCS.glob("*.md")}
    assert pages - {"index.md"} <= listed
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("nav:")[2]
    assert pages == set(re.findall(r"([\w-]+\.md)", nav))


def test_the_api_page_is_what_the_source_says():
    api = made("make_api")
    assert (DOCS / "api.md").read_text(encoding="utf-8") == api.page()  # `make docs` writes it


def test_the_pictures_of_sharing_are_those_of_the_script():
    for name, drawn in made("make_pictures").pictures().items():
        assert (DOCS / "images" / name).read_text(encoding="utf-8") == drawn
