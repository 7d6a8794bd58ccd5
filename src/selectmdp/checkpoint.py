"""Checkpoints that load whole or not at all: safetensors files and a manifest of their SHA-256.

A checkpoint is a folder. It is written beside its place under a temporary name, brought to the disk
and only then renamed, so that a crash or a full disk leaves the earlier ones as they were. Sizes
and hashes are checked before anything read is believed, and nothing is ever unpickled.
"""

import errno
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import deserialize

from selectmdp.spec import SelectError, check_count

FORMAT, VERSION, MANIFEST, SUFFIX = "selectmdp-checkpoint", 1, "manifest.json", ".safetensors"
WRITING, REPLACED = ".writing-", ".replaced-"
NO_DIGEST = "0" * 64  # stands where the manifest's own hash will be while that is taken
CODES = {"bool": "BOOL", "bfloat16": "BF16", "float16": "F16", "float32": "F32", "float64": "F64"}
CODES |= {f"int{bits}": f"I{bits}" for bits in (8, 16, 32, 64)}
CODES |= {f"uint{bits}": f"U{bits}" for bits in (8, 16, 32, 64)}
DTYPES = {code: name for name, code in CODES.items()}


class CheckpointError(SelectError):
    """A checkpoint that cannot be written or believed; the message names the file and the fix."""


class Leaf(NamedTuple):
    """The numbers of a leaf; of a random key its data, and the name of its generator."""

    array: np.ndarray[Any, Any]
    impl: str | None = None


def save(folder: Path, trees: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
    """Write each tree as `<name>.safetensors`, and `manifest.json` with the plain JSON `meta`.

    Tuples in `meta` come back as lists. A Python number in a tree is stored as JAX would hold it.
    """
    if os.path.lexists(folder):
        raise CheckpointError(f"{folder} exists already: remove it or choose another --out")
    _put(folder, trees, meta)


def manifest(folder: Path) -> dict[str, Any]:
    """The `meta` of a checkpoint, once its manifest is found to be whole."""
    meta: dict[str, Any] = _manifest(folder)[1]["meta"]
    return meta


def verify(folder: Path) -> None:
    """Raise if any file of a checkpoint is not what the manifest says; nothing is loaded."""
    home, content = _manifest(folder)
    for name, entry in content["files"].items():
        with _reading(home / name, entry["bytes"]) as file:
            _check_digest(hashlib.file_digest(file, "sha256").hexdigest(), entry["sha256"])


def read(folder: Path, name: str, like: Any) -> Any:
    """The tree `name`, if all leaves have the names, shapes and dtypes of those of `like`.

    Leaves are JAX arrays; NumPy arrays where JAX, without its x64, would cut 64 bits to 32.
    """
    home, content = _manifest(folder)
    path = home / f"{name}{SUFFIX}"
    entry = content["files"].get(path.name)
    if entry is None or path.parent != home:
        known = ", ".join(content["files"]) or "none"
        raise CheckpointError(
            f"{path} is not in the manifest; the files of this checkpoint: {known}"
        )
    wanted = _by_name(name, like, _sort)
    with _reading(path, entry["bytes"]) as file:
        found = _decode(file.read(), entry["sha256"])
        faults = _differences({key: _sort(leaf) for key, leaf in found.items()}, wanted)
        # One by one, so that the file's bytes are let go as they are copied.
        leaves = [] if faults else [_restore(found.pop(key)) for key in wanted]
    if faults:
        raise CheckpointError(
            f"{path} is whole but not the tree asked for ({faults}): "
            "use the settings it was saved with, or another checkpoint"
        )
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


class Keeper:
    """The checkpoints of one run: the newest `keep` of `step-…`, and `best`. One process writes."""

    def __init__(self, root: Path, keep: int = 2) -> None:
        self.root, self.keep = root, check_count("keep", keep)
        if keep < 1:
            raise SelectError(f"keep={keep}: must be at least 1")

    def write(self, step: int, trees: Mapping[str, Any], meta: Mapping[str, Any]) -> Path:
        """Save a step, unless it is there intact, and let go of the older ones."""
        folder = self._folder(check_count("step", step))
        self._tidy()
        if _fault(folder):
            _put(folder, trees, meta)
        for later in [other for other in self.steps() if other > step]:
            if _fault(self._folder(later)):  # it would count as one of those to keep
                _discard(self._folder(later))
        for old in self.steps()[: -self.keep]:
            if old != step:
                _discard(self._folder(old))
        return folder

    def write_best(self, trees: Mapping[str, Any], meta: Mapping[str, Any]) -> Path:
        """Save as `best`; the one before goes when the new one is in its place."""
        self._tidy()
        _put(self.root / "best", trees, meta)
        return self.root / "best"

    def steps(self) -> list[int]:
        """The steps there are checkpoints of, intact or not, in order."""
        try:
            folders = [path.name for path in self.root.iterdir() if path.is_dir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise CheckpointError(f"{self.root} cannot be read: {error.strerror}") from error
        return sorted(int(name[5:]) for name in folders if re.fullmatch("step-[0-9]{12}", name))

    def newest(self) -> Path:
        """The checkpoint of the last step."""
        steps = self.steps()
        if not steps:
            raise CheckpointError(f"no checkpoint in {self.root}: train first, or name another run")
        return self._folder(steps[-1])

    def newest_intact(self) -> tuple[Path, list[str]]:
        """The newest checkpoint without a fault, and what is wrong with those after it."""
        faults: list[str] = []
        for step in reversed(self.steps()):
            fault = _fault(self._folder(step))
            if not fault:
                return self._folder(step), faults
            faults.append(fault)
        if not faults:
            self.newest()  # says that there is none at all
        raise CheckpointError(f"no intact checkpoint in {self.root}: {'; '.join(faults)}")

    def _folder(self, step: int) -> Path:
        return self.root / f"step-{step:012d}"

    def _tidy(self) -> None:
        """Put right what a crash has left."""
        for replaced in self.root.glob(f"{REPLACED}*"):
            _settle(replaced)
        for leftover in self.root.glob(f"{WRITING}*"):
            _remove(leftover)


def _put(folder: Path, trees: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
    """Write a checkpoint beside `folder`, then give it that name, whatever had it before."""
    plain = _plain_meta(meta)
    leaves = {_file_name(name): _by_name(name, tree, _store) for name, tree in trees.items()}
    temporary = folder.parent / f"{WRITING}{secrets.token_hex(8)}"
    replaced = folder.parent / f"{REPLACED}{folder.name}"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
        files = {name: _write(temporary / name, _encode(tree)) for name, tree in leaves.items()}
        _write(temporary / MANIFEST, [_render(plain, files)])
        _sync(temporary)
        if os.path.lexists(folder):
            os.rename(folder, replaced)
        os.rename(temporary, folder)
        _sync(folder.parent)
    except OSError as error:
        raise _refused(folder, error) from error
    finally:
        _settle(replaced)
        _remove(temporary)


def _store(leaf: Any) -> Leaf:
    if not hasattr(leaf, "dtype"):
        leaf = jnp.asarray(leaf)
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return Leaf(np.asarray(jax.random.key_data(leaf)), str(jax.random.key_impl(leaf)))
    array = np.asarray(leaf, order="C")
    return Leaf(array.astype(_known(array.dtype).newbyteorder("="), copy=False))


def _restore(leaf: Leaf) -> Any:
    if jax.dtypes.canonicalize_dtype(leaf.array.dtype) != leaf.array.dtype:
        return leaf.array
    array = jnp.array(leaf.array)
    return jax.random.wrap_key_data(array, impl=leaf.impl) if leaf.impl else array


def _sort(leaf: Any) -> str:
    """What a leaf is, as `float32[3, 4]` or `key<fry>[]`."""
    if isinstance(leaf, Leaf) and leaf.impl:
        leaf = jax.eval_shape(partial(jax.random.wrap_key_data, impl=leaf.impl), leaf.array)
    elif isinstance(leaf, Leaf):
        leaf = leaf.array
    elif not hasattr(leaf, "dtype"):
        leaf = jnp.asarray(leaf)
    return f"{leaf.dtype.name}{list(leaf.shape)}"


def _by_name(name: str, tree: Any, convert: Callable[[Any], Any]) -> dict[str, Any]:
    """The leaves of a tree, converted."""
    leaves: dict[str, Any] = {}
    key = ""
    try:
        for where, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
            key = jax.tree_util.keystr(where)
            if key in leaves:
                raise ValueError("two leaves have this name")
            leaves[key] = convert(leaf)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise CheckpointError(
            f"leaf {key!r} of tree {name!r}: {error}; "
            "a tree holds arrays and keys, the rest belongs in meta"
        ) from error
    return leaves


def _known(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """`dtype`, if it is of numbers: the bytes of text or of a pointer are not to be believed."""
    if not hasattr(jnp, dtype.name):
        raise TypeError(f"JAX has no arrays of {dtype.name}")
    return dtype


def _encode(leaves: dict[str, Leaf]) -> list[Any]:
    """The parts of a safetensors file: the header's length, the header, the numbers of each leaf.

    The library itself would hold them in memory twice, or not say why the disk refused them.
    """
    header: dict[str, Any] = {}
    dtypes, impls, end = {}, {}, 0
    for key, (array, impl) in leaves.items():
        shape, code = list(array.shape), CODES.get(array.dtype.name)
        if code is None:  # unknown to the format: bytes, on an axis more
            dtypes[key], shape, code = array.dtype.name, [*shape, array.itemsize], "U8"
        if impl is not None:
            impls[key] = impl
        start, end = end, end + array.nbytes
        header[key] = {"dtype": code, "shape": shape, "data_offsets": [start, end]}
    header["__metadata__"] = {"dtypes": json.dumps(dtypes), "impls": json.dumps(impls)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    numbers = [leaf.array.reshape(-1).view(np.uint8) for leaf in leaves.values()]
    return [len(text).to_bytes(8, "little"), text, *numbers]


def _decode(raw: bytes, digest: str) -> dict[str, Leaf]:
    _check_digest(hashlib.sha256(raw).hexdigest(), digest)
    entries = deserialize(raw)  # type: ignore[no-untyped-call]
    about = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])["__metadata__"]
    dtypes, impls = json.loads(about["dtypes"]), json.loads(about["impls"])
    leaves = {}
    for key, entry in entries:
        shape = entry["shape"][:-1] if key in dtypes else entry["shape"]
        dtype = _known(np.dtype(dtypes.get(key) or DTYPES[entry["dtype"]]))
        leaves[key] = Leaf(np.ndarray(shape, dtype, entry["data"]), impls.get(key))
    return leaves


def _differences(found: dict[str, str], wanted: dict[str, str]) -> str:
    """What keeps two trees from being alike in a few words; nothing if they are."""
    faults = [f"{key} is missing" for key in wanted if key not in found]
    faults += [f"{key} is extra" for key in found if key not in wanted]
    both = [key for key in wanted if key in found]
    faults += [
        f"{key} is {found[key]}, not {wanted[key]}" for key in both if found[key] != wanted[key]
    ]
    more = [f"and {len(faults) - 4} more"] if len(faults) > 4 else []
    return ", ".join(faults[:4] + more)


def _manifest(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Where a checkpoint lies, and what its manifest says."""
    replaced = folder.parent / f"{REPLACED}{folder.name}"
    # A crash between the two renames of `_put` leaves the earlier one whole under its other name.
    home = folder if os.path.lexists(folder) or not replaced.is_dir() else replaced
    with _reading(home / MANIFEST) as file:
        text = file.read().decode()
        content = json.loads(text)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError("it is not the manifest of a checkpoint")
        digest = str(content.get("sha256"))
        rest = text.replace(digest, NO_DIGEST, 1).encode()
        _check_digest(hashlib.sha256(rest).hexdigest(), digest)
        if content.get("version") != VERSION:
            raise ValueError(
                f"it has version {content.get('version')}, this program reads {VERSION}"
            )
        if not isinstance(content.get("meta"), dict) or not _are_files(content.get("files")):
            raise ValueError("its meta or its list of files is not well formed")
    return home, content


def _are_files(files: Any) -> bool:
    return isinstance(files, dict) and all(
        re.fullmatch(r"\w[\w.-]*" + re.escape(SUFFIX), name, re.ASCII)
        and isinstance(entry, dict)
        and isinstance(entry.get("sha256"), str)
        and isinstance(entry.get("bytes"), int)
        for name, entry in files.items()
    )


def _file_name(name: str) -> str:
    """The file of a tree; a name that could lead out of the folder is refused."""
    file = f"{name}{SUFFIX}"
    if not _are_files({file: {"sha256": "", "bytes": 0}}):
        raise CheckpointError(f"tree {name!r}: use letters, digits, '_', '-' and '.' for its name")
    return file


def _plain_meta(meta: Mapping[str, Any]) -> Any:
    try:
        plain = _plain("meta", dict(meta))
        json.dumps(plain)
    except CheckpointError:
        raise
    except (RecursionError, TypeError, ValueError) as error:
        raise CheckpointError(f"meta is not plain JSON: {error}") from error
    return plain


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


def _render(meta: Any, files: dict[str, Any]) -> bytes:
    """The manifest; `sha256` is of all of it, with zeros in that place."""
    start = {"format": FORMAT, "version": VERSION, "sha256": NO_DIGEST}
    text = json.dumps(start | {"meta": meta, "files": files}, indent=2)
    return text.replace(NO_DIGEST, hashlib.sha256(text.encode()).hexdigest(), 1).encode()


def _write(path: Path, parts: list[Any]) -> dict[str, Any]:
    """Bring a file to the disk; its entry in the manifest."""
    digest, size = hashlib.sha256(), 0
    with open(path, "xb") as file:
        for part in parts:
            file.write(part)
            digest.update(part)
            size += len(part)
        file.flush()
        os.fsync(file.fileno())
    return {"sha256": digest.hexdigest(), "bytes": size}


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _reading(path: Path, size: int | None = None) -> Iterator[BufferedReader]:
    """A file to read. Whatever is wrong with it comes out as the one error that says what to do."""
    try:
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is not a plain file")
        if size not in (None, found.st_size):
            raise ValueError(f"it has {found.st_size} bytes, the manifest says {size}")
        with open(path, "rb") as file:
            yield file
    except Exception as error:
        fault = f"is damaged: {error}"
        if isinstance(error, OSError):
            fault = f"cannot be read: {error.strerror or error}"
        older = f"resume from an older checkpoint in {path.parent.parent}, or train again"
        raise CheckpointError(f"{path} {fault}; {older}") from error


def _check_digest(found: str, wanted: str) -> None:
    if found != wanted:
        raise ValueError("its SHA-256 is not the one in the manifest")


def _fault(folder: Path) -> str | None:
    try:
        verify(folder)
    except CheckpointError as error:
        return str(error)
    return None


def _refused(folder: Path, error: OSError) -> CheckpointError:
    reason, cure = f"{error.strerror or error}", "make it a folder you can write to"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        reason, cure = f"disk full ({reason})", "free space"
    return CheckpointError(
        f"{folder} was not written: {reason}; {cure} or choose another --out "
        "(earlier checkpoints are untouched)"
    )


def _settle(replaced: Path) -> None:
    """Take a replaced checkpoint back if its place is empty, else let it go."""
    place = replaced.parent / replaced.name.removeprefix(REPLACED)
    if os.path.lexists(place):
        _remove(replaced)
    else:
        with suppress(OSError):
            os.rename(replaced, place)


def _discard(folder: Path) -> None:
    """Remove a checkpoint so that no half of it is ever seen under its name."""
    leaving = folder.parent / f"{WRITING}{secrets.token_hex(8)}"
    try:
        os.rename(folder, leaving)
    except OSError as error:
        raise CheckpointError(f"{folder} cannot be removed: {error.strerror}") from error
    _remove(leaving)


def _remove(path: Path) -> None:
    """Remove a folder or a file as well as possible; the next write tries again."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
