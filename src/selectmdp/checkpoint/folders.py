"""One checkpoint, a folder: written beside its place and renamed, read whole or not at all."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax

from selectmdp.checkpoint import disk, leaves, manifests
from selectmdp.checkpoint.disk import CheckpointError


def save(folder: Path, trees: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
    """Write each tree as `<name>.safetensors`, and `manifest.json` with the plain JSON `meta`.

    Tuples in `meta` come back as lists. A Python number in a tree is stored as JAX would hold it.
    """
    if os.path.lexists(folder):
        raise CheckpointError(f"{folder} exists already: remove it or choose another --out")
    put(folder, trees, meta)


def manifest(folder: Path) -> dict[str, Any]:
    """The `meta` of a checkpoint, once its manifest is found to be whole."""
    meta: dict[str, Any] = manifests.found(folder)[1]["meta"]
    return meta


def verify(folder: Path) -> None:
    """Raise if any file of a checkpoint is not what the manifest says; nothing is loaded."""
    home, content = manifests.found(folder)
    for name, entry in content["files"].items():
        with disk.reading(home / name, entry["bytes"]) as file:
            disk.check_digest(hashlib.file_digest(file, "sha256").hexdigest(), entry["sha256"])


def fault(folder: Path) -> str | None:
    """What is wrong with a checkpoint."""
    try:
        verify(folder)
    except CheckpointError as error:
        return str(error)
    return None


def read(folder: Path, name: str, like: Any) -> Any:
    """The tree `name`, if all leaves have the names, shapes and dtypes of those of `like`.

    Leaves are JAX arrays; NumPy arrays where JAX, without its x64, would cut 64 bits to 32.
    """
    home, content = manifests.found(folder)
    path = home / f"{name}{manifests.SUFFIX}"
    entry = content["files"].get(path.name)
    if entry is None or path.parent != home:
        known = ", ".join(content["files"]) or "none"
        raise CheckpointError(
            f"{path} is not in the manifest; the files of this checkpoint: {known}"
        )
    wanted = leaves.by_name(name, like, leaves.sort)
    with disk.reading(path, entry["bytes"]) as file:
        found = leaves.decoded(file, entry["bytes"], entry["sha256"])
        faults = leaves.differences({key: leaves.sort(leaf) for key, leaf in found.items()}, wanted)
        # One by one, so that each leaf's bytes are let go as they are copied.
        back = [] if faults else [leaves.restored(found.pop(key)) for key in wanted]
    if faults:
        raise CheckpointError(
            f"{path} is whole but not the tree asked for ({faults}): "
            "use the settings it was saved with, or another checkpoint"
        )
    return jax.tree.unflatten(jax.tree.structure(like), back)


def put(folder: Path, trees: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
    """Write a checkpoint beside `folder`, then give it that name, whatever had it before."""
    plain = manifests.plain_meta(meta)
    contents = {
        manifests.file_name(name): leaves.by_name(name, tree, leaves.stored)
        for name, tree in trees.items()
    }
    draft, replaced = disk.draft_of(folder), disk.replaced_by(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft.mkdir()
        files = {
            name: disk.write(draft / name, leaves.encoded(tree)) for name, tree in contents.items()
        }
        disk.write(draft / manifests.MANIFEST, [manifests.rendered(plain, files)])
        disk.sync(draft)
        if os.path.lexists(folder):
            os.rename(folder, replaced)
        os.rename(draft, folder)
        disk.sync(folder.parent)
    except OSError as error:
        raise disk.refused(folder, error) from error
    finally:
        disk.settle(replaced)
        disk.remove(draft)
