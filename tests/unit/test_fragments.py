"""Fragments of matrix units against the vendors' documents, and what follows from them.

The fixtures are written as the documents have them, for every lane and element:

- PTX ISA, "Matrix Fragments for mma.m16n8k8" and "mma.m16n8k16" with .f16 and .bf16,
  "mma.m8n8k16" and "mma.m16n8k32" with .s8, "mma.m16n8k8" with .tf32, "mma.m8n8k4" with .f64:
  ``groupID`` is ``lane >> 2``, ``threadID_in_group`` is ``lane % 4``.
- PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f16": a quad pair is lanes ``4 p ... 4 p + 3`` and
  those 16 above, and each of them multiplies 8 x 8 x 4. Pairs 0 and 2 are given the rows 0 to 7 of
  16, pairs 0 and 1 the columns 0 to 7.
- AMD, RDNA3 ISA, 7.9 "Wave Matrix Multiply Accumulate": a lane has a whole row of A, or column of
  B, that of ``lane % 16``; of D it has column ``lane % 16``, rows ``2 * i + lane // 16``.
- AMD, RDNA4 ISA, 7.12: lanes 0 to 15 have steps 0 to 7, the others 8 to 15; of D rows
  ``i + 8 * (lane // 16)``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from polyblocks.affine.gpu.plans.fragments import outers_of, steps_given, steps_of
from polyblocks.options import CompileOptions
from polyblocks.registry.honoured_options import describe_target
from polyblocks.simt.matrix import matrix_operation, tile_intrinsics
from polyblocks.simt.types import Pointer
from polyblocks.target import UNIT_BITS, Fragment, MatrixUnit
from polyblocks_nvgpu.simt import SEMANTICS

Place = Callable[[int, int], tuple[int, int]]


def mma_a(lane: int, i: int) -> tuple[int, int]:
    group, thread = lane >> 2, lane % 4
    row = group if i < 2 or 4 <= i < 6 else group + 8
    return row, thread * 2 + (i & 1) + (8 if i >= 4 else 0)


def mma_b(lane: int, i: int) -> tuple[int, int]:
    step = lane % 4 * 2 + (i & 1) + (8 if i >= 2 else 0)
    return lane >> 2, step


def mma_c(lane: int, i: int) -> tuple[int, int]:
    return (lane >> 2) + (8 if i >= 2 else 0), lane % 4 * 2 + (i & 1)


def bytes_a(lane: int, i: int) -> tuple[int, int]:
    """Of m16n8k32."""
    group, thread = lane >> 2, lane % 4
    row = group if i < 4 or 8 <= i < 12 else group + 8
    return row, thread * 4 + (i & 3) + (16 if i >= 8 else 0)


def bytes_b(lane: int, i: int) -> tuple[int, int]:
    return lane >> 2, lane % 4 * 4 + (i & 3) + (16 if i >= 4 else 0)


def small_bytes(lane: int, i: int) -> tuple[int, int]:
    """Both operands of m8n8k16."""
    return lane >> 2, lane % 4 * 4 + i


def words_a(lane: int, i: int) -> tuple[int, int]:
    """Of m16n8k8 with .tf32: a0 and a2 are of row groupID, a0 and a1 of step threadID_in_group."""
    group, thread = lane >> 2, lane % 4
    return group if i in (0, 2) else group + 8, thread if i < 2 else thread + 4


def words_b(lane: int, i: int) -> tuple[int, int]:
    return lane >> 2, lane % 4 if i == 0 else lane % 4 + 4


def doubles(lane: int, i: int) -> tuple[int, int]:
    """Both operands of m8n8k4 with .f64: row (or column) groupID, step threadID_in_group."""
    return lane >> 2, lane % 4 + i


def of_pairs_a(lane: int, i: int) -> tuple[int, int]:
    """Row-major A: row ``lane % 4``, 4 more for lanes from 16 on, step i."""
    return lane % 4 + (4 if lane >= 16 else 0) + 8 * (lane // 4 % 2), i


def of_pairs_b(lane: int, i: int) -> tuple[int, int]:
    """Column-major B: column ``lane % 4``, 4 more for lanes from 16 on, step i."""
    return lane % 4 + (4 if lane >= 16 else 0) + 8 * (lane // 8 % 2), i


def of_pairs_c(lane: int, i: int) -> tuple[int, int]:
    """.f32: row ``(lane & 1) + (i & 2)``, 4 more from lane 16 on, and the column."""
    row = (lane & 1) + (i & 2) + (4 if lane >= 16 else 0)
    column = (i & 4) + (lane & 2) + (i & 1)
    return row + 8 * (lane // 4 % 2), column + 8 * (lane // 8 % 2)


VOLTA = (of_pairs_a, of_pairs_b, of_pairs_c)
NVIDIA = (mma_a, mma_b, mma_c)
#: Shapes of NVIDIA's units of bytes.
OF_BYTES = {
    (16, 8, 32): (bytes_a, bytes_b, mma_c),
    (8, 8, 16): (small_bytes, small_bytes, lambda lane, i: (lane >> 2, lane % 4 * 2 + i)),
}
RDNA3 = (
    lambda lane, i: (lane % 16, i),
    lambda lane, i: (lane % 16, i),
    lambda lane, i: (2 * i + lane // 16, lane % 16),
)
RDNA4 = (
    lambda lane, i: (lane % 16, i + 8 * (lane // 16)),
    lambda lane, i: (lane % 16, i + 8 * (lane // 16)),
    lambda lane, i: (i + 8 * (lane // 16), lane % 16),
)
#: Architecture -> what the documents say, and how many units of it are described.
CHIPS: dict[tuple[str, str], tuple[tuple[Place, Place, Place], int]] = {
    ("nvgpu", "sm_70"): (VOLTA, 1),
    ("nvgpu", "sm_75"): (NVIDIA, 2),
    ("nvgpu", "sm_80"): (NVIDIA, 5),
    ("nvgpu", "sm_89"): (NVIDIA, 4),
    ("nvgpu", "sm_90a"): (NVIDIA, 5),
    ("nvgpu", "sm_120"): (NVIDIA, 4),
    ("amdgpu", "gfx1100"): (RDNA3, 3),
    ("amdgpu", "gfx1200"): (RDNA4, 3),
}


def units(target: str, arch: str) -> list[MatrixUnit]:
    description = describe_target(CompileOptions(target=target, arch=arch))
    return [u for u in description.matrix_units if u.fragments is not None]


def document(chip: tuple[str, str], unit: MatrixUnit) -> tuple[Place, Place, Place]:
    """What the documents say of a unit."""
    if unit.operands == "tfloat32":
        return words_a, words_b, mma_c
    if unit.operands == "float64":
        return doubles, doubles, mma_c
    return OF_BYTES.get(unit.shape, CHIPS[chip][0])


EVERY = [(chip, unit) for chip in CHIPS for unit in units(*chip)]
NAMES = [f"{chip[1]} {unit.name} {unit.operands}" for chip, unit in EVERY]


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip[1])
def test_units_are_described(chip: tuple[str, str]) -> None:
    assert len(units(*chip)) == CHIPS[chip][1]


@pytest.mark.parametrize(("chip", "unit"), EVERY, ids=NAMES)
def test_fragments_are_the_documents(chip: tuple[str, str], unit: MatrixUnit) -> None:
    assert unit.fragments is not None
    for fragment, wanted in zip(unit.fragments, document(chip, unit), strict=True):
        for lane, place in itertools.product(range(32), range(fragment.elements)):
            assert fragment.at(place, lane) == wanted(lane, place)


@pytest.mark.parametrize(("chip", "unit"), EVERY, ids=NAMES)
def test_fragments_have_every_element_as_often_as_they_say(
    chip: tuple[str, str], unit: MatrixUnit
) -> None:
    assert unit.fragments is not None
    m, n, k = unit.shape
    for fragment, shape in zip(unit.fragments, ((m, k), (n, k), (m, n)), strict=True):
        counts = np.zeros(shape, int)
        for lane, place in itertools.product(range(32), range(fragment.elements)):
            counts[fragment.at(place, lane)] += 1
        silent = sum(adds == (0, 0) for adds in (*fragment.lanes, *fragment.places))
        assert (counts == 2**silent).all()


@pytest.mark.parametrize(("chip", "unit"), EVERY, ids=NAMES)
def test_steps_are_given_out_once_and_in_a_row(chip: tuple[str, str], unit: MatrixUnit) -> None:
    steps = steps_given(unit, {"int8": 1, "tfloat32": 4, "float64": 8}.get(unit.operands, 2))
    assert steps is not None
    found = [
        steps.chunk * (lane + steps.lanes * (j // steps.chunk)) + j % steps.chunk
        for lane in range(steps.lanes)
        for j in range(steps.of_lane)
    ]
    assert sorted(found) == list(range(unit.shape[2]))


class Lanes:
    """As much of the simulator as a unit's meaning needs."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.mask = np.ones(lanes, bool)
        self.found: list[str] = []

    def by_subgroup(self, value: np.ndarray) -> np.ndarray:
        return value.reshape(*value.shape[:-1], -1, 32)

    def report(self, kind: str, message: str, lanes: np.ndarray | None = None) -> None:
        self.found.append(kind)


def registers(fragment: Fragment, matrix: np.ndarray, wanted: Place, bits: int) -> list[np.ndarray]:
    """The registers of two warps, one after the other, by a document."""
    places = [
        np.array(
            [matrix[warp][wanted(lane, i)] for warp in range(2) for lane in range(32)], matrix.dtype
        )
        for i in range(fragment.elements)
    ]
    per = fragment.register_bits // bits
    found = []
    for first in range(0, len(places), per):
        part = np.stack(places[first : first + per])
        if matrix.dtype == np.int8:
            words = part.reshape(-1, 4, part.shape[-1]).astype(np.int64) & 0xFF
            part = (words << np.array([0, 8, 16, 24])[:, None]).sum(1)
        elif bits == 32 and fragment.register == "i32" and matrix.dtype == np.float32:
            part = part.astype(np.float32).view(np.int32)
        elif bits == 16 and fragment.register.endswith(("i16>", "i32")):
            halves = (part.astype(np.float32).view(np.uint32) >> 16).astype(np.int64)
            part = halves if per > 2 else (halves[0] | halves[1] << 16)[None]
        found.append(part if per > 1 and len(part) > 1 else part[0])
    return found


@pytest.mark.parametrize(("chip", "unit"), EVERY, ids=NAMES)
def test_a_unit_multiplies_matrices(chip: tuple[str, str], unit: MatrixUnit) -> None:
    assert unit.fragments is not None
    random = np.random.default_rng(1)
    m, n, k = unit.shape
    a, b, c = (random.integers(-8, 9, (2, *s)) for s in ((m, k), (n, k), (m, n)))
    machine = Lanes(64)
    dtypes = {"float16": np.float16, "int8": np.int8, "float64": np.float64}
    narrow = dtypes.get(unit.operands, np.float32)
    wide, width = np.dtype(unit.accumulator), UNIT_BITS[unit.accumulator]
    bits = UNIT_BITS[unit.operands]
    wanted = document(chip, unit)
    given = [
        *registers(unit.fragments[0], a.astype(narrow), wanted[0], bits),
        *registers(unit.fragments[1], b.astype(narrow), wanted[1], bits),
        *registers(unit.fragments[2], c.astype(wide), wanted[2], width),
    ]
    for position, yes in unit.immediates:
        given.insert(position, np.array([yes]))
    result = matrix_operation(unit).decode(None)(machine, *given)  # type: ignore[arg-type]
    expected = c + a @ b.transpose(0, 2, 1)
    flat = result if isinstance(result, tuple) else (result,)
    for got, want in zip(
        flat,
        registers(unit.fragments[2], expected.astype(wide), wanted[2], width),
        strict=True,
    ):
        np.testing.assert_array_equal(got, want)
    assert machine.found == []


def test_a_half_that_is_no_copy_is_found() -> None:
    (unit,) = [u for u in units("amdgpu", "gfx1100") if u.operands == "float16"]
    given = [np.zeros((16, 64), np.float16), np.zeros((16, 64), np.float16)]
    given[0][3, 17] = 1
    machine = Lanes(64)
    matrix_operation(unit).decode(None)(machine, *given, np.zeros((8, 64), np.float32))  # type: ignore[arg-type]
    assert machine.found == ["replicated half"]


def test_a_part_of_a_subgroup_is_found() -> None:
    (unit,) = [u for u in units("amdgpu", "gfx1200") if u.operands == "float16"]
    machine = Lanes(64)
    machine.mask[40] = False
    operand = np.zeros((8, 64), np.float16)
    matrix_operation(unit).decode(None)(machine, operand, operand, np.zeros((8, 64), np.float32))  # type: ignore[arg-type]
    assert machine.found == ["inactive lane"]


def test_sums_of_integers_wrap_around() -> None:
    (unit,) = [u for u in units("nvgpu", "sm_80") if u.operands == "int8"]
    most = np.full(64, 2**31 - 1, np.int32)
    ones = [np.full(64, 0x01010101, np.int32)] * 6
    result = matrix_operation(unit).decode(None)(Lanes(64), *ones, *[most] * 4)  # type: ignore[arg-type]
    assert {int(n) for part in result for n in part} == {-(2**31) + 31}


def test_tf32_is_rounded_to_nearest_and_read_without_its_last_bits() -> None:
    """``cvt.rna.tf32.f32`` of the PTX ISA: ties away from zero; 13 bits do not count."""
    numbers = np.array([1 + 2**-11, -1 - 2**-11, 1 + 2**-12, np.inf, 3.4028235e38, 0.0], np.float32)
    rounded = np.array([1 + 2**-10, -1 - 2**-10, 1, np.inf, np.inf, 0.0], np.float32)
    function = SEMANTICS.intrinsics["llvm.nvvm.f2tf32.rna"].decode(None)  # type: ignore[arg-type]
    np.testing.assert_array_equal(function(None, numbers).view(np.float32), rounded)
    assert np.isnan(
        function(None, np.array([0x7F800001], np.int32).view(np.float32)).view(np.float32)
    )
    (unit,) = [u for u in units("nvgpu", "sm_80") if u.operands == "tfloat32"]
    machine = Lanes(32)
    bits = np.full(32, 0x3F801FFF, np.int32)
    result = matrix_operation(unit).decode(None)(machine, *[bits] * 6, *[np.zeros(32)] * 4)  # type: ignore[arg-type]
    assert {float(n) for part in result for n in part} == {8.0}


def test_rows_and_steps_of_a_lane() -> None:
    (unit,) = [u for u in units("nvgpu", "sm_75") if u.operands == "float16"]
    assert unit.fragments is not None
    first, second, sums = unit.fragments
    assert (outers_of(first), steps_of(first)) == ((0, 8), (0, 1))
    assert (outers_of(second), steps_of(second)) == ((0,), (0, 1))
    assert (outers_of(sums), steps_of(sums)) == ((0, 8), (0, 1))


def test_a_register_is_a_type() -> None:
    assert Fragment((), (), "vector<2xf16>").register_bits == 32
    with pytest.raises(ValueError, match="'tensor<2xf16>' is no type of a register"):
        _ = Fragment((), (), "tensor<2xf16>").register_bits


def test_tiles_are_given_out_as_ptx_says() -> None:
    # PTX ISA, "Warp-level matrix load instruction: ldmatrix": lane r gets of an 8 x 8 tile of
    # elements of 16 bits those at row r / 4 and columns 2 (r mod 4) and the next one.
    chip = describe_target(CompileOptions(target="nvgpu", arch="sm_80")).multiprocessor
    assert chip is not None
    loads = chip.tile_loads
    assert loads is not None
    assert [loads.at(lane) for lane in range(32)] == [(r // 4, 2 * (r % 4)) for r in range(32)]
    machine = Lanes(32)
    memory = np.arange(4 * 64, dtype=np.uint16)
    machine.load = lambda *given: memory.view(np.int32).reshape(32, 4).T
    shared = SimpleNamespace(operands=[Pointer(3)])
    for name, by_columns in ((loads.by_rows, False), (loads.by_columns, True)):
        run = tile_intrinsics(loads)[name].decode(shared)
        for tile, register in enumerate(run(machine, np.zeros(32, np.int64))):
            elements = memory.reshape(4, 8, 8)[tile]
            elements = elements.T if by_columns else elements
            wanted = [elements[r // 4, 2 * (r % 4) : 2 * (r % 4) + 2] for r in range(32)]
            assert np.array_equal(
                np.ascontiguousarray(register).view(np.uint16).reshape(32, 2), np.array(wanted)
            )
