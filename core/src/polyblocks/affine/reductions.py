"""Nests with one reduction in them, taken apart."""

from __future__ import annotations

from dataclasses import dataclass

from polyblocks.affine.coverage import perfect_loops
from polyblocks.affine.model import Alloca, For, Nest, Node, Op, Value, operands, walk

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
#: Of these, floating-point ops that must say that they may be reassociated.
NEED_FLAG = {"arith.addf", "arith.mulf"}


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
        parallel, body = perfect_loops(nest.body)
        # perfect_loops also walks into a reduction that stands alone.
        carried = [i for i, f in enumerate(parallel) if f.inits]
        if carried:
            return None
        loops = [i for i, n in enumerate(body) if isinstance(n, For)]
        if len(loops) != 1 or any(isinstance(n, Alloca) for n in body):
            return None
        first = body[loops[0]]
        assert isinstance(first, For)
        if not first.inits:
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
        return cls(parallel, body[: loops[0]], chain, chain[-1].body, body[loops[0] + 1 :])

    def reorderable(self) -> bool:
        """Whether the reduction loops may run in any order.

        So it is if every carried value is combined by one commutative op whose result nobody else
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
            for operand in operands(node):
                users[operand] = users.get(operand, 0) + 1
        makers = {r: n for n in innermost.body if isinstance(n, Op) for r in n.results}
        for argument, value in zip(innermost.arguments, innermost.yields, strict=True):
            op = makers.get(value)
            if op is None or op.name not in COMMUTATIVE or argument not in op.operands:
                return None
            flags = str(op.attributes.get("fastmath", ""))
            if any_order and op.name in NEED_FLAG and "reassoc" not in flags:
                return None
            if users.get(argument) != 1 or users.get(value, 0) != 0:
                return None
            found.append(op)
        return found
