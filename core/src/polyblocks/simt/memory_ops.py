"""Ops of the llvm dialect that touch memory, other than atomics."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from polyblocks.simt.accesses import Accesses
from polyblocks.simt.atomics import scope_is_local
from polyblocks.simt.semantics import Instruction, Operation, Run
from polyblocks.simt.types import (
    Array,
    Layout,
    Pointer,
    Sequence,
    Struct,
    Type,
    Value,
    Vector,
    from_words,
    scalar_of,
    to_words,
)


def space_of(instruction: Instruction, index: int) -> int:
    """Address space of a pointer operand (or of a vector of pointers)."""
    pointer = scalar_of(instruction.operands[index])
    assert isinstance(pointer, Pointer), instruction.name
    return pointer.space


def load_value(
    m: Accesses, address: Array, type_: Type, layout: Layout, alignment: int, space: int,
    atomic: bool = False,
) -> Value:  # fmt: skip
    """Load a value of any type; aggregates field by field."""
    if isinstance(type_, Struct):
        pairs = zip(layout.offsets(type_), type_.fields, strict=True)
        return tuple(
            load_value(m, address + at, t, layout, _common(alignment, at), space) for at, t in pairs
        )
    if isinstance(type_, Sequence):
        step = layout.stride(type_.element)
        return tuple(
            load_value(
                m, address + i * step, type_.element, layout, _common(alignment, i * step), space
            )
            for i in range(type_.count)
        )
    size = layout.size(scalar_of(type_))
    count = type_.count if isinstance(type_, Vector) else 0
    return from_words(m.load(address, size, count, alignment, space, atomic), type_)


def store_value(
    m: Accesses, address: Array, value: Value, type_: Type, layout: Layout, alignment: int,
    space: int, atomic: bool = False,
) -> None:  # fmt: skip
    """Store a value of any type; aggregates field by field."""
    if isinstance(type_, Struct):
        for at, t, part in zip(layout.offsets(type_), type_.fields, value, strict=True):
            store_value(m, address + at, part, t, layout, _common(alignment, at), space)
        return
    if isinstance(type_, Sequence):
        for i, part in enumerate(value):
            at = i * layout.stride(type_.element)
            store_value(m, address + at, part, type_.element, layout, _common(alignment, at), space)
        return
    m.store(address, to_words(value, type_, layout), alignment, space, atomic)


def _common(alignment: int, offset: int) -> int:
    """The alignment left at an offset."""
    return min(alignment, offset & -offset) if offset else alignment


def _load(instruction: Instruction) -> Run:
    type_, layout, space = instruction.result, instruction.layout, space_of(instruction, 0)
    alignment = instruction.integer("alignment") or layout.alignment(type_)
    atomic = instruction.integer("ordering") > 0
    return lambda m, address: load_value(m, address, type_, layout, alignment, space, atomic)


def _store(instruction: Instruction) -> Run:
    type_, layout, space = instruction.operands[0], instruction.layout, space_of(instruction, 1)
    alignment = instruction.integer("alignment") or layout.alignment(type_)
    atomic = instruction.integer("ordering") > 0

    def run(m: Accesses, value: Value, address: Array) -> None:
        store_value(m, address, value, type_, layout, alignment, space, atomic)

    return run


def under(m: Accesses, condition: Array) -> Iterator[None]:
    """Run the body of a ``for`` once for the executing lanes where a condition holds."""
    outer, count = m.mask, m.active
    some = outer & condition
    active = int(np.count_nonzero(some))
    if active:
        m.set_mask(some, active)
        yield
        m.set_mask(outer, count)


def _masked_load(each_address: bool) -> Callable[[Instruction], Run]:
    """``masked.load`` (one pointer) and ``masked.gather`` (a vector of pointers)."""

    def decode(instruction: Instruction) -> Run:
        type_, layout, space = instruction.result, instruction.layout, space_of(instruction, 0)
        assert isinstance(type_, Vector)
        element, count = type_.element, type_.count
        size = layout.size(element)
        # The alignment is claimed for the first element.
        alignment = min(instruction.integer("alignment") or size, size)

        def run(m: Accesses, address: Array, mask: Array, default: Array | None = None) -> Array:
            parts = []
            for i in range(count):
                at = address[i] if each_address else address + i * size
                old = from_words(np.zeros(1, f"uint{8 * size}"), element)
                part = np.broadcast_to(old if default is None else default[i], (m.lanes,))
                for _ in under(m, mask[i]):
                    new = load_value(m, at, element, layout, alignment, space)
                    part = np.where(m.mask, new, part)
                parts.append(part)
            return np.stack(parts)

        return run

    return decode


def _masked_store(each_address: bool) -> Callable[[Instruction], Run]:
    """``masked.store`` and ``masked.scatter``."""

    def decode(instruction: Instruction) -> Run:
        type_, layout, space = instruction.operands[0], instruction.layout, space_of(instruction, 1)
        assert isinstance(type_, Vector)
        element, count = type_.element, type_.count
        size = layout.size(element)
        alignment = min(instruction.integer("alignment") or size, size)

        def run(m: Accesses, value: Array, address: Array, mask: Array) -> None:
            for i in range(count):
                at = address[i] if each_address else address + i * size
                for _ in under(m, mask[i]):
                    store_value(m, at, value[i], element, layout, alignment, space)

        return run

    return decode


def _lengths(m: Accesses, length: Array) -> Iterator[int]:
    """Each length that some executing lanes have, with those lanes executing."""
    whole = np.broadcast_to(length, (m.lanes,))
    for one in np.unique(whole[m.mask]).tolist():
        for _ in under(m, whole == one):
            if one:
                yield int(one)


def _copy(instruction: Instruction) -> Run:
    to, source = space_of(instruction, 0), space_of(instruction, 1)
    fixed = instruction.integer("len")

    def run(
        m: Accesses, address: Array, other: Array, length: Array | None = None, *flags: Array
    ) -> None:
        asked = np.array([fixed]) if length is None else length
        for count in _lengths(m, asked):
            m.store(address, m.load(other, 1, count, 1, source), 1, to)

    return run


def _fill(instruction: Instruction) -> Run:
    to, fixed = space_of(instruction, 0), instruction.integer("len")

    def run(
        m: Accesses, address: Array, value: Array, length: Array | None = None, *flags: Array
    ) -> None:
        asked = np.array([fixed]) if length is None else length
        for count in _lengths(m, asked):
            words = np.broadcast_to(value.view(np.uint8), (count, value.shape[-1]))
            m.store(address, words, 1, to)

    return run


def _fence(instruction: Instruction) -> Run:
    local = scope_is_local(instruction)
    return lambda m: m.fence(whole_device=not local)


def _assume(instruction: Instruction) -> Run:
    def run(m: Accesses, condition: Array, *bundle: Value) -> None:
        if not condition.all():
            m.report("trap", "an assumption does not hold", ~condition)

    return run


def _trap(instruction: Instruction) -> Run:
    return lambda m, *values: m.report("trap", "traps")


def _nothing(instruction: Instruction) -> Run:
    return lambda m, *values: None


OPERATIONS: dict[str, Operation] = {
    "llvm.load": Operation(_load, "memory"),
    "llvm.store": Operation(_store, "memory"),
    "llvm.intr.masked.load": Operation(_masked_load(False), "memory"),
    "llvm.intr.masked.store": Operation(_masked_store(False), "memory"),
    "llvm.intr.masked.gather": Operation(_masked_load(True), "memory"),
    "llvm.intr.masked.scatter": Operation(_masked_store(True), "memory"),
    **{
        f"llvm.intr.{name}": Operation(_copy, "memory")
        for name in ("memcpy", "memmove", "memcpy.inline")
    },
    "llvm.intr.memset": Operation(_fill, "memory"),
    "llvm.intr.memset.inline": Operation(_fill, "memory"),
    "llvm.fence": Operation(_fence, "control"),
    "llvm.intr.assume": Operation(_assume),
    "llvm.intr.trap": Operation(_trap, "control"),
    "llvm.intr.debugtrap": Operation(_trap, "control"),
    **{
        f"llvm.intr.{name}": Operation(_nothing)
        for name in (
            "lifetime.start", "lifetime.end", "invariant.start", "invariant.end", "dbg.value",
            "dbg.declare", "dbg.label", "experimental.noalias.scope.decl", "prefetch",
        )
    },
}  # fmt: skip
