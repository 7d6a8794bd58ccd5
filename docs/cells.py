"""Tables in Markdown, for the scripts that make pages."""

import re
from collections.abc import Sequence


def markdown(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = [names, ["---"] * len(names), *([_cell(text) for text in row] for row in rows)]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _cell(text: str) -> str:
    """With a true minus, and nothing that ends the cell."""
    return re.sub(r"(?<!\w)-(?=\d)", "−", text).replace("|", r"\|")
