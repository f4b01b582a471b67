"""Facts about the values of code: affine values, conditions with one outcome."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from polyblocks.affine.expr import Expr
from polyblocks.affine.model import (
    Check,
    For,
    Index,
    IndirectAccess,
    IndirectLoad,
    IndirectStore,
    Load,
    Nest,
    Node,
    Op,
    Store,
    Value,
    remove_dead,
    replace_values,
    walk,
)
from polyblocks.affine.steps import exact_range

#: Conversions of integers that leave small ones what they are.
CASTS = {"arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "arith.trunci"}
#: Predicates of ``arith.cmpi`` as tests of the range of left minus right: is it surely true, is it
#: surely false. Unsigned ones are those of signed numbers where neither side is negative.
_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


def raise_places(nest: Nest) -> int:
    """Make accesses at places that are affine after all affine ones, in place; how many changes.

    Checks that cannot fail go, and so do choices with one outcome.
    """
    if not any(isinstance(n, (IndirectAccess, Check)) for n in walk(nest.body)):
        return 0
    known = KnownValues()
    changes = known.block(nest.body)
    if changes:
        replace_values(nest.body, known.same)
        remove_dead(nest.body)
        nest.replace()
    return changes


@dataclass
class KnownValues:
    """Facts about the values of a nest.

    Attributes:
        exprs: integers that are affine in the loop variables.
        truths: conditions that always have the same outcome.
        same: values that are always the same as another one.
    """

    exprs: dict[Value, Expr] = field(default_factory=dict)
    truths: dict[Value, bool] = field(default_factory=dict)
    same: dict[Value, Value] = field(default_factory=dict)

    def block(self, nodes: list[Node]) -> int:
        """Learn from the nodes and change them in place; the number of changes."""
        changes = 0
        kept: list[Node] = []
        for node in nodes:
            if isinstance(node, For):
                changes += self.block(node.body)
            elif isinstance(node, Index):
                self.exprs[node.result] = node.expr
            elif isinstance(node, Op) and len(node.results) == 1:
                changes += self.learn(node)
            elif isinstance(node, Check) and self.truths.get(node.condition):
                changes += 1
                continue
            elif isinstance(node, (IndirectLoad, IndirectStore)):
                at = self._in_bounds(node)
                if at is not None:
                    changes += 1
                    kept.append(_raised(node, at))
                    continue
            kept.append(node)
        nodes[:] = kept
        return changes

    def _in_bounds(self, node: IndirectAccess) -> tuple[Expr, ...] | None:
        """The affine indices of an access; None if one is not, or may be out of bounds."""
        if node.buffer.viewed is not None:
            return None
        at: list[Expr] = []
        for value, extent in zip(node.index, node.buffer.shape, strict=True):
            expr = self.exprs.get(value)
            if expr is None:
                return None
            low, high = expr.range()
            if low < 0 or high >= extent:
                low, high = exact_range(expr)
            if low < 0 or high >= extent:
                return None
            at.append(expr)
        return tuple(at)

    def learn(self, op: Op) -> int:
        """Learn what an operation computes; 1 if it is always one of its operands."""
        (result,) = op.results
        if op.name == "arith.select":
            return self._choice(op, result)
        if op.name == "arith.cmpi":
            truth = self._comparison(op)
            if truth is not None:
                self.truths[result] = truth
            return 0
        expr = self._expr(op)
        bits = _bits(result.type)
        if expr is not None and bits:
            low, high = expr.range()
            if -(1 << (bits - 1)) <= low and high < 1 << (bits - 1):
                self.exprs[result] = expr
        return 0

    def _choice(self, op: Op, result: Value) -> int:
        truth = self.truths.get(op.operands[0])
        if truth is None:
            return 0
        chosen = op.operands[1 if truth else 2]
        self.same[result] = chosen
        if chosen in self.exprs:
            self.exprs[result] = self.exprs[chosen]
        return 1

    def _comparison(self, op: Op) -> bool | None:
        from polyblocks.mlir import ir

        left, right = (self.exprs.get(v) for v in op.operands)
        if left is None or right is None:
            return None
        name = _PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value]
        if name[0] == "u":
            if right.range()[0] < 0:
                return None
            least, most = exact_range(left)
            if least < 0:
                # As an unsigned number it is larger than all that are not negative.
                return {"ult": False, "ule": False}.get(name) if most < 0 else None
            name = f"s{name[1:]}"
        low, high = exact_range(left - right)
        outcomes = {
            "eq": (low == high == 0, high < 0 or low > 0),
            "ne": (high < 0 or low > 0, low == high == 0),
            "slt": (high < 0, low >= 0),
            "sle": (high <= 0, low > 0),
            "sgt": (low > 0, high <= 0),
            "sge": (low >= 0, high < 0),
        }
        surely, never = outcomes[name]
        return True if surely else False if never else None

    def _expr(self, op: Op) -> Expr | None:
        from polyblocks.mlir import ir

        if op.name == "arith.constant":
            attribute = op.attributes["value"]
            return Expr(attribute.value) if isinstance(attribute, ir.IntegerAttr) else None
        known = [self.exprs.get(v) for v in op.operands]
        truth = self.truths.get(op.operands[0]) if op.operands else None
        if truth is not None and op.name in ("arith.extui", "arith.extsi"):
            return Expr(truth * (1 if op.name == "arith.extui" else -1))
        if not known or known[0] is None:
            return None
        x = known[0]
        low, high = x.range()
        if op.name in CASTS:
            # A non-negative number is the same, signed and unsigned.
            return None if op.name.endswith("ui") and low < 0 else x
        if op.name == "math.absi":
            return x if low >= 0 else x * -1 if high <= 0 else None
        if len(known) != 2 or known[1] is None:
            return None
        return binary(op.name, x, known[1])


def compares_places(nodes: Iterable[Node]) -> bool:
    """Whether code compares places of one loop with those of another one."""
    known = KnownValues()
    for node in walk(nodes):
        if isinstance(node, Index):
            known.exprs[node.result] = node.expr
        elif isinstance(node, Op) and len(node.results) == 1:
            known.learn(node)
            if node.name == "arith.cmpi":
                left, right = (known.exprs.get(v) for v in node.operands)
                both = left is not None and right is not None
                if both and len(set((left - right).variables())) > 1:  # type: ignore[operator]
                    return True
    return False


def binary(name: str, x: Expr, y: Expr) -> Expr | None:
    if name == "arith.addi":
        return x + y
    if name == "arith.subi":
        return x - y
    if name == "arith.muli":
        if y.is_constant:
            return x * y.const
        return y * x.const if x.is_constant else None
    if name in ("arith.maxsi", "arith.minsi"):
        low, high = (x - y).range()
        if low < 0 < high:
            return None
        return x if (low >= 0) == (name == "arith.maxsi") else y
    if not y.is_constant or y.const <= 0:
        return None
    # Rounding towards zero and down are the same from zero on.
    positive = x.range()[0] >= 0
    if name == "arith.floordivsi" or (name in ("arith.divsi", "arith.divui") and positive):
        return x // y.const
    if name in ("arith.remsi", "arith.remui") and positive:
        return x % y.const
    return None


def _bits(type_: Any) -> int:
    """Width of an integer type; 0 for other types and for booleans."""
    from polyblocks.mlir import ir

    if isinstance(type_, ir.IndexType):
        return 64
    return type_.width if isinstance(type_, ir.IntegerType) and type_.width > 1 else 0


def _raised(node: IndirectLoad | IndirectStore, at: tuple[Expr, ...]) -> Node:
    if isinstance(node, IndirectLoad):
        return Load(node.result, node.buffer, at, node.location)
    return Store(node.value, node.buffer, at, node.location)
