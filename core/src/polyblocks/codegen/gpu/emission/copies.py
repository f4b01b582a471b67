"""Copies to shared memory with which a block begins."""

from __future__ import annotations

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

    turns, rest = divmod(of.numel, kernel.threads)
    for turn in range(turns):
        element(code.add(thread, code.integer(turn * kernel.threads)) if turn else thread)
    if rest:
        number = code.add(thread, code.integer(turns * kernel.threads)) if turns else thread
        mine = code.compare("ult", thread, code.integer(rest))
        code.when(mine, lambda: element(number))


def copy_all(
    code: Code, kernel: Kernel, thread: Any, memrefs: dict[Buffer, Any], near: dict[Buffer, Any]
) -> None:
    """The copies with which a block begins."""
    for buffer in kernel.copied:
        copy_in(code, kernel, thread, memrefs[buffer], near[buffer], buffer)
    if kernel.copied:
        barrier(code)
