"""Runs nests of the model on NumPy arrays; an index out of range is an error."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from polyblocks.affine.buffers.copies import Barrier, Commit, Wait
from polyblocks.affine.expr import Var
from polyblocks.affine.model import (
    AffineAccess,
    Alloca,
    Buffer,
    For,
    Index,
    Load,
    Node,
    Op,
    Sequence,
    Store,
    Value,
)

OPERATIONS: dict[str, Callable[..., float]] = {
    "arith.addf": lambda a, b: a + b,
    "arith.subf": lambda a, b: a - b,
    "arith.mulf": lambda a, b: a * b,
    "arith.divf": lambda a, b: a / b,
    "arith.maximumf": max,
    "arith.extf": lambda a: a,
    "arith.truncf": lambda a: a,
    "math.exp": math.exp,
    "math.sin": math.sin,
}


class Machine:
    """Memory of a program: one array for each buffer, NaN where nothing was written."""

    def __init__(self, contents: dict[Buffer, np.ndarray]) -> None:
        self.memory = {b: np.array(a, dtype=np.float64) for b, a in contents.items()}

    def run(self, sequence: Sequence) -> None:
        """Execute all nests in order."""
        for nest in sequence.nests():
            self._block(nest.body, {}, {})

    def array(self, buffer: Buffer) -> np.ndarray:
        """The contents of a buffer."""
        if buffer not in self.memory:
            self.memory[buffer] = np.full(buffer.shape, np.nan)
        return self.memory[buffer]

    def _block(
        self, nodes: list[Node], values: dict[Value, Any], variables: dict[Var, int]
    ) -> None:
        for node in nodes:
            if isinstance(node, For):
                self._loop(node, values, variables)
            elif isinstance(node, Load):
                there = all(e.evaluate(variables) >= 0 for e in node.where)
                array = self.array(node.buffer)
                values[node.result] = array[self._at(node, variables)] if there else 0.0
            elif isinstance(node, Store):
                self.array(node.buffer)[self._at(node, variables)] = values[node.value]
            elif isinstance(node, Index):
                values[node.result] = node.expr.evaluate(variables)
            elif isinstance(node, (Commit, Wait, Barrier)):
                # Copies are done at once, and there is one thread.
                pass
            elif isinstance(node, Alloca):
                self.memory[node.buffer] = np.full(node.buffer.shape, np.nan)
            else:
                assert isinstance(node, Op), node
                values[node.results[0]] = self._operation(node, values)

    def _operation(self, node: Op, values: dict[Value, Any]) -> float:
        if node.name == "arith.constant":
            return float(node.attributes["value"])
        return OPERATIONS[node.name](*(values[v] for v in node.operands))

    def _at(self, node: AffineAccess, variables: dict[Var, int]) -> tuple[int, ...]:
        index = tuple(e.evaluate(variables) for e in node.index)
        for i, extent in zip(index, node.buffer.shape, strict=True):
            if not 0 <= i < extent:
                raise IndexError(f"{index} of {node.buffer}")
        return index

    def _loop(self, node: For, values: dict[Value, Any], variables: dict[Var, int]) -> None:
        low = max(0, *(e.evaluate(variables) for e in node.lower)) if node.lower else 0
        ends = [e.evaluate(variables) for e in node.upper]
        high = min([node.var.extent, *ends])
        carried = [values[v] for v in node.inits]
        for i in range(low, high):
            inside = dict(variables)
            inside[node.var] = i
            values.update(zip(node.arguments, carried, strict=True))
            self._block(node.body, values, inside)
            carried = [values[v] for v in node.yields]
        values.update(zip(node.results, carried, strict=True))
