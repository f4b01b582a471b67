"""Atomic read-modify-write and compare-exchange of lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyblocks.errors import UnsupportedError
from polyblocks.simt.accesses import Accesses, Place
from polyblocks.simt.floats import maximum, maxnum, minimum, minnum
from polyblocks.simt.memory import PENDING
from polyblocks.simt.rounding import to_bf16
from polyblocks.simt.semantics import Instruction, Operation, Run
from polyblocks.simt.types import (
    WORDS,
    Array,
    Float,
    Int,
    Layout,
    Pointer,
    Type,
    from_words,
    signed,
    to_words,
    unsigned,
)

Update = Callable[[Array, Array], Array]
#: Orderings of the llvm dialect that acquire and that release.
_ACQUIRE, _RELEASE = {4, 6, 7}, {5, 6, 7}
#: Scopes that end at the block.
_LOCAL_SCOPES = ("workgroup", "block", "wavefront", "singlethread")


def _update_of(kind: int, type_: Type) -> Update:
    """The function of ``atomicrmw`` by the number of its kind."""
    if isinstance(type_, Float):
        table: dict[int, Update] = {
            0: lambda old, new: new, 11: np.add, 12: np.subtract, 13: maxnum, 14: minnum,
            19: maximum, 20: minimum,
        }  # fmt: skip
        if kind in table:
            if type_.name == "bf16":
                return lambda old, new: to_bf16(table[kind](old, new))
            return table[kind]
    elif isinstance(type_, (Int, Pointer)):
        bits = type_.bits if isinstance(type_, Int) else 64

        def by_magnitude(function: Update) -> Update:
            return lambda a, b: signed(function(unsigned(a, bits), unsigned(b, bits)), bits)

        integers: dict[int, Update] = {
            0: lambda old, new: new, 1: np.add, 2: np.subtract, 3: np.bitwise_and,
            4: lambda old, new: ~(old & new), 5: np.bitwise_or, 6: np.bitwise_xor,
            7: np.maximum, 8: np.minimum, 9: by_magnitude(np.maximum),
            10: by_magnitude(np.minimum),
            15: by_magnitude(lambda a, b: np.where(a >= b, a.dtype.type(0), a + a.dtype.type(1))),
            16: by_magnitude(
                lambda a, b: np.where((a == 0) | (a > b), b, a - a.dtype.type(1))
            ),
            17: by_magnitude(lambda a, b: np.where(a >= b, a - b, a)),
            18: by_magnitude(lambda a, b: np.where(a >= b, a - b, a.dtype.type(0))),
        }  # fmt: skip
        if kind in integers:
            return integers[kind]
    raise UnsupportedError(f"the simulator knows no atomicrmw kind {kind} on {type_}")


def _turns(offsets: Array) -> list[Array]:
    """Positions in groups in which every offset occurs once, in order of the lanes."""
    order = np.argsort(offsets, kind="stable")
    ordered = offsets[order]
    start = np.r_[True, ordered[1:] != ordered[:-1]]
    index = np.arange(offsets.size)
    rank = index - np.maximum.accumulate(np.where(start, index, 0))
    if not rank.any():
        return [np.arange(offsets.size)]
    by_rank = np.argsort(rank, kind="stable")
    ends = np.cumsum(np.bincount(rank))[:-1]
    return [order[part] for part in np.split(by_rank, ends)]


def atomic(
    machine: Accesses,
    address: Array,
    operand: Array,
    update: Update,
    type_: Type,
    space: int,
    layout: Layout,
    alignment: int = 0,
    ordering: tuple[bool, bool] = (False, False),
    local: bool = False,
    used: bool = True,
) -> Array:
    """Apply ``update(old, operand)`` at each lane's address, one lane after the other.

    Args:
        operand: shape ``(…, lanes)``; ``update`` gets the columns of some lanes.
        ordering: whether it acquires, and whether it releases.
        local: its scope is the block.
        used: whether anyone looks at the old values.

    Returns:
        the old values; zeros in lanes that do not execute.
    """
    size = layout.size(type_)
    out = np.zeros(machine.lanes, WORDS[size])
    operand = np.broadcast_to(operand, (*operand.shape[:-1], machine.lanes))
    for place in machine.places(address, size, alignment or size, space, "updates"):
        memory = machine.memories[place.level]
        _check(machine, place, memory.load(place.offsets, size)[1], size)
        machine.note(place, size, write=False, atomic=True)
        machine.note(place, size, write=True, atomic=True)
        fast = _at_once(update, type_, used)
        if fast is not None and not (place.offsets % size).any():
            view = memory.data.view(f"int{8 * size}")
            fast.at(view, place.offsets // size, operand[..., place.lanes])
        else:
            for turn in _turns(place.offsets):
                offsets, lanes = place.offsets[turn], place.lanes[turn]
                words = memory.load(offsets, size)[0]
                new = update(from_words(words, type_), operand[..., lanes])
                memory.store(offsets, np.ascontiguousarray(to_words(new, type_, layout)))
                out[lanes] = words
        if not local and place.level == "global":
            machine.order_atomic(place.lanes, *ordering)
    return from_words(out, type_)


def _at_once(update: Update, type_: Type, used: bool) -> Any:
    """The ufunc that can update all lanes in one call, where order and old values do not matter."""
    whole = isinstance(type_, Int) and type_.bits in (8, 16, 32, 64)
    if used or not whole or not isinstance(update, np.ufunc):
        return None
    return update


def _check(machine: Accesses, place: Place, states: Array | None, size: int) -> None:
    if states is None:
        return
    wrong = states != 1
    at = int(wrong.argmax())
    pending = int(states[at]) == PENDING
    what = (
        "where an asynchronous copy is still under way"
        if pending
        else ("which nothing has written")
    )
    kind = "unwaited copy" if pending else "unwritten read"
    mask = np.zeros(machine.lanes, bool)
    mask[place.lanes[wrong]] = True
    machine.report(kind, f"updates {size} bytes at {machine.name_of(place, at)}, {what}", mask)


def scope_is_local(instruction: Instruction) -> bool:
    """Whether the op's synchronization scope ends at the block."""
    text = instruction.text("syncscope").strip('"')
    return text.startswith(_LOCAL_SCOPES)


def _space(instruction: Instruction) -> int:
    pointer = instruction.operands[0]
    assert isinstance(pointer, Pointer)
    return pointer.space


def _read_modify_write(instruction: Instruction) -> Run:
    type_, space, layout = instruction.operands[1], _space(instruction), instruction.layout
    update = _update_of(instruction.integer("bin_op"), type_)
    ordering = instruction.integer("ordering")
    both = (ordering in _ACQUIRE, ordering in _RELEASE)
    local, alignment = scope_is_local(instruction), instruction.integer("alignment")
    used = any(True for _ in instruction.op.results[0].uses)

    def run(m: Accesses, address: Array, operand: Array) -> Array:
        return atomic(
            m, address, operand, update, type_, space, layout, alignment, both, local, used
        )

    return run


def _compare_exchange(instruction: Instruction) -> Run:
    type_, space, layout = instruction.operands[1], _space(instruction), instruction.layout
    ordering = instruction.integer("success_ordering")
    both = (ordering in _ACQUIRE, ordering in _RELEASE)
    local, alignment = scope_is_local(instruction), instruction.integer("alignment")

    def run(m: Accesses, address: Array, expected: Array, new: Array) -> tuple[Array, Array]:
        pair = np.stack(np.broadcast_arrays(expected, new))

        def update(old: Array, operand: Array) -> Array:
            return np.where(old == operand[0], operand[1], old)

        old = atomic(m, address, pair, update, type_, space, layout, alignment, both, local)
        return old, old == expected

    return run


OPERATIONS: dict[str, Operation] = {
    "llvm.atomicrmw": Operation(_read_modify_write, "atomic"),
    "llvm.cmpxchg": Operation(_compare_exchange, "atomic"),
}
