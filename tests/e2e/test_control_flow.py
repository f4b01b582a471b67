"""Programs with loops and branches over tensors, from MLIR text, against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sweeps import sweep
from tests.support import control_flow_fuzz

import polyblocks
from polyblocks.api import compile_file, compile_text, compile_until
from polyblocks.errors import ExecutionError
from polyblocks.explanation.document import document
from polyblocks.options import CompileOptions
from polyblocks.reports.report import Report

ID = "affine_map<(d0) -> (d0)>"
SCALAR = "affine_map<(d0) -> ()>"


def pointwise(out: str, inputs: dict[str, str], body: str, n: int, element: str = "f32") -> str:
    """A ``linalg.generic`` over one dimension; ``body`` computes ``%q`` from ``%p0, %p1, ...``."""
    maps = ", ".join([*([ID] * len(inputs)), ID])
    types = ", ".join(inputs.values())
    arguments = ", ".join(f"%p{i}: {element}" for i in range(len(inputs)))
    type_ = f"tensor<{n}x{element}>"
    return f"""
    {out}_e = tensor.empty() : {type_}
    {out} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
        ins({", ".join(inputs)} : {types}) outs({out}_e : {type_}) {{
      ^bb0({arguments}, %o: {element}):
        {body}
        linalg.yield %q : {element} }} -> {type_}"""


def scan(n: int, steps: int, body: str, element: str = "f32") -> str:
    """A loop that counts and carries ``%h``, reads ``%x`` and leaves ``%hn`` in ``%ys``."""
    row, all_ = f"tensor<{n}x{element}>", f"tensor<{steps}x{n}x{element}>"
    return f"""
func.func @main(%xs: {all_}, %h0: {row}) -> ({row}, {all_}) {{
  %c0 = arith.constant dense<0> : tensor<i32>
  %steps = arith.constant {steps} : i32
  %e = tensor.empty() : {all_}
  %r:3 = scf.while (%i = %c0, %h = %h0, %ys = %e)
      : (tensor<i32>, {row}, {all_}) -> (tensor<i32>, {row}, {all_}) {{
    %a = tensor.extract %i[] : tensor<i32>
    %p = arith.cmpi slt, %a, %steps : i32
    scf.condition(%p) %i, %h, %ys : tensor<i32>, {row}, {all_}
  }} do {{
  ^bb0(%i: tensor<i32>, %h: {row}, %ys: {all_}):
    %a = tensor.extract %i[] : tensor<i32>
    %low = arith.constant 0 : i32
    %high = arith.constant {steps - 1} : i32
    %b = arith.maxsi %a, %low : i32
    %c = arith.minsi %b, %high : i32
    %at = arith.index_cast %c : i32 to index
    %x = tensor.extract_slice %xs[%at, 0] [1, {n}] [1, 1] : {all_} to {row}
    {body}
    %ysn = tensor.insert_slice %hn into %ys[%at, 0] [1, {n}] [1, 1] : {row} into {all_}
    %one = arith.constant 1 : i32
    %j = arith.addi %a, %one : i32
    %in = tensor.from_elements %j : tensor<i32>
    scf.yield %in, %hn, %ysn : tensor<i32>, {row}, {all_}
  }}
  return %r#1, %r#2 : {row}, {all_}
}}"""


def addition(n: int) -> str:
    """``%hn = %h + %x``."""
    type_ = f"tensor<{n}xf32>"
    return pointwise("%hn", {"%h": type_, "%x": type_}, "%q = arith.addf %p0, %p1 : f32", n)


def compiled(text: str) -> tuple[Any, dict[str, Any]]:
    """The program, and its manifest."""
    artifact = compile_text(text, CompileOptions.from_dict(None))
    return polyblocks.load(artifact), artifact.manifest


def in_loops(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """The kernels that are loops, or stand in loops or branches."""
    return [k for k in manifest["kernels"] if k["name"].startswith(("loop", "branch"))]


@pytest.mark.parametrize("n", [1, 7, 64, 1000])
def test_a_scan_is_one_kernel_for_each_step(n: int) -> None:
    type_ = f"tensor<{n}xf64>"
    body = "%m = arith.mulf %p0, %p1 : f64\n%q = arith.addf %m, %p1 : f64"
    program, manifest = compiled(
        scan(n, 20, pointwise("%hn", {"%h": type_, "%x": type_}, body, n, "f64"), "f64")
    )
    rng = np.random.default_rng(0)
    xs, h = rng.uniform(-1, 1, (20, n)), rng.uniform(-1, 1, n)
    start = h.copy()
    last, ys = program(xs, h)
    for x, y in zip(xs, ys, strict=True):
        start = start * x + x
        np.testing.assert_allclose(y, start, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(last, start, rtol=1e-12, atol=1e-14)
    # The state is updated where it is, and so is the row of the results; there is no copy.
    assert manifest["workspace_bytes"] == 0
    if manifest["target"] == "cpu":
        (kernel,) = in_loops(manifest)
        assert kernel["nests"] == (["loop1", "loop1_pointwise"] if n > 1 else ["loop1"])


def test_the_report_tells_how_often_a_loop_runs() -> None:
    report = Report()
    report.add_artifact(compile_text(scan(64, 20, addition(64)), CompileOptions()))
    (part,) = document(report)["parts"]
    (text,) = [d["text"] for d in part["decisions"] if d["what"] == "repeats"]
    assert text == "the body of loop1 runs 20 times"
    (kernel,) = [k for k in part["kernels"] if k["name"] == "loop1"]
    assert kernel["kind"] == "loop"
    # One addition for each element in every iteration.
    assert kernel["estimate"]["flops"] == 20 * 64


def test_the_initial_state_is_an_argument_and_stays() -> None:
    program, _ = compiled(scan(64, 4, addition(64)))
    xs, h = np.ones((4, 64), np.float32), np.zeros(64, np.float32)
    last, _ = program(xs, h)
    np.testing.assert_array_equal(last, 4)
    np.testing.assert_array_equal(h, 0)
    np.testing.assert_array_equal(xs, 1)


def test_a_large_state_is_shared_among_threads() -> None:
    n = 1 << 21
    program, manifest = compiled(scan(n, 3, addition(n)))
    xs = np.random.default_rng(0).uniform(-1, 1, (3, n)).astype(np.float32)
    last, ys = program(xs, np.zeros(n, np.float32))
    np.testing.assert_allclose(ys, np.cumsum(xs, 0, dtype=np.float32), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(last, ys[-1])
    (kernel,) = in_loops(manifest)
    assert manifest["report"]["chip"]["threads"] == 1 or kernel["parallel"] > 1


SWAP = """
func.func @main(%a: tensor<5xf32>, %b: tensor<5xf32>, %c: tensor<5xf32>)
    -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant %trips : index
  %r:4 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %y = %b, %z = %c, %w = %a)
      -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) {
    scf.yield %y, %x, %z, %y : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>
  }
  return %r#0, %r#1, %r#2, %r#3 : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>
}
"""


@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_values_that_change_places_stay_and_are_carried_twice(trips: int) -> None:
    program, _ = compiled(SWAP.replace("%trips", str(trips)))
    arrays = [np.full(5, v, np.float32) for v in (1, 2, 3)]
    x, y, z, w = *arrays, arrays[0]
    for _ in range(trips):
        x, y, z, w = y, x, z, y
    for got, wanted in zip(program(*arrays), (x, y, z, w), strict=True):
        np.testing.assert_array_equal(got, wanted)
    assert [a[0] for a in arrays] == [1, 2, 3]


NEWTON = """
func.func @main(%x0: tensor<f64>, %limit: tensor<i32>) -> (tensor<f64>, tensor<i32>) {
  %zero = arith.constant dense<0> : tensor<i32>
  %r:2 = scf.while (%x = %x0, %i = %zero)
      : (tensor<f64>, tensor<i32>) -> (tensor<f64>, tensor<i32>) {
    %v = tensor.extract %x[] : tensor<f64>
    %two = arith.constant 2.0 : f64
    %s = arith.mulf %v, %v : f64
    %d = arith.subf %s, %two : f64
    %a = math.absf %d : f64
    %small = arith.constant 1.0e-12 : f64
    %far = arith.cmpf ogt, %a, %small : f64
    %n = tensor.extract %i[] : tensor<i32>
    %l = tensor.extract %limit[] : tensor<i32>
    %more = arith.cmpi slt, %n, %l : i32
    %go = arith.andi %far, %more : i1
    scf.condition(%go) %x, %i : tensor<f64>, tensor<i32>
  } do {
  ^bb0(%x: tensor<f64>, %i: tensor<i32>):
    %e = tensor.empty() : tensor<f64>
    %y = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>],
        iterator_types = []} ins(%x : tensor<f64>) outs(%e : tensor<f64>) {
      ^bb0(%v: f64, %o: f64):
        %half = arith.constant 0.5 : f64
        %two = arith.constant 2.0 : f64
        %q = arith.divf %two, %v : f64
        %s = arith.addf %v, %q : f64
        %h = arith.mulf %s, %half : f64
        linalg.yield %h : f64 } -> tensor<f64>
    %n = tensor.extract %i[] : tensor<i32>
    %one = arith.constant 1 : i32
    %m = arith.addi %n, %one : i32
    %j = tensor.from_elements %m : tensor<i32>
    scf.yield %y, %j : tensor<f64>, tensor<i32>
  }
  return %r#0, %r#1 : tensor<f64>, tensor<i32>
}
"""


def test_a_loop_ends_when_its_data_says_so() -> None:
    program, _ = compiled(NEWTON)
    root, count = program(np.asarray(1.0), np.asarray(100, np.int32))
    assert abs(root - 2**0.5) < 1e-12
    assert 3 < count < 8
    start, none = program(np.asarray(1.0), np.asarray(0, np.int32))
    assert (start, none) == (1.0, 0)


BRANCH = """
func.func @main(%x: tensor<6xf32>, %key: tensor<i32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %k = tensor.extract %key[] : tensor<i32>
  %at = arith.index_cast %k : i32 to index
  %s = scf.index_switch %at -> tensor<6xf32>
  case 0 { scf.yield %x : tensor<6xf32> }
  case 1 {
    %double
    scf.yield %d : tensor<6xf32>
  }
  default {
    %square
    scf.yield %q2 : tensor<6xf32>
  }
  %zero = arith.constant 0 : i32
  %p = arith.cmpi sgt, %k, %zero : i32
  %r = scf.if %p -> (tensor<6xf32>) {
    %both
    scf.yield %sum : tensor<6xf32>
  } else {
    scf.yield %s : tensor<6xf32>
  }
  return %s, %r : tensor<6xf32>, tensor<6xf32>
}
"""


@pytest.mark.parametrize("key", [0, 1, 2, -1])
def test_branches(key: int) -> None:
    type_ = "tensor<6xf32>"
    text = (
        BRANCH.replace(
            "%double", pointwise("%d", {"%x": type_}, "%q = arith.addf %p0, %p0 : f32", 6)
        )
        .replace("%square", pointwise("%q2", {"%x": type_}, "%q = arith.mulf %p0, %p0 : f32", 6))
        .replace(
            "%both",
            pointwise("%sum", {"%s": type_, "%x": type_}, "%q = arith.addf %p0, %p1 : f32", 6),
        )
    )
    program, _ = compiled(text)
    x = np.arange(6, dtype=np.float32)
    s, r = program(x, np.asarray(key, np.int32))
    wanted = x if key == 0 else 2 * x if key == 1 else x * x
    np.testing.assert_array_equal(s, wanted)
    np.testing.assert_array_equal(r, wanted + x if key > 0 else wanted)


PICK = """
func.func @main(%x: tensor<8xf32>, %n: tensor<i64>) -> tensor<f32> {
  %z = arith.constant dense<0.0> : tensor<f32>
  %i0 = arith.constant dense<0> : tensor<i64>
  %r:2 = scf.while (%i = %i0, %s = %z) : (tensor<i64>, tensor<f32>) -> (tensor<i64>, tensor<f32>) {
    %a = tensor.extract %i[] : tensor<i64>
    %b = tensor.extract %n[] : tensor<i64>
    %c = arith.cmpi ne, %a, %b : i64
    scf.condition(%c) %i, %s : tensor<i64>, tensor<f32>
  } do {
  ^bb0(%i: tensor<i64>, %s: tensor<f32>):
    %a = tensor.extract %i[] : tensor<i64>
    %k = arith.index_cast %a : i64 to index
    %v = tensor.extract %x[%k] : tensor<8xf32>
    %t = tensor.extract %s[] : tensor<f32>
    %u = arith.addf %v, %t : f32
    %w = tensor.from_elements %u : tensor<f32>
    %one = arith.constant 1 : i64
    %j = arith.addi %a, %one : i64
    %jt = tensor.from_elements %j : tensor<i64>
    scf.yield %jt, %w : tensor<i64>, tensor<f32>
  }
  return %r#1 : tensor<f32>
}
"""


def test_an_index_that_is_out_of_range_ends_the_loop() -> None:
    program, _ = compiled(PICK)
    x = np.arange(8, dtype=np.float32)
    assert program(x, np.asarray(5, np.int64)) == 10
    # It would count on for ever: -1 is not reached from 0.
    with pytest.raises(ExecutionError, match="index out of range"):
        program(x, np.asarray(-1, np.int64))


@pytest.mark.parametrize("seed", sweep(range(24), *range(5)))
def test_random_programs(seed: int) -> None:
    check_random(seed)


@pytest.mark.each_choice
@pytest.mark.simulated
@pytest.mark.parametrize("seed", [12, 20, 21, 68, 144, 162])
def test_numbers_in_memory_that_several_kernels_need(seed: int) -> None:
    check_random(seed)


def check_random(seed: int) -> None:
    """Compile a random program and compare with what NumPy says, twice."""
    made = control_flow_fuzz.make(seed)
    program, _ = compiled(made.text)
    for data in range(2):
        inputs = made.inputs(data)
        before = [x.copy() for x in inputs]
        for got, wanted in zip(program(*inputs), made.run(inputs), strict=True):
            if made.element in ("f32", "f64"):
                tolerance = 2e-4 if made.element == "f32" else 1e-9
                np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance / 10)
            else:
                np.testing.assert_array_equal(got, wanted)
        for x, y in zip(inputs, before, strict=True):
            np.testing.assert_array_equal(x, y)


#: Element type -> its NumPy dtype and an operation that joins the state with a row.
ELEMENTS = {
    "f16": (np.float16, "arith.addf"),
    "f32": (np.float32, "arith.addf"),
    "f64": (np.float64, "arith.addf"),
    "i1": (np.bool_, "arith.xori"),
    "i8": (np.int8, "arith.addi"),
    "i16": (np.int16, "arith.addi"),
    "i64": (np.int64, "arith.addi"),
    "complex<f32>": (np.complex64, "complex.add"),
}


@pytest.mark.parametrize("element", ELEMENTS)
def test_element_types(element: str) -> None:
    dtype, name = ELEMENTS[element]
    type_ = f"tensor<37x{element}>"
    body = f"%q = {name} %p0, %p1 : {element}"
    program, _ = compiled(
        scan(37, 9, pointwise("%hn", {"%h": type_, "%x": type_}, body, 37, element), element)
    )
    xs = np.random.default_rng(0).integers(0, 2, (9, 37)).astype(dtype)
    last, ys = program(xs, xs[0])
    join = np.logical_xor if element == "i1" else np.add
    wanted = join.accumulate(np.concatenate([xs[:1], xs]), axis=0)[1:].astype(dtype)
    np.testing.assert_array_equal(ys, wanted)
    np.testing.assert_array_equal(last, wanted[-1])


@pytest.mark.parametrize(("n", "steps"), [(5, 0), (5, 1), (1, 1)])
def test_little_to_do(n: int, steps: int) -> None:
    program, _ = compiled(scan(n, steps, addition(n)).replace("constant -1", "constant 0"))
    xs, h = np.ones((steps, n), np.float32), np.full(n, 7, np.float32)
    last, ys = program(xs, h)
    np.testing.assert_array_equal(last, h + steps)
    assert ys.shape == (steps, n)
    if steps:
        np.testing.assert_array_equal(ys[-1], last)


@pytest.mark.parametrize("after", ["S2", "S3:normalize-nests", "S3:fuse-slices", "S3"])
def test_a_dump_can_be_resumed(after: str, tmp_path: Path) -> None:
    made = control_flow_fuzz.make(3)
    file, dump = tmp_path / "program.mlir", tmp_path / "dump.mlir"
    file.write_text(made.text)
    dump.write_text(compile_until(file, CompileOptions(), after))
    whole = compile_file(file, CompileOptions())
    rest = compile_file(dump, CompileOptions())
    kernels = [
        [(k["name"], k["nests"], k["vector"], k["code_bytes"]) for k in a.manifest["kernels"]]
        for a in (whole, rest)
    ]
    assert kernels[0] == kernels[1]
    inputs = made.inputs(0)
    for got, wanted in zip(polyblocks.load(rest)(*inputs), made.run(inputs), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-5)
