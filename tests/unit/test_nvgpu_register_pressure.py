"""Kernels that spill registers give up other blocks, or copies of their loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.gpu_conformance.assemble import compiled

from polyblocks import mlir
from polyblocks.affine.gpu.plans import kernel as plans
from polyblocks.codegen.gpu.manifest import Resources
from polyblocks.options import CompileOptions
from polyblocks.pipeline import PassContext
from polyblocks.registry.registry import get_registry
from polyblocks_nvgpu import emit, lower, ptxas, register_pressure

TEXT = """
.visible .entry first(
	.param .u64 first_param_0
)
.reqntid 256, 1, 1
.minnctapersm 8
{
	ret;
}
.visible .entry first_1(
	.param .u64 first_1_param_0
)
.reqntid 256, 1, 1
.minnctapersm 4
{
	ret;
}
"""
#: A loop in which a thread copies 12 elements.
COPY = """
	mov.b64 	%rd5, 0;
$COPY:
	add.s64 	%rd6, %rd2, %rd5;
	mul.hi.u64 	%rd7, %rd6, -6148914691236517205;
	shr.u64 	%rd8, %rd7, 1;
	mul.lo.s64 	%rd9, %rd8, 3;
	sub.s64 	%rd10, %rd6, %rd9;
	setp.ge.s64 	%p1, %rd10, %rd4;
	@%p1 bra 	$SKIP;
	mul.hi.u64 	%rd11, %rd8, 5270498306774157605;
	shr.u64 	%rd12, %rd11, 2;
	mul.lo.s64 	%rd13, %rd12, 14;
	sub.s64 	%rd14, %rd8, %rd13;
	mad.lo.s64 	%rd15, %rd12, 784, %rd1;
	mad.lo.s64 	%rd16, %rd14, 56, %rd15;
	shl.b64 	%rd17, %rd10, 2;
	add.s64 	%rd18, %rd16, %rd17;
	add.s64 	%rd19, %rd18, %rd24;
	ld.global.nc.b32 %r2, [%rd19];
	mov.b64 	%rd20, elements;
	mad.lo.s64 	%rd21, %rd12, 192, %rd20;
	mad.lo.s64 	%rd22, %rd14, 12, %rd21;
	add.s64 	%rd23, %rd22, %rd17;
	st.shared.b32 	[%rd23], %r2;
$SKIP:
	add.s64 	%rd5, %rd5, 1024;
	setp.ne.b64 	%p2, %rd5, 12288;
	@%p2 bra 	$COPY;
	bar.sync 	0;
"""
#: Two of these in a loop, which changes nothing of what they compute of the thread's number:
#: written out they want more than the 64 registers of a thread.
LOOPS = f"""
.version 7.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 elements[];
.visible .entry other(
	.param .u64 other_param_0
)
.reqntid 1024, 1, 1
{{
	ret;
}}
.visible .entry fill(
	.param .u64 fill_param_0
)
.reqntid 1024, 1, 1
{{
	.reg .pred 	%p<4>;
	.reg .b32 	%r<3>;
	.reg .b64 	%rd<25>;
	ld.param.b64 	%rd1, [fill_param_0];
	mov.u32 	%r1, %tid.x;
	cvt.u64.u32 	%rd2, %r1;
	mov.b64 	%rd3, 0;
	bra.uni 	$OUTER;
$NEXT:
	add.s64 	%rd3, %rd3, 1;
	setp.eq.b64 	%p3, %rd3, 9;
	@%p3 bra 	$END;
$OUTER:
	shl.b64 	%rd24, %rd3, 1;
	sub.s64 	%rd4, 18, %rd24;
{COPY.replace("$COPY", "$FIRST").replace("$SKIP", "$SKIP1")}
{COPY.replace("$COPY", "$SECOND").replace("$SKIP", "$SKIP2")}
	bra.uni 	$NEXT;
$END:
	ret;
}}
"""
#: A product of matrices, whose threads keep tiles of 64 sums.
PRODUCT = """
func.func @main(%x: tensor<1024x1024xf32>, %y: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1024x1024xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1024x1024xf32>)
    -> tensor<1024x1024xf32>
  %z = linalg.matmul ins(%x, %y : tensor<1024x1024xf32>, tensor<1024x1024xf32>)
    outs(%start : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %z : tensor<1024x1024xf32>
}
"""


def test_only_the_named_kernels_may_take_all_registers() -> None:
    changed = register_pressure.with_room(TEXT, ["first"])
    assert changed == TEXT.replace(".minnctapersm 8\n", "")
    assert register_pressure.with_room(TEXT, []) == TEXT


def test_a_kernel_that_would_spill_gives_up_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    assembler = ptxas.find()
    if assembler is None or "sm_80" not in ptxas.architectures(assembler):
        pytest.skip("no assembler for sm_80")
    (before,) = compiled(PRODUCT, "sm_80").kernels
    # So many blocks leave a thread fewer registers than its tile has elements.
    requested = 2048 // before.threads
    monkeypatch.setattr(plans, "resident_blocks", lambda *_: requested)
    (kernel,) = compiled(PRODUCT, "sm_80").kernels
    assert kernel.registers > 65536 // 2048
    assert (kernel.spill_bytes, kernel.scratch_bytes) == (0, 0)
    assert 1 <= kernel.assumed < requested
    assert kernel.resident >= kernel.assumed


def test_loops_are_found_wherever_they_stand() -> None:
    assert register_pressure.loops(LOOPS[LOOPS.index(".visible .entry fill") :]) == [
        "$OUTER",
        "$FIRST",
        "$SECOND",
    ]
    assert register_pressure.loops(TEXT) == []


def test_a_kernel_that_spills_keeps_the_loop_that_needs_it() -> None:
    assembler = ptxas.find()
    if assembler is None or "sm_80" not in ptxas.architectures(assembler):
        pytest.skip("no assembler for sm_80")

    def resources_of(text: str) -> dict[str, Resources]:
        return ptxas.assemble(assembler, text, "sm_80")[1]

    assert resources_of(LOOPS)["fill"].spill_bytes
    kept = register_pressure.with_loops(LOOPS, ["fill"], resources_of)
    assert resources_of(kept)["fill"].spill_bytes == 0
    assert kept == LOOPS.replace("$FIRST:\n", '$FIRST:\n\t.pragma "nounroll";\n')


def test_machine_code_is_made_of_the_text_without_spills(monkeypatch: pytest.MonkeyPatch) -> None:
    assembler = ptxas.find()
    if assembler is None or "sm_80" not in ptxas.architectures(assembler):
        pytest.skip("no assembler for sm_80")
    options = CompileOptions(target="nvgpu", arch="sm_80")
    target = get_registry().target("nvgpu").hook.describe_target(options=options)
    monkeypatch.setattr(lower, "compile_ptx", lambda *_: LOOPS)
    module = mlir.parse("gpu.module @kernels {}")
    forms, resources = lower._build(module, PassContext.create(target, options))
    assert resources["fill"].spill_bytes == 0
    assert forms["ptx"].decode().count("nounroll") == 1


def test_all_loops_are_kept_where_one_is_not_enough() -> None:
    def resources_of(text: str) -> dict[str, Resources]:
        return {"fill": Resources(registers=64, spill_bytes=12 - 4 * text.count("nounroll"))}

    kept = register_pressure.with_loops(LOOPS, ["fill"], resources_of)
    assert kept.count("nounroll") == 3


def test_loops_stay_as_they_are_where_keeping_them_does_not_help() -> None:
    resources = {"fill": Resources(registers=64, spill_bytes=8)}
    assert register_pressure.with_loops(LOOPS, ["fill"], lambda _: resources) == LOOPS


def _plainly(text: str) -> str:
    return text.replace("mul.hi.u64", "mul.hi.u64 /* again */")


def test_a_kernel_that_spills_nevertheless_is_taken_from_the_plain_text() -> None:
    def resources_of(text: str) -> dict[str, Resources]:
        return {"fill": Resources(registers=64, spill_bytes=0 if "again" in text else 8)}

    assert register_pressure.with_least_moved(
        LOOPS, _plainly(LOOPS), ["fill"], resources_of
    ) == _plainly(LOOPS)
    assert register_pressure.with_least_moved(
        _plainly(LOOPS), LOOPS, ["fill"], resources_of
    ) == _plainly(LOOPS)


def test_the_plain_text_is_not_taken_where_kernels_share_something_else() -> None:
    other = _plainly(LOOPS).replace(".visible .entry", ".shared .b8 more[4];\n.visible .entry", 1)
    resources = {"fill": Resources(registers=64, spill_bytes=8)}
    assert register_pressure.with_least_moved(LOOPS, other, ["fill"], lambda _: resources) == LOOPS


def test_the_plain_text_is_made_where_loops_are_not_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    levels = []

    def compile_ptx(module: object, context: PassContext, level: int = 3) -> str:
        levels.append(level)
        return _plainly(LOOPS) if level == 0 else LOOPS

    def assemble(
        assembler: object, text: str, arch: str, *, sparing: bool = False
    ) -> tuple[bytes, dict[str, Resources]]:
        return b"", {"fill": Resources(registers=64, spill_bytes=0 if "again" in text else 8)}

    monkeypatch.setattr(lower, "compile_ptx", compile_ptx)
    forms, resources = _built(assemble, monkeypatch)
    assert levels == [3, 0]
    assert resources["fill"].spill_bytes == 0
    assert "again" in forms["ptx"].decode()


def test_the_assembler_computes_nothing_ahead_where_that_is_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    levels = []

    def compile_ptx(module: object, context: PassContext, level: int = 3) -> str:
        levels.append(level)
        return LOOPS

    def assemble(
        assembler: object, text: str, arch: str, *, sparing: bool = False
    ) -> tuple[bytes, dict[str, Resources]]:
        spilled = 0 if sparing else 8
        return str(sparing).encode(), {"fill": Resources(registers=64, spill_bytes=spilled)}

    monkeypatch.setattr(lower, "compile_ptx", compile_ptx)
    forms, resources = _built(assemble, monkeypatch)
    assert (levels, forms["cubin"], forms["ptx"].decode()) == ([3], b"True", LOOPS)
    assert resources["fill"].spill_bytes == 0


def _built(assemble: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """What ``lower`` makes with an assembler."""
    options = CompileOptions(target="nvgpu", arch="sm_80")
    target = get_registry().target("nvgpu").hook.describe_target(options=options)
    monkeypatch.setattr(ptxas, "find", lambda: "ptxas")
    monkeypatch.setattr(ptxas, "architectures", lambda _: ["sm_80"])
    monkeypatch.setattr(ptxas, "assemble", assemble)
    module = mlir.parse("gpu.module @kernels {}")
    return lower._build(module, PassContext.create(target, options))


def test_the_plain_text_keeps_private_memory_in_registers() -> None:
    module = mlir.parse(
        """
        module attributes {gpu.container_module} {
          gpu.module @kernels {
            llvm.func @kept(%from: !llvm.ptr<1>, %to: !llvm.ptr<1>)
                attributes {gpu.kernel, nvvm.kernel} {
              %one = llvm.mlir.constant(1 : i64) : i64
              %own = llvm.alloca %one x f32 : (i64) -> !llvm.ptr
              %x = llvm.load %from : !llvm.ptr<1> -> f32
              llvm.store %x, %own : f32, !llvm.ptr
              nvvm.barrier
              %y = llvm.load %own : !llvm.ptr -> f32
              llvm.store %y, %to : f32, !llvm.ptr<1>
              llvm.return
            }
          }
        }
        """
    )
    options = CompileOptions(target="nvgpu", arch="sm_80")
    target = get_registry().target("nvgpu").hook.describe_target(options=options)
    text = emit.compile_ptx(module, PassContext.create(target, options), level=0)
    assert "bar.sync" in text
    assert "%SP" not in text
    assert "__local_depot" not in text
