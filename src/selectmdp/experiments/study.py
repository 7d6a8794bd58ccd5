"""A search's study on disk: a journal of Optuna's, which a killed search goes on from.

Who opens it has the folder to itself. What a killed process left is put right first: its lock, for
which Optuna would wait, and a last line that was cut off, which would damage the one after it.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import optuna
from optuna.storages.journal import JournalFileBackend

from selectmdp.files import MOST_TABLE, read_bounded, write_whole
from selectmdp.spec import SelectError

JOURNAL = "study.journal"
FILE = "file"
"""Of a study: the fingerprint of the file that it searches by."""


def opened(out: Path, told: Mapping[str, Any], seed: int) -> optuna.Study:
    """The study of a file in a folder, new or gone on with; that of another file is refused."""
    path, asked = out.resolve() / JOURNAL, fingerprint(told)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        _mend(path)
        study = optuna.create_study(
            study_name="search",
            storage=optuna.storages.JournalStorage(JournalFileBackend(str(path))),
            direction="maximize",
            load_if_exists=True,
        )
        count = len(study.get_trials(deepcopy=False))
        if not count:
            study.set_user_attr(FILE, asked)
        kept = study.user_attrs.get(FILE)
    except SelectError:
        raise
    except Exception as error:  # a damaged line can be anything to Optuna
        raise SelectError(
            f"{path} cannot be read ({error!r}): choose another --out, or move it away to search "
            "anew"
        ) from error
    if kept != asked:
        raise SelectError(
            f"{out} holds a search of other values (its file has changed in more than trials): "
            "choose another --out"
        )
    # Of its own chance each time it goes on: the same would draw the first trials once more.
    study.sampler = optuna.samplers.TPESampler(seed=seed + count)
    return study


def fingerprint(told: Mapping[str, Any]) -> str:
    """Short for what a search's file says; more trials make it no other search."""
    content = {name: value for name, value in told.items() if name != "trials"}
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _mend(path: Path) -> None:
    path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
    if path.is_symlink():
        raise ValueError("it is a link")
    if path.exists():
        whole, newline, cut = read_bounded(path, MOST_TABLE).rpartition(b"\n")
        if cut:
            write_whole(path, whole + newline)
