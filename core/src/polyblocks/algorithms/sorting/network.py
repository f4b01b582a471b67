"""Sorting long rows where every thread has few elements: a network of comparisons.

A bitonic network (Batcher 1968): every iteration of a loop is one of its stages. In a stage
element ``i`` meets ``i ^ mask``, and the earlier place gets the lesser one. Runs are merged with
the mirrored other run, so that all comparators point the same way; then elements beyond the end
can be thought of as coming last, and are never moved.
"""

from __future__ import annotations

import array
from typing import Any

from polyblocks.algorithms.sorting import tensors as t
from polyblocks.mlir import dialect, ir


def sort_by_network(tensors: list[Any]) -> list[Any]:
    """Sort rows along the last dimension.

    Args:
        tensors: distinct signed words; or keys and the places that tell equal ones apart.

    Returns:
        The sorted tensors.
    """
    scf, tensor = dialect("scf"), dialect("tensor")
    shape = list(tensors[0].type.shape)
    last, extent = len(shape) - 1, shape[-1]
    kinds = [each.type.element_type for each in tensors]
    masks = partner_masks(extent)
    i64, index = t.integer(64), ir.IndexType.get()
    table = dialect("arith").ConstantOp(
        ir.RankedTensorType.get([len(masks)], i64),
        ir.DenseElementsAttr.get(array.array("q", masks), type=i64, shape=[len(masks)]),
    )
    begin, end, step = (t.constant(index, number) for number in (0, len(masks), 1))
    loop = scf.ForOp(begin, end, step, tensors)
    with ir.InsertionPoint(loop.body):
        mask = t.extract(table.result, [loop.induction_variable])
        mask = tensor.FromElementsOp(ir.RankedTensorType.get([], i64), [mask]).result
        carried = list(loop.inner_iter_args)

        def exchange(loaded: list[Any]) -> list[Any]:
            arith, linalg = dialect("arith"), dialect("linalg")
            own = t.loop_index(last, i64)
            other = arith.XOrIOp(own, loaded[0]).result
            exists = t.compare("ult", other, t.constant(i64, extent))
            place = t.as_index(other, extent)
            where = [linalg.IndexOp(loop).result for loop in range(last)]
            mine = loaded[1:]
            theirs = [t.extract(each, [*where, place]) for each in carried]
            before = t.compare("slt", theirs[0], mine[0])
            if len(mine) > 1:
                equal = t.compare("eq", theirs[0], mine[0])
                earlier = t.compare("slt", theirs[1], mine[1])
                before = arith.OrIOp(before, arith.AndIOp(equal, earlier).result).result
            # The first of two takes theirs if it comes before, the second one if it does not.
            takes = arith.XOrIOp(before, t.compare("ult", other, own)).result
            takes = arith.AndIOp(takes, exists).result
            return [t.select(takes, x, y) for x, y in zip(theirs, mine, strict=True)]

        every = list(range(last + 1))
        operands: list[t.Operand] = [(mask, ()), *((each, every) for each in carried)]
        scf.YieldOp(t.computed(shape, kinds, operands, exchange))
    return list(loop.results)


def partner_masks(extent: int) -> list[int]:
    """Masks that give an element's partner in each stage of the network, by xor."""
    masks = []
    size = 2
    while size < 2 * extent:
        masks.append(size - 1)
        step = size // 4
        while step:
            masks.append(step)
            step //= 2
        size *= 2
    return masks
