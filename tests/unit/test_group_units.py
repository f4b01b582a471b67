"""Schedules of units that several warps call, and their functions in LLVM IR."""

from __future__ import annotations

from pathlib import Path

import gpu_kernels
import pytest

from polyblocks import mlir
from polyblocks.errors import PassError, UnsupportedError
from polyblocks.options import CompileOptions
from polyblocks.passes.map.stage_operands import StageOperandsPass
from polyblocks.pipeline import PassContext
from polyblocks_nvgpu.group_units import as_assembly, as_functions, function_of, wait_of
from polyblocks_nvgpu.passes.lower_bulk_copies import LowerBulkCopiesPass

TEXT = Path(__file__).parents[1] / "filecheck" / "gpu" / "stage-operands-wgmma.mlir"


@pytest.mark.parametrize(
    ("k_block", "stages"), [(32, 4), (128, 4), (64, 2)], ids=["half", "two lines", "no stage"]
)
def test_tiles_that_the_unit_does_not_read_are_refused(k_block: int, stages: int) -> None:
    given = f"k_block = {k_block}, stages = {stages}"
    text = TEXT.read_text().replace("k_block = 64, stages = 4", given)
    options = CompileOptions(target="nvgpu", arch="sm_90a")
    context = PassContext.create(gpu_kernels.nvgpu("sm_90a"), options)
    message = f"expected 64 steps, lines of wgmma.*, got {k_block} steps and {stages} stages"
    with pytest.raises(UnsupportedError, match=message):
        StageOperandsPass().run(mlir.parse(text), context)


@pytest.mark.parametrize("cluster", ["[2, 2]", "[4, 1]", "[16, 1]", "[1, 2]"])
def test_clusters_of_no_whole_tiles_are_refused(cluster: str) -> None:
    """Two by two, and more along rows than there are tiles or panels, or than a cluster has."""
    text = (TEXT.parent / "stage-operands-persistent.mlir").read_text()
    # Three by three tiles.
    text = text.replace("4096", "384")
    text = text.replace("stages = 4", f"stages = 4, cluster = {cluster}")
    options = CompileOptions(target="nvgpu", arch="sm_90a")
    context = PassContext.create(gpu_kernels.nvgpu("sm_90a"), options)
    with pytest.raises(UnsupportedError, match="expected a cluster of two tiles beside each other"):
        StageOperandsPass().run(mlir.parse(text), context)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("columns", [64, 256])
@pytest.mark.parametrize("panels", [(False, True), (True, False)])
def test_calls_become_assembly_and_calls_again(
    dtype: str, columns: int, panels: tuple[bool, bool]
) -> None:
    count = columns // 2
    name = function_of(f"llvm.polyblocks.wgmma.m64n{columns}k16.f32.{dtype}", panels)
    wait = wait_of(1, "f32", count)
    struct = f"{{ {', '.join(['float'] * count)} }}"
    sums = ", ".join(f"float %s{k}" for k in range(count))
    text = f"declare {struct} @{name}(float)\n"
    lines = [
        f"  %r = tail call {struct} @{name}({sums}, i64 %a, i64 %b) #1",
        f"  %w = call {struct} @{wait}({sums})",
    ]
    text += "\n".join(lines)
    assembly = as_assembly(text)
    assert "declare" not in assembly
    assert assembly.count("asm sideeffect") == 2
    digits = f"1, 1, {int(panels[0])}, {int(panels[1])}; }}"
    assert f"m64n{columns}k16.f32.{dtype}.{dtype} {{$0, $1," in assembly
    assert digits in assembly
    assert "wgmma.wait_group.sync.aligned 1;" in assembly
    again = [line.replace("@", "@llvm.") for line in lines]
    assert as_functions(assembly).splitlines() == again


@pytest.mark.parametrize("first", [None, False, True])
@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("new", [False, True])
def test_operands_in_registers_and_sums_that_begin(
    first: bool | None, second: bool, new: bool
) -> None:
    name = function_of("llvm.polyblocks.wgmma.m64n64k16.f32.bf16", (first, second), new)
    struct = f"{{ {', '.join(['float'] * 32)} }}"
    given = [] if new else [f"float %s{k}" for k in range(32)]
    given += [f"i32 %a{k}" for k in range(4)] if first is None else ["i64 %a"]
    line = f"  %r = call {struct} @{name}({', '.join([*given, 'i64 %b'])})"
    assembly = as_assembly(line)
    at = 32 if new else 64
    operands = [f"${at + k}" for k in range(5 if first is None else 2)]
    shown = f"{{{', '.join(operands[:-1])}}}" if first is None else operands[0]
    panels = ", ".join(str(int(p)) for p in (first, second) if p is not None)
    predicate = "new" if new else "p"
    assert f"$31}}, {shown}, {operands[-1]}, {predicate}, 1, 1, {panels}; }}" in assembly
    assert f"setp.{'ne' if new else 'eq'}.b32 {predicate}, 0, 0;" in assembly
    # Sums that begin are results only.
    assert ('"=f,' + ",".join(["=f"] * 31) + ",0,1," in assembly) is not new
    assert as_functions(assembly) == line.replace("@", "@llvm.")


def test_boxes_are_of_parameters() -> None:
    """Of what a kernel has in its own memory there is no tensor map."""
    text = (TEXT.parent / "lower-bulk-copies.mlir").read_text()
    text = text.replace("(%at, %at, %x, %w", "(%at, %at, %own, %w").replace(
        "      %i = ", "      %own = llvm.inttoptr %to : i64 to !llvm.ptr<1>\n      %i = ", 1
    )
    lines = text.splitlines()
    at = next(k for k, line in enumerate(lines) if "%own = " in line)
    to = next(k for k, line in enumerate(lines) if "%to = " in line)
    lines.insert(at, lines.pop(to))
    context = PassContext.create(gpu_kernels.nvgpu("sm_90a"), CompileOptions(target="nvgpu"))
    with pytest.raises(PassError, match="expected an array that is a parameter"):
        LowerBulkCopiesPass().run(mlir.parse("\n".join(lines)), context)


def test_other_code_stays_as_it_is() -> None:
    text = '  call void asm sideeffect "nanosleep.u32 20;", ""()'
    assert as_assembly(text) == as_functions(text) == text
