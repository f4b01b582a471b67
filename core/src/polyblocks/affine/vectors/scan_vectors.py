"""Scans in vectors: which loops are scans, and the running values of the lanes of one vector.

The lanes of a vector are scanned in log2(lanes) steps (Hillis and Steele, "Data parallel
algorithms", CACM 29(12), 1986): step ``s`` combines every lane with the lane ``s`` before it. The
total of all earlier vectors is combined at the end, so that a vector waits for the previous one for
a single operation.
"""

from __future__ import annotations

from typing import Any

from polyblocks.affine.analysis.dataflow import ops_of, slice_of
from polyblocks.affine.analysis.reductions import COMMUTATIVE, NEED_FLAG
from polyblocks.affine.model import For, Op, Value, walk
from polyblocks.affine.ops import has_flag
from polyblocks.affine.vectors.reduction_vectors import IDEMPOTENT, combine, identity
from polyblocks.affine.vectors.vector_ops import shuffle
from polyblocks.mlir import ir


def scan_combiners(loop: For) -> list[Op] | None:
    """The op that makes each carried value, whose results may be used in the loop.

    None if the loop is no scan: a carried value is combined in another way, or with something that
    depends on what is carried.
    """
    makers = ops_of(loop.body)
    users: dict[Value, int] = {}
    for node in walk(loop.body):
        for operand in node.uses:
            users[operand] = users.get(operand, 0) + 1
    found: list[Op] = []
    for argument, value in zip(loop.arguments, loop.yields, strict=True):
        op = makers.get(value)
        if op is None or op.name not in COMMUTATIVE or users.get(argument) != 1:
            return None
        others = [v for v in op.operands if v is not argument]
        if len(others) != 1 or not _may_reassociate(op, makers.get(others[0])):
            return None
        found.append(op)
    results = set(loop.yields)
    for op, argument in zip(found, loop.arguments, strict=True):
        terms = [v for v in op.operands if v is not argument]
        if any(not results.isdisjoint(n.defines) for n in slice_of(terms, makers)):
            return None
    return found


def _may_reassociate(op: Op, term: Op | None) -> bool:
    if op.name not in NEED_FLAG:
        return True
    if not has_flag(op, "reassoc"):
        return False
    # A product of several factors can leave the range of numbers where the running one does not;
    # there is room for it if the factors are of a narrower type.
    return op.name != "arith.mulf" or (term is not None and term.name == "arith.extf")


def prefixes(op: Op, vector: Any) -> Any:
    """Lane ``k`` of the result combines lanes 0 to ``k`` of the vector."""
    (width,) = vector.type.shape
    neutral = None
    if op.name not in IDEMPOTENT:
        element = identity(op.name, vector.type.element_type)
        splat = ir.DenseElementsAttr.get_splat(vector.type, element)
        neutral = ir.Operation.create(
            "arith.constant", results=[vector.type], attributes={"value": splat}
        ).results[0]
    distance = 1
    while distance < width:
        # The first lanes have nothing so far before them: they take what changes nothing.
        lanes = [*range(distance), *(width + k for k in range(width - distance))]
        earlier = shuffle(vector if neutral is None else neutral, vector, lanes)
        vector = combine(op, earlier, vector)
        distance *= 2
    return vector


def last_lane(vector: Any) -> Any:
    """A vector with the last lane in all lanes."""
    (width,) = vector.type.shape
    return shuffle(vector, vector, [width - 1] * width)
