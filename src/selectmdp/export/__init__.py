"""A policy that leaves the building: all K picks as one ONNX graph, which needs no Python to run.

A converter from JAX would bring a dozen packages along and a graph nobody can read; the networks
are small, so they are written a second time (`isq.py`, `pairwise.py`), and tests hold them to the
first.
"""

import os
from pathlib import Path
from types import ModuleType
from typing import Any

from selectmdp.spec import SelectError

Where = str | os.PathLike[str]


def export_policy(policy: Any, path: Where, num_select: int | None = None) -> Any:
    """Write a policy as ONNX, and give the model. `num_select` is K′ if not that of the training.

    `policy` is what `load` or a training gives; one that a graph cannot hold is refused.
    """
    return _model().write(policy, Path(path), num_select)


def export_run(run: Where, path: Where, num_select: int | None = None) -> Any:
    """The same for the newest policy of a run, or for a checkpoint."""
    from selectmdp import runs

    model, folder = _model(), runs.checkpoint_of(Path(run))
    # Before the loading, which asks for the world: to give it would not help here.
    model.check_rules("legal_after" in runs.meta_of(folder)[1]["needs"])
    return export_policy(runs.load(folder), path, num_select)


def _model() -> ModuleType:
    """The module that needs onnx, which not everyone has."""
    try:
        import onnx  # noqa: F401 - whether it is there at all
    except ImportError:
        raise SelectError(
            'the package onnx is not installed: pip install "selectmdp[export]"'
        ) from None
    from selectmdp.export import model

    return model
