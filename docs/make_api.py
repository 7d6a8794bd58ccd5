"""Writes `docs/api.md`: every public name with its signature and docstring, as the source has them.

`make docs` runs it, and a test holds the committed page against it.
"""

import ast
import importlib.util
import inspect
from itertools import pairwise
from pathlib import Path

import selectmdp

PAGE = Path(__file__).parent / "api.md"
HEAD = """# API

What `import selectmdp` offers, and names of its modules that other pages import; names are loaded
when first used. Shapes stand in the types: N items, U context things, K picks, C commands. (This
page is made from the source by `make docs`.)
"""
MORE = {
    "everything_legal": "envs.base",
    "some_present": "envs.base",
    "drawn_present": "envs.base",
    "picks_of": "envs.base",
    "picked": "iterative",
    "Scene": "scene",
    "Disc": "scene",
    "Box": "scene",
    "Arrow": "scene",
    "Label": "scene",
    "WorldFault": "spec",
    "Picks": "policy",
    "CheckReport": "check.report",
    "IterativeSelect": "interop.iterative_select",
    "Rddl": "interop.rddl",
    "Mobile": "interop.mobile",
}
"""Names of modules, which are read and not imported: some need an extra."""


def page() -> str:
    """The whole page."""
    own = [name for name in selectmdp.__all__ if name[0] != "_"]
    names = sorted([*own, *MORE], key=str.lower)
    links = ", ".join(f"[`{name}`](#{name.lower()})" for name in names)
    return "\n".join([HEAD, links, *(_entry(name) for name in names)])


def _entry(name: str) -> str:
    """A heading, what is written to use it, and what it says of itself."""
    lines = [f"\n## {name}\n"]
    if name in MORE:
        source = _text(f"selectmdp.{MORE[name]}")
        lines += [f"```python\nfrom selectmdp.{MORE[name]} import {name}\n```\n"]
    else:
        source = inspect.getsource(getattr(selectmdp, name))
    (node,) = (each for each in ast.parse(source).body if getattr(each, "name", None) == name)
    if isinstance(node, ast.FunctionDef):
        lines += [f"```python\n{_head(source, node)}\n```\n", ast.get_docstring(node) or ""]
    elif isinstance(node, ast.ClassDef):
        told = [*_fields(node), *_methods(node)]
        lines += [ast.get_docstring(node) or "", *([""] if told else []), *told]
    return "\n".join(lines) + "\n"


def _text(module: str) -> str:
    found = importlib.util.find_spec(module)
    return Path(found.origin).read_text(encoding="utf-8")


def _head(source: str, node: ast.FunctionDef) -> str:
    """The lines of a function before its docstring, as they stand."""
    lines = source.splitlines()[node.lineno - 1 : node.body[0].lineno - 1]
    return "\n".join(lines).removesuffix(":")


def _fields(node: ast.ClassDef) -> list[str]:
    """Public fields, each with the sentence that follows it."""
    lines = []
    for field, following in pairwise([*node.body, node]):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        text = f"- `{field.target.id}: {ast.unparse(field.annotation)}`"
        if isinstance(field.value, ast.Constant):
            text += f", by default `{ast.unparse(field.value)}`"
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            text += f". {_line(following.value.value)}"
        lines.append(text)
    return lines


def _methods(node: ast.ClassDef) -> list[str]:
    """Public methods by the names of their arguments."""
    lines = []
    for method in node.body:
        made = isinstance(method, ast.FunctionDef) and method.name == "__init__"
        if not isinstance(method, ast.FunctionDef) or (method.name[0] == "_" and not made):
            continue
        decorators = [ast.unparse(each) for each in method.decorator_list]
        given = method.args.posonlyargs + method.args.args + method.args.kwonlyargs
        words = [each.arg for each in given if each.arg not in ("self", "cls")]
        words += [f"**{method.args.kwarg.arg}"] if method.args.kwarg else []
        names = ", ".join(words)
        called = node.name if made else method.name
        call = called if "property" in decorators else f"{called}({names})"
        told = ast.get_docstring(method)
        lines.append(f"- `{call}`" + (f": {_line(told)}" if told else ""))
    return lines


def _line(text: str) -> str:
    """On one line, for a list."""
    return " ".join(text.split())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
