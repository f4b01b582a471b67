"""Loads that find zeros beyond the end of a buffer, on chips that have them."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.access import reach, strides
from polyblocks.affine.model import Buffer
from polyblocks.codegen.gpu.accesses.places import Source
from polyblocks.codegen.gpu.emission.code import Code
from polyblocks.mlir import ir
from polyblocks.target import BoundedLoads

#: Bytes that a buffer may have, and the offset of what is not there: no constant that is added to
#: it makes it small again.
_LIMIT = 1 << 31


def can_be_bounded(buffer: Buffer, loads: BoundedLoads | None, nbytes: int) -> bool:
    """Whether a chip's loads of ``nbytes`` can read a buffer; not a part of another one."""
    type_ = buffer.memref_type
    begins = type_ is None or type_.get_strides_and_offset()[1] == 0
    forward = all(s >= 0 for s in strides(buffer))
    return (
        loads is not None
        and nbytes in (1, 2, 4, loads.bytes)
        and begins
        and forward
        and reach(buffer) * buffer.bytes_per_element < _LIMIT
    )


class BoundedBuffer:
    """A buffer as a chip's bounded loads know it, described behind the memref's definition.

    Args:
        code: of the kernel.
        loads: the chip's.
        buffer: one for which :func:`can_be_bounded` holds.
        memref: of it.
        apart: whether ``of_steps`` of all sources are the same for all threads.
    """

    def __init__(
        self, code: Code, loads: BoundedLoads, buffer: Buffer, memref: Any, apart: bool
    ) -> None:
        self._code, self._loads, self._apart = code, loads, apart
        self._size = buffer.bytes_per_element
        with code.behind(memref):
            at = code.value("memref.extract_aligned_pointer_as_index", code.index, memref)
            i16 = ir.IntegerType.get_signless(16)
            given = [
                code.pointer(at, 1),
                *(
                    code.constant(ir.IntegerAttr.get(type_, number))
                    for type_, number in (
                        (i16, 0), (code.i64, reach(buffer) * self._size), (code.i32, loads.flags),
                    )
                ),
            ]  # fmt: skip
            resource = ir.Type.parse(f"!llvm.ptr<{loads.space}>")
            (self._resource,) = code.intrinsic(loads.describe, [resource], given)

    def load(self, source: Source, type_: Any, location: Any) -> Any:
        """A number, or a vector of the widest access, that is at a place or zero."""
        code, size = self._code, self._size
        offset, ahead = source.of_rows, code.integer(0)
        if self._apart:
            # The load adds the part that all threads share.
            ahead = code.plus(source.of_steps, source.ahead)
            offset = code.plus(offset, source.plus - source.ahead)
        else:
            offset = code.plus(code.add(offset, source.of_steps), source.plus)
        offset, ahead = (
            code.value("arith.index_cast", code.i32, code.times(elements, size))
            for elements in (offset, ahead)
        )
        beyond, none = (code.constant(ir.IntegerAttr.get(code.i32, n)) for n in (-_LIMIT, 0))
        offset = code.value("arith.select", code.i32, source.there, offset, beyond)
        given = [self._resource, offset, ahead, none]
        if not isinstance(type_, ir.VectorType):
            return code.intrinsic(self._loads.load, [type_], given, location)[0]
        words = ir.VectorType.get([self._loads.bytes // 4], code.i32)
        (loaded,) = code.intrinsic(self._loads.load, [words], given, location)
        return code.value("vector.bitcast", type_, loaded)
