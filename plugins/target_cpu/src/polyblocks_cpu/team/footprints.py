"""Which bytes of its arguments a kernel touches, iteration by iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyblocks.attributes import MULTIPLY
from polyblocks.codegen.memory import (
    VIEWS,
    WITHOUT_MEMORY,
    constant_index,
    element_bytes,
    static_bytes,
)
from polyblocks.codegen.walk import nested

#: Numbers that one kernel may be worth: iterations times accesses. A kernel of more iterations
#: takes longer than the barrier that it may need.
BUDGET = 1 << 21

#: The smallest and the largest value; a number, or one for each iteration.
Interval = tuple[Any, Any]
#: Of a view: bytes in front of it and of an element; elements in front of the first one, strides
#: and extents.
_Place = tuple[int, int, int, list[int], list[int]]

_LOADS = {"affine.load": 0, "memref.load": 0, "vector.load": 0, "vector.maskedload": 0}
_STORES = {"affine.store": 1, "memref.store": 1, "vector.store": 1, "vector.maskedstore": 0}
#: Op -> operand that is the memref; the indices follow.
_ACCESSES = _LOADS | _STORES
#: Of these the memref's elements are neither read nor written.
_UNTOUCHED = ("memref.prefetch", "memref.extract_aligned_pointer_as_index")


@dataclass(frozen=True)
class Footprint:
    """Bytes [low, high) of an argument that surround all that an iteration touches.

    Attributes:
        low: from the argument's pointer on, by iteration; an array of one for a serial kernel.
        high: likewise.
    """

    low: np.ndarray
    high: np.ndarray

    def owned_beside(self, other: Footprint, here: int, there: int) -> bool:
        """Whether different iterations, one of each kernel, never touch the same byte.

        True only where the bytes ascend with the iterations. ``here`` and ``there`` are where the
        arguments begin.
        """
        if self.low.shape != other.low.shape:
            return False
        mine, its = np.maximum.accumulate(self.high), np.maximum.accumulate(other.high)
        return bool(
            (mine[:-1] + here <= other.low[1:] + there).all()
            and (its[:-1] + there <= self.low[1:] + here).all()
        )


def footprints(kernel: Any, trips: int) -> dict[int, Footprint]:
    """Footprints by the number of the argument; of one without, nothing is known.

    Args:
        kernel: a function that ``outline-kernels`` made.
        trips: iterations of its range, from 0 on; 1 for a kernel without.
    """
    if not len(kernel.regions[0].blocks):
        return {}
    block = kernel.regions[0].blocks[0]
    found: dict[int, list[Any]] = {}
    unknown: set[int] = set()
    accesses = 0
    values = _Values(block, trips)
    for op in nested(kernel):
        name = op.name
        if name.startswith(WITHOUT_MEMORY) or name in VIEWS or name in _UNTOUCHED:
            continue
        for position, operand in enumerate(op.operands):
            argument = _argument(operand, block)
            if argument is None:
                continue
            accesses += 1
            if argument < 0 or accesses * trips > BUDGET:
                return {}
            hull = None
            if name == MULTIPLY or _ACCESSES.get(name) == position:
                hull = _hull(op, position, values)
            if hull is None:
                unknown.add(argument)
                continue
            low, high = hull
            if argument in found:
                low = np.minimum(low, found[argument][0])
                high = np.maximum(high, found[argument][1])
            found[argument] = [low, high]
    return {
        argument: Footprint(*(np.broadcast_to(np.asarray(end), (trips,)) for end in ends))
        for argument, ends in found.items()
        if argument not in unknown
    }


def _argument(value: Any, block: Any) -> int | None:
    """Number of the kernel's argument that a memref is a view of; -1 if unknown."""
    from polyblocks.mlir import ir

    if not isinstance(value.type, ir.MemRefType):
        return None
    while not isinstance(value.owner, ir.Block):
        op = value.owner.operation
        if op.name in ("memref.alloca", "memref.get_global"):
            return None
        if op.name not in VIEWS:
            return -1
        value = op.operands[0]
    return int(ir.BlockArgument(value).arg_number) if value.owner == block else -1


def _hull(op: Any, position: int, values: _Values) -> Interval | None:
    """Bytes [low, high) that surround what an access touches in an iteration."""
    place = values.place(op.operands[position])
    if place is None:
        return None
    start, size, offset, strides, shape = place
    indices = values.indices(op, position, len(strides))
    lanes = _lanes(op)
    low = high = offset
    for dim, (stride, extent) in enumerate(zip(strides, shape, strict=True)):
        inner, outer = indices[dim] or (0, extent - 1)
        if dim == len(strides) - 1 and lanes > 1:
            # May go on in the next row.
            if indices[dim] is None:
                return None
            outer = outer + lanes - 1
        else:
            # It is in bounds, whatever is known of the index.
            inner, outer = _within(inner, extent), _within(outer, extent)
        low, high = low + inner * stride, high + outer * stride
    return start + low * size, start + (high + 1) * size


def _within(index: Any, extent: int) -> Any:
    if isinstance(index, int):
        return min(max(index, 0), extent - 1)
    return np.minimum(np.maximum(index, 0), extent - 1)


def _place(memref: Any) -> _Place | None:
    from polyblocks.mlir import ir

    type_ = ir.MemRefType(memref.type)
    start, size = _start(memref), element_bytes(type_.element_type)
    if start is None or size is None or static_bytes(type_) is None:
        return None
    strides, offset = type_.get_strides_and_offset()
    return start, size, offset, list(strides), list(type_.shape)


def _start(value: Any) -> int | None:
    """Bytes from the argument's pointer to that of a view."""
    from polyblocks.mlir import ir

    start = 0
    while not isinstance(value.owner, ir.Block):
        op = value.owner.operation
        if op.name == "memref.view":
            shift = constant_index(op.operands[1])
            if shift is None:
                return None
            start += shift
        value = op.operands[0]
    return start


def _lanes(op: Any) -> int:
    """Up to which lane a vector access touches memory; 1 for a scalar."""
    from polyblocks.mlir import ir

    if not op.name.startswith("vector."):
        return 1
    vectors = [v for v in (*op.results, *op.operands) if isinstance(v.type, ir.VectorType)]
    if not vectors:
        return 1
    width = int(ir.VectorType(vectors[0].type).shape[0])
    if op.name not in ("vector.maskedload", "vector.maskedstore"):
        return width
    mask = next(v for v in vectors if str(ir.VectorType(v.type).element_type) == "i1")
    if isinstance(mask.owner, ir.Block) or mask.owner.operation.name != "arith.constant":
        return width
    on = [lane for lane, bit in enumerate(mask.owner.operation.attributes["value"]) if bit]
    return max(on, default=0) + 1


class _Values:
    """Intervals of the index values of a kernel.

    Args:
        block: the kernel's entry.
        trips: iterations of the range.
    """

    def __init__(self, block: Any, trips: int) -> None:
        self._block = block
        self._trips = trips
        self._known: dict[Any, Interval | None] = {}
        self._places: dict[Any, _Place | None] = {}

    def place(self, memref: Any) -> _Place | None:
        """Where a view lies in its argument; None if unknown."""
        if memref not in self._places:
            self._places[memref] = _place(memref)
        return self._places[memref]

    def indices(self, op: Any, position: int, rank: int) -> list[Interval | None]:
        """Of an access, one for each dimension; None where nothing is known."""
        if op.name in ("affine.load", "affine.store"):
            operands = list(op.operands)[position + 1 :]
            return self._mapped(op.attributes["map"].value, operands)
        if op.name == MULTIPLY:
            return self._of_tile(op, position)
        return [self.of(v) for v in list(op.operands)[position + 1 : position + 1 + rank]]

    def _of_tile(self, op: Any, position: int) -> list[Interval | None]:
        """Of a matrix unit's operand: of all rows and columns of the tile."""
        rows, columns, steps = op.attributes["shape"]
        name, *own = (
            ("a", rows, steps),
            ("b", steps, columns),
            ("accumulator", rows, columns),
        )[position]
        dims = [self.of(operand) for operand in list(op.operands)[3:]]
        symbols = [(0, extent - 1) for extent in own]
        map_ = op.attributes[name].value
        return [_expression(e, dims, symbols) for e in map_.results]

    def of(self, value: Any) -> Interval | None:
        """The interval of an index value."""
        if value not in self._known:
            self._known[value] = self._evaluate(value)
        return self._known[value]

    def _evaluate(self, value: Any) -> Interval | None:
        from polyblocks.mlir import ir

        owner = value.owner
        if isinstance(owner, ir.Block):
            return self._of_loop(value, owner)
        op = owner.operation
        if op.name == "arith.constant":
            number = constant_index(value) if str(value.type) == "index" else None
            return None if number is None else (number, number)
        if op.name == "affine.apply":
            return self._mapped(op.attributes["map"].value, list(op.operands))[0]
        if op.name in ("arith.addi", "arith.subi", "arith.muli") and str(value.type) == "index":
            left, right = map(self.of, op.operands)
            if left is None or right is None:
                return None
            if op.name == "arith.addi":
                return left[0] + right[0], left[1] + right[1]
            if op.name == "arith.subi":
                return left[0] - right[1], left[1] - right[0]
            return _product(left, right)
        return None

    def _of_loop(self, value: Any, block: Any) -> Interval | None:
        """Of the variable of a loop."""
        if block == self._block:
            return None
        loop = block.owner.operation
        if loop.name not in ("affine.for", "scf.for") or value != block.arguments[0]:
            return None
        if loop.name == "scf.for":
            lower, upper = self.of(loop.operands[0]), self.of(loop.operands[1])
        else:
            sizes = list(loop.attributes["operandSegmentSizes"])
            operands = list(loop.operands)
            lowers = operands[: sizes[0]]
            if self._block.arguments and lowers[:1] == [self._block.arguments[0]]:
                every = np.arange(self._trips, dtype=np.int64)
                return every, every
            uppers = operands[sizes[0] : sizes[0] + sizes[1]]
            lower = _joined(self._mapped(loop.attributes["lowerBoundMap"].value, lowers), 1)
            upper = _joined(self._mapped(loop.attributes["upperBoundMap"].value, uppers), 0)
        if lower is None or upper is None:
            return None
        # A loop without an iteration touches nothing; this is more.
        return lower[0], np.maximum(upper[1] - 1, lower[0])

    def _mapped(self, map_: Any, operands: list[Any]) -> list[Interval | None]:
        values = [self.of(operand) for operand in operands]
        dims, symbols = values[: map_.n_dims], values[map_.n_dims :]
        return [_expression(e, dims, symbols) for e in map_.results]


def _joined(bounds: list[Interval | None], largest: int) -> Interval | None:
    """Of the largest, or else the smallest, of several values."""
    known = [bound for bound in bounds if bound is not None]
    if len(known) != len(bounds) or not known:
        return None
    low, high = known[0]
    for other in known[1:]:
        join = np.maximum if largest else np.minimum
        low, high = join(low, other[0]), join(high, other[1])
    return low, high


def _product(left: Interval, right: Interval) -> Interval:
    corners = [a * b for a in left for b in right]
    low = high = corners[0]
    for corner in corners[1:]:
        low, high = np.minimum(low, corner), np.maximum(high, corner)
    return low, high


def _expression(e: Any, dims: list[Any], symbols: list[Any]) -> Interval | None:
    """The interval of an affine expression."""
    from polyblocks.mlir import ir

    if isinstance(e, ir.AffineDimExpr):
        found: Interval | None = dims[e.position]
        return found
    if isinstance(e, ir.AffineConstantExpr):
        return e.value, e.value
    if isinstance(e, ir.AffineSymbolExpr):
        found = symbols[e.position]
        return found
    left, right = (_expression(part, dims, symbols) for part in (e.lhs, e.rhs))
    if left is None or right is None:
        return None
    if isinstance(e, ir.AffineAddExpr):
        return left[0] + right[0], left[1] + right[1]
    if isinstance(e, ir.AffineMulExpr):
        return _product(left, right)
    if not isinstance(e.rhs, ir.AffineConstantExpr) or right[0] <= 0:
        return None
    by = right[0]
    if isinstance(e, ir.AffineFloorDivExpr):
        return left[0] // by, left[1] // by
    if isinstance(e, ir.AffineCeilDivExpr):
        return -(-left[0] // by), -(-left[1] // by)
    # Modulo: exact within one period, else anything.
    same = left[0] // by == left[1] // by
    return np.where(same, left[0] % by, 0), np.where(same, left[1] % by, by - 1)
