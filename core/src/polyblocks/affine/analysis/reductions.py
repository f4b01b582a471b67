"""Nests with one reduction in them, taken apart."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from polyblocks.affine.analysis.dataflow import ops_of
from polyblocks.affine.element import printed
from polyblocks.affine.model import Alloca, For, Index, Load, Nest, Node, Op, Value, walk
from polyblocks.affine.ops import has_flag
from polyblocks.affine.subnests import parallel_shell

#: Ops with which a reduction gives the same result in any order (floating point: where
#: reassociation is allowed).
COMMUTATIVE = {
    "arith.addf",
    "arith.addi",
    "arith.andi",
    "arith.maximumf",
    "arith.maxnumf",
    "arith.maxsi",
    "arith.maxui",
    "arith.minimumf",
    "arith.minnumf",
    "arith.minsi",
    "arith.minui",
    "arith.mulf",
    "arith.muli",
    "arith.ori",
    "arith.xori",
}
#: Of these, sums and products whose rounding errors add up.
ROUNDING = {"arith.addf", "arith.mulf"}
#: Operations that extend integers, and all that extend numbers.
INTEGER_EXTENSIONS = ("arith.extsi", "arith.extui")
EXTENSIONS = ("arith.extf", *INTEGER_EXTENSIONS)
#: In a reduction, whose order is free, either zero may be the largest of both.
_ZEROS_IN_ORDER = {"arith.maximumf", "arith.minimumf"}
#: Of these, floating-point ops that must say that they may be reassociated.
NEED_FLAG = {"arith.addf", "arith.mulf"}


def in_any_order(combiners: list[Op] | None) -> list[Op] | None:
    """The combiners, if all of them say that they may be reassociated; integers need not."""
    for op in combiners or ():
        if op.name in NEED_FLAG and not has_flag(op, "reassoc"):
            return None
    return combiners


#: Most rows that are multiplied with another one at once.
ROWS = 4


def rows_at_once(extent: int) -> int:
    """The number of rows, of ``extent``, that are multiplied with another one at once.

    A divisor, if there is one. ``jam-reductions`` makes such loops.
    """
    return next((n for n in range(ROWS, 1, -1) if extent % n == 0), min(extent, ROWS))


@dataclass
class ReductionNest:
    """Parallel loops around: straight-line code, one chain of reduction loops, straight-line code.

    Attributes:
        parallel: the loops around, from the outside in.
        before: what comes before the reduction, among it the starting values.
        reductions: the chain of loops that carry values.
        inner: the body of the innermost of them.
        after: what happens with the results.
    """

    parallel: list[For]
    before: list[Node]
    reductions: list[For]
    inner: list[Node]
    after: list[Node]

    @classmethod
    def of(cls, nest: Nest) -> ReductionNest | None:
        """The parts of a nest; None if it is no such nest."""
        return cls.of_nodes(nest.body)

    @classmethod
    def of_nodes(cls, nodes: list[Node]) -> ReductionNest | None:
        """The parts of a nest or of a sub-nest of a tile; None if it is no such nest."""
        parallel, body = parallel_shell(nodes)
        loops = [i for i, n in enumerate(body) if isinstance(n, For)]
        if len(loops) != 1 or any(isinstance(n, Alloca) for n in body):
            return None
        return cls._around(parallel, body, loops[0])

    def carry_anew(self, i: int, start: Value, type_: Any) -> None:
        """Let the loops carry a value of another type instead of number ``i``, from a start.

        Its results and arguments are new, and so are uses of them; what the innermost loop yields
        stays.
        """
        for outer, loop in zip([None, *self.reductions], self.reductions, strict=False):
            loop.inits[i] = start if outer is None else outer.arguments[i]
            loop.arguments[i] = Value(type_)
            loop.results[i] = Value(type_)
        for outer, inner in zip(self.reductions, self.reductions[1:], strict=False):
            outer.yields[i] = inner.results[i]

    @classmethod
    def leading(cls, nodes: list[Node]) -> ReductionNest | None:
        """The parts of a nest that starts with a reduction and goes on with other loops.

        ``before`` may have buffers of the iteration, ``after`` has the other loops. None for
        another nest, also for one with no other loops.
        """
        parallel, body = parallel_shell(nodes)
        loops = [i for i, n in enumerate(body) if isinstance(n, For)]
        return cls._around(parallel, body, loops[0]) if len(loops) > 1 else None

    @classmethod
    def _around(cls, parallel: list[For], body: list[Node], at: int) -> ReductionNest | None:
        first = body[at]
        assert isinstance(first, For)
        # The loops of a register tile stay as they are made.
        if not first.inits or any(loop.lanes or loop.unit for loop in parallel):
            return None
        chain = [first]
        while True:
            inner = [n for n in chain[-1].body if isinstance(n, For)]
            if not inner:
                break
            if len(inner) != 1 or len(chain[-1].body) != 1:
                return None
            if inner[0].inits != chain[-1].arguments or chain[-1].yields != inner[0].results:
                return None
            chain.append(inner[0])
        return cls(parallel, body[:at], chain, chain[-1].body, body[at + 1 :])

    @property
    def iterations(self) -> int:
        """Iterations of the parallel loops together, at most."""
        return math.prod(loop.trips for loop in self.parallel)

    @property
    def trips(self) -> int:
        """Iterations of the reduction loops together, at most."""
        return math.prod(loop.trips for loop in self.reductions)

    def reorderable(self) -> bool:
        """Whether the reduction loops may run in any order.

        So it is if every carried value is combined by one commutative op whose result nothing else
        looks at.
        """
        return self.combiners() is not None

    def combiners(self, any_order: bool = True) -> list[Op] | None:
        """The commutative op that combines each carried value; None if one has no such op.

        With ``any_order``, floating-point ops must also say that they may be reassociated.
        """
        innermost = self.reductions[-1]
        found: list[Op] = []
        users: dict[Value, int] = {}
        for node in walk(innermost.body):
            for operand in node.uses:
                users[operand] = users.get(operand, 0) + 1
        makers = ops_of(innermost.body)
        for argument, value in zip(innermost.arguments, innermost.yields, strict=True):
            op = makers.get(value)
            if op is None or op.name not in COMMUTATIVE or argument not in op.operands:
                return None
            if any_order and op.name in NEED_FLAG and not has_flag(op, "reassoc"):
                return None
            if users.get(argument) != 1 or users.get(value, 0) != 0:
                return None
            found.append(op)
        return found


def free_of_order(op: Op) -> None:
    """Let a reduction's op take any of two zeros, which saves looking at their signs."""
    from polyblocks.mlir import ir

    if op.name not in _ZEROS_IN_ORDER:
        return
    flags = printed(op.attributes.get("fastmath", "#arith.fastmath<none>"))
    inner = flags[flags.index("<") + 1 : flags.index(">")]
    names = [*(name for name in inner.split(",") if name not in ("none", "nsz")), "nsz"]
    attribute = ir.Attribute.parse(f"#arith.fastmath<{','.join(names)}>")
    op.attributes = {**op.attributes, "fastmath": attribute}


def adds_products_of(
    value: Value, ops: Iterable[Node], arguments: list[Value], yields: list[Value]
) -> bool:
    """Whether a step of a sum does nothing but multiply a value once, and add that.

    Factors may be extended first.

    Args:
        value: one of the factors.
        ops: what a step does with what it has loaded.
        arguments: the sum before the step.
        yields: the sum after it.
    """
    found: list[Node] = []
    for node in ops:
        if isinstance(node, Op) and node.name in EXTENSIONS:
            if node.operands == [value]:
                (value,) = node.results
        elif not isinstance(node, (Index, Load)):
            found.append(node)
    if len(found) != 2:
        return False
    times, plus = found
    if not isinstance(times, Op) or times.name not in ("arith.mulf", "arith.muli"):
        return False
    if not isinstance(plus, Op) or plus.name not in ("arith.addf", "arith.addi"):
        return False
    if times.operands.count(value) != 1 or plus.results != yields:
        return False
    return sorted((*times.results, *arguments), key=id) == sorted(plus.operands, key=id)


def identities(combiners: list[Op]) -> list[Op] | None:
    """New constants that the combiners leave alone; None if one has no identity."""
    found: list[Op] = []
    for op in combiners:
        attribute = identity(op.name, op.results[0].type)
        if attribute is None:
            return None
        found.append(Op("arith.constant", [], {"value": attribute}, [Value(op.results[0].type)]))
    return found


def identity(name: str, type_: Any) -> Any | None:
    """The identity of a commutative op as an MLIR attribute; None if it has none."""
    from polyblocks.mlir import ir

    if name in ("arith.addf", "arith.mulf", "arith.maximumf", "arith.minimumf"):
        # Minus zero: zero would turn a sum of minus zeros into plus zero.
        values = {"addf": -0.0, "mulf": 1.0, "maximumf": float("-inf"), "minimumf": float("inf")}
        return ir.FloatAttr.get(type_, values[name.removeprefix("arith.")])
    if not isinstance(type_, ir.IntegerType):
        return None
    width = type_.width
    integers = {
        "arith.addi": 0,
        "arith.andi": -1,
        "arith.maxsi": -(1 << (width - 1)),
        "arith.maxui": 0,
        "arith.minsi": (1 << (width - 1)) - 1,
        "arith.minui": -1,
        "arith.muli": 1,
        "arith.ori": 0,
        "arith.xori": 0,
    }
    if name not in integers:
        return None
    if width == 1:
        # As a signed number true is less than false.
        booleans = {"arith.andi": True, "arith.ori": False, "arith.xori": False}
        return ir.BoolAttr.get(booleans[name]) if name in booleans else None
    return ir.Attribute.parse(f"{integers[name]} : i{width}")
