"""Integer arithmetic in 32 bits where that is enough."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.analysis.intervals import Intervals
from polyblocks.affine.element import I1, I32, I64, INDEX, dtype_of
from polyblocks.affine.model import For, Index, Node, Op, Value, remove_dead, walk

LIMIT = 1 << 31
#: Operations whose low result bits depend on the low operand bits only.
_ARITHMETIC = {
    "arith.addi",
    "arith.subi",
    "arith.muli",
    "arith.maxsi",
    "arith.minsi",
    "arith.divsi",
    "arith.floordivsi",
    "arith.remsi",
}
_CASTS = {"arith.index_cast", "arith.extsi", "arith.trunci"}
_WIDE = (I64, INDEX)


def narrow(nodes: list[Node], intervals: Intervals, masked: bool = False) -> int:
    """Rewrite in place; returns the number of operations that are narrower now.

    Only where floating-point numbers become integers, or masks compare places: vectors hold twice
    as many of these then as they would of 64 bits. Other functions of loop variables are scalar.

    Args:
        nodes: the code.
        intervals: of its values.
        masked: whether it compares places of several loops.
    """
    if not masked and not any(isinstance(n, Op) and n.name == "arith.fptosi" for n in walk(nodes)):
        return 0
    narrowing = _Narrowing(intervals)
    narrowing.block(nodes)
    if narrowing.changes:
        remove_dead(nodes)
    return narrowing.changes


class _Narrowing:
    def __init__(self, intervals: Intervals) -> None:
        from polyblocks.mlir import ir

        self.intervals = intervals
        self.narrow: dict[Value, Value] = {}
        self.changes = 0
        self.i32 = ir.IntegerType.get_signless(32)

    def block(self, nodes: list[Node]) -> None:
        out: list[Node] = []
        for node in nodes:
            if isinstance(node, For):
                self.block(node.body)
                out.append(node)
            elif isinstance(node, Index):
                out.append(node)
                if self._fits(node.result):
                    value = self._new(node.result)
                    out.append(Op("arith.index_cast", [node.result], {}, [value]))
            elif isinstance(node, Op) and len(node.results) == 1:
                out.extend(self._op(node))
            else:
                out.append(node)
        nodes[:] = out

    def _fits(self, value: Value) -> bool:
        return dtype_of(value.type) in _WIDE and self.intervals.get(value).within(-LIMIT, LIMIT - 1)

    def _new(self, wide: Value) -> Value:
        value = self.narrow[wide] = Value(self.i32)
        return value

    def _op(self, op: Op) -> list[Node]:
        """An operation, or a narrower one and what makes its result as wide as it was."""
        (result,) = op.results
        ops = [self.narrow.get(v) for v in op.operands]
        if op.name in ("arith.cmpi", "arith.sitofp"):
            if None in ops:
                return [op]
            unsigned = op.name == "arith.cmpi" and op.attributes["predicate"].value > 5
            if unsigned and any(self.intervals.get(v).low < 0 for v in op.operands):
                return [op]
            self.changes += 1
            return [Op(op.name, _all(ops), op.attributes, [result], op.location)]
        if not self._fits(result):
            return [op]
        nodes = self._narrowed(op, result, ops)
        if nodes is None:
            return [op]
        self.changes += 1
        back = "arith.index_cast" if dtype_of(result.type) == INDEX else "arith.extsi"
        return [*nodes, Op(back, [self.narrow[result]], {}, [result], op.location)]

    def _narrowed(self, op: Op, result: Value, ops: list[Value | None]) -> list[Node] | None:
        name, attributes, location = op.name, op.attributes, op.location
        if name == "arith.constant":
            from polyblocks.mlir import ir

            number = ir.IntegerAttr.get(self.i32, op.attributes["value"].value)
            return [Op(name, [], {"value": number}, [self._new(result)], location)]
        if name in _CASTS:
            source = op.operands[0]
            if dtype_of(source.type) == I32:
                self.narrow[result] = source
                return []
            if ops[0] is None:
                return None
            self.narrow[result] = ops[0]
            return []
        if name == "arith.extui" and dtype_of(op.operands[0].type) == I1:
            return [Op(name, op.operands, attributes, [self._new(result)], location)]
        if name == "arith.fptosi":
            return [Op(name, op.operands, attributes, [self._new(result)], location)]
        if name == "arith.select":
            if None in ops[1:]:
                return None
            chosen = [op.operands[0], *_all(ops[1:])]
            return [Op(name, chosen, attributes, [self._new(result)], location)]
        if name not in _ARITHMETIC or None in ops:
            return None
        return [Op(name, _all(ops), attributes, [self._new(result)], location)]


def _all(values: list[Any]) -> list[Value]:
    return [v for v in values if v is not None]
