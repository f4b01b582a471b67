"""Memory that a step of a program accesses, and the thread of the team that does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from polyblocks.codegen.memory import (
    VIEWS,
    WITHOUT_MEMORY,
    Extent,
    constant_index,
    static_bytes,
    written_operands,
)
from polyblocks.codegen.walk import nested
from polyblocks_cpu.team.footprints import Footprint, footprints
from polyblocks_cpu.team.kernels import TEAM_CALL, trips_of

#: Who makes an access: the first thread, every thread, or each thread its piece of the iterations.
FIRST, EVERY, SHARED = "first", "every", "shared"

#: The memory of a value with an unknown address.
ANYWHERE = "anywhere"


@dataclass(frozen=True)
class Access:
    """One access, as far as threads are concerned.

    Attributes:
        extent: the memory that surrounds it. Its root is a value, or :data:`ANYWHERE`.
        write: whether it may write; else it only reads.
        who: :data:`FIRST`, :data:`EVERY` or :data:`SHARED`.
        kernel: of a call, the kernel's name.
        argument: and the number of the kernel's argument.
        trips: iterations that threads share; None if unknown.
    """

    extent: Extent
    write: bool
    who: str
    kernel: str = ""
    argument: int = 0
    trips: int | None = 1


class Accesses:
    """Accesses of the operations of one function, and whether two of them need a barrier between.

    Args:
        kernels: the module's functions by name.
    """

    def __init__(self, kernels: dict[str, Any]) -> None:
        self._kernels = kernels
        self._footprints: dict[tuple[str, int], dict[int, Footprint]] = {}
        self._readonly: dict[str, list[bool]] = {}

    def of(self, op: Any, who: str) -> Iterator[Access]:
        """Accesses of an operation and of all that is in it."""
        for inner in nested(op):
            name = inner.name
            if name == "func.call":
                yield from self._of_call(inner, who)
                continue
            if name.startswith(WITHOUT_MEMORY) or name in VIEWS or name in _UNTOUCHED:
                continue
            written = written_operands(inner)
            for operand in inner.operands:
                if _is_memref(operand):
                    yield Access(memory_of(operand), operand in written, who)

    def _of_call(self, call: Any, who: str) -> Iterator[Access]:
        name = call.attributes["callee"].value
        readonly = self._readonly_arguments(name)
        shared = TEAM_CALL in call.attributes
        for number, operand in enumerate(call.operands):
            if _is_memref(operand):
                write = not (number < len(readonly) and readonly[number])
                if shared:
                    yield Access(memory_of(operand), write, SHARED, name, number, trips_of(call))
                else:
                    yield Access(memory_of(operand), write, who, name, number)

    def _readonly_arguments(self, name: str) -> list[bool]:
        """Which arguments a kernel only reads, as ``outline-kernels`` says."""
        if name not in self._readonly:
            kernel = self._kernels.get(name)
            found: list[bool] = []
            if kernel is not None and "arg_attrs" in kernel.attributes:
                found = ["llvm.readonly" in a for a in kernel.attributes["arg_attrs"]]
            self._readonly[name] = found
        return self._readonly[name]

    def collide(self, earlier: Iterable[Access], later: Iterable[Access]) -> bool:
        """Whether one thread may touch what another one has touched, and one of both writes."""
        open_: list[tuple[Access, Access]] = []
        for second in later:
            for first in earlier:
                if not _meet(first, second):
                    continue
                if not _may_be_apart(first, second):
                    return True
                open_.append((first, second))
        # Last, since to look into kernels takes longer than all of this.
        return not all(self._never_overlap(first, second) for first, second in open_)

    def _never_overlap(self, earlier: Access, later: Access) -> bool:
        """Whether two calls of kernels leave each other's bytes alone, thread by thread."""
        mine, its = self._footprint(earlier), self._footprint(later)
        here, there = earlier.extent.begin, later.extent.begin
        if mine is None or its is None or here is None or there is None:
            return False
        if mine.high.max() + here <= its.low.min() + there:
            return True
        if its.high.max() + there <= mine.low.min() + here:
            return True
        return _same_pieces(earlier, later) and mine.owned_beside(its, here, there)

    def _footprint(self, access: Access) -> Footprint | None:
        """A kernel's footprint in an argument; None for unknown ones, and without a call."""
        kernel = self._kernels.get(access.kernel)
        if kernel is None or access.trips is None:
            return None
        key = access.kernel, access.trips
        if key not in self._footprints:
            self._footprints[key] = footprints(kernel, access.trips)
        return self._footprints[key].get(access.argument)


#: Ops that look at a memref and not at its elements.
_UNTOUCHED = (
    "memref.prefetch",
    "memref.extract_aligned_pointer_as_index",
    "memref.extract_strided_metadata",
    "memref.dim",
)


def _meet(earlier: Access, later: Access) -> bool:
    """Whether two accesses may be to the same byte, by different threads, and one writes."""
    if not (earlier.write or later.write) or earlier.who == later.who == FIRST:
        return False
    return _overlap(earlier.extent, later.extent)


def _same_pieces(earlier: Access, later: Access) -> bool:
    """Whether each thread has the same iterations of two kernels."""
    return earlier.who == later.who == SHARED and earlier.trips == later.trips is not None


def _may_be_apart(earlier: Access, later: Access) -> bool:
    """Whether it is worth it to look closer: rows of the same threads, or parts of one result."""
    if ANYWHERE in (earlier.extent.root, later.extent.root):
        return False
    if not (earlier.kernel and later.kernel):
        return False
    if _same_pieces(earlier, later):
        return True
    return earlier.write and later.write and earlier.extent == later.extent


def _is_memref(value: Any) -> bool:
    from polyblocks.mlir import ir

    return isinstance(value.type, ir.MemRefType)


def _overlap(one: Extent, other: Extent) -> bool:
    if ANYWHERE in (one.root, other.root):
        return True
    return one.overlaps(other)


def memory_of(value: Any) -> Extent:
    """The memory of a memref, from where its pointer points to past its last element.

    Unlike :func:`polyblocks.codegen.memory.extent_of` it tells nothing apart that it cannot follow.
    """
    from polyblocks.mlir import ir

    begin: int | None = 0
    size = static_bytes(value.type)
    while not isinstance(value.owner, ir.Block):
        op = value.owner.operation
        if op.name in ("memref.alloca", "memref.get_global"):
            break
        if op.name not in VIEWS:
            return Extent(ANYWHERE)
        if op.name == "memref.view":
            shift = constant_index(op.operands[1])
            begin = None if shift is None or begin is None else begin + shift
        value = op.operands[0]
    if begin is None or size is None:
        return Extent(value)
    return Extent(value, begin, begin + size)
