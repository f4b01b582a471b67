"""raise-masks: a constant table of two numbers beside a diagonal becomes comparisons of indices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from polyblocks.passes import facts
from polyblocks.passes.tensor.constant_values import Evaluator
from polyblocks.passes.tensor.scalar_values import Unknown

#: Elements of a table that is worth it, at least: filters and small matrices stay constants.
FEWEST = 1024


@dataclass(frozen=True)
class RaiseMasksPass:
    """Compute masks that a framework has folded to constants.

    Frameworks and programs hold causal masks and windows as tables. A comparison takes no memory,
    and loops can be bounded by it.

    Before, with a table that is -1e9 above its diagonal and zero elsewhere::

        %t = arith.constant dense<...> : tensor<512x512xf32>

    After::

        %t = linalg.generic … {
            %i = linalg.index 0
            %j = linalg.index 1
            %d = arith.subi %i, %j
            %m = arith.cmpi sge, %d, 0
            %x = arith.select %m, 0.0, -1e9
            linalg.yield %x : f32
        } -> tensor<512x512xf32>
    """

    name: ClassVar[str] = "raise-masks"
    needs: ClassVar[frozenset[str]] = frozenset({facts.TENSORS})

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite in place; returns whether anything was raised."""
        from polyblocks import signature

        del context
        raised = False
        for op in list(signature.main_of(module).body.blocks[0].operations):
            op = op.operation
            if op.name != "arith.constant" or not _may_be_mask(op):
                continue
            band = _band(op)
            if band is not None:
                _replace(op, band)
                raised = True
        return raised


@dataclass(frozen=True)
class _Band:
    """A table by the distance of rows from columns.

    Attributes:
        low: the least distance ``row - column`` of the band; None for any.
        high: the largest one; None for any.
        inside: the number in the band.
        outside: the number elsewhere.
    """

    low: int | None
    high: int | None
    inside: Any
    outside: Any


def _may_be_mask(op: Any) -> bool:
    from polyblocks.mlir import ir

    attribute = op.attributes["value"]
    if not isinstance(attribute, ir.DenseElementsAttr) or attribute.is_splat:
        return False
    shape = op.results[0].type.shape
    return len(shape) > 1 and shape[-2] > 1 and int(np.prod(shape, dtype=np.int64)) >= FEWEST


def _band(op: Any) -> _Band | None:
    """The band that a constant is, if it is one along its last two dimensions."""
    evaluator = Evaluator()
    if not evaluator.learns(op):
        return None
    try:
        values = evaluator.value(op.results[0])
    except Unknown:
        return None
    rows, columns = values.shape[-2:]
    table = np.ascontiguousarray(values).reshape(-1, rows, columns)
    # Bits: zeros have signs.
    bits = table.view(f"u{table.itemsize}")
    # By rising distance: along the first row from its end, then down the first column.
    line, numbers = (np.concatenate([t[0, 0, ::-1], t[0, 1:, 0]]) for t in (bits, table))
    changes = np.flatnonzero(line[1:] != line[:-1])
    if not 1 <= len(changes) <= 2 or np.isnan(numbers.astype(np.float64)).any():
        return None
    distances = np.arange(rows)[:, None] - np.arange(columns) + (columns - 1)
    if any((part != line[distances]).any() for part in bits):
        return None
    first = int(changes[0]) + 1 - (columns - 1)
    if len(changes) == 1:
        return _Band(first, None, numbers[-1], numbers[0])
    if line[0] != line[-1]:
        return None
    return _Band(first, int(changes[1]) - (columns - 1), numbers[changes[1]], numbers[0])


def _replace(op: Any, band: _Band) -> None:
    from polyblocks.mlir import dialect, ir

    type_ = ir.RankedTensorType(op.results[0].type)
    element, rank = type_.element_type, type_.rank
    with op.location, ir.InsertionPoint(op):
        loop = ir.Attribute.parse("#linalg.iterator_type<parallel>")
        empty = dialect("tensor").EmptyOp(list(type_.shape), element).result
        generic = ir.Operation.create(
            "linalg.generic",
            results=[type_],
            operands=[empty],
            attributes={
                "indexing_maps": ir.ArrayAttr.get(
                    [ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))]
                ),
                "iterator_types": ir.ArrayAttr.get([loop] * rank),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 1]),
            },
            regions=1,
        )
        block = generic.regions[0].blocks.append(element)
        with ir.InsertionPoint(block):
            ir.Operation.create("linalg.yield", operands=[_element(band, element, rank)])
    op.results[0].replace_all_uses_with(generic.results[0])


def _element(band: _Band, element: Any, rank: int) -> Any:
    """The element at an iteration, at the insertion point."""
    from polyblocks.mlir import dialect, ir

    arith, index = dialect("arith"), ir.IndexType.get()
    places = [
        ir.Operation.create(
            "linalg.index",
            results=[index],
            attributes={"dim": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), rank - k)},
        ).results[0]
        for k in (2, 1)
    ]
    distance = arith.SubIOp(*places).result
    conditions = [
        arith.CmpIOp(
            predicate, distance, arith.ConstantOp(index, ir.IntegerAttr.get(index, bound)).result
        ).result
        for predicate, bound in (
            (arith.CmpIPredicate.sge, band.low),
            (arith.CmpIPredicate.sle, band.high),
        )
        if bound is not None
    ]
    inside = conditions[0] if len(conditions) == 1 else arith.AndIOp(*conditions).result
    numbers = []
    for number in (band.inside, band.outside):
        kind: Any = ir.FloatAttr if isinstance(element, ir.FloatType) else ir.IntegerAttr
        plain = float(number) if isinstance(element, ir.FloatType) else int(number)
        numbers.append(arith.ConstantOp(element, kind.get(element, plain)).result)
    if str(element) != "i1":
        return arith.SelectOp(inside, *numbers).result
    return inside if band.inside else arith.XOrIOp(inside, numbers[1]).result
