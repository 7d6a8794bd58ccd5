"""A policy that leaves the building: all K picks as one ONNX graph, which needs no Python to run.

A converter from JAX would bring a dozen packages along and a graph nobody can read; the networks
are small, so they are written a second time (`isq.py`, `pairwise.py`), and tests hold them to the
first.
"""

import os
from pathlib import Path
from types import ModuleType
from typing import Any

from selectmdp.algorithms import algorithm
from selectmdp.spec import SelectError

Where = str | os.PathLike[str]


def export_policy(policy: Any, path: Where, num_select: int | None = None) -> Any:
    """Write a policy as ONNX, and give the model. `num_select` is K′ if not that of the training.

    `policy` is what `load` or a training gives; one that a graph cannot hold is refused.
    """
    if not hasattr(policy, "agent"):
        raise SelectError(f"policy={policy!r}: give what selectmdp.load gives, or take export_run")
    return _model().write(policy, Path(path), num_select)


def export_run(run: Where, path: Where, num_select: int | None = None) -> Any:
    """The same for the newest policy of a run, or for a checkpoint."""
    from selectmdp import runs

    model, folder = _model(), runs.checkpoint_of(Path(run))
    config, meta = runs.meta_of(folder)
    # Before the loading, which may ask for the world: to give it would not help here.
    check_exportable(config.algorithm, "legal_after" in meta["needs"])
    return model.write(runs.load(folder), Path(path), num_select)


def check_exportable(name: str, legal_after: bool) -> None:
    """Refuse a policy that a graph cannot hold, with the reason."""
    reason = why_not(name, legal_after)
    if reason is not None:
        raise SelectError(
            f"the policy cannot be exported: {reason}; use selectmdp.load and policy.select"
            + ", with env=world in load if that is one of your own" * legal_after
        )


def why_not(name: str, legal_after: bool) -> str | None:
    """What keeps the policy of an algorithm from being a graph, by whether its world has rules."""
    row = algorithm(name)
    if row.dense or row.per_item:
        return f"{name} has weights for each of the N places and serves only the N of its training"
    if row.random_item:
        return f"{name} draws its items at random, and a graph gives the same for the same"
    if legal_after:
        return "its world offers legal_after, code of its own that must run between two picks"
    return None


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
