"""Tables in Markdown, for the scripts that make pages."""

import re
from collections.abc import Sequence


def markdown(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = [names, ["---"] * len(names), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def cell(text: str) -> str:
    """With a true minus, and nothing that ends the cell."""
    return re.sub(r"(?<!\w)-(?=\d)", "−", text).replace("|", r"\|")
