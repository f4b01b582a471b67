"""How many blocks of a kernel a multiprocessor holds, of what the assembler says."""

from __future__ import annotations

import pytest
from tests.support.gpu_target import gpu_target

from polyblocks import mlir
from polyblocks.attributes import RESIDENT_ATTRIBUTE
from polyblocks.codegen.gpu import plan
from polyblocks.codegen.gpu.manifest import Resources
from polyblocks.codegen.gpu.resident_blocks import (
    assumed_blocks,
    note_blocks,
    resident_blocks_by_kernel,
    threads_of,
)
from polyblocks.occupancy import registers_for, shared_for

TEXT = """
gpu.module @kernels {
  llvm.func @first() attributes {gpu.kernel, gpu.known_block_size = array<i32: 64, 2, 2>,
                                 polyblocks.resident = 6 : i32} { llvm.return }
  llvm.func @second() attributes {gpu.kernel, gpu.known_block_size = array<i32: 256, 1, 1>}
    { llvm.return }
}
"""
CHIP = gpu_target().multiprocessor
assert CHIP is not None


def lowered(shared: int) -> object:
    """A module in form L; ``shared`` bytes are what the first kernel's launch asks for."""
    module = mlir.parse(TEXT)
    rows = [("first", shared), ("second", 0)]
    plan.write_launches(module, [{"kernel": k, "shared_bytes": n} for k, n in rows])
    return module


def test_what_kernels_say() -> None:
    first, second = plan.kernels(lowered(0))
    assert (threads_of(first), threads_of(second)) == (256, 256)
    assert (assumed_blocks(first), assumed_blocks(second)) == (6, 1)


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_registers_and_all_shared_memory_count(blocks: int) -> None:
    many = Resources(registers=registers_for(CHIP, 256, blocks))
    assert resident_blocks_by_kernel(lowered(0), CHIP, {"first": many, "second": many}) == {
        "first": blocks,
        "second": blocks,
    }
    room = shared_for(CHIP, blocks)
    some = Resources(registers=16, shared_bytes=room // 4)
    held = resident_blocks_by_kernel(
        lowered(room - room // 4), CHIP, {"first": some, "second": some}
    )
    assert held["first"] == blocks < held["second"]


def test_no_more_blocks_are_noted_than_were_assumed() -> None:
    for blocks, noted in ((2, 2), (8, 6)):
        module = lowered(0)
        used = Resources(registers=registers_for(CHIP, 256, blocks))
        note_blocks(module, CHIP, {"first": used, "second": used}, ["first"])
        first, second = plan.kernels(module)
        assert (assumed_blocks(first), assumed_blocks(second)) == (noted, 1)
        assert RESIDENT_ATTRIBUTE not in second.attributes
