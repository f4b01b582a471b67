"""The sum of products that the steps of a contraction compute: the one recognizer for matrix units.

It asks only what a step computes: a sum, of products, of factors that may be extended to the type
of the sum. How a factor is computed is code of its own, for a unit to accept or refuse.
"""

from __future__ import annotations

from dataclasses import dataclass

from polyblocks.affine.analysis.contractions import Contraction
from polyblocks.affine.analysis.dataflow import makers_of, slice_of, variables_of
from polyblocks.affine.analysis.reduction_chains import StraightLineCode
from polyblocks.affine.analysis.reductions import EXTENSIONS
from polyblocks.affine.element import F32, F64, I32, DType, dtype_of
from polyblocks.affine.expr import Var
from polyblocks.affine.model import Load, Node, Op, Pure, Value
from polyblocks.affine.ops import is_constant

#: Type of a sum -> the operations that add and multiply.
_ARITHMETIC = {
    F32: ("arith.addf", "arith.mulf"),
    F64: ("arith.addf", "arith.mulf"),
    I32: ("arith.addi", "arith.muli"),
}
#: How a number becomes the bits of a float32 that is rounded to ``tfloat32``.
_ROUNDING = ["llvm.call_intrinsic", "arith.bitcast"]


@dataclass(frozen=True)
class Factor:
    """A factor of a product.

    Attributes:
        value: before it is extended to the type of the sum.
        extension: the operation that extends it; empty for none.
        code: straight-line code that computes the value, of loops' variables only, in order.
    """

    value: Value
    extension: str
    code: list[Node]

    @property
    def dtype(self) -> str:
        """Name of the dtype as which it is multiplied; empty where no array has such elements.

        Integers have the sign with which they are extended.
        """
        if self.rounding:
            return "tfloat32"
        found = dtype_of(self.value.type).array
        return f"u{found}" if found and self.extension == "arith.extui" else found

    @property
    def rounding(self) -> str:
        """The function that rounds it to ``tfloat32``, if that is done to it last.

        See :class:`polyblocks.target.MatrixUnit`.
        """
        last = self.code[-2:]
        names = [n.name for n in last if isinstance(n, Op)]
        if dtype_of(self.value.type) != F32 or names != _ROUNDING:
            return ""
        (call, _) = last
        assert isinstance(call, Op)
        return str(call.attributes["intrin"].value)

    def moved_by(self, variables: list[Var]) -> bool:
        """Whether the value depends on one of some variables."""
        return not variables_of(self.code).isdisjoint(variables)


@dataclass(frozen=True)
class SumOfProducts:
    """A step adds products to the only value that the reduction carries.

    Attributes:
        accumulator: type of the sum.
        pairs: the two factors of each product.
        nodes: all code that the sum depends on.
    """

    accumulator: DType
    pairs: list[tuple[Factor, Factor]]
    nodes: set[Node]


def sum_of_products(contraction: Contraction) -> SumOfProducts | None:
    """The products that the steps of a contraction add up; None for other steps, or without loops.

    Whether the sum may be in any order is not asked: see ``contraction.combiners``.
    """
    reduction, combiners = contraction.reduction, contraction.combiners
    if not reduction.loops or combiners is None or len(combiners) != 1:
        return None
    last = reduction.loops[-1]
    accumulator = dtype_of(last.arguments[0].type)
    if accumulator not in _ARITHMETIC:
        return None
    add, multiply = _ARITHMETIC[accumulator]
    if combiners[0].name != add:
        return None
    chain = StraightLineCode(reduction.body).chain(last.yields[0])
    assert chain is not None
    code = _Code(contraction)
    pairs = []
    for term in chain.terms:
        if term is last.arguments[0]:
            continue
        maker = code.makers.get(term)
        if not isinstance(maker, Op) or maker.name != multiply:
            return None
        first, second = (code.factor(value) for value in maker.operands)
        if first is None or second is None:
            return None
        pairs.append((first, second))
    return SumOfProducts(accumulator, pairs, set(slice_of(last.yields, code.makers)))


class _Code:
    """The code of a step, and constants before it."""

    def __init__(self, contraction: Contraction) -> None:
        before, body = contraction.before, contraction.reduction.body
        constants = [n for n in before if is_constant(n)]
        pure = (Pure, Load)
        self._nodes = [*constants, *body]
        self.makers = makers_of(n for n in self._nodes if isinstance(n, pure))
        # Values of one element: what is computed before the steps, and what these carry.
        own = makers_of(n for n in before if isinstance(n, pure)).keys() - self.makers.keys()
        self._fixed = own | set(contraction.reduction.loops[-1].arguments)

    def factor(self, value: Value) -> Factor | None:
        """A factor; None if it depends on values of one element."""
        maker, extension = self.makers.get(value), ""
        if isinstance(maker, Op) and maker.name in EXTENSIONS:
            extension, (value,) = maker.name, maker.operands
        needed = slice_of([value], self.makers)
        if not self._fixed.isdisjoint((value, *(v for n in needed for v in n.uses))):
            return None
        return Factor(value, extension, [n for n in self._nodes if n in needed])
