"""Straight-line code for several neighbouring iterations at once, with wide loads and stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from polyblocks.affine.access import address, begins_and_ends_with_memory
from polyblocks.affine.expr import Var
from polyblocks.affine.gpu.mapping.wide import is_wide
from polyblocks.affine.gpu.plans.groups import Place
from polyblocks.affine.model import Index, Load, Node, Op, Store, Value
from polyblocks.codegen.gpu.emission.nodes import NodeEmitter
from polyblocks.mlir import ir

_REGISTERS = (Place.PRIVATE, Place.DISTRIBUTED_REGISTERS)


class WideBody:
    """Writes nodes for neighbouring values of a variable, from the current one on.

    Contiguous elements are loaded and stored with one access, elements common to all values are
    loaded once, and everything else is done value by value.

    Args:
        nodes: writes those of one value.
        var: the variable.
        width: how many values.

    Attributes:
        values: of values of the nest, for each of the variable's; one if they are the same.
    """

    def __init__(self, nodes: NodeEmitter, var: Var, width: int) -> None:
        self.emitter, self.code = nodes, nodes.code
        self.var, self.width = var, width
        self.values: dict[Value, list[Any]] = {}
        self.chained: frozenset[Value] = frozenset()

    def reduce(
        self,
        nodes: Sequence[Node],
        arguments: Sequence[Value],
        carried: Sequence[Any],
        yields: Sequence[Value],
    ) -> list[Any]:
        """The carried values after the nodes, one iteration after the other.

        Args:
            nodes: of an iteration.
            arguments: what is carried; each by the one operation that uses it.
            carried: before the first iteration.
            yields: what is carried on.
        """
        self.chained = frozenset(arguments)
        self.values.update((v, [c]) for v, c in zip(arguments, carried, strict=True))
        self.nodes(nodes)
        return [self._of(v, 0) for v in yields]

    def nodes(self, nodes: Sequence[Node]) -> None:
        """Nodes in order."""
        for node in nodes:
            if isinstance(node, Load):
                self.values[node.result] = self._load(node)
            elif isinstance(node, Store):
                self._store(node)
            elif isinstance(node, Index):
                moves = self.var in node.expr.variables()
                made = partial(self.emitter.expr, node.expr)
                self.values[node.result] = self._each(made, moves)
            else:
                assert isinstance(node, Op)
                self._op(node)

    def _of(self, value: Value, i: int) -> Any:
        found = self.values.get(value)
        return self.emitter.use(value) if found is None else found[i if len(found) > 1 else 0]

    def _each(self, made: Callable[[], Any], moves: bool = True) -> list[Any]:
        """The results for each of the values; one result if they share it."""
        emitter, code = self.emitter, self.code
        first, round_, walk = emitter.variables[self.var], emitter.round, emitter.walk
        found = []
        for i in range(self.width if moves else 1):
            emitter.variables[self.var] = code.plus(first, i)
            emitter.round = round_ + i
            if walk is not None:
                emitter.walk = walk[0], code.plus(walk[1], i)
            found.append(made())
        emitter.variables[self.var], emitter.round, emitter.walk = first, round_, walk
        return found

    def _op(self, node: Op) -> None:
        types = [r.type for r in node.results]
        chained = any(v in self.chained for v in node.operands)
        same = not chained and all(len(self.values.get(v, [0])) == 1 for v in node.operands)
        rows: list[list[Any]] = []
        for i in range(1 if same else self.width):
            operands = [
                rows[-1][0] if rows and v in self.chained else self._of(v, i) for v in node.operands
            ]
            op = self.code.op(node.name, types, operands, node.attributes, node.location)
            rows.append(list(op.results))
        for position, result in enumerate(node.results):
            self.values[result] = [row[position] for row in (rows[-1:] if chained else rows)]

    # Memory

    def _place(self, node: Load | Store) -> list[Any] | None:
        """Where an access of all neighbours begins; None if they are not accessed at once."""
        emitter = self.emitter
        if emitter.plan.places.get(node.buffer) in _REGISTERS or not is_wide(node, self.var):
            return None
        memref, *index = emitter.place(node)
        if len(index) == 1 or node.index[-1].coefficient(self.var) == 1:
            return [memref, *index]
        # In shared memory, rows may be longer than the buffer says.
        if node.buffer.kind == "local" or not begins_and_ends_with_memory(node.buffer):
            return None
        return [emitter.row(memref), emitter.expr(address(node.buffer, node.index))]

    def _load(self, node: Load) -> list[Any]:
        type_ = node.result.type
        place = self._place(node)
        if place is not None:
            vector = ir.VectorType.get([self.width], type_)
            op = self.code.op("vector.load", [vector], place, None, node.location)
            return self.code.elements(op.results[0])
        owned = self.emitter.plan.places.get(node.buffer) is Place.DISTRIBUTED_REGISTERS
        moves = owned or any(self.var in e.variables() for e in (*node.index, *node.where))
        return self._each(partial(self._load_one, node), moves)

    def _load_one(self, node: Load) -> Any:
        """The element that the current iteration loads."""
        self.emitter.run([node], False, [])
        return self.emitter.values[node.result]

    def _store(self, node: Store) -> None:
        code = self.code
        place = self._place(node)
        if place is not None:
            elements = [self._of(node.value, i) for i in range(self.width)]
            vector = ir.VectorType.get([self.width], node.value.type)
            value = code.value("vector.from_elements", vector, *elements)
            code.op("vector.store", [], [value, *place], None, node.location)
            return
        rest = iter(range(self.width))
        self._each(lambda: self._store_one(node, self._of(node.value, next(rest))))

    def _store_one(self, node: Store, value: Any) -> None:
        """Store a value as the current iteration does."""
        self.emitter.values[node.value] = value
        self.emitter.run([node], False, [])
