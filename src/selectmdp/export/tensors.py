"""An ONNX graph written as arithmetic: tensors whose operators add nodes to the graph.

ONNX has no axis of its own for a batch, so that here, unlike elsewhere, the batch is the first axis
of everything. NumPy arrays and numbers that meet a tensor become constants of the graph, each once.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from selectmdp.nets.base import SLOPE

FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
ZERO, ONE = np.float32(0), np.float32(1)
Kind = int
"""One of the three: numbers, indices, masks."""
Shape = tuple[int | str, ...]
"""A dimension with a name may have any size."""


@dataclass(frozen=True)
class Tensor:
    """A value that a graph computes."""

    graph: "Graph"
    name: str

    def __add__(self, other: Any) -> "Tensor":
        return self.graph.node("Add", self, other)

    def __mul__(self, other: Any) -> "Tensor":
        return self.graph.node("Mul", self, other)

    def __truediv__(self, other: Any) -> "Tensor":
        return self.graph.node("Div", self, other)

    def __matmul__(self, other: Any) -> "Tensor":
        return self.graph.node("MatMul", self, other)

    def __and__(self, other: Any) -> "Tensor":
        return self.graph.node("And", self, other)

    def __invert__(self) -> "Tensor":
        return self.graph.node("Not", self)

    def node(self, operator: str, *others: Any, **attributes: Any) -> "Tensor":
        """Any other operator of ONNX, on this tensor and others."""
        return self.graph.node(operator, self, *others, **attributes)

    def axis(self, *places: int) -> "Tensor":
        """With an axis of length 1 more at each of these places."""
        return self.node("Unsqueeze", _indices(*places))

    def sum(self, axis: int, keepdims: bool = False) -> "Tensor":
        return self.node("ReduceSum", _indices(axis), keepdims=int(keepdims))

    def cast(self, kind: Kind) -> "Tensor":
        return self.node("Cast", to=kind)


@dataclass(eq=False, repr=False)
class Graph:
    """The parts of an ONNX graph, in the order in which they are made."""

    nodes: list[NodeProto] = field(default_factory=list)
    inputs: list[ValueInfoProto] = field(default_factory=list)
    outputs: list[ValueInfoProto] = field(default_factory=list)
    constants: dict[Any, TensorProto] = field(default_factory=dict)
    made: dict[Any, Tensor] = field(default_factory=dict)
    """By operator and operands: what is made."""

    def input(self, name: str, kind: Kind, shape: Shape, about: str) -> Tensor:
        """What the caller gives."""
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape, about))
        return Tensor(self, name)

    def output(self, name: str, value: Tensor, kind: Kind, shape: Shape, about: str) -> None:
        """What the caller gets."""
        self.nodes.append(helper.make_node("Identity", [value.name], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, kind, shape, about))

    def node(self, operator: str, *operands: Any, **attributes: Any) -> Tensor:
        """One operator of ONNX; what phases have in common is made once."""
        names = tuple(self._tensor(operand).name for operand in operands)
        key = (operator, names, tuple(attributes.items()))
        if key not in self.made:
            self.made[key] = Tensor(self, f"{operator}_{len(self.nodes)}")
            name = self.made[key].name
            self.nodes.append(helper.make_node(operator, names, [name], name, **attributes))
        return self.made[key]

    def finished(self, name: str) -> GraphProto:
        """The graph without what no output needs."""
        needed, nodes = {output.name for output in self.outputs}, []
        for node in reversed(self.nodes):
            if node.output[0] in needed:
                needed.update(node.input)
                nodes.append(node)
        constants = [each for each in self.constants.values() if each.name in needed]
        return helper.make_graph(nodes[::-1], name, self.inputs, self.outputs, constants)

    def _tensor(self, operand: Any) -> Tensor:
        if isinstance(operand, Tensor):
            return operand
        array = np.asarray(operand)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.constants:
            name = f"constant_{len(self.constants)}"
            self.constants[key] = numpy_helper.from_array(array, name)
        return Tensor(self, self.constants[key].name)


def leaky(x: Tensor) -> Tensor:
    """Leaky ReLU, as `nets.base` has it."""
    return x.node("LeakyRelu", alpha=SLOPE)


def where(mask: Tensor, yes: Any, no: Any) -> Tensor:
    """`yes` where the mask is true."""
    return mask.node("Where", yes, no)


def joined(parts: list[Tensor], axis: int) -> Tensor:
    """One after the other."""
    return parts[0].node("Concat", *parts[1:], axis=axis)


def repeated(row: Any, like: Tensor) -> Tensor:
    """[B, 1, M]: a constant row for every state of a batch."""
    shape = like.node("Shape", start=0, end=1).node("Concat", _indices(1, row.size), axis=0)
    return like.graph.node("Expand", row[None, None], shape)


def _indices(*numbers: int) -> Any:
    return np.asarray(numbers, np.int64)
