"""mask-absent: what an operation multiplies by zeros of its own padding counts as zero."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, ClassVar, TypeGuard

from polyblocks.affine.analysis.reductions import EXTENSIONS
from polyblocks.affine.expr import Expr
from polyblocks.affine.fusion.product_nests import ProductNests
from polyblocks.affine.model import Buffer, For, Load, Node, Op, Sequence, Value, walk
from polyblocks.affine.ops import Integers, Ops, constant_number
from polyblocks.affine.padding.lattices import Lattice, lattices_of
from polyblocks.affine.padding.margins import Margin, margins_of
from polyblocks.affine.rewrites.simplify import eliminate_common
from polyblocks.affine.users import Users
from polyblocks.attributes import ABSENT_ATTRIBUTE
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class MaskAbsentPass(NestPass):
    """Let a factor be zero where the other one is an element that is not there.

    A product is marked where the zeros that its operation stored around a factor stand for elements
    that are not there: what they are multiplied by does not matter, not even if it is infinite or
    NaN. Products that are computed in tiles or by matrix units stay as they are, and so do those
    with constants that are known to be finite.

    Before, with ``%x[i]`` in ``%p[i + 1]`` and zeros in ``%p[0]`` and ``%p[9]``::

        %a = affine.load %p[%i]
        %b = affine.load %w[0]
        %t = arith.mulf %a, %b {polyblocks.absent}

    After::

        %a = affine.load %p[%i]
        %b = affine.load %w[0]
        %in = arith.cmpi ult, (%i - 1), 8
        %c = arith.select %in, %b, 0.0
        %t = arith.mulf %a, %c
    """

    name: ClassVar[str] = "mask-absent"
    needs: ClassVar[frozenset[str]] = frozenset(
        {facts.NESTS, facts.REDUCTIONS, facts.UNFUSED, facts.PADDING}
    )
    breaks: ClassVar[frozenset[str]] = frozenset({facts.PADDING})

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Mask in every nest that reads its own operation's zeros."""
        marked = [
            (nest, [n for n in walk(nest.body) if _is_marked(n)]) for nest in sequence.nests()
        ]
        marked = [(nest, products) for nest, products in marked if products]
        if not marked:
            return
        lattices = lattices_of(sequence)
        known = {
            buffer: _Zeros(margin, lattices.get(buffer))
            for buffer, margin in margins_of(sequence).items()
        }
        product_nests = ProductNests(Users(sequence), context.target)
        for nest, products in marked:
            if not (product_nests.fits_unit(nest) or product_nests.fits_tiles(nest)):
                _mask(nest.body, known)
            for op in products:
                op.attributes = {k: v for k, v in op.attributes.items() if k != ABSENT_ATTRIBUTE}
            eliminate_common(nest.body)
            nest.replace()


@dataclass(frozen=True)
class _Zeros:
    """Which elements of a buffer are there.

    Attributes:
        margin: the zeros around a box.
        lattice: where elements are in the box; None for everywhere.
    """

    margin: Margin
    lattice: Lattice | None

    def spans(self, load: Load) -> list[tuple[Expr, int]]:
        """Numbers that are from 0 to below others where an element is there; none if all are."""
        found: list[tuple[Expr, int]] = []
        if not self.margin.is_own(load):
            return found
        for expr, (low, high) in zip(load.index, self.margin.inside, strict=True):
            least, most = expr.range()
            if least < low or most >= high:
                found.append((expr - low, high - low))
        if self.lattice is not None:
            places = zip(load.index, self.lattice.first, self.lattice.strides, strict=True)
            found += [((expr - first) % step, 1) for expr, first, step in places if step > 1]
        return found


def _is_marked(node: Node) -> TypeGuard[Op]:
    return isinstance(node, Op) and ABSENT_ATTRIBUTE in node.attributes


def _mask(nodes: list[Node], known: dict[Buffer, _Zeros]) -> None:
    """Mask factors in a block and in the loops in it."""
    users: dict[Value, list[Node]] = defaultdict(list)
    makers: dict[Value, Op] = {}
    for node in nodes:
        if isinstance(node, For):
            _mask(node.body, known)
        for value in node.uses:
            users[value].append(node)
        if isinstance(node, Op):
            makers.update(dict.fromkeys(node.results, node))
    before: dict[Node, list[Node]] = {}
    for node in nodes:
        if not isinstance(node, Load) or node.buffer not in known:
            continue
        spans = known[node.buffer].spans(node)
        factor = _only_factor(node.result, users) if spans else None
        if factor is None:
            continue
        times, side = factor
        other = times.operands[1 - side]
        if not _is_finite(makers.get(other)):
            code: list[Node] = []
            times.operands[1 - side] = _masked(other, spans, code)
            before[times] = code
    if before:
        nodes[:] = [new for node in nodes for new in (*before.get(node, ()), node)]


def _only_factor(value: Value, users: dict[Value, list[Node]]) -> tuple[Op, int] | None:
    """The product that a value, perhaps extended, is one factor of, and which of the two.

    None if anything else is done with the value, or anything but sums with the product.
    """
    while len(users[value]) == 1:
        (node,) = users[value]
        if not isinstance(node, Op):
            return None
        if _is_marked(node):
            (result,) = node.results
            sums = all(isinstance(n, Op) and n.name == "arith.addf" for n in users[result])
            return (node, node.operands.index(value)) if sums and users[result] else None
        if node.name not in EXTENSIONS:
            return None
        (value,) = node.results
    return None


def _is_finite(maker: Op | None) -> bool:
    """Whether what makes a value is a constant that is finite."""
    value = constant_number(maker)
    return isinstance(value, float) and math.isfinite(value)


def _masked(value: Value, spans: list[tuple[Expr, int]], out: list[Node]) -> Value:
    """The value where all numbers are in their spans, and zero elsewhere."""
    ops = Ops(out)
    zero = ops.constant(0.0, value.type)
    # Where the fewest loops move first: that is the same for many.
    for expr, extent in sorted(spans, key=lambda span: len(span[0].terms)):
        inside = ops.compare(Integers.BELOW, ops.index(expr), ops.index(extent))
        value = ops.select(inside, value, zero)
    return value
