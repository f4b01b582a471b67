"""Copies to shared memory with which a block begins."""

from __future__ import annotations

from functools import partial
from math import gcd
from typing import Any

from polyblocks.affine.element import dtype_of
from polyblocks.affine.gpu.plans.groups import GroupPlan
from polyblocks.affine.model import Buffer
from polyblocks.codegen.gpu.emission.code import Code
from polyblocks.codegen.gpu.emission.combine import barrier
from polyblocks.mlir import ir


def copy_in(code: Code, plan: GroupPlan, thread: Any, source: Any, target: Any, of: Buffer) -> None:
    """All threads of the block copy a buffer; they wait for each other elsewhere."""
    width = gcd(plan.access_bytes // of.bytes_per_element, of.shape[-1]) if of.shape else 1
    if not dtype_of(of.element).in_vectors:
        width = 1

    def piece(number: Any) -> list[Any]:
        index, rest = [], code.times(number, width)
        for extent in reversed(of.shape[1:]):
            index.append(code.remainder(rest, extent))
            rest = code.quotient(rest, extent)
        index = [rest, *reversed(index)] if of.shape else []
        if width > 1:
            vector = ir.VectorType.get([width], of.element)
            value = code.value("vector.load", vector, source, *index)
            code.op("vector.store", [], [value, target, *index])
        else:
            value = code.value("memref.load", of.element, source, *index)
            code.op("memref.store", [], [value, target, *index])
        return []

    pieces = of.numel // width
    for round_ in range(-(-pieces // plan.threads)):
        number, mine = code.round_of(thread, round_, pieces, plan.threads)
        code.when(mine, partial(piece, number))


def copy_all(
    code: Code, plan: GroupPlan, thread: Any, memrefs: dict[Buffer, Any], near: dict[Buffer, Any]
) -> None:
    """The copies with which a block begins."""
    for buffer in plan.copied:
        copy_in(code, plan, thread, memrefs[buffer], near[buffer], buffer)
    if plan.copied:
        barrier(code)
