"""Checkpoints come back bit for bit or not at all, whatever a disk or a crash has done to them."""

import errno
import hashlib
import io
import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file
from safetensors.numpy import save as to_safetensors

from selectmdp.checkpoint import (
    CheckpointError,
    Keeper,
    disk,
    leaves,
    manifest,
    read,
    save,
    verify,
)
from selectmdp.spec import SelectError

FILES = ("learner.safetensors", "manifest.json", "policy.safetensors")


class Moments(NamedTuple):
    mean: Any
    square: Any


def policy(value: float = 1.0) -> dict[str, Any]:
    return {
        "layers": ({"w": jnp.full((2, 3), value), "b": jnp.zeros(3)}, None),
        "key": jax.random.key(3),
    }


def learner() -> Moments:
    return Moments(jnp.arange(4, dtype=jnp.int32), (jnp.ones(5, jnp.bfloat16),))


def trees(value: float = 1.0) -> dict[str, Any]:
    return {"policy": policy(value), "learner": learner()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(tmp_path / "run", trees(), {"task": "circle", "rate": 1e-05, "where": "Zürich"})
    return tmp_path / "run"


def there_and_back(tmp_path: Path, tree: Any, like: Any = None) -> Any:
    save(tmp_path / "run", {"tree": tree}, {})
    return read(tmp_path / "run", "tree", tree if like is None else like)


def raw(leaf: Any) -> tuple[str, tuple[int, ...], bytes]:
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return str(leaf.dtype), leaf.shape, np.asarray(jax.random.key_data(leaf)).tobytes()
    return leaf.dtype.name, leaf.shape, np.asarray(leaf).tobytes()


def same(one: Any, other: Any) -> bool:
    alike = jax.tree.structure(one) == jax.tree.structure(other)
    return alike and [*map(raw, jax.tree.leaves(one))] == [*map(raw, jax.tree.leaves(other))]


def value_in(folder: Path) -> float:
    return float(read(folder, "policy", policy())["layers"][0]["w"][0, 0])


def leftovers(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if path.name.startswith("."))


def forge(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """A manifest that says something else and has the right hash."""
    content = json.loads((folder / "manifest.json").read_text())
    change(content)
    content["sha256"] = "0" * 64
    text = json.dumps(content)
    digest = hashlib.sha256(text.encode()).hexdigest()
    (folder / "manifest.json").write_text(text.replace("0" * 64, digest, 1))


# There and back


@pytest.mark.parametrize(
    "dtype",
    [
        *("bool", "uint8", "uint16", "uint32", "int8", "int16", "int32"),
        *("float16", "bfloat16", "float32", "float8_e4m3fn", "complex64"),
    ],
)
def test_every_dtype_comes_back_bit_for_bit_as_jax_array(tmp_path: Path, dtype: str) -> None:
    rng = np.random.default_rng(5)
    size = 24 * np.dtype(dtype).itemsize
    bits = rng.integers(0, 2 if dtype == "bool" else 256, size, np.uint8)
    array = jnp.array(bits.view(dtype).reshape(2, 3, 4))
    back = there_and_back(tmp_path, {"a": array, "scalar": array[0, 0, 0], "none": array[:0]})
    assert raw(back["a"]) == (dtype, (2, 3, 4), bits.tobytes())
    assert raw(back["scalar"]) == (dtype, (), bits[: size // 24].tobytes())
    assert raw(back["none"]) == (dtype, (0, 3, 4), b"")
    assert all(isinstance(leaf, jax.Array) for leaf in back.values())


def test_four_bit_integers_come_back(tmp_path: Path) -> None:
    assert there_and_back(tmp_path, jnp.arange(-8, 8, dtype=jnp.int4)).tolist() == [*range(-8, 8)]


def test_payloads_of_nan_and_the_sign_of_zero_stay(tmp_path: Path) -> None:
    bits = np.array([0x7FC00001, 0xFFC12345, 0x7F800001, 0x80000000, 0x00000001], np.uint32)
    back = there_and_back(tmp_path, jnp.array(bits.view(np.float32)))
    assert np.asarray(back).view(np.uint32).tolist() == bits.tolist()


def test_64_bits_of_numpy_come_back_in_numpy(tmp_path: Path) -> None:
    tree = [np.array([2**53 + 1]), np.array([0.1]), np.array([1e-300 + 1j])]
    back = there_and_back(tmp_path, tree)
    assert [leaf.dtype for leaf in back] == [np.int64, np.float64, np.complex128]
    assert [leaf.item() for leaf in back] == [2**53 + 1, 0.1, 1e-300 + 1j]


def test_arrays_in_any_memory_order_come_back_in_reading_order(tmp_path: Path) -> None:
    grid = np.arange(6, dtype=np.int32).reshape(2, 3)
    tree = {
        "t": grid.T,
        "skip": grid[:, ::2],
        "big": grid.astype(">i4"),
        "f": np.asfortranarray(grid),
    }
    back = there_and_back(tmp_path, tree)
    assert back["t"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert back["skip"].tolist() == [[0, 2], [3, 5]]
    assert back["big"].tolist() == back["f"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_python_numbers_come_back_as_arrays(tmp_path: Path) -> None:
    back = there_and_back(tmp_path, {"count": 12, "rate": 0.5, "on": True, "f": np.float32(2.5)})
    assert [raw(back[name])[0] for name in ("count", "rate", "on")] == ["int32", "float32", "bool"]
    assert (int(back["count"]), float(back["rate"]), bool(back["on"])) == (12, 0.5, True)
    assert float(back["f"]) == 2.5


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_a_key_comes_back_and_draws_the_same(tmp_path: Path, impl: str) -> None:
    key = jax.random.key(7, impl=impl)
    like = jax.eval_shape(lambda: (key, jax.random.split(key, (2, 3))))
    one, many = there_and_back(tmp_path, (key, jax.random.split(key, (2, 3))), like)
    assert many.shape == (2, 3)
    assert str(jax.random.key_impl(one)) == str(jax.random.key_impl(many)) == impl
    assert jax.random.bits(one) == jax.random.bits(key)


def test_a_nested_tree_comes_back_with_its_structure(tmp_path: Path) -> None:
    tree = {
        "m": Moments(policy(), [learner(), ()]),
        "empty": {},
        "none": None,
        "by": {3: jnp.ones(2)},
    }
    assert same(there_and_back(tmp_path, [tree]), [tree])


def test_shapes_alone_say_what_is_expected(folder: Path) -> None:
    assert same(read(folder, "policy", jax.eval_shape(policy)), policy())
    assert same(read(folder, "learner", jax.eval_shape(learner)), learner())


def test_a_bare_array_and_a_tree_without_leaves_are_trees_too(tmp_path: Path) -> None:
    save(tmp_path / "run", {"bare": jnp.ones(2), "nothing": None}, {})
    assert read(tmp_path / "run", "bare", jnp.zeros(2)).tolist() == [1.0, 1.0]
    assert read(tmp_path / "run", "nothing", None) is None


def test_the_files_are_safetensors_that_others_can_read(tmp_path: Path) -> None:
    save(tmp_path / "run", {"net": {"w": jnp.array([[1.5, -2.0]]), "n": (jnp.uint8(7),)}}, {})
    loaded = load_file(tmp_path / "run" / "net.safetensors")
    assert {key: leaf.tolist() for key, leaf in loaded.items()} == {
        "['w']": [[1.5, -2.0]],
        "['n'][0]": 7,
    }


def test_the_manifest_names_every_file_with_size_and_hash(folder: Path) -> None:
    content = json.loads((folder / "manifest.json").read_text())
    assert sorted(os.listdir(folder)) == sorted(FILES)
    assert (content["format"], content["version"]) == ("selectmdp-checkpoint", 1)
    assert content["meta"] == {"task": "circle", "rate": 1e-05, "where": "Zürich"}
    for name in ("policy.safetensors", "learner.safetensors"):
        data = (folder / name).read_bytes()
        assert content["files"][name] == {
            "sha256": hashlib.sha256(data).hexdigest(),
            "bytes": len(data),
        }


def test_the_same_trees_make_the_same_bytes(tmp_path: Path) -> None:
    for name in "ab":
        save(tmp_path / name, trees(), {"step": 3})
    for name in FILES:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_meta_comes_back_as_json_has_it(tmp_path: Path) -> None:
    meta = {"zeros": "0" * 64, "deep": {"list": [1, (2.5, None)], "on": True}, "big": 2**70}
    save(tmp_path / "run", {}, meta)
    assert manifest(tmp_path / "run") == meta | {"deep": {"list": [1, [2.5, None]], "on": True}}


# What cannot be saved


@pytest.mark.parametrize(
    ("meta", "named"),
    [
        ({"loss": float("nan")}, "meta['loss']=nan"),
        ({"a": {"b": [1.0, float("inf")]}}, "meta['a']['b'][1]=inf"),
        ({"rate": np.float32(1)}, "meta['rate']=np.float32(1.0)"),
        ({"path": Path("x")}, "meta['path']=PosixPath('x')"),
        ({"sizes": {1: 2}}, "meta['sizes'] has the key 1"),
        ({"huge": 10**5000}, "meta is not plain JSON"),
        ([1, 2], "meta is not plain JSON"),
    ],
)
def test_meta_that_is_not_plain_json_is_refused_by_name(
    tmp_path: Path, meta: Any, named: str
) -> None:
    with pytest.raises(CheckpointError) as caught:
        save(tmp_path / "run", {}, meta)
    assert named in str(caught.value)
    assert os.listdir(tmp_path) == []


def test_meta_that_holds_itself_is_refused(tmp_path: Path) -> None:
    meta: dict[str, Any] = {}
    meta["self"] = meta
    with pytest.raises(CheckpointError, match="meta is not plain JSON"):
        save(tmp_path / "run", {}, meta)


@pytest.mark.parametrize(
    "leaf",
    [
        *("text", object(), np.array([None]), np.array(["a"]), np.timedelta64(3, "s"), 2**40),
        *(np.longdouble(1), jax.ShapeDtypeStruct((), jnp.float32)),
    ],
    ids=lambda leaf: type(leaf).__name__,
)
def test_a_leaf_that_is_no_array_is_refused_by_name(tmp_path: Path, leaf: Any) -> None:
    with pytest.raises(CheckpointError, match=r"leaf \"\['x'\]\" of tree 'net'"):
        save(tmp_path / "run", {"net": {"x": leaf}}, {})
    assert os.listdir(tmp_path) == []


def test_a_tree_whose_leaves_have_no_order_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"tree 'net'.*sorting"):
        save(tmp_path / "run", {"net": {"x": jnp.ones(1), 3: jnp.ones(1)}}, {})


def test_an_array_already_given_away_is_refused(tmp_path: Path) -> None:
    gone = jnp.ones(3)
    gone.delete()
    with pytest.raises(CheckpointError, match="deleted"):
        save(tmp_path / "run", {"net": gone}, {})


@pytest.mark.parametrize("name", ["", "..", "../x", "/x", "a/b", "a\\b", ".hidden", "a\n", "a\0"])
def test_a_tree_whose_name_is_no_plain_file_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CheckpointError, match="tree "):
        save(tmp_path / "run", {name: jnp.ones(1)}, {})
    assert os.listdir(tmp_path) == []


def test_a_checkpoint_is_never_overwritten(folder: Path) -> None:
    with pytest.raises(CheckpointError, match="run exists already"):
        save(folder, trees(2.0), {})
    assert value_in(folder) == 1.0


# What does not fit


def test_a_tree_of_another_shape_is_refused_leaf_by_leaf(folder: Path) -> None:
    like = {
        "layers": ({"w": jnp.zeros((2, 4)), "bias": jnp.zeros(3)}, None),
        "key": jax.random.key(0, impl="rbg"),
    }
    with pytest.raises(CheckpointError) as caught:
        read(folder, "policy", like)
    text = str(caught.value)
    assert "policy.safetensors is whole but not the tree asked for" in text
    assert "['layers'][0]['bias'] is missing, ['layers'][0]['b'] is extra" in text
    assert "['key'] is key<fry>[], not key<rbg>[]" in text
    assert "['layers'][0]['w'] is float32[2, 3], not float32[2, 4]" in text


def test_a_key_is_not_the_numbers_it_is_made_of(tmp_path: Path) -> None:
    save(tmp_path / "run", {"key": jax.random.key(0), "data": jnp.zeros(2, jnp.uint32)}, {})
    with pytest.raises(CheckpointError, match=r"is key<fry>\[\], not uint32\[2\]"):
        read(tmp_path / "run", "key", jnp.zeros(2, jnp.uint32))
    with pytest.raises(CheckpointError, match=r"is uint32\[2\], not key<fry>\[\]"):
        read(tmp_path / "run", "data", jax.random.key(0))


def test_another_dtype_is_refused_and_long_lists_are_cut(tmp_path: Path) -> None:
    save(tmp_path / "run", {"net": [jnp.ones(1)] * 9}, {})
    with pytest.raises(CheckpointError, match=r"\[0\] is float32\[1\], not int32\[1\].*and 5 more"):
        read(tmp_path / "run", "net", [jnp.ones(1, jnp.int32)] * 9)


@pytest.mark.parametrize("name", ["critic", "", "../run/policy", "policy.safetensors"])
def test_a_tree_that_is_not_there_is_named(folder: Path, name: str) -> None:
    with pytest.raises(CheckpointError, match=r"not in the manifest.*learner.safetensors"):
        read(folder, name, policy())


# What is damaged


def refusals(folder: Path, file: str) -> None:
    """Everything that needs `file` raises, and the message names it and says what to do."""
    calls: list[Callable[[], Any]] = [lambda: verify(folder)]
    if file in ("policy.safetensors", "manifest.json"):
        calls.append(lambda: read(folder, "policy", POLICY))
    if file in ("learner.safetensors", "manifest.json"):
        calls.append(lambda: read(folder, "learner", LEARNER))
    if file == "manifest.json":
        calls.append(lambda: manifest(folder))
    for call in calls:
        with pytest.raises(CheckpointError) as caught:
            call()
        assert f"{folder / file} " in str(caught.value)
        assert "older checkpoint in" in str(caught.value)


POLICY, LEARNER = jax.eval_shape(policy), jax.eval_shape(learner)


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_a_flipped_bit_or_a_missing_end_is_found_all_over_the_manifest(folder: Path) -> None:
    path = folder / "manifest.json"
    whole = path.read_bytes()
    assert b"1e-05" in whole
    damaged = [whole + b"\n", b" " + whole, whole.replace(b"1e-05", b"1E-05")]
    damaged += [flipped(whole, bit) for bit in range(0, 8 * len(whole), 3)]
    damaged += [whole[:size] for size in range(0, len(whole), 3)]
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=r"run/manifest\.json "):
            manifest(folder)
    path.write_bytes(whole)
    assert manifest(folder)["rate"] == 1e-05


@pytest.mark.parametrize("seed", range(4))
def test_hundreds_of_random_damages_are_all_found(folder: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    whole = {name: (folder / name).read_bytes() for name in FILES}
    for _ in range(100):
        name = str(rng.choice(FILES))
        path, data = folder / name, whole[name]
        how = rng.integers(8)
        if how <= 2:
            path.write_bytes(flipped(data, int(rng.integers(8 * len(data)))))
        elif how <= 4:
            path.write_bytes(data[: int(rng.integers(len(data)))])
        elif how == 5:
            path.write_bytes(rng.bytes(int(rng.choice([0, 1, 8, len(data), 5000]))))
        elif how == 6:
            path.write_bytes(whole[str(rng.choice([other for other in FILES if other != name]))])
        else:
            path.unlink()
        refusals(folder, name)
        path.write_bytes(data)
    verify(folder)
    assert same(read(folder, "policy", POLICY), policy())


def test_two_files_that_changed_places_are_found(folder: Path) -> None:
    one, other = folder / "policy.safetensors", folder / "learner.safetensors"
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    with pytest.raises(CheckpointError, match=r"\.safetensors is damaged"):
        verify(folder)
    with pytest.raises(CheckpointError, match=r"policy\.safetensors is damaged"):
        read(folder, "policy", POLICY)


def test_a_file_of_the_right_size_and_other_bytes_is_told_by_its_hash(folder: Path) -> None:
    path = folder / "policy.safetensors"
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(CheckpointError) as caught:
        read(folder, "policy", POLICY)
    assert str(caught.value) == (
        f"{path} is damaged: its SHA-256 is not the one in the manifest; "
        f"resume from an older checkpoint in {folder.parent}, or train again"
    )


@pytest.mark.parametrize(
    "text",
    [
        *("", "null", "[]", "{}", "[" * 100_000, "1" * 9999, "\ufeff{}"),
        '{"format": "other", "version": 1}',
        '{"format": "selectmdp-checkpoint"}',
        '{"format": "selectmdp-checkpoint", ',
    ],
    ids=range(10),
)
def test_a_foreign_manifest_is_refused(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_text(text)
    refusals(folder, "manifest.json")


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.update(version=2),
        lambda content: content.update(meta=[]),
        lambda content: content.pop("meta"),
        lambda content: content.update(files=["policy.safetensors"]),
        lambda content: content["files"].update({"policy.safetensors": 3}),
        lambda content: content["files"]["policy.safetensors"].update(bytes="many"),
        lambda content: content["files"]["policy.safetensors"].pop("sha256"),
        lambda content: content["files"].update({"policy.pickle": {"sha256": "", "bytes": 0}}),
    ]
    + [
        lambda content, name=name: content["files"].update({name: {"sha256": "", "bytes": 0}})
        for name in ("../x.safetensors", "/x.safetensors", "a/b.safetensors", ".safetensors", "..")
    ],
    ids=range(13),
)
def test_a_manifest_that_leads_astray_is_refused(folder: Path, change: Any) -> None:
    forge(folder, change)
    refusals(folder, "manifest.json")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 64,
        b"\x08" + bytes(7) + b"[1, 2]  ",
        to_safetensors({"['w']": np.ones(3, np.float32)}),
        to_safetensors({"x": np.ones(3)}, {"dtypes": "[]", "impls": "{"}),
        to_safetensors({"x": np.ones(3)}, {"dtypes": '{"x": "float8_x"}', "impls": "{}"}),
        to_safetensors({"x": np.ones(3)}, {"dtypes": '{"x": "object"}', "impls": "{}"}),
        to_safetensors({"x": np.ones(3)}, {"dtypes": "{}", "impls": '{"x": "dice"}'}),
    ],
    ids=range(8),
)
def test_a_foreign_file_with_the_right_hash_is_refused(folder: Path, content: bytes) -> None:
    (folder / "policy.safetensors").write_bytes(content)
    entry = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    forge(folder, lambda manifest: manifest["files"].update({"policy.safetensors": entry}))
    with pytest.raises(CheckpointError, match=r"policy\.safetensors is damaged"):
        read(folder, "policy", POLICY)


@pytest.mark.parametrize("name", FILES)
def test_a_link_or_a_folder_in_the_place_of_a_file_is_refused(folder: Path, name: str) -> None:
    away = folder.parent / "away"
    (folder / name).rename(away)
    (folder / name).symlink_to(away)
    refusals(folder, name)
    (folder / name).unlink()
    (folder / name).mkdir()
    refusals(folder, name)


def test_a_manifest_of_more_than_a_megabyte_is_refused_unread(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_bytes(b"[" + b"0," * 1000)
    os.truncate(path, 3 << 30)  # with holes, as if it had a billion entries
    with pytest.raises(CheckpointError, match=r"it has 3,221,225,472 bytes, more than the 1,000"):
        manifest(folder)
    with pytest.raises(CheckpointError, match="keep large things in trees"):
        save(folder.parent / "other", {}, {"text": "x" * 1_000_000})
    assert not (folder.parent / "other").exists()


def header_of(text: bytes, claimed: int | None = None) -> bytes:
    return (len(text) if claimed is None else claimed).to_bytes(8, "little") + text


def entry_of(shape: list[int], offsets: list[int], dtype: str = "F32") -> bytes:
    about = {"dtypes": "{}", "impls": "{}"}
    leaf = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
    return header_of(json.dumps({"__metadata__": about, "['w']": leaf}).encode())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (header_of(b"{}", 2**63), "more than the"),
        (header_of(b"{}", 3), "more than the 2 "),
        (header_of(b" " * 1_000_001), "it has 1,000,001 bytes, more than the 1,000,000"),
        (header_of(b"[" * 100_000), "nested too deeply"),
        (entry_of([2**40], [0, 2**42]), "is not where the header says"),
        (entry_of([2**70], [0, 2**72]), "is not where the header says"),
        (entry_of([-1], [0, -4]), "is not where the header says"),
        (entry_of([2], [4, 12]) + bytes(12), "is not where the header says"),
        (entry_of([2], [0, 8], "F64") + bytes(8), "is not where the header says"),
        (entry_of([2], [0, 8]) + bytes(9), "belong to no leaf"),
    ],
    ids=range(10),
)
def test_a_header_is_believed_only_as_far_as_its_file_goes(
    folder: Path, content: bytes, said: str
) -> None:
    (folder / "policy.safetensors").write_bytes(content)
    entry = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    forge(folder, lambda manifest: manifest["files"].update({"policy.safetensors": entry}))
    with pytest.raises(CheckpointError, match=said):
        read(folder, "policy", POLICY)


def test_reading_a_tree_takes_little_more_memory_than_its_file(tmp_path: Path) -> None:
    tree = {str(number): np.full(1_000_000, number, np.uint8) for number in range(20)}
    save(tmp_path / "run", {"tree": tree}, {})
    tracemalloc.start()
    with (tmp_path / "run" / "tree.safetensors").open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        found = leaves.decoded(file, size, digest)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == 20
    assert most < size + 1_000_000


def test_a_folder_that_is_missing_or_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for name in ("file", "nothing", "nul\0"):
        with pytest.raises(CheckpointError, match=r"manifest\.json"):
            verify(tmp_path / name)


# What the disk refuses


def fail(number: int, code: int) -> Callable[..., Any]:
    """In place of a system call: it works until the call of this number."""
    calls = iter(range(1, 1_000))

    def call(*args: Any, **kwargs: Any) -> None:
        if next(calls) >= number:
            raise OSError(code, os.strerror(code))

    return call


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_full_disk_leaves_the_earlier_checkpoint_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    keeper = Keeper(tmp_path)
    keeper.write(10, trees(1.0), {})
    monkeypatch.setattr(os, "fsync", fail(number, errno.ENOSPC))
    with pytest.raises(CheckpointError) as caught:
        keeper.write(20, trees(2.0), {})
    text = str(caught.value)
    assert f"{tmp_path}/step-000000000020 was not written: disk full" in text
    assert "free space or choose another --out (earlier checkpoints are untouched)" in text
    assert os.listdir(tmp_path) == ["step-000000000010"]
    assert value_in(keeper.newest()) == 1.0


def test_a_disk_that_fills_while_a_file_is_written_is_told_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.FileIO):
        def write(self, part: Any) -> int:
            super().write(part[: len(part) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")

    keeper = Keeper(tmp_path)
    keeper.write_best(trees(1.0), {})
    monkeypatch.setattr(disk, "open", Full, raising=False)
    with pytest.raises(CheckpointError, match=r"best was not written: disk full"):
        keeper.write_best(trees(2.0), {})
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["best"]
    assert value_in(tmp_path / "best") == 1.0


@pytest.mark.parametrize(
    ("code", "said"),
    [(errno.EACCES, "Permission denied"), (errno.EROFS, "Read-only file system")],
)
def test_a_folder_one_may_not_write_to_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, said: str
) -> None:
    monkeypatch.setattr(os, "mkdir", fail(1, code))
    with pytest.raises(CheckpointError, match=f"run was not written: {said}; .* another --out"):
        save(tmp_path / "run", trees(), {})
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(CheckpointError, match="run was not written: Permission denied"):
        save(tmp_path / "run", trees(), {})
    tmp_path.chmod(0o700)


def test_a_file_in_the_place_of_the_parent_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(CheckpointError, match="file/run was not written"):
        save(tmp_path / "file" / "run", trees(), {})
    with pytest.raises(CheckpointError, match="file cannot be read: Not a directory"):
        Keeper(tmp_path / "file").newest()


# What a crash leaves


class Killed(BaseException):
    """The process is gone: nothing that follows in it is done."""


def kill_at_rename(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    rename, calls = os.rename, iter(range(1, 1_000))

    def call(source: Any, target: Any) -> None:
        if next(calls) == number:
            raise Killed
        rename(source, target)

    monkeypatch.setattr(os, "rename", call)
    monkeypatch.setattr(disk, "settle", lambda path: None)
    monkeypatch.setattr(disk, "remove", lambda path: None)


def test_a_crash_before_the_rename_leaves_the_earlier_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = Keeper(tmp_path)
    keeper.write(10, trees(1.0), {})
    with monkeypatch.context() as patch:
        kill_at_rename(patch, 1)
        with pytest.raises(Killed):
            keeper.write(20, trees(2.0), {})
    assert len(leftovers(tmp_path)) == 1
    assert leftovers(tmp_path)[0].startswith(".writing-")
    assert keeper.steps() == [10]
    assert value_in(keeper.newest()) == 1.0
    keeper.write(20, trees(2.0), {})
    assert leftovers(tmp_path) == []
    assert keeper.steps() == [10, 20]


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("then", ["write", "write_best"])
def test_a_crash_while_the_best_is_replaced_leaves_a_readable_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, then: str
) -> None:
    keeper, best = Keeper(tmp_path), tmp_path / "best"
    keeper.write_best(trees(1.0), {"reward": 0.5})
    with monkeypatch.context() as patch:
        kill_at_rename(patch, number)
        with pytest.raises(Killed):
            keeper.write_best(trees(2.0), {"reward": 0.6})
    assert best.exists() == (number == 1)
    verify(best)
    assert manifest(best) == {"reward": 0.5}
    assert value_in(best) == 1.0
    if then == "write":
        keeper.write(10, trees(3.0), {})
        assert (best.exists(), value_in(best)) == (True, 1.0)
    else:
        keeper.write_best(trees(3.0), {})
        assert (best.exists(), value_in(best)) == (True, 3.0)
    assert leftovers(tmp_path) == []


def test_a_crash_before_the_old_best_is_deleted_leaves_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = Keeper(tmp_path)
    keeper.write_best(trees(1.0), {})
    with monkeypatch.context() as patch:
        kill_at_rename(patch, 99)
        keeper.write_best(trees(2.0), {})
    assert leftovers(tmp_path) == [".replaced-best"]
    assert value_in(tmp_path / "best") == 2.0
    keeper.write(10, trees(), {})
    assert leftovers(tmp_path) == []
    assert value_in(tmp_path / "best") == 2.0


def test_a_rename_that_fails_puts_the_old_best_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = Keeper(tmp_path)
    keeper.write_best(trees(1.0), {})
    rename, calls = os.rename, iter((False, True, False))

    def call(source: Any, target: Any) -> None:
        if next(calls):
            raise OSError(errno.EIO, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(os, "rename", call)
    with pytest.raises(CheckpointError, match="best was not written: Input/output error"):
        keeper.write_best(trees(2.0), {})
    assert os.listdir(tmp_path) == ["best"]
    assert value_in(tmp_path / "best") == 1.0


# Keeper


def test_the_newest_two_and_the_best_are_kept(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path / "deep" / "run")
    best = keeper.write_best(trees(0.5), {"reward": 1})
    for step in (0, 1000, 12000, 200000):
        path = keeper.write(step, trees(float(step)), {"step": step})
    assert path == keeper.newest() == tmp_path / "deep" / "run" / "step-000000200000"
    assert sorted(os.listdir(keeper.root)) == ["best", "step-000000012000", "step-000000200000"]
    assert keeper.steps() == [12000, 200000]
    assert keeper.newest_intact() == (path, [])
    assert manifest(path) == {"step": 200000}
    assert (value_in(path), value_in(best)) == (200000.0, 0.5)


def test_the_best_is_replaced(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    assert keeper.write_best(trees(1.0), {}) == keeper.write_best(trees(2.0), {})
    assert os.listdir(tmp_path) == ["best"]
    assert value_in(tmp_path / "best") == 2.0


def test_a_step_that_is_there_is_left_and_a_damaged_one_replaced(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    path = keeper.write(10, trees(1.0), {})
    assert keeper.write(10, trees(2.0), {}) == path
    assert value_in(path) == 1.0
    (path / "learner.safetensors").write_bytes(b"")
    keeper.write(10, trees(3.0), {})
    assert value_in(path) == 3.0
    assert os.listdir(tmp_path) == ["step-000000000010"]


def test_a_file_with_the_name_of_a_step_gives_way(tmp_path: Path) -> None:
    (tmp_path / "step-000000000010").write_text("x")
    assert Keeper(tmp_path).steps() == []
    assert value_in(Keeper(tmp_path).write(10, trees(2.0), {})) == 2.0
    assert os.listdir(tmp_path) == ["step-000000000010"]


def test_damaged_checkpoints_are_passed_over_with_a_word(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path, keep=3)
    for step in (10, 20, 30):
        keeper.write(step, trees(float(step)), {})
    (tmp_path / "step-000000000030" / "manifest.json").unlink()
    (tmp_path / "step-000000000020" / "policy.safetensors").write_bytes(b"x")
    path, faults = keeper.newest_intact()
    assert keeper.newest() == tmp_path / "step-000000000030"
    assert (path, value_in(path)) == (tmp_path / "step-000000000010", 10.0)
    assert len(faults) == 2
    assert "step-000000000030/manifest.json cannot be read: No such file" in faults[0]
    assert "step-000000000020/policy.safetensors is damaged: it has 1 bytes" in faults[1]
    (path / "manifest.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"no intact checkpoint in .*000010/manifest.json is"):
        keeper.newest_intact()


def test_checkpoints_under_each_others_names_are_passed_over_and_written_anew(
    tmp_path: Path,
) -> None:
    keeper = Keeper(tmp_path, keep=3)
    for step in (10, 20, 30):
        keeper.write(step, trees(float(step)), {"step": step})
    one, other = tmp_path / "step-000000000020", tmp_path / "step-000000000030"
    one.rename(tmp_path / "aside")
    other.rename(one)
    (tmp_path / "aside").rename(other)
    folder, faults = keeper.newest_intact()
    assert value_in(folder) == 10.0
    assert all("is of another step" in fault for fault in faults)
    assert len(faults) == 2
    keeper.write(20, trees(20.0), {"step": 20})
    assert value_in(one) == 20.0
    assert not other.exists()  # it would count as one of those to keep


def test_a_link_in_the_place_of_a_step_is_not_followed(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    keeper.write(10, trees(1.0), {})
    (tmp_path / "step-000000000020").symlink_to(tmp_path / "step-000000000010")
    folder, faults = keeper.newest_intact()
    assert folder.name == "step-000000000010"
    assert "step-000000000020 is a link" in faults[0]
    keeper.write(20, trees(2.0), {})
    assert not (tmp_path / "step-000000000020").is_symlink()
    assert value_in(tmp_path / "step-000000000010") == 1.0


def test_a_damaged_later_step_does_not_push_out_the_one_just_written(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path, keep=1)
    keeper.write(30, trees(), {})
    (tmp_path / "step-000000000030" / "manifest.json").unlink()
    keeper.write(20, trees(2.0), {})
    assert keeper.steps() == [20]
    assert value_in(keeper.newest()) == 2.0


def test_without_checkpoints_there_is_no_newest(tmp_path: Path) -> None:
    (tmp_path / ".writing-1f").mkdir()
    (tmp_path / "step-12").mkdir()
    for keeper in (Keeper(tmp_path), Keeper(tmp_path / "nothing")):
        assert keeper.steps() == []
        for call in (keeper.newest, keeper.newest_intact):
            with pytest.raises(CheckpointError, match=r"no checkpoint in .*: train first"):
                call()


@pytest.mark.parametrize("keep", [0, -1, 1.5])
def test_at_least_one_checkpoint_is_kept(tmp_path: Path, keep: Any) -> None:
    with pytest.raises(SelectError, match=f"keep={keep}"):
        Keeper(tmp_path, keep)


def test_a_step_is_a_whole_number(tmp_path: Path) -> None:
    with pytest.raises(SelectError, match="step=-1"):
        Keeper(tmp_path).write(-1, trees(), {})
