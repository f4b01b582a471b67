"""The loop of matrix kernels whose copies go through registers, in machine code."""

from __future__ import annotations

from itertools import product as combinations

import pytest
from bench.gpu_static.build import build
from bench.gpu_static.cases import product
from bench.gpu_static.instructions import VECTOR, Instruction, Kind, count
from bench.gpu_static.loops import split
from sweeps import sweep

from polyblocks.affine.gpu.plans.read_schedule import ReadSchedule


def _loop(arch: str, transposed: bool) -> tuple[Instruction, ...]:
    (built,) = build(product("float16", 1024, 1024, 1024, transposed=transposed), arch)
    assert not built.row["resources"]["spill_bytes"]
    return tuple(split(built.code).loop)


@pytest.mark.parametrize("arch", sweep(["gfx1100", "gfx1200"], "gfx1100"))
def test_places_are_constants_apart(arch: str) -> None:
    rows, columns = _loop(arch, True), _loop(arch, False)
    for loop, most in ((rows, 1.0), (columns, 2.0)):
        assert count(loop, *VECTOR) <= most * count(loop, Kind.MATRIX)
        # One for each of the two tiles that are written out.
        assert count(loop, Kind.BARRIER) == 2
    # What is stored by columns are pairs of two rows.
    assert count(columns, Kind.SHARED) > count(rows, Kind.SHARED)


@pytest.mark.parametrize("arch", sweep(["gfx1100", "gfx1200"], "gfx1200"))
def test_loads_stand_ahead_of_products(arch: str) -> None:
    loop = _loop(arch, True)
    kinds = [instruction.kind for instruction in loop]
    stores = [n for n, i in enumerate(loop) if i.name.startswith("ds_store")]
    loads = [n for n, kind in enumerate(kinds) if kind is Kind.LOAD]
    assert len(loads) == len(stores)
    # From a tile's load to its store at least half of its products are done.
    half = kinds.count(Kind.MATRIX) // 4
    tiles = zip(loads, stores, strict=True)
    assert all(kinds[load:store].count(Kind.MATRIX) >= half for load, store in tiles)
    # Of what products need, no read is right in front of the first of them.
    reads = [n for n, i in enumerate(loop) if i.name.startswith("ds_load")]
    used = {
        n: next(
            (m for m in range(n, len(loop)) if set(loop[n].writes) & set(loop[m].reads)), len(loop)
        )
        for n in reads
    }
    ahead = [kinds[n:m].count(Kind.MATRIX) for n, m in used.items()]
    assert sum(a >= 2 for a in ahead) >= 0.75 * len(ahead)


@pytest.mark.parametrize("together", [False, True])
def test_reads_stand_on_the_right_side_of_the_barrier(together: bool) -> None:
    for rows, columns, calls in combinations((1, 2, 3, 4, 8), (1, 2, 3, 4, 8), (1, 2, 4)):
        schedule = ReadSchedule.of((rows, columns), calls, together)
        count = rows * columns * calls
        assert 0 <= schedule.stored <= schedule.barrier < count
        read = set()
        for at, reads in schedule.due.items():
            for side, call, of in reads:
                first = call * rows * columns + of[0] * (1 if side else columns)
                assert 0 <= at <= min(first, schedule.barrier)
                read |= {(side, call, unit) for unit in of}
        for at, reads in schedule.early.items():
            assert schedule.barrier <= at < count
            read |= {(side, call, unit) for side, call, of in reads for unit in of}
        assert len(read) == calls * (rows + columns)
