"""Single operations on vectors and indices."""

from __future__ import annotations

from typing import Any

from polyblocks.mlir import dialect, ir


def broadcast(value: Any, type_: Any) -> Any:
    return ir.Operation.create("vector.broadcast", results=[type_], operands=[value]).results[0]


def index_op(name: str, left: Any, right: Any) -> Any:
    return ir.Operation.create(name, results=[left.type], operands=[left, right]).results[0]


def compare(predicate: str, left: Any, right: Any) -> Any:
    arith = dialect("arith")
    return arith.CmpIOp(getattr(arith.CmpIPredicate, predicate), left, right).result


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


def shuffle(low: Any, high: Any, lanes: list[int]) -> Any:
    """A vector of the named lanes of two vectors, those of ``high`` counted on from ``low``'s."""
    return ir.Operation.create(
        "vector.shuffle",
        results=[ir.VectorType.get([len(lanes)], low.type.element_type)],
        operands=[low, high],
        attributes={"mask": ir.DenseI64ArrayAttr.get(lanes)},
    ).results[0]
