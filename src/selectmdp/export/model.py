"""A policy as one ONNX model: states in, K picks out, for any N, U and batch.

The file needs nothing of this program to run, and tells what it is: sizes, commands, algorithm and
training stand in its metadata, every input and output is described.
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np
from onnx import ModelProto, helper

import selectmdp
from selectmdp import sharing
from selectmdp.export import check_exportable
from selectmdp.export.base import NetworkGraph, Seen, Things
from selectmdp.export.isq import ISQGraph
from selectmdp.export.pairwise import PairwiseGraph
from selectmdp.export.picks import unrolled
from selectmdp.export.tensors import BOOL, FLOAT, INT, ZERO, Graph, Kind, Tensor, where
from selectmdp.files import write_whole
from selectmdp.nets.isq import ISQ
from selectmdp.nets.pairwise import Pairwise
from selectmdp.policy import Policy
from selectmdp.spec import SelectError, check_count

OPSET, IR_VERSION = 18, 8
"""Old enough for runtimes of 2023; nothing newer is needed."""

GRAPHS: dict[type, Callable[[Any], NetworkGraph]] = {ISQ: ISQGraph, Pairwise: PairwiseGraph}
"""The networks that any N suits: of all algorithms that can be exported."""


def write(policy: Policy, path: Path, num_select: int | None = None) -> ModelProto:
    """The model of a policy into a file."""
    model = made(policy, num_select)
    write_whole(path, model.SerializeToString(deterministic=True))
    return model


def made(policy: Policy, num_select: int | None = None) -> ModelProto:
    """The model of a policy; one that a graph cannot hold is refused, with the reason."""
    agent = policy.agent
    check_exportable(agent.name, agent.legal_after is not None)
    network = GRAPHS[type(agent.network)](agent.network)
    count = policy.spec.num_select
    if num_select is not None:
        count = check_count("num_select", num_select)
    if count < 1:
        raise SelectError(f"num_select={count}: must be at least 1")
    phase_map = sharing.stretched(policy.phase_map, count)
    graph = Graph()
    seen = _inputs(graph, policy)
    commands, rows = policy.spec.num_commands, "N + 1" if policy.spec.allow_pass else "N"
    passing = commands if policy.spec.allow_pass else 0
    picked = unrolled(network, _sets(policy, phase_map), phase_map, seen, passing)
    for name, value, kind, shape in (
        ("pick_items", picked.items, INT, ("batch", count)),
        ("pick_commands", picked.commands, INT, ("batch", count)),
        ("q_values", picked.values, FLOAT, ("batch", count, rows, commands)),
    ):
        graph.output(name, value, kind, shape, ABOUT[name])
    model = helper.make_model(
        graph.finished("policy"),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="selectmdp",
        producer_version=selectmdp.__version__,
        doc_string=f"Picks {count} of N items and a command for each, one after the other.",
    )
    helper.set_model_props(model, _metadata(policy, phase_map))
    return model


ABOUT: dict[str, str] = {
    "items": "What describes each item, as in training; anything where one is absent.",
    "present": "False: padding, as if the item were not there.",
    "legal": "Which (item, command) pairs may be picked.",
    "context": "What describes each thing that is seen and cannot be picked; U is at least 1.",
    "context_present": "False: padding.",
    "pick_items": "The items picked, in order; -1 where nothing legal was left, and after a pass.",
    "pick_commands": "The command of each; 0 where nothing was picked.",
    "q_values": "What each pick was the best of; -inf where a pair was not allowed. "
    "Where a pass is allowed, one more row begins with what it is worth.",
}
"""What each input and output is."""


def _inputs(graph: Graph, policy: Policy) -> Seen:
    spec, given = policy.spec, policy.agent.commands

    def given_by_caller(name: str, kind: Kind, *shape: int | str) -> Tensor:
        return graph.input(name, kind, ("batch", *shape), ABOUT[name])

    items = given_by_caller("items", FLOAT, "N", spec.item_features)
    context = None
    if spec.num_context > 0:
        rows = given_by_caller("context", FLOAT, "U", spec.context_features)
        there = given_by_caller("context_present", BOOL, "U")
        context = Things(where(there.axis(2), rows, ZERO), there.cast(FLOAT))
    present = given_by_caller("present", BOOL, "N")
    legal = given_by_caller("legal", BOOL, "N", spec.num_commands)
    if given is not None:
        legal = legal & np.asarray(given)
    # Padding may hold anything: from here on it holds 0, and has no weight.
    return Seen(where(present.axis(2), items, ZERO), present, legal, context)


def _sets(policy: Policy, phase_map: sharing.PhaseMap) -> dict[int, Any]:
    """The parameter sets that serve a phase, by their rows."""
    return {
        row: jax.tree.map(lambda leaf, row=row: np.asarray(leaf[row]), policy.params)
        for row in set(phase_map)
    }


def _metadata(policy: Policy, phase_map: sharing.PhaseMap) -> dict[str, str]:
    """What the file tells about itself, each as JSON."""
    about = policy.about
    told = {
        "spec": asdict(policy.spec),
        "num_select": len(phase_map),
        "phase_map": phase_map,
        "algorithm": policy.agent.name,
        "command_names": about.get("command_names", []),
        "step": about.get("step"),
        "config": about.get("config"),
        "versions": about.get("versions"),
    }
    return {name: json.dumps(value) for name, value in told.items()}
