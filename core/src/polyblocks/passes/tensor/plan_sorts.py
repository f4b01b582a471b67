"""plan-sorts: what is read of sorted rows decides how they are sorted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.passes import facts
from polyblocks.passes.tensor.control_flow import besides_bodies, is_argument
from polyblocks.passes.tensor.sort_reads import Read, reads_of

#: Casts of a place, which fits into all types that places are kept in.
_CASTS = frozenset({"arith.extsi", "arith.extui", "arith.index_cast", "arith.trunci"})


@dataclass(frozen=True)
class PlanSortsPass:
    """Find the places of the elements that come first in sorted rows, and gather these elements.

    Rows of a few elements are sorted by rank. Where only the first of many elements are read, they
    are selected; where single places are read, the keys there are searched for. Whole long rows are
    sorted as words, which hold a key and its place: by digits on a team of threads, by a network on
    a grid.

    Before::

        %s:2 = tm_tensor.sort dimension(1) outs(%keys, %iota : tensor<8x1000xi32>, ...) {
          ^bb0(%a: i32, %b: i32, %i: i64, %j: i64):
            %c = arith.cmpi slt, %a, %b : i32 ... }
        %p = tensor.extract_slice %s#1[0, 0] [8, 5] [1, 1]

    After::

        %w = linalg.generic ...                  // the least word of each of 64 columns
        ...                                      // 5 columns, their elements, 5 of these
        %p = tensor.extract_slice %places[0, 0] [8, 5] [1, 1]
    """

    name: ClassVar[str] = "plan-sorts"
    needs: ClassVar[frozenset[str]] = frozenset({facts.TENSORS})

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite in place; returns whether there was a sort.

        Raises:
            UnsupportedError: the comparator has another form than those of
                :func:`polyblocks.algorithms.sorting.order.order_of`.
        """
        from polyblocks.mlir import ir

        found = [op for op in besides_bodies(module) if op.name == "tm_tensor.sort"]
        with module.context:
            for op in found:
                with op.location, ir.InsertionPoint(op):
                    _plan(op, self.name, context)
                op.erase()
        return bool(found)


def _plan(op: Any, name: str, context: Any) -> None:
    from polyblocks.algorithms.sorting.order import KEYED, order_of
    from polyblocks.algorithms.sorting.places import first_places, sorted_alone, sorts_alone, way
    from polyblocks.algorithms.sorting.rows import Rows
    from polyblocks.errors import UnsupportedError
    from polyblocks.mlir import ir

    order = order_of(op)
    if order is None:
        raise UnsupportedError("sort by a comparator that is not one comparison of integers")
    operands = list(op.operands)
    shape = list(operands[0].type.shape)
    dim = ir.IntegerAttr(op.attributes["dimension"]).value % len(shape)
    used = [i for i, result in enumerate(op.results) if any(True for _ in result.uses)]
    if shape[dim] <= 1 or 0 in shape:
        for i in used:
            op.results[i].replace_all_uses_with(operands[i])
        return
    if not used:
        return
    rows = Rows(operands[0], dim, order)
    reads = {i: reads_of(op.results[i], dim) for i in used}
    searched = _search(op, rows, reads, context)
    if searched:
        context.decide(name, "main", "sorted", extent=shape[dim], **searched)
        return
    count = max(read.end for some in reads.values() for read in some)
    launches = context.target.launches_nests
    numbers = way(shape[dim], count, order.bits, launches)
    context.decide(name, "main", "sorted", extent=shape[dim], count=count, **numbers)
    keyed = ir.IntegerAttr(op.attributes[KEYED]).value if KEYED in op.attributes else 0
    if count == shape[dim] and {*used} <= {0, keyed} and sorts_alone(rows, launches):
        for i in used:
            kind = op.results[i].type.element_type
            op.results[i].replace_all_uses_with(sorted_alone(rows, kind, launches))
        return
    places = first_places(operands[0], dim, order, count, launches)
    made = _at_places([operands[i] for i in used], dim, places)
    for i, first in zip(used, made, strict=True):
        _replace(op.results[i], first, count < shape[dim])


def _search(
    op: Any, rows: Any, reads: dict[int, list[Read]], context: Any
) -> dict[str, Any] | None:
    """Find the only places that are read, if that is faster than to sort; returns what was done.

    Args:
        op: the sort.
        rows: its keys.
        reads: of each result that is read.
        context: of the pass.
    """
    from polyblocks.algorithms.sorting import bisection
    from polyblocks.algorithms.sorting.places import cycles_of
    from polyblocks.mlir import ir

    every = [read for some in reads.values() for read in some]
    # Values compare with each other only.
    places = {(type(read.place), read.place): read.place for read in every}
    if any(place is None or not _is_beside(place, op) for place in places.values()):
        return None
    launches = context.target.launches_nests
    count, bits = max(read.end for read in every), rows.order.bits
    if launches and not bisection.saves_launches(rows.extent, bits, len(places)):
        return None
    cycles = len(places) * bisection.cycles(rows.extent, bits)
    if cycles > cycles_of(rows.extent, count, bits, launches):
        return None
    alone = bisection.sweeps_alone(rows, context.target.shared_level.size, launches)
    zero = ir.AffineConstantExpr.get(0)
    for key, place in places.items():
        number = place
        if not isinstance(place, int):
            index = list(range(len(rows.outer)))
            number = (place, [*index[: rows.dim], zero, *index[rows.dim :]])
        with _insertion_point(place, op):
            found = bisection.place_at(rows, number, alone)
            firsts = _at_places([op.operands[i] for i in reads], rows.dim, found)
        for some, first in zip(reads.values(), firsts, strict=True):
            for read in some:
                if (type(read.place), read.place) == key:
                    read.redirect(first, rows.dim)
    return {"how": "bisection", "places": len(places)}


def _is_beside(place: Any, op: Any) -> bool:
    """Whether a place is known where a sort is, or in the same block behind it."""
    return isinstance(place, int) or is_argument(place) or place.owner.operation.block == op.block


def _insertion_point(place: Any, op: Any) -> Any:
    """Where both the operands of a sort and a place are known."""
    from polyblocks.mlir import ir

    if isinstance(place, int) or is_argument(place):
        return ir.InsertionPoint(op)
    owner = place.owner.operation
    return ir.InsertionPoint(op) if owner.is_before_in_block(op) else ir.InsertionPoint.after(owner)


def _at_places(tensors: list[Any], dim: int, places: Any) -> list[Any]:
    """The elements of tensors of one shape at places along a dimension."""
    from polyblocks.algorithms.sorting import tensors as t
    from polyblocks.mlir import dialect

    shape = list(tensors[0].type.shape)
    extent = shape[dim]
    shape[dim] = places.type.shape[-1]
    loops = list(range(len(shape)))
    kinds = [tensor.type.element_type for tensor in tensors]
    iotas = [_is_iota(tensor, dim) for tensor in tensors]

    def body(loaded: list[Any]) -> list[Any]:
        index = t.as_index(loaded[0], extent)
        where = [dialect("linalg").IndexOp(loop).result for loop in loops]
        where[dim] = index
        return [
            t.as_integer(index, kind) if is_iota else t.extract(tensor, where)
            for tensor, kind, is_iota in zip(tensors, kinds, iotas, strict=True)
        ]

    order = [*loops[:dim], *loops[dim + 1 :], dim]
    return t.computed(shape, kinds, [(places, order)], body)


def _is_iota(tensor: Any, dim: int) -> bool:
    """Whether every element is its own place along a dimension."""
    from polyblocks.mlir import ir

    if is_argument(tensor) or tensor.owner.operation.name != "linalg.generic":
        return False
    block = tensor.owner.operation.regions[0].blocks[0]
    *ops, end = (op.operation for op in block.operations)
    maps = list(tensor.owner.operation.attributes["indexing_maps"])
    if (
        not ops
        or ops[0].name != "linalg.index"
        or ir.IntegerAttr(ops[0].attributes["dim"]).value != dim
    ):
        return False
    values = [op.results[0] for op in ops]
    return (
        all(op.name in _CASTS for op in ops[1:])
        and [list(op.operands) for op in (*ops[1:], end)] == [[value] for value in values]
        and ir.AffineMap.get_identity(tensor.type.rank) == ir.AffineMapAttr(maps[-1]).value
    )


def _replace(result: Any, first: Any, shorter: bool) -> None:
    """Use the first elements; slices take them from the shorter tensor."""
    if not shorter:
        result.replace_all_uses_with(first)
        return
    for use in list(result.uses):
        use.owner.operation.operands[use.operand_number] = first
