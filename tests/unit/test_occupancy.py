"""Occupancy against published examples, the vendors' calculators, and the code generator's own."""

from __future__ import annotations

import re

import pytest

from polyblocks.occupancy import Occupancy, occupancy, registers_for, shared_for
from polyblocks.options import CompileOptions
from polyblocks.target import Multiprocessor
from polyblocks_amdgpu.describe import describe as describe_amd
from polyblocks_amdgpu.generations import ARCHS as AMD
from polyblocks_nvgpu.describe import describe as describe_nvidia


def nvidia(arch: str) -> Multiprocessor:
    found = describe_nvidia(CompileOptions(target="nvgpu", arch=arch)).multiprocessor
    assert found is not None
    return found


def amd(arch: str) -> Multiprocessor:
    found = describe_amd(CompileOptions(target="amdgpu", arch=arch)).multiprocessor
    assert found is not None
    return found


def test_the_example_of_the_best_practices_guide() -> None:
    """CUDA C++ Best Practices Guide, "Calculating Occupancy", capability 7.0, 37 registers."""
    volta = nvidia("sm_70")
    small = occupancy(volta, 37, 0, 128)
    assert small == Occupancy(12, 48, 0.75, ("registers",))
    large = occupancy(volta, 37, 0, 320)
    assert (large.blocks, round(large.fraction, 2)) == (4, 0.62)
    assert occupancy(volta, 32, 0, 1024).fraction == 1.0


@pytest.mark.parametrize(
    "arch, registers, shared, threads, blocks, limited_by",
    [
        # Answers of the header cuda_occupancy.h in CUDA 13.0, with the largest carve-out for shared
        # memory and the opt-in limit for blocks.
        ("sm_75", 32, 0, 32, 16, "blocks"),
        ("sm_75", 0, 0, 64, 16, "warps blocks"),
        ("sm_75", 65, 1024, 256, 3, "registers"),
        ("sm_75", 64, 16384, 128, 4, "shared"),
        ("sm_75", 64, 65536, 1024, 1, "warps registers shared"),
        ("sm_80", 32, 0, 64, 32, "warps blocks registers"),
        ("sm_80", 33, 0, 1024, 1, "registers"),
        ("sm_80", 40, 9999, 256, 6, "registers"),
        ("sm_80", 40, 32768, 256, 4, "shared"),
        ("sm_80", 16, 166912, 1024, 1, "shared"),
        ("sm_86", 40, 0, 512, 3, "warps registers"),
        ("sm_86", 16, 49152, 96, 2, "shared"),
        ("sm_86", 24, 1, 32, 16, "blocks"),
        ("sm_87", 96, 8192, 192, 3, "registers"),
        ("sm_89", 24, 1, 32, 24, "blocks"),
        ("sm_89", 24, 1, 64, 24, "warps blocks"),
        ("sm_89", 0, 101376, 128, 1, "shared"),
        ("sm_90", 168, 232448, 384, 1, "registers shared"),
        ("sm_90", 255, 0, 256, 1, "registers"),
        ("sm_90", 128, 65536, 128, 3, "shared"),
        ("sm_100", 64, 16384, 160, 6, "registers"),
        ("sm_103", 37, 1024, 1000, 1, "registers"),
        ("sm_120", 32, 9999, 100, 9, "shared"),
        ("sm_121", 64, 1024, 768, 1, "registers"),
        # What cannot run at all.
        ("sm_80", 32, 0, 1056, 0, "warps"),
        ("sm_80", 65, 0, 1024, 0, "registers"),
        ("sm_80", 256, 0, 32, 0, "registers"),
        ("sm_80", 32, 166913, 32, 0, "shared"),
    ],
)
def test_answers_of_the_vendors_calculator(
    arch: str, registers: int, shared: int, threads: int, blocks: int, limited_by: str
) -> None:
    found = occupancy(nvidia(arch), registers, shared, threads)
    assert (found.blocks, found.limited_by) == (blocks, tuple(limited_by.split()))
    assert found.warps == blocks * -(-threads // 32)


KERNEL = """
target triple = "amdgcn-amd-amdhsa"
@s = internal addrspace(3) global [{shared} x i8] poison
define amdgpu_kernel void @f() #0 {{
  call void asm sideeffect "", "~{{v{last}}}"()
  {use}
  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="{threads},{threads}" }}
"""


@pytest.mark.parametrize("arch", sorted(AMD))
def test_the_code_generator_counts_the_same_waves(arch: str) -> None:
    """LLVM prints how many waves of a kernel a SIMD holds, as its registers and LDS allow.

    The blocks without LDS have one wave for each SIMD: LLVM does not round down to whole blocks.
    """
    from llvmlite import binding

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    limits = amd(arch)
    for registers, shared, threads in [
        *((registers, 0, 128) for registers in (24, 32, 65, 72, 96, 97, 128, 168, 169, 192, 256)),
        (32, 8192, 64), (32, 16384, 256), (24, 65536, 256), (64, 30000, 512), (24, 1000, 32),
    ]:  # fmt: skip
        use = "store volatile i8 1, ptr addrspace(3) @s" if shared else ""
        text = KERNEL.format(shared=shared, last=registers - 1, use=use, threads=threads)
        machine = binding.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu=arch)
        machine.set_asm_verbosity(True)
        printed = machine.emit_assembly(binding.parse_assembly(text))
        told = re.search(r"; Occupancy: (\d+)", printed)
        assert told is not None
        found = occupancy(limits, registers, shared, threads)
        waves = -(-found.warps // limits.partitions)
        assert waves == int(told[1]), (registers, shared, threads, found)


def test_blocks_of_one_wave_need_no_barrier() -> None:
    wave = occupancy(amd("gfx1100"), 24, 0, 32)
    assert (wave.blocks, wave.fraction) == (64, 1.0)
    assert occupancy(amd("gfx1100"), 24, 0, 64).blocks == 32


@pytest.mark.parametrize(
    "limits", [nvidia("sm_75"), nvidia("sm_90"), amd("gfx1100"), amd("gfx1103")]
)
@pytest.mark.parametrize("threads", [32, 96, 128, 256, 1000, 1024])
def test_budgets_are_the_largest_that_keep_the_blocks(limits: Multiprocessor, threads: int) -> None:
    for blocks in range(1, occupancy(limits, 0, 0, threads).blocks + 1):
        registers = registers_for(limits, threads, blocks)
        assert occupancy(limits, registers, 0, threads).blocks >= blocks
        if registers < limits.registers_per_thread:
            assert occupancy(limits, registers + 1, 0, threads).blocks < blocks
        shared = shared_for(limits, blocks)
        assert occupancy(limits, 0, shared, threads).blocks >= blocks
        if shared < limits.shared_per_block_optin:
            assert occupancy(limits, 0, shared + 1, threads).blocks < blocks


def test_budgets_of_more_blocks_than_there_is_room_for() -> None:
    assert registers_for(nvidia("sm_80"), 1024, 3) == 0
    assert shared_for(nvidia("sm_80"), 1000) == 0


def test_what_makes_no_sense() -> None:
    chip = nvidia("sm_80")
    with pytest.raises(ValueError, match="at least one thread .* threads_per_block=0"):
        occupancy(chip, 32, 0, 0)
    with pytest.raises(ValueError, match="no negative needs, not registers_per_thread=-1"):
        occupancy(chip, -1, 0, 32)
    with pytest.raises(ValueError, match="blocks must be at least 1, not 0"):
        shared_for(chip, 0)
    with pytest.raises(ValueError, match="blocks must be at least 1, not 0"):
        registers_for(chip, 32, 0)
