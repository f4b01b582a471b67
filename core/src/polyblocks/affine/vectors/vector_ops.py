"""Single operations on vectors and indices."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.model import Buffer
from polyblocks.mlir import dialect, ir


def broadcast(value: Any, type_: Any) -> Any:
    return ir.Operation.create("vector.broadcast", results=[type_], operands=[value]).results[0]


def index_op(name: str, left: Any, right: Any) -> Any:
    return ir.Operation.create(name, results=[left.type], operands=[left, right]).results[0]


def compare(predicate: str, left: Any, right: Any) -> Any:
    arith = dialect("arith")
    return arith.CmpIOp(getattr(arith.CmpIPredicate, predicate), left, right).result


def alignment(buffer: Buffer) -> dict[str, Any]:
    """Alignment attributes of a load: words of narrow numbers are aligned as the numbers are."""
    if buffer.viewed is None or buffer.element == buffer.viewed.element:
        return {}
    i64 = ir.IntegerType.get_signless(64)
    return {"alignment": ir.IntegerAttr.get(i64, buffer.viewed.bytes_per_element)}


def extract(vector: Any, lane: int) -> Any:
    return ir.Operation.create(
        "vector.extract",
        results=[vector.type.element_type],
        operands=[vector],
        attributes={"static_position": ir.DenseI64ArrayAttr.get([lane])},
    ).results[0]


def insert(value: Any, vector: Any, lane: int) -> Any:
    return ir.Operation.create(
        "vector.insert",
        results=[vector.type],
        operands=[value, vector],
        attributes={"static_position": ir.DenseI64ArrayAttr.get([lane])},
    ).results[0]


def store_masked(
    value: Any, mask: Any, memref: Any, where: list[Any], location: Any, number: Any
) -> None:
    """Store the lanes of a vector for which a mask is true.

    A single one, where that is known, is stored by itself: LLVM 22 narrows such stores, and writes
    eight bytes for the one lane of four bytes, if that was truncated from eight.

    Args:
        value: the vector.
        mask: true for the lanes to be stored.
        memref: to what.
        where: the index of lane 0.
        location: of the operation.
        number: makes constants of type index.
    """
    lanes = constant_lanes(mask)
    if lanes is None or sum(lanes) != 1:
        ir.Operation.create(
            "vector.maskedstore", operands=[memref, *where, mask, value], loc=location
        )
        return
    lane = lanes.index(True)
    *outer, last = where
    if lane:
        last = index_op("arith.addi", last, number(lane))
    element = extract(value, lane)
    ir.Operation.create("memref.store", operands=[element, memref, *outer, last], loc=location)


def constant_lanes(mask: Any) -> list[bool] | None:
    """The lanes of a mask that is a constant; None for any other."""
    owner = mask.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return None
    bits = ir.DenseIntElementsAttr(owner.operation.attributes["value"])
    return [bool(bits[lane]) for lane in range(len(bits))]


def shuffle(low: Any, high: Any, lanes: list[int]) -> Any:
    """A vector of the named lanes of two vectors, those of ``high`` counted on from ``low``'s."""
    return ir.Operation.create(
        "vector.shuffle",
        results=[ir.VectorType.get([len(lanes)], low.type.element_type)],
        operands=[low, high],
        attributes={"mask": ir.DenseI64ArrayAttr.get(lanes)},
    ).results[0]
