"""Matrix units that read shared memory, simulated: products that go on while threads do.

Operands are loaded where the unit is called, and again where its products are waited for: they must
be the same, and nothing else may write them in between; so must those in registers. Sums are no
numbers before they are done (:mod:`polyblocks.simt.pending_sums`). A lane that has waited may use
registers, and has to order that before its next call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from polyblocks.simt.fragments import fragment_table, from_words
from polyblocks.simt.pending_sums import PendingSums
from polyblocks.simt.types import Array
from polyblocks.target import UNIT_BITS, GroupUnit

if TYPE_CHECKING:
    from polyblocks.simt.accesses import Accesses

#: Bytes of a piece, the address space of shared memory, and the pieces of a line that are swizzled.
_PIECE, _SHARED, _PIECES = 16, 3, 8


@dataclass(frozen=True)
class Tile:
    """Where an operand of a call is.

    Attributes:
        start: address of the first line, per lane.
        leading: bytes from one panel to the next.
        stride: bytes from one group of 8 lines to the next.
        in_panels: whether a line has rows (or columns) of one step.
    """

    start: Array
    leading: int
    stride: int
    in_panels: bool


@dataclass
class _Flight:
    """Operands of a call.

    Attributes:
        read: reads them again.
        words: what they were; the last axis is that of lanes.
        group: the number of the group of products that each lane's are in.
        lanes: that called, and have not waited.
        site: of the call.
        of: what they are in.
    """

    read: Callable[[], Array]
    words: Array
    group: Array
    lanes: Array
    site: int
    of: str = "shared memory that was"


class GroupProducts:
    """The products under way of the lanes that run, in groups that each lane closes.

    Args:
        lanes: how many lanes run.
    """

    def __init__(self, lanes: int) -> None:
        self.closed = np.zeros(lanes, np.int64)
        #: Tick of the last fence behind which the unit sees what a lane has written.
        self.visible = np.zeros(lanes, np.int32)
        self._flights: list[_Flight] = []
        self._sums = PendingSums()
        #: Whether what each lane did with its registers is ordered before its next call.
        self._ordered = np.zeros(lanes, bool)

    def order(self, machine: Accesses) -> None:
        """Order all uses of registers so far, by the executing lanes, before their next calls."""
        self._ordered |= machine.mask

    def fence(self, machine: Accesses) -> None:
        """The unit sees what the executing lanes have written to shared memory."""
        self.visible[machine.positions] = machine.clock.tick()

    def close(self, machine: Accesses) -> None:
        """The products since the last call of this are a group."""
        self.closed[machine.positions] += 1

    def wait(self, machine: Accesses, keep: int) -> None:
        """The executing lanes wait until at most ``keep`` groups are under way."""
        self._ordered &= ~machine.mask
        measure, machine.measure = machine.measure, False
        executing, count, site = machine.mask, machine.active, machine.site
        for flight in self._flights:
            done = flight.lanes & executing & (flight.group < self.closed - keep)
            if not done.any():
                continue
            machine.site = flight.site
            machine.set_mask(done, int(np.count_nonzero(done)))
            changed = (flight.read() != flight.words).any(axis=0)
            if (changed & done).any():
                message = f"reads {flight.of} written before its products were done"
                machine.report("unwaited product", message, changed)
            flight.lanes = flight.lanes & ~done
        machine.set_mask(executing, count)
        self._flights = [flight for flight in self._flights if flight.lanes.any()]
        machine.measure, machine.site = measure, site

    def finish(self, machine: Accesses) -> None:
        """Report products that nothing has waited for when all threads have ended."""
        for flight in self._flights[:1]:
            machine.site = flight.site
            message = "is not waited for: its sums are used, and memory is left, before it is done"
            machine.report_lane("unwaited product", message, 0, len(self._flights))

    def multiply(
        self,
        machine: Accesses,
        unit: GroupUnit,
        operands: tuple[Tile | Sequence[Array], Tile],
        sums: Sequence[Array] | None,
        at_once: bool,
    ) -> tuple[Array, ...]:
        """The sums with the products of a call added, exact to float64 and rounded once.

        Args:
            machine: with the lanes that call it.
            unit: that is called.
            operands: where they are, or the registers of the first one.
            sums: registers; None: they begin.
            at_once: whether registers have the sums before they are waited for.
        """
        width = unit.warps * machine.chip.subgroup_width
        executing = machine.mask.reshape(-1, width)
        if (executing.any(axis=1) != executing.all(axis=1)).any():
            machine.report("inactive lane", "a matrix unit needs all lanes of its warps")
        if (machine.mask & ~self._ordered).any():
            message = "uses registers that threads could use since the last fence for them"
            machine.report("missing fence", message, ~self._ordered)
        first, second = operands
        if isinstance(first, Tile):
            a = self._operand(machine, unit, 0, first)
        else:
            a = _from_registers(machine, unit, first)
        b = self._operand(machine, unit, 1, second)
        fragment = unit.sums
        assert fragment is not None
        rows, columns = fragment_table(fragment, unit.shape[:2])
        if sums is None:
            sums = [np.zeros(1, np.float32)] * fragment.elements
        sums = self._sums.resolved(sums, machine.mask)
        whole = np.stack([np.broadcast_to(each, (machine.lanes,)) for each in sums])
        by_group = whole.reshape(len(sums), -1, width).swapaxes(0, 1)
        exact = np.zeros((by_group.shape[0], *unit.shape[:2]))
        with np.errstate(all="ignore"):
            exact[:, rows, columns] = by_group
            exact += np.einsum("gmk,gnk->gmn", a, b)
            result = exact[:, rows, columns]
            if unit.accumulator == "int32":
                # Sums wrap around; in float64 they are exact.
                result = result.astype(np.int64).astype(np.int32)
            else:
                result = result.astype(np.float32)
        whole = result.swapaxes(0, 1).reshape(len(sums), -1)
        if not at_once and whole.dtype == np.float32:
            whole = self._sums.marked(whole, self.closed, machine.mask)
        return tuple(whole)

    def hold(self, machine: Accesses, registers: list[Any], of: Sequence[int]) -> None:
        """The call before goes on reading an operand in some of the registers of lanes."""

        def read() -> Array:
            return np.stack([np.broadcast_to(registers[n], (machine.lanes,)) for n in of])

        given = read(), self.closed.copy(), machine.mask.copy(), machine.site
        self._flights.append(_Flight(read, *given, "registers that were"))

    def done(self, machine: Accesses, keep: int, sums: Sequence[Array]) -> tuple[Array, ...]:
        """The sums of all groups but the ``keep`` latest ones; see :meth:`wait`."""
        return tuple(self._sums.resolved(sums, machine.mask, self.closed - keep))

    def _operand(self, machine: Accesses, unit: GroupUnit, side: int, tile: Tile) -> Array:
        """An operand of each group, shape (groups, rows or columns, steps)."""
        width = unit.warps * machine.chip.subgroup_width
        size, steps, dtype = unit.shape[side], unit.shape[2], unit.both[side]
        length = 8 * _PIECE // UNIT_BITS[dtype]
        of_row = steps // length
        found = []
        for round_ in range(size * of_row // width):
            piece = machine.thread % width + round_ * width
            if tile.in_panels:
                line, column = piece // _PIECES % steps, piece % _PIECES
                offset = piece // (_PIECES * steps) * tile.leading
            else:
                line, column, offset = piece // of_row, piece % of_row, 0 * piece
            offset = offset + line // _PIECES * tile.stride
            offset = offset + line % _PIECES * unit.line + column * _PIECE
            address = tile.start + offset
            address = address ^ (address // unit.line % _PIECES * _PIECE)
            words = _load(machine, address)
            self._check_fences(machine, address)
            given = words, self.closed.copy(), machine.mask.copy(), machine.site
            self._flights.append(_Flight(partial(_load, machine, address), *given))
            values = from_words(words, dtype)
            found.append(values.reshape(length, -1, width))
        # (rounds, elements, groups, lanes) -> (groups, pieces, elements)
        pieces = np.stack(found).transpose(2, 0, 3, 1)
        pieces = pieces.reshape(pieces.shape[0], -1, length)
        if not tile.in_panels:
            return pieces.reshape(-1, size, steps)
        panels = pieces.reshape(len(pieces), -1, steps, _PIECES * length)
        return panels.swapaxes(2, 3).reshape(-1, size, steps)

    def _check_fences(self, machine: Accesses, address: Array) -> None:
        """Report what was written by a thread that had no fence behind it."""
        shadow = machine.shadows["shared"]
        for place in machine.places(address, _PIECE, _PIECE, _SHARED, "reads"):
            at = place.offsets // machine.granule
            first = place.lanes // machine.block_lanes * machine.block_lanes
            writer = first + shadow.write_id[at] % machine.block_lanes
            late = (shadow.write_tick[at] >= machine.clock.start) & (
                self.visible[writer] <= shadow.write_tick[at]
            )
            late &= machine.bulk.needs_fence(at, shadow.write_tick[at])
            if late.any():
                lanes = np.zeros(machine.lanes, bool)
                lanes[place.lanes[late]] = True
                message = "reads shared memory that a thread has written without a fence behind it"
                machine.report("missing fence", message, lanes)


def _from_registers(machine: Accesses, unit: GroupUnit, registers: Sequence[Array]) -> Array:
    """A first operand of each group in registers, shape (groups, rows, steps)."""
    fragment = unit.first
    assert fragment is not None
    width = unit.warps * machine.chip.subgroup_width
    words = np.stack([np.broadcast_to(each, (machine.lanes,)) for each in registers])
    numbers = from_words(np.ascontiguousarray(words).view(np.uint32), unit.operands)
    rows, steps = fragment_table(fragment, (unit.shape[0], unit.shape[2]))
    found = np.zeros((machine.lanes // width, unit.shape[0], unit.shape[2]))
    found[:, rows, steps] = numbers.reshape(len(numbers), -1, width).swapaxes(0, 1)
    return found


def _load(machine: Accesses, address: Array) -> Array:
    """The four words of a piece."""
    whole = np.broadcast_to(address, (machine.lanes,))
    return np.asarray(machine.load(whole, 4, 4, _PIECE, _SHARED), np.uint32)


def tile_start(machine: Any, low: Array, bits: int) -> Array:
    """Addresses in shared memory, from their lowest bits."""
    base = machine.windows["shared"].regions[-1].base
    return base // (1 << bits) * (1 << bits) + low
