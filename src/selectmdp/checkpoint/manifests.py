"""A checkpoint's manifest: plain JSON about it, and size and SHA-256 of each of its files."""

import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from selectmdp.checkpoint import disk
from selectmdp.checkpoint.disk import CheckpointError
from selectmdp.files import MOST_JSON, sealed, unsealed

FORMAT, VERSION, MANIFEST, SUFFIX = "selectmdp-checkpoint", 1, "manifest.json", ".safetensors"


def rendered(meta: Any, files: dict[str, Any]) -> bytes:
    """The manifest, sealed with its own hash."""
    data = sealed({"format": FORMAT, "version": VERSION, "meta": meta, "files": files})
    if len(data) > MOST_JSON:
        raise CheckpointError(
            f"the manifest would have {len(data):,} bytes, more than the {MOST_JSON:,} that are "
            "read again: keep large things in trees, not in meta"
        )
    return data


def found(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Where a checkpoint lies, and what its manifest says."""
    replaced = disk.replaced_by(folder)
    # A crash between the two renames of a write leaves the earlier one whole under its other name.
    home = folder if os.path.lexists(folder) or not replaced.is_dir() else replaced
    with disk.reading(home / MANIFEST, most=MOST_JSON) as file:
        content = unsealed(file.read(MOST_JSON))
        if content.get("format") != FORMAT:
            raise ValueError("it is not the manifest of a checkpoint")
        if content.get("version") != VERSION:
            raise ValueError(
                f"it has version {content.get('version')}, this program reads {VERSION}"
            )
        if not isinstance(content.get("meta"), dict) or not _are_files(content.get("files")):
            raise ValueError("its meta or its list of files is not well formed")
    return home, content


def file_name(name: str) -> str:
    """The file of a tree; a name that could lead out of the folder is refused."""
    file = f"{name}{SUFFIX}"
    if not _are_files({file: {"sha256": "", "bytes": 0}}):
        raise CheckpointError(f"tree {name!r}: use letters, digits, '_', '-' and '.' for its name")
    return file


def plain_meta(meta: Mapping[str, Any]) -> Any:
    """`meta` as it will come back; what would not is refused by name."""
    try:
        plain = _plain("meta", dict(meta))
        json.dumps(plain)
    except CheckpointError:
        raise
    except (RecursionError, TypeError, ValueError) as error:
        raise CheckpointError(f"meta is not plain JSON: {error}") from error
    return plain


def _are_files(files: Any) -> bool:
    return isinstance(files, dict) and all(
        re.fullmatch(r"\w[\w.-]*" + re.escape(SUFFIX), name, re.ASCII)
        and isinstance(entry, dict)
        and isinstance(entry.get("sha256"), str)
        and isinstance(entry.get("bytes"), int)
        for name, entry in files.items()
    )


def _plain(where: str, value: Any) -> Any:
    """`value` as it will come back from JSON; `where` is what the message calls it."""
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):  # it would come back as text
                raise CheckpointError(f"{where} has the key {key!r}: use text as keys")
        return {key: _plain(f"{where}[{key!r}]", item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(f"{where}[{index}]", item) for index, item in enumerate(value)]
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise CheckpointError(
        f"{where}={value!r:.80} is not plain JSON: use text, finite numbers, lists and dicts"
    )
