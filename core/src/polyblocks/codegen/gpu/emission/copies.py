"""Copies to shared memory with which a block begins."""

from __future__ import annotations

from functools import partial
from typing import Any

from polyblocks.affine.model import Buffer
from polyblocks.codegen.gpu.emission.code import Code
from polyblocks.codegen.gpu.emission.combine import barrier
from polyblocks.codegen.gpu.mapping.kernel import Kernel


def copy_in(code: Code, kernel: Kernel, thread: Any, source: Any, target: Any, of: Buffer) -> None:
    """All threads of the block copy a buffer; they wait for each other elsewhere."""

    def element(number: Any) -> list[Any]:
        index, rest = [], number
        for extent in reversed(of.shape[1:]):
            index.append(code.remainder(rest, extent))
            rest = code.quotient(rest, extent)
        index = [rest, *reversed(index)] if of.shape else []
        value = code.value("memref.load", of.element, source, *index)
        code.op("memref.store", [], [value, target, *index])
        return []

    for round_ in range(-(-of.numel // kernel.threads)):
        number, mine = code.round_of(thread, round_, of.numel, kernel.threads)
        code.when(mine, partial(element, number))


def copy_all(
    code: Code, kernel: Kernel, thread: Any, memrefs: dict[Buffer, Any], near: dict[Buffer, Any]
) -> None:
    """The copies with which a block begins."""
    for buffer in kernel.copied:
        copy_in(code, kernel, thread, memrefs[buffer], near[buffer], buffer)
    if kernel.copied:
        barrier(code)
