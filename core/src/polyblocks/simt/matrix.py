"""Matrix units, simulated from the description of their fragments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from polyblocks.errors import UnsupportedError
from polyblocks.simt.fragments import fragment_table
from polyblocks.simt.memory_ops import space_of
from polyblocks.simt.semantics import Instruction, Operation, Run, width
from polyblocks.simt.types import Array
from polyblocks.target import UNIT_BITS, Fragment, MatrixUnit, TileLoads


def matrix_intrinsics(units: Iterable[MatrixUnit]) -> dict[str, Operation]:
    """The intrinsics of units; those of one name differ in their registers."""
    by_name: dict[str, list[MatrixUnit]] = {}
    for unit in units:
        if unit.fragments is not None:
            by_name.setdefault(unit.intrinsic, []).append(unit)

    def operation(known: list[MatrixUnit]) -> Operation:
        def decode(instruction: Instruction) -> Run:
            for unit in known:
                assert unit.fragments is not None
                given = _without(unit, instruction.operands)[0]
                if len(known) == 1 or width(given) == unit.fragments[0].register_width:
                    return matrix_operation(unit).decode(instruction)
            raise UnsupportedError(f"no unit of '{known[0].intrinsic}' has such operands")

        return Operation(decode, "matrix")

    return {name: operation(known) for name, known in by_name.items()}


def matrix_operation(unit: MatrixUnit) -> Operation:
    """The meaning of a unit's intrinsic, for all lanes of a subgroup together.

    Products and their sum are exact to float64, and rounded once; chips keep fewer bits while they
    add, and differ from each other in which. Lanes that replicate others must hold the same.
    """
    assert unit.fragments is not None
    first, second, sums = unit.fragments
    m, n, k = unit.shape
    tables = [
        fragment_table(first, (m, k)),
        fragment_table(second, (n, k)),
        fragment_table(sums, (m, n)),
    ]
    counts = [_registers(f, unit.operands) for f in (first, second)]
    counts.append(_registers(sums, unit.accumulator))

    def decode(instruction: Instruction) -> Run:
        del instruction

        def run(machine: Any, *operands: Array) -> Any:
            _check_whole(machine)
            given = iter(_without(unit, operands))
            parts = [
                _elements(machine, [next(given) for _ in range(count)], dtype)
                for count, dtype in zip(
                    counts, (unit.operands, unit.operands, unit.accumulator), strict=True
                )
            ]
            a, b, c = (
                _matrix(machine, part, table) for part, table in zip(parts, tables, strict=True)
            )
            with np.errstate(all="ignore"):
                exact = c + np.einsum("gmk,gnk->gmn", a, b)
            if unit.accumulator == "int32":
                # Sums wrap around; in float64 they are exact.
                result = exact.astype(np.int64).astype(np.int32)
            else:
                result = exact.astype(unit.accumulator)
            rows, columns = tables[2][0], tables[2][1]
            # (subgroup, place, lane) -> (place, all lanes)
            lanes = result[:, rows, columns]
            flat = np.moveaxis(lanes, 0, 1).reshape(lanes.shape[1], -1)
            per = sums.register_bits // UNIT_BITS[unit.accumulator]
            registers = [flat[i : i + per] for i in range(0, len(flat), per)]
            made = [r[0] if per == 1 else r for r in registers]
            return made[0] if len(made) == 1 else tuple(made)

        return run

    return Operation(decode, "matrix")


def _without(unit: MatrixUnit, operands: Sequence[Any]) -> list[Any]:
    """The operands of a call that are no immediates."""
    places = {position for position, _ in unit.immediates}
    return [operand for k, operand in enumerate(operands) if k not in places]


def tile_intrinsics(loads: TileLoads) -> dict[str, Operation]:
    """The intrinsics of loads that read tiles by rows and by columns."""
    places = [loads.at(lane) for lane in range(1 << len(loads.lanes))]
    outer, inner = (np.array(p) for p in zip(*places, strict=True))

    def decode_as(by_columns: bool) -> Callable[[Instruction], Run]:
        def decode(instruction: Instruction) -> Run:
            space = space_of(instruction, 0)

            def run(machine: Any, address: Array) -> Any:
                _check_whole(machine)
                words = machine.load(address, 4, 4, 16, space)
                # (subgroup, tile, row, elements of the row)
                rows = np.moveaxis(machine.by_subgroup(np.asarray(words, np.uint32)), 0, -1)
                halves = np.stack([rows & 0xFFFF, rows >> 16], axis=-1)
                tiles = halves.reshape(len(rows), 4, 8, 8)
                if by_columns:
                    tiles = tiles.swapaxes(2, 3)
                low, high = tiles[:, :, outer, inner], tiles[:, :, outer, inner + 1]
                registers = (low | high << 16).astype(np.uint32).view(np.int32)
                return tuple(registers[:, tile].reshape(-1) for tile in range(4))

            return run

        return decode

    return {
        loads.by_rows: Operation(decode_as(False), "memory"),
        loads.by_columns: Operation(decode_as(True), "memory"),
    }


def _registers(fragment: Fragment, dtype: str) -> int:
    return fragment.elements * UNIT_BITS[dtype] // fragment.register_bits


def _elements(machine: Any, registers: list[Array], dtype: str) -> Array:
    """All places of all lanes as float64, shape (places, lanes)."""
    found = []
    for register in registers:
        whole = np.broadcast_to(register, (*register.shape[:-1], machine.lanes))
        if dtype == "bfloat16":
            values = _from_bits(whole)
        elif dtype == "int8":
            values = _bytes(whole)
        elif dtype == "tfloat32":
            values = np.atleast_2d(_read_bits(whole))
        else:
            values = np.atleast_2d(whole)
        found += list(values.astype(np.float64))
    return np.stack(found)


def _read_bits(register: Array) -> Array:
    """float32 without its lowest 13 bits."""
    bits = np.ascontiguousarray(register).astype(np.int64).astype(np.uint32)
    return (bits & 0xFFFFE000).astype(np.uint32).view(np.float32)


def _from_bits(register: Array) -> Array:
    """bfloat16 in registers of integers: of 16 bits, or two in 32 bits, the lower one first."""
    if register.ndim == 2:
        halves = [row.astype(np.int64) & 0xFFFF for row in register]
    else:
        bits = register.astype(np.int64) & 0xFFFFFFFF
        halves = [bits & 0xFFFF, bits >> 16]
    words = np.stack(halves).astype(np.uint32) << 16
    return words.view(np.float32)


def _bytes(register: Array) -> Array:
    """Numbers of 8 bits with a sign in registers of 32 bits, the lowest one first."""
    words = np.atleast_2d(register).astype(np.int64)
    parts = [words >> 8 * k & 0xFF for k in range(4)]
    return np.stack(parts, axis=1).reshape(-1, words.shape[-1]).astype(np.uint8).view(np.int8)


def _matrix(machine: Any, part: Array, table: tuple[Array, Array]) -> Array:
    """The operand of each subgroup, shape (subgroups, rows, columns)."""
    rows, columns = table
    by_subgroup = np.moveaxis(machine.by_subgroup(part), 1, 0)
    shape = (len(by_subgroup), int(rows.max()) + 1, int(columns.max()) + 1)
    matrix = np.full(shape, np.nan)
    matrix[:, rows, columns] = by_subgroup
    again = matrix[:, rows, columns]
    same = (again == by_subgroup) | (np.isnan(again) & np.isnan(by_subgroup))
    if not same.all():
        machine.report(
            "replicated half", "lanes that are to hold the same elements hold different ones"
        )
    return matrix


def _check_whole(machine: Any) -> None:
    """Report subgroups with inactive lanes."""
    active = machine.by_subgroup(machine.mask)
    here = active.any(axis=-1)
    missing = here & ~active.all(axis=-1)
    if missing.any():
        machine.report("inactive lane", "a matrix unit needs all lanes of the subgroup")
