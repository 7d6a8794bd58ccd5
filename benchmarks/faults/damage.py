"""Files that are not what they were: damaged by a disk, or forged by somebody with right hashes.

Each is met by everything that would read it. A typed error is the only good answer where a file
has a hash; where it has none (tables of results), reading on is one too. A forged file carries a
pickle or names a module that would leave a mark if anything ran it.
"""

import hashlib
import json
import os
import pickle
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

MARK, TRAP = "this-code-was-run", "selectmdp_trap"
FILES = ("manifest.json", "policy.safetensors", "training.safetensors")
TENSORS = FILES[1:]
HUGE = 3 << 30


class Bomb:
    """A pickle of this runs code when it is loaded."""

    def __reduce__(self) -> Any:
        return os.mkdir, (MARK,)


def newest(run: Path) -> Path:
    """The checkpoint that a fault is done to."""
    return max((run / "checkpoints").glob("step-*"))


def older(run: Path) -> Path:
    """Another checkpoint of the same run."""
    return min((run / "checkpoints").glob("step-*"))


def truncated(rng: random.Random, run: Path) -> None:
    """Cut off anywhere."""
    path = newest(run) / rng.choice(FILES)
    os.truncate(path, rng.randrange(path.stat().st_size))


def bit_flipped(rng: random.Random, run: Path) -> None:
    """One bit of one file."""
    _flip(rng, newest(run) / rng.choice(FILES))


def swapped(rng: random.Random, run: Path) -> None:
    """Files, or whole folders, between two checkpoints."""
    name = rng.choice([*FILES, "."])
    one, other, aside = newest(run) / name, older(run) / name, run / "aside"
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def zero_length(rng: random.Random, run: Path) -> None:
    """Nothing left of a file."""
    os.truncate(newest(run) / rng.choice(FILES), 0)


def huge_header(rng: random.Random, run: Path) -> None:
    """A header's length, or a leaf's shape, that would take terabytes."""
    path = newest(run) / rng.choice(TENSORS)
    data = path.read_bytes()
    if rng.random() < 0.5:
        claimed = rng.choice([2**63, 2**40, len(data), 100_000_000])
        _forge(path, claimed.to_bytes(8, "little") + data[8:])
    else:
        size = 2 ** rng.randint(30, 60)
        _reheaded(rng, path, lambda leaf: {**leaf, "shape": [size], "data_offsets": [0, 4 * size]})


def wrong_dtype(rng: random.Random, run: Path) -> None:
    """A leaf is said to be of other numbers than it is."""
    kinds = ("I32", "U32", "F64", "F16", "BF16", "U8", "BOOL", "F8_E5M2", "object", "", None)
    path = newest(run) / rng.choice(TENSORS)
    _reheaded(rng, path, lambda leaf: {**leaf, "dtype": rng.choice(kinds)}, among=("F32",))


def path_traversal(rng: random.Random, run: Path) -> None:
    """The manifest names a file elsewhere, whose hash is right."""
    away = run.parent / "away.safetensors"
    shutil.copy(newest(run) / "policy.safetensors", away)
    name = rng.choice([str(away), "../../../away.safetensors", "../x/../../../away.safetensors"])

    def change(content: dict[str, Any]) -> None:
        content["files"][name] = content["files"].pop("policy.safetensors")

    _forged(newest(run), change)


def symlink(rng: random.Random, run: Path) -> None:
    """A file, or the checkpoint itself, is a link; what it points to may be whole."""
    name = rng.choice([*FILES, "."])
    path, away = newest(run) / name, run.parent / "away"
    path.rename(away)
    targets = (away, Path("/dev/zero"), Path("/etc/passwd"), older(run) / name, path)
    path.symlink_to(rng.choice(targets))


def billion_entries(rng: random.Random, run: Path) -> None:
    """JSON without end: by size, by depth, or as many small things as a megabyte holds."""
    path = rng.choice([newest(run) / "manifest.json", run / "config.json"])
    kind = rng.choice(["size", "depth", "many", "digits"])
    if kind == "size":
        path.write_bytes(b'{"meta": [' + b"0," * 10_000)
        os.truncate(path, HUGE)  # with holes: it takes no room on this disk
    else:
        text = {"depth": "[" * 900_000, "many": f"[{'{},' * 320_000}0]", "digits": "9" * 900_000}
        path.write_text(text[kind])


def pickled(rng: random.Random, run: Path) -> None:
    """Code that would run if anything unpickled it, under right hashes."""
    _forge(newest(run) / rng.choice(TENSORS), pickle.dumps(Bomb(), protocol=rng.randint(0, 5)))


def named_module(rng: random.Random, run: Path) -> None:
    """Config and manifest name code of somebody's own, which is there to be imported."""
    task = rng.choice([f"{TRAP}:make", f"{TRAP}:Trap-v0", TRAP])

    def change(content: dict[str, Any]) -> None:
        content["meta"]["config"]["task"] = task
        content["meta"]["needs"] = ["legal_after"]

    _forged(newest(run), change)
    sealed(run / "config.json", lambda content: content["config"].update(task=task))


def forged_meta(rng: random.Random, run: Path) -> None:
    """Anything else in the place of something in the manifest or the config."""
    if rng.random() < 0.5:
        _forged(newest(run), lambda content: _mutated(rng, content["meta"]))
    else:
        sealed(run / "config.json", lambda content: _mutated(rng, content))


def config_damaged(rng: random.Random, run: Path) -> None:
    """The run's own description, cut off or with a flipped bit."""
    path = run / "config.json"
    if rng.random() < 0.5:
        os.truncate(path, rng.randrange(path.stat().st_size))
    else:
        _flip(rng, path)


def holder_replaced(rng: random.Random, run: Path) -> None:
    """What tells who trains here is a link to elsewhere, or a pipe that nobody reads."""
    if rng.random() < 0.5:
        (run / ".process").symlink_to(Path(MARK).absolute())
    else:
        os.mkfifo(run / ".process")


Damage = Callable[[random.Random, Path], None]
DAMAGES: dict[str, Damage] = {
    "truncated": truncated,
    "bit flipped": bit_flipped,
    "swapped": swapped,
    "zero length": zero_length,
    "huge header": huge_header,
    "wrong dtype": wrong_dtype,
    "path traversal": path_traversal,
    "a link": symlink,
    "a billion entries": billion_entries,
    "a pickle": pickled,
    "a module named": named_module,
    "forged values": forged_meta,
    "config damaged": config_damaged,
    "holder replaced": holder_replaced,
}
ACCIDENTS = ("truncated", "bit flipped", "zero length")
"""Where a file of the newest checkpoint is not what its manifest says, or that not what it was."""
HARMLESS = ("forged values",)
"""Where what is read may be sound: another number of seconds is as good as the first."""


def set_trap(folder: Path) -> None:
    """A module, where imports look, that leaves a mark in the working folder when imported."""
    (folder / f"{TRAP}.py").write_text(f"import os\nos.mkdir({MARK!r})\n")
    sys.path.insert(0, str(folder))


def _flip(rng: random.Random, path: Path) -> None:
    data = bytearray(path.read_bytes())
    bit = rng.randrange(8 * len(data))
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def _forge(path: Path, data: bytes) -> None:
    """Other bytes, and a manifest that vouches for them."""
    path.write_bytes(data)
    entry = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    _forged(path.parent, lambda content: content["files"].update({path.name: entry}))


def _forged(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    sealed(folder / "manifest.json", change)


def sealed(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """JSON that says something else and has the right hash."""
    content = json.loads(path.read_text())
    change(content)
    content["sha256"] = "0" * 64
    text = json.dumps(content)
    digest = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(text.replace("0" * 64, digest, 1))


def _reheaded(
    rng: random.Random,
    path: Path,
    change: Callable[[dict[str, Any]], dict[str, Any]],
    among: tuple[str, ...] = ("F32", "I32", "U32", "U8", "BOOL"),
) -> None:
    """A safetensors file in which one leaf is said to be something else."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    names = [name for name, leaf in header.items() if leaf.get("dtype") in among]
    name = rng.choice(names)
    header[name] = change(header[name])
    text = json.dumps(header).encode()
    _forge(path, len(text).to_bytes(8, "little") + text + data[8 + length :])


ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**70, 1e308, float("nan"), "", "x" * 1000, "<script>", [], {}, [[]]),
    *(["a"], {"a": 1}, "../..", 0.5, "1"),
)


def places(part: Any) -> list[tuple[Any, Any]]:
    """Every value in it, at any depth: what holds it, and its key there."""
    found: list[tuple[Any, Any]] = []
    for key in part if isinstance(part, dict) else range(len(part)):
        found.append((part, key))
        if isinstance(part[key], dict | list):
            found += places(part[key])
    return found


def _mutated(rng: random.Random, content: Any) -> None:
    """One value, somewhere in it, is another; or is gone."""
    part, key = rng.choice(places(content))
    if rng.random() < 0.2:
        del part[key]
    else:
        part[key] = rng.choice(ODD)
