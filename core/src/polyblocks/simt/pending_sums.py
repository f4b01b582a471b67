"""Sums of products under way: what is read of them before they are done is no number.

A call of a unit returns *marks* in place of sums, which are not-a-numbers that name the call.
Further calls add to the sums that marks stand for, and a wait returns the sums. Code that
computes with marks, since it has not waited, gets results that are no numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyblocks.simt.types import Array

#: A quiet not-a-number; below it, the number of a call and that of a register.
_MARK, _REGISTERS, _CALLS = 0x7FC00000, 1 << 7, 1 << 15


@dataclass
class _Call:
    sums: Array
    group: Array
    lanes: Array


class PendingSums:
    """The sums of all calls that nothing has waited for; of float32."""

    def __init__(self) -> None:
        self._calls: dict[int, _Call] = {}
        self._next = 1

    def marked(self, sums: Array, group: Array, lanes: Array) -> Array:
        """Marks for sums.

        Args:
            sums: shape (registers, lanes).
            group: the number of the group of products that each lane's are in.
            lanes: that called the unit.
        """
        number, self._next = self._next, max((self._next + 1) % _CALLS, 1)
        self._calls[number] = _Call(sums.copy(), group.copy(), lanes.copy())
        registers = np.arange(len(sums), dtype=np.uint32)[:, None]
        marks = np.uint32(_MARK + number * _REGISTERS) + registers
        return np.broadcast_to(marks, sums.shape).copy().view(np.float32)

    def resolved(
        self, registers: Sequence[Array], lanes: Array, done: Array | None = None
    ) -> list[Array]:
        """Registers with sums in place of marks.

        Args:
            registers: of any values.
            lanes: that have them, as many as ``lanes`` are true.
            done: the first group of each lane that is not done, whose marks stay; None: all are
                taken.
        """
        if not self._calls or not registers:
            return list(registers)
        whole = np.stack([np.broadcast_to(each, lanes.shape) for each in registers])
        if whole.dtype != np.float32:
            return list(registers)
        bits = whole.view(np.uint32)
        marks = lanes & (bits >= _MARK)
        calls, numbers = np.divmod(bits - np.uint32(_MARK), np.uint32(_REGISTERS))
        of_lane = np.arange(len(lanes))
        for number in np.unique(calls[marks]):
            call = self._calls.get(int(number))
            if call is None:
                continue
            there = marks & (calls == number) & call.lanes
            if done is not None:
                there &= call.group < done
            sums = call.sums[np.minimum(numbers, len(call.sums) - 1), of_lane]
            whole = np.where(there, sums, whole)
            call.lanes = call.lanes & ~there.any(axis=0)
            if not call.lanes.any():
                del self._calls[int(number)]
        return list(whole)
