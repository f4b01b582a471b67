"""`polyblocks bisect`: the reference lowering, what it notices, the search, the command."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyblocks import cli, mlir
from polyblocks.api import compile_until
from polyblocks.bisect import (
    collect,
    command,
    execute,
    generated,
    inputs,
    reference,
    rounds,
    search,
    steps,
)
from polyblocks.bisect.compare import Expected
from polyblocks.bisect.execute import VARIANTS, Program, Variant
from polyblocks.bisect.reference import NotRunnableError, lower
from polyblocks.bisect.search import Settings
from polyblocks.errors import InputError
from polyblocks.isolation.isolation import run_isolated
from polyblocks.options import CompileOptions

#: What is looked for kills its process.
pytestmark = pytest.mark.isolated

ADD = """
func.func @main(%a: tensor<4x3xf32>, %b: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %e = tensor.empty() : tensor<4x3xf32>
  %r = linalg.add ins(%a, %b : tensor<4x3xf32>, tensor<4x3xf32>)
                  outs(%e : tensor<4x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}
"""


def row(role: str, dtype: str, shape: list[int], updates: int = -1) -> str:
    """The signature of one argument, dense."""
    strides = np.cumprod([1, *shape[:0:-1]])[::-1].tolist() if shape else []
    numbers = [f"array<i64{':' if v else ''} {', '.join(map(str, v))}>" for v in (shape, strides)]
    return (
        f'{{polyblocks.arg = {{role = "{role}", name = "{role}", dtype = "{dtype}", '
        f"shape = {numbers[0]}, strides = {numbers[1]}, constant = false, "
        f"updates = {updates} : i64}}}}"
    )


def buffers(body: str, shape: str = "8", dtype: str = "f32", extra: str = "") -> bytes:
    """A module on memrefs: ``%x`` is the input, ``%y`` the output."""
    name = {"f32": "float32", "i1": "bool", "i32": "int32"}[dtype]
    extents = [int(n) for n in shape.split("x")]
    type_ = f"memref<{shape}x{dtype}>"
    return f"""
      func.func @main(%x: {type_} {row("input", name, extents)},
                      %y: {type_} {row("output", name, extents)}{extra}) {{
        {body}
        return
      }}""".encode()


def copy(bound: str = "8", loop: str = "affine.for %i = 0 to", shift: str = "") -> bytes:
    return buffers(f"""
      {loop} {bound} {{
        %v = affine.load %x[%i{shift}] : memref<8xf32>
        affine.store %v, %y[%i] : memref<8xf32>
      }}""")


COPY = copy()
OK = rounds.Outcome("ok")


def judge(data: bytes, expected: bytes = COPY, limit_s: float = 20.0) -> rounds.Outcome:
    search.warm_up()
    return rounds.judge(data, rounds.make_rounds(expected, 3, 0, limit_s), limit_s)


def call(data: bytes, *arrays: Any, variant: Variant = VARIANTS[0]) -> list[Any]:
    """Run a module that does nothing wrong, in this process."""
    return Program(lower(data))(arrays, variant, 20.0)


# --- what the reference lowering runs -------------------------------------------------------------


def test_tensors_become_results() -> None:
    a, b = np.random.default_rng(0).random((2, 4, 3), np.float32)
    (result,) = call(ADD.encode(), a, b)
    assert np.array_equal(result, a + b)


def test_strided_memory() -> None:
    data = b"""
      func.func @main(%x: memref<2x3xf32, strided<[1, 2]>> {polyblocks.arg = {role = "input",
            name = "x", dtype = "float32", shape = array<i64: 2, 3>, strides = array<i64: 1, 2>,
            constant = false, updates = 0 : i64}}) {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %v = memref.load %x[%c1, %c0] : memref<2x3xf32, strided<[1, 2]>>
        %w = arith.addf %v, %v : f32
        memref.store %w, %x[%c1, %c0] : memref<2x3xf32, strided<[1, 2]>>
        return
      }"""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (result,) = call(data, x)
    assert result.tolist() == [[0, 1, 2], [6, 4, 5]]


def test_copies_and_functions_of_libm() -> None:
    data = buffers("""
      %t = memref.alloc() : memref<8xf32>
      affine.for %i = 0 to 8 {
        %v = affine.load %x[%i] : memref<8xf32>
        %e = math.erf %v : f32
        %r = math.rsqrt %e : f32
        affine.store %r, %t[%i] : memref<8xf32>
      }
      memref.copy %t, %y : memref<8xf32> to memref<8xf32>
      memref.dealloc %t : memref<8xf32>""")
    (result,) = call(data, np.full(8, 0.5, np.float32))
    assert np.allclose(result, 0.5204999**-0.5)


FUNCTIONS = (
    "absf acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 floor log "
    "log10 log1p log2 round roundeven rsqrt sin sinh sqrt tan tanh trunc"
).split()


@pytest.mark.parametrize("type_", ["f32", "bf16", "vector<4xf16>", "vector<4xf64>"])
def test_every_operation_of_math(type_: str) -> None:
    def with_element(element: str) -> str:
        return type_.replace(type_.rpartition("x")[2].rstrip(">"), element)

    bodies = [(name, f"math.{name} %a : {type_}", type_, type_) for name in FUNCTIONS]
    for name, element in ("isnan", "i1"), ("isinf", "i1"), ("isfinite", "i1"), ("isnormal", "i1"):
        bodies.append((name, f"math.{name} %a : {type_}", type_, with_element(element)))
    for name in ("atan2", "copysign", "powf"):
        bodies.append((name, f"math.{name} %a, %a : {type_}", type_, type_))
    integer = with_element("i32")
    for name in ("absi", "ctlz", "cttz", "ctpop"):
        bodies.append((name, f"math.{name} %a : {integer}", integer, integer))
    bodies.append(("ipowi", f"math.ipowi %a, %a : {integer}", integer, integer))
    bodies.append(
        ("gcd", f'"polyblocks.gcd"(%a, %a) : ({integer}, {integer}) -> {integer}', integer, integer)
    )
    bodies.append(("fma", f"math.fma %a, %a, %a : {type_}", type_, type_))
    text = "func.func @main() { return } // polyblocks.arg\n" + "\n".join(
        f"func.func @of_{name}(%x: memref<{argument}>, %y: memref<{result}>) {{ "
        f"%a = memref.load %x[] : memref<{argument}> %r = {body} "
        f"memref.store %r, %y[] : memref<{result}> return }}"
        for name, body, argument, result in bodies
    )
    assert Program(lower(text.encode()))([], VARIANTS[0], 20.0) == []


def test_operations_that_no_library_has() -> None:
    data = buffers("""
      affine.for %i = 0 to 8 {
        %v = affine.load %x[%i] : memref<8xf32>
        %one = arith.constant 1.0 : f32
        %two = arith.constant 2.0 : f32
        %s = math.copysign %two, %v : f32
        %n = math.isnan %v : f32
        %f = math.isfinite %v : f32
        %a = arith.select %n, %one, %s : f32
        %b = arith.select %f, %a, %v : f32
        affine.store %b, %y[%i] : memref<8xf32>
      }""")
    x = np.array([3, -3, np.inf, -np.inf, np.nan, 0, -0.0, 1], np.float32)
    (result,) = call(data, x)
    assert np.array_equal(result, [2, -2, np.inf, -np.inf, np.nan, 2, -2, 2], equal_nan=True)


@pytest.mark.parametrize("dtype", ["f32", "i1"])
def test_vectors(dtype: str) -> None:
    # A vector of booleans takes a byte per element, whatever LLVM makes of it.
    data = buffers(
        f"""
        %c0 = arith.constant 0 : index
        %m = vector.constant_mask [5] : vector<8xi1>
        %v = vector.load %x[%c0] : memref<8x{dtype}>, vector<8x{dtype}>
        %w = vector.maskedload %x[%c0], %m, %v
          : memref<8x{dtype}>, vector<8xi1>, vector<8x{dtype}> into vector<8x{dtype}>
        vector.store %w, %y[%c0] : memref<8x{dtype}>, vector<8x{dtype}>
        vector.maskedstore %y[%c0], %m, %w
          : memref<8x{dtype}>, vector<8xi1>, vector<8x{dtype}>""",
        dtype=dtype,
    )
    x = np.array([1, 0, 1, 1, 0, 0, 0, 1])
    (result,) = call(data, x.astype(np.float32 if dtype == "f32" else np.uint8))
    assert result.tolist() == x.tolist()


def test_masked_lanes_are_not_touched() -> None:
    body = """
      %c4 = arith.constant 4 : index
      %c0 = arith.constant 0 : index
      %m = vector.constant_mask [{}] : vector<8xi1>
      %z = arith.constant dense<0.0> : vector<8xf32>
      %w = vector.maskedload %x[%c4], %m, %z
        : memref<8xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
      vector.store %w, %y[%c0] : memref<8xf32>, vector<8xf32>"""
    right, wrong = buffers(body.format(4)), buffers(body.format(5))
    assert judge(right, right) == OK
    outcome = judge(wrong, right)
    assert outcome.status == "fails"
    assert "out-of-bounds access: " in outcome.reason
    assert "memref.load" in outcome.reason


def test_a_team_runs_every_piece_once() -> None:
    data = buffers(
        """
        omp.parallel num_threads(%n : i32) {
          %t = func.call @omp_get_thread_num() : () -> i32
          %p = func.call @omp_get_num_threads() : () -> i32
          %begin = arith.index_cast %t : i32 to index
          %step = arith.index_cast %p : i32 to index
          %end = arith.constant 8 : index
          scf.for %i = %begin to %end step %step {
            %v = memref.load %x[%i] : memref<8xf32>
            memref.store %v, %y[%i] : memref<8xf32>
          }
          omp.terminator
        }""",
        extra=", %n: i32",
    )
    data += b"""
      func.func private @omp_get_thread_num() -> i32
      func.func private @omp_get_num_threads() -> i32"""
    kept = ", ".join(row(role, "float32", [8])[18:-1] for role in ("input", "output"))
    data = f"module attributes {{polyblocks.arguments = [{kept}]}} {{{data.decode()}}}".encode()
    assert judge(data) == OK


def neighbours_of_a_team(barrier: str) -> bytes:
    """Each thread stores an element and then loads that of the next one."""
    data = buffers(
        f"""
        %six = arith.constant 6 : index
        %seven = arith.constant 7 : index
        omp.parallel num_threads(%n : i32) {{
          %t = func.call @omp_get_thread_num() : () -> i32
          %p = func.call @omp_get_num_threads() : () -> i32
          %i = arith.index_cast %t : i32 to index
          %threads = arith.index_cast %p : i32 to index
          %v = memref.load %x[%i] : memref<8xf32>
          memref.store %v, %y[%i] : memref<8xf32>
          {barrier}
          %one = arith.constant 1 : index
          %next = arith.addi %i, %one : index
          %its = arith.remui %next, %threads : index
          %w = memref.load %y[%its] : memref<8xf32>
          %three = arith.constant 3 : index
          %at = arith.addi %i, %three : index
          memref.store %w, %y[%at] : memref<8xf32>
          omp.terminator
        }}
        %last = memref.load %x[%six] : memref<8xf32>
        memref.store %last, %y[%six] : memref<8xf32>
        memref.store %last, %y[%seven] : memref<8xf32>""",
        extra=", %n: i32",
    )
    data += b"""
      func.func private @GOMP_barrier()
      func.func private @omp_get_thread_num() -> i32
      func.func private @omp_get_num_threads() -> i32"""
    kept = ", ".join(row(role, "float32", [8])[18:-1] for role in ("input", "output"))
    return f"module attributes {{polyblocks.arguments = [{kept}]}} {{{data.decode()}}}".encode()


def test_a_team_waits_at_barriers() -> None:
    right = neighbours_of_a_team("func.call @GOMP_barrier() : () -> ()")
    assert judge(right, right) == OK
    assert judge(neighbours_of_a_team(""), right) != OK


def test_the_llvm_dialect() -> None:
    module = mlir.parse(COPY)
    with module.context:
        from polyblocks import signature

        signature.keep(module)
    mlir.run_textual(
        module,
        "lower-affine,convert-scf-to-cf,finalize-memref-to-llvm,"
        "convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},convert-to-llvm,"
        "reconcile-unrealized-casts",
    )
    text = str(module)
    assert judge(text.encode()) == OK
    # A crash is a finding.
    assert "llvm.store" in text
    crash = text.replace(
        "llvm.return",
        "%bad = llvm.mlir.zero : !llvm.ptr\n"
        "llvm.store volatile %bad, %bad : !llvm.ptr, !llvm.ptr\nllvm.return",
    )
    outcome = judge(crash.encode())
    assert outcome.status == "fails"
    assert outcome.reason.startswith("crashed (SIGSEGV")


@pytest.mark.parametrize(
    "data, message",
    [
        ("(%x: memref<2xf32>, %n: index) { return }", r"@main is \(memref<2xf32>, index\) -> "),
        ("() -> i64 { %r = arith.constant 1 : i64 return %r : i64 }", "@main returns i64"),
        ("() { gpu.barrier return }", "'gpu.barrier' is not lowered"),
    ],
)
def test_what_cannot_be_lowered(data: str, message: str) -> None:
    # The comment keeps it from getting a signature.
    with pytest.raises(NotRunnableError, match=message):
        lower(f"func.func @main{data} // polyblocks.arg".encode())


def test_an_entry_that_takes_no_pointers() -> None:
    data = b"module attributes {polyblocks.arguments = []} {llvm.func @main(%a: i64) {llvm.return}}"
    with pytest.raises(NotRunnableError, match="@main takes i64"):
        lower(data)


def test_a_function_that_is_nowhere() -> None:
    data = buffers("func.call @nowhere() : () -> ()") + b"func.func private @nowhere()"
    with pytest.raises(NotRunnableError, match="nowhere"):
        Program(lower(data))


# --- what it notices ------------------------------------------------------------------------------


def test_the_same_is_ok() -> None:
    assert judge(copy(loop="affine.parallel (%i) = (0) to (8) //", bound="\n")) == OK


def test_a_loop_that_depends_on_its_order_is_not_parallel() -> None:
    body = """
      %v = affine.load %x[0] : memref<8xf32>
      affine.store %v, %y[0] : memref<8xf32>
      {} {{
        %a = affine.load %y[%i - 1] : memref<8xf32>
        %b = affine.load %x[%i] : memref<8xf32>
        %c = arith.addf %a, %b : f32
        affine.store %c, %y[%i] : memref<8xf32>
      }}"""
    serial = buffers(body.format("affine.for %i = 1 to 8"))
    parallel = buffers(body.format("affine.parallel (%i) = (1) to (8)"))
    outcome = judge(parallel, serial)
    assert outcome.status == "differs"
    assert "of 8 elements" in outcome.reason


def test_parallel_loops_with_steps_run_backwards() -> None:
    data = buffers("""
      affine.parallel (%i, %j) = (1, 0) to (8, 2) step (3, 1) {
        %v = affine.load %x[%i] : memref<8xf32>
        affine.store %v, %y[%i] : memref<8xf32>
      }""")
    x = np.arange(8, dtype=np.float32)
    (result,) = call(data, x, variant=Variant(True, 0))
    assert result.tolist() == [0, 1, 0, 0, 4, 0, 0, 7]


def test_what_is_not_written_is_noticed() -> None:
    outcome = judge(copy("7"))
    assert outcome.status == "differs"
    assert outcome.error == np.inf
    assert "output 0 ('output'): 1 of 8 elements; [7] is nan, expected " in outcome.reason


def test_views_that_begin_anywhere_keep_to_what_they_view() -> None:
    body = """
      %place = arith.constant {0} : index
      %c0 = arith.constant 0 : index
      %c1 = arith.constant -1 : index
      %m = vector.constant_mask [{1}] : vector<4xi1>
      %z = arith.constant dense<0.0> : vector<4xf32>
      %view = memref.reinterpret_cast %x to offset: [%place], sizes: [8], strides: [1]
        : memref<8xf32> to memref<8xf32, strided<[1], offset: ?>>
      %w = vector.maskedload %view[%c1], %m, %z
        : memref<8xf32, strided<[1], offset: ?>>, vector<4xi1>, vector<4xf32> into vector<4xf32>
      %c4 = arith.constant 4 : index
      vector.store %w, %y[%c0] : memref<8xf32>, vector<4xf32>
      vector.store %w, %y[%c4] : memref<8xf32>, vector<4xf32>"""
    right = buffers(body.format(5, 4))
    assert judge(right, right) == OK
    for place, lanes in ((6, 4), (0, 4)):
        outcome = judge(buffers(body.format(place, lanes)), right)
        assert "out-of-bounds access: vector.maskedload of 4 elements" in outcome.reason


def test_an_access_out_of_bounds() -> None:
    outcome = judge(copy(shift=" + 1"))
    assert outcome.status == "fails"
    assert outcome.reason.startswith("a check fails: out-of-bounds access: ")
    assert outcome.kind == "plain"


def test_a_failed_assertion() -> None:
    data = buffers("""
      %no = arith.constant false
      cf.assert %no, "it must be so"
      memref.copy %x, %y : memref<8xf32> to memref<8xf32>""")
    outcome = judge(data)
    assert outcome.status == "fails"
    assert outcome.reason == "a check fails: it must be so"
    with pytest.raises(InputError, match="first module does not run with random inputs: a check"):
        rounds.make_rounds(data, 1, 0, 20.0)


def test_a_status() -> None:
    body = """
      memref.copy %x, %y : memref<8xf32> to memref<8xf32>
      %c = arith.constant 2 : i32
      memref.store %c, %s[] : memref<i32>"""
    data = buffers(body, extra=f", %s: memref<i32> {row('status', 'int32', [])}")
    assert judge(data).reason == "a check fails (status 2)"
    text = buffers(body.replace("memref.store %c, %s[] : memref<i32>", "")).decode()
    text = text.replace(")})", ")}) -> i32").replace("return", "return %c : i32")
    text = text.replace("}}) {", "}}) -> i32 {")
    assert judge(text.encode()).reason == "a check fails (status 2)"


def test_an_endless_loop() -> None:
    data = buffers("""
      %yes = arith.constant true
      %v = affine.load %x[0] : memref<8xf32>
      scf.while : () -> () {
        scf.condition(%yes)
      } do {
        affine.store %v, %y[0] : memref<8xf32>
        scf.yield
      }""")
    assert judge(data, limit_s=0.5).reason == "it does not end within 0.5 s"


def test_integers_that_are_indices_are_drawn_small() -> None:
    data = buffers(
        """
        affine.for %i = 0 to 2 {
          %v = affine.load %x[%i] : memref<2xi32>
          %j = arith.index_cast %v : i32 to index
          %w = memref.load %x[%j] : memref<2xi32>
          affine.store %w, %y[%i] : memref<2xi32>
        }""",
        shape="2",
        dtype="i32",
    )
    found = rounds.make_rounds(data, 3, 0, 20.0)
    assert [r.kind for r in found] == ["plain", "wide", "special"]
    assert all(set(r.inputs[0].tolist()) <= {0, 1} for r in found)


# --- inputs and comparisons -----------------------------------------------------------------------


def spec_row(dtype: str, shape: list[int], strides: list[int]) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "strides": strides, "name": "x", "updates": None}


def test_inputs_are_those_of_their_memory() -> None:
    rows = [spec_row("float32", [3, 4], [0, 1]), spec_row("bool", [9], [1])]
    for kind in inputs.KINDS:
        broadcast, flags = next(inputs.candidates(rows, kind, 1, False))
        assert np.array_equal(broadcast[0], broadcast[2], equal_nan=True)
        assert set(flags.tolist()) <= {0, 1}
        near = inputs.perturbed([broadcast, flags], rows, 0)
        assert np.array_equal(near[0][0], near[0][2], equal_nan=True)
        assert near[1] is flags
    assert len(list(inputs.candidates(rows, "plain", 0, False))) == 1
    rows = [spec_row("float32", [1000], [1])]
    (special,) = next(inputs.candidates(rows, "special", 0, False))
    assert np.isnan(special).any()
    assert np.isinf(special).any()
    (special,) = next(inputs.candidates(rows, "special", 0, True))
    assert np.isfinite(special).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64"])
def test_perturbations_are_small(dtype: str) -> None:
    rows = [spec_row(dtype, [100], [1])]
    arrays = next(inputs.candidates(rows, "plain", 0, False))
    near = inputs.widen(inputs.perturbed(arrays, rows, 0)[0], dtype)
    exact = inputs.widen(arrays[0], dtype)
    assert not np.array_equal(near, exact)
    assert np.allclose(near, exact, rtol=0.02)
    assert np.array_equal(inputs.narrow(exact, dtype), arrays[0])


def test_rounding_of_bfloat16() -> None:
    values = np.array([1.0, 1.00390625, 1.01171875, np.inf, np.nan])
    assert inputs.narrow(values, "bfloat16").tolist() == [0x3F80, 0x3F80, 0x3F82, 0x7F80, 0x7FC0]


def test_rounding_is_no_difference() -> None:
    rows = [spec_row("float32", [3], [1]), spec_row("bool", [3], [1])]
    values = [np.float32([1, np.nan, np.inf]), np.uint8([0, 1, 1])]
    expected = Expected(rows, values)
    assert expected.difference([np.float32([1.00001, np.nan, np.inf]), values[1]]) is None
    found = expected.difference([np.float32([1, np.nan, -np.inf]), values[1]])
    assert found is not None
    assert str(found) == "output 0 ('x'): 1 of 3 elements; [2] is -inf, expected inf"
    found = expected.difference([values[0], np.uint8([0, 255, 1])])
    assert found is not None
    assert (found.output, found.got, found.expected, found.error) == (1, "255", "1", 254.0)
    # Where the inputs' last place decides, nothing can be asked.
    neighbours = [[np.float32([1.1, np.nan, np.inf]), np.uint8([0, 0, 1])]]
    expected = Expected(rows, values, neighbours)
    assert expected.difference([np.float32([1.9, np.nan, np.inf]), np.uint8([0, 0, 1])]) is None
    assert expected.difference([np.float32([2.9, np.nan, np.inf]), np.uint8([1, 0, 1])]) is not None


def test_sums_of_halves_lose_more() -> None:
    for dtype, allowed in ("bfloat16", True), ("float32", False):
        rows = [spec_row(dtype, [2], [1])]
        values = [inputs.narrow(np.array([100.0, 0.5]), dtype)]
        output = [inputs.narrow(np.array([100.0, 1.5]), dtype)]
        assert (Expected(rows, values).difference(output) is None) == allowed


def test_memory_ends_where_it_ends() -> None:
    # In a process of its own: reading past the end is a crash.
    import ctypes

    from polyblocks.bisect.guarded import Guarded
    from polyblocks.errors import NativeCrashError

    def read(at_end: bool, offset: int) -> bytes:
        memory = Guarded(at_end, 0xFF)
        array = memory.allocate(100)
        return ctypes.string_at(int(array.ctypes.data) + offset, 1)

    assert run_isolated(lambda: read(True, 99)) == b"\xff"
    assert run_isolated(lambda: read(False, 0)) == b"\xff"
    for at_end, offset in (True, 100), (False, -1):
        with pytest.raises(NativeCrashError, match="SIGSEGV|SIGBUS"):
            run_isolated(lambda a=at_end, o=offset: read(a, o))


# --- the search -----------------------------------------------------------------------------------


def compilation(*modules: bytes, folder: Path) -> collect.Compilation:
    """A compilation of passes ``p1``, ``p2`` … that make these modules."""
    found = []
    for number, module in enumerate(modules):
        path = folder / f"{number:02d}-S3-p{number}.mlir"
        path.write_bytes(
            b'module attributes {polyblocks.done = "S3:p%d"} {' % number + module + b"}"
        )
        found.append(steps.Step("S3", f"p{number}" if number else "", path))
    return collect.Compilation("made-up", found)


def statuses(result: search.Result) -> list[str]:
    return [r.status for r in result.rows]


UNKNOWN = buffers("func.call @nowhere() : () -> ()") + b"func.func private @nowhere()"


def test_the_pass_between_right_and_wrong_is_named(tmp_path: Path) -> None:
    wrong = copy("7")
    made = compilation(COPY, COPY, wrong, wrong, wrong, wrong, folder=tmp_path)
    result = search.search(made, Settings(rounds=1))
    assert statuses(result) == [
        "reference",
        "unchanged",
        "differs",
        "unchanged",
        *["unchanged"] * 2,
    ]
    assert result.suspects == ["S3:p2"]
    assert result.bad is result.rows[2]
    assert result.reproducer is not None
    assert 'polyblocks.done = "S3:p1"' in Path(result.reproducer).read_text()
    assert result.command == f"polyblocks compile {result.reproducer} --until S3:p2 -o after.mlir"
    assert "the first pass that changes what is computed is 'S3:p2'; 1 rounds (plain), seed 0" in (
        command.verdict(result)
    )


def test_only_what_the_search_needs_is_run(tmp_path: Path) -> None:
    modules = [copy(str(n), loop=f"// {n}\n affine.for %i = 0 to") for n in [8] * 3 + [7] * 4]
    modules = [m + b"\n// %d\n" % k for k, m in enumerate(modules)]
    result = search.search(compilation(*modules, folder=tmp_path), Settings(rounds=1))
    assert statuses(result) == ["reference", "ok", "ok", "differs", "", "", "differs"]
    assert result.suspects == ["S3:p3"]


def test_all_passes_and_until(tmp_path: Path) -> None:
    made = compilation(COPY, COPY, copy("7"), COPY, copy("6"), folder=tmp_path)
    result = search.search(made, Settings(rounds=1, all_passes=True))
    assert statuses(result) == ["reference", "unchanged", "differs", "ok", "differs"]
    assert result.suspects == ["S3:p2"]
    result = search.search(made, Settings(rounds=1, until="S3:p1"))
    assert statuses(result) == ["reference", "unchanged"]
    assert result.suspects == []
    assert command.verdict(result).startswith("made-up: no pass changes what is computed; 1 rounds")
    with pytest.raises(InputError, match="there is no module after 'S9'; there are S3:p1, S3:p2"):
        search.search(made, Settings(until="S9"))


def test_what_cannot_be_run_is_suspected(tmp_path: Path) -> None:
    made = compilation(UNKNOWN, COPY, UNKNOWN, copy(shift=" + 1"), folder=tmp_path)
    result = search.search(made, Settings(rounds=1))
    assert statuses(result) == ["not runnable", "reference", "not runnable", "fails"]
    assert result.suspects == ["S3:p2", "S3:p3"]
    assert "first pass that breaks the program is 'S3:p2' or 'S3:p3'" in command.verdict(result)
    with pytest.raises(InputError, match="none of the modules can be run: .*nowhere"):
        search.search(compilation(UNKNOWN, folder=tmp_path), Settings())


def test_without_a_working_just_in_time_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise NotRunnableError("no such chip")

    monkeypatch.setattr(search, "_warm", False)
    monkeypatch.setattr(search, "Program", fail)
    with pytest.raises(InputError, match="nothing can be run on this machine: no such chip"):
        search.warm_up()


def test_the_code_generator_is_the_last_suspect(tmp_path: Path) -> None:
    path = tmp_path / "add.mlir"
    path.write_text(ADD)
    work = tmp_path / "work"
    work.mkdir()
    made = collect.collect_file(path, CompileOptions(), work)
    assert made.artifact is not None
    subtract = tmp_path / "sub.mlir"
    subtract.write_text(ADD.replace("linalg.add", "linalg.sub"))
    (tmp_path / "other").mkdir()
    other = collect.collect_file(subtract, CompileOptions(), tmp_path / "other")
    made.steps, made.artifact = made.steps[:1], other.artifact
    result = search.search(made, Settings(rounds=1))
    assert statuses(result) == ["reference", "differs"]
    assert result.suspects == ["S5"]
    assert result.command == f"polyblocks compile {result.reproducer}"


def test_a_check_in_the_generated_code(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        manifest: dict[str, Any] = {"arguments": [], "checks": ["it must be so"]}  # noqa: RUF012

        def entry(self, packed: bytes, threads: int) -> int:
            del packed
            return threads

    monkeypatch.setattr(generated.driver, "load", lambda artifact: Failing())
    code = generated.load_code(None)  # type: ignore[arg-type]
    with pytest.raises(execute.CheckError, match="a check fails: it must be so"):
        code([], VARIANTS[0], 1.0)
    with pytest.raises(execute.CheckError, match="a check fails: 2"):
        code([], VARIANTS[1], 1.0)


# --- where modules come from ----------------------------------------------------------------------


@pytest.fixture
def add_file(tmp_path: Path) -> Path:
    path = tmp_path / "add.mlir"
    path.write_text(ADD)
    return path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run the command line; returns (status, stdout, stderr)."""
    monkeypatch.setenv("COLUMNS", "200")

    def run_command(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["polyblocks", *map(str, arguments)])
        try:
            cli.main()
            status = 0
        except SystemExit as left:
            status = int(left.code or 0)
        return status, *capsys.readouterr()

    return run_command


def test_the_command_on_a_file(run: Any, add_file: Path) -> None:
    status, out, err = run("bisect", add_file)
    assert status == 0, err
    assert "S3:fuse-slices" in out
    assert "add: no pass changes what is computed; 3 rounds (plain, wide, special), seed 0" in out


def test_the_command_as_json(run: Any, add_file: Path) -> None:
    status, out, _ = run("bisect", "--json", "--rounds", 1, "--until", "S2:bufferize", add_file)
    assert status == 0
    found = json.loads(out)
    assert found["schema"] == command.SCHEMA
    (program,) = found["programs"]
    assert program["kinds"] == ["plain"]
    assert program["suspects"] == []
    assert program["rows"][-1]["label"] == "S2:bufferize"


def test_the_command_says_what_differs(
    run: Any, add_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(data: bytes, found: Any, limit_s: float) -> rounds.Outcome:
        del data, found, limit_s
        return rounds.Outcome("differs", "output 0 [3]", "plain", 2.5)

    monkeypatch.setattr(rounds, "judge", wrong)
    status, out, _ = run("bisect", add_file)
    assert status == 1
    assert "off by 2.5; output 0 [3] [plain inputs]" in out
    assert "the first pass that changes what is computed is 'S1:generalize-tensors'" in out
    assert "--until S1:generalize-tensors -o after.mlir" in out


def test_folders_of_dumps(run: Any, add_file: Path, tmp_path: Path) -> None:
    assert run("compile", add_file, "--debug", tmp_path / "stages")[0] == 0
    (folder,) = (tmp_path / "stages").iterdir()
    (tmp_path / "a").mkdir()
    made = collect.collect_folder(folder, CompileOptions(), tmp_path / "a")
    # There is no dump after each pass: the program is compiled again.
    assert len(made.steps) > 20
    assert made.artifact is not None
    (tmp_path / "b").mkdir()
    with collect.dumping(tmp_path / "b"):
        assert run("compile", add_file)[0] == 0
    (folder,) = collect.folders_of(tmp_path / "b")
    taken = collect.collect_folder(folder, CompileOptions(), tmp_path / "unused")
    assert [s.label for s in taken.steps] == ["S0", *(s.label for s in made.steps[1:])]
    assert taken.artifact is not None


def test_a_file_in_the_middle_goes_on_from_there(add_file: Path, tmp_path: Path) -> None:
    text = compile_until(add_file, CompileOptions(), "S3:classify-nests")
    middle = tmp_path / "middle.mlir"
    middle.write_text(text)
    work = tmp_path / "work"
    work.mkdir()
    made = collect.collect_file(middle, CompileOptions(), work)
    assert made.steps[0].path == middle
    assert made.steps[1].label == "S3:prepare-arguments"


def test_a_compiler_that_fails(add_file: Path, tmp_path: Path, monkeypatch: Any) -> None:
    from polyblocks.passes.normalize.classify_nests import ClassifyNestsPass

    def fail(*_: Any) -> None:
        raise ValueError("cannot say")

    monkeypatch.setattr(ClassifyNestsPass, "transform", fail)
    work = tmp_path / "work"
    work.mkdir()
    made = collect.collect_file(add_file, CompileOptions(), work)
    result = search.search(made, Settings(rounds=1))
    assert result.suspects == ["S3:classify-nests"]
    assert result.rows[-1].status == "compiler fails"
    assert "ValueError: cannot say" in result.rows[-1].reason
    assert "first pass that cannot be run itself is 'S3:classify-nests'" in command.verdict(result)


def test_a_script(run: Any, add_file: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "from pathlib import Path\n"
        "from polyblocks.api import compile_file\n"
        "from polyblocks.options import CompileOptions\n"
        "for name in sys.argv[1:]:\n"
        "    compile_file(Path(name), CompileOptions())\n"
        "sys.exit(3)\n"
    )
    status, out, err = run("bisect", script, add_file)
    assert status == 0, err
    assert "main: no pass changes" in out
    status, _, err = run("bisect", script)
    assert status == 1
    assert err == f"error: {script} compiles nothing\n"


def test_a_function(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text("import torch\ndef double(x):\n    return x * 2\n")
    status, out, err = run("bisect", f"{file}:double", "-i", "float32[3,4]", "--rounds", 1)
    assert status == 0, err
    assert "double: no pass changes what is computed; 1 rounds (plain), seed 0" in out
    status, _, err = run("bisect", f"{file}:triple", "-i", "float32[3,4]")
    assert status == 1
    assert err == f"error: {file} has no function 'triple'; it has double\n"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["nothing.mlir"], "error: cannot read nothing.mlir: No such file"),
        (["nothing.py"], "error: there is no file nothing.py"),
        (["FILE", "--rounds", "0"], "error: --rounds is at least 1, not 0"),
        (["FILE", "more"], "error: only a script takes arguments, not "),
        (["FOLDER"], "error: there is no dump in "),
        (["FILE", "-i", "float32[2]"], "error: --input is for FILE.py:FUNCTION, not for "),
        (["nothing.py:f"], "error: there is no file nothing.py"),
        (["nothing.py:f", "x"], "error: only a script takes arguments, not nothing.py:f: x"),
    ],
)
def test_what_the_command_refuses(
    run: Any, add_file: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "empty").mkdir()
    places = {"FILE": add_file, "FOLDER": tmp_path / "empty"}
    status, _, err = run("bisect", *(places.get(a, a) for a in arguments))
    assert status == 1
    assert err.startswith(message)
    assert len(err.splitlines()) == 1


# --- one pass alone -------------------------------------------------------------------------------


def test_compile_until(run: Any, add_file: Path, tmp_path: Path) -> None:
    assert run("compile", add_file, "--until", "S2")[0] == 0
    middle = add_file.with_suffix(".after.mlir")
    assert 'polyblocks.done = "S2"' in middle.read_text()
    after = tmp_path / "next.mlir"
    assert run("compile", middle, "--until", "S3:normalize-nests", "-o", after)[0] == 0
    assert 'polyblocks.done = "S3:normalize-nests"' in after.read_text()
    status, _, err = run("compile", middle, "--until", "S1:set-fastmath")
    assert status == 1
    assert f"'S1:set-fastmath' was not run on {middle}; there were S3:normalize-nests, " in err


def test_the_names_of_the_runtime_are_known() -> None:
    team = execute.SerialTeam()
    assert all(team.symbols().values())
    assert reference.CHECK_FAILED not in team.symbols()
