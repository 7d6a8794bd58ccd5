"""One HTML file that needs nothing beside it: text, style, script and data in one place.

Such a page opens from disk and asks no network, which its own policy forbids it. The script finds
the data by `JSON.parse(document.getElementById("data").textContent)`.
"""

import json
from html import escape
from importlib.resources import files
from typing import Any

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""What the browser lets the page do: what is in it, and nothing from elsewhere."""

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
{body}
<script type="application/json" id="data">{data}</script>
<script type="module">
{script}
</script>
</body>
</html>
"""


def page(title: str, *, body: str, style: str, script: str, data: Any) -> str:
    """The whole file.

    `title` is any text and `data` anything that JSON knows; `body`, `style` and `script` are
    written by us, as they stand: what others wrote goes into `data`, and from there into text.
    """
    for name, text in (("style", style), ("script", script)):
        if "</" + name in text.lower() or "<!--" in text:
            raise ValueError(f"{name} holds </{name} or <!--, which would end it: write it apart")
    return _PAGE.format(
        policy=POLICY, title=escape(title), style=style, body=body, data=_json(data), script=script
    )


def asset(*names: str) -> str:
    """Files of this package's `assets`, one after the other."""
    folder = files("selectmdp.report") / "assets"
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


def _json(data: Any) -> str:
    """JSON in ASCII in which no < can end, or seem to begin, anything of HTML."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")
