"""The conformance suite: small programs that every target either runs right or refuses.

A target's own tests go through :data:`CASES` with :func:`run`::

    @pytest.mark.parametrize("case", CASES, ids=str)
    def test_conformance(case):
        run(case, CompileOptions(target="toy"))

Each case is linalg on tensors, so that a target is tested together with the stages before it. A
target that refuses a case (UnsupportedError) has to be asked about each of them: whether that is
in order is for its tests to say.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyblocks.api import compile_text, load
from polyblocks.artifact import Artifact
from polyblocks.occupancy import occupancy
from polyblocks.options import CompileOptions
from polyblocks.registry.honoured_options import describe_target
from polyblocks.target import Multiprocessor, TargetDescription

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """One program.

    Attributes:
        name: what it is about.
        module: MLIR text with one function ``@main`` on static tensors.
        inputs: from a seeded generator, the arrays to call it with.
        reference: what numpy makes of them; one array or a tuple.
        rtol: relative tolerance; 0 for exact results.
    """

    name: str
    module: str
    inputs: Callable[[np.random.Generator], list[Array]]
    reference: Callable[..., Any]
    rtol: float = 0.0

    def __str__(self) -> str:
        return self.name


def run(case: Case, options: CompileOptions) -> Artifact:
    """Compile a case, store and reload it, call it twice, and from two threads at once.

    Returns:
        The artifact, for further checks.

    Raises:
        AssertionError: a result is wrong, or the artifact breaks a rule.
        UnsupportedError: the target refuses the case.
    """
    compiled = compile_text(case.module, options, case.name)
    artifact = Artifact.from_bytes(compiled.to_bytes())
    assert all(kernel.get("name") for kernel in artifact.manifest["kernels"]), "kernels have names"
    function = load(artifact)
    generator = np.random.default_rng(0)
    for _ in range(2):
        inputs = case.inputs(generator)
        before = [array.copy() for array in inputs]
        check(case, function(*inputs), case.reference(*inputs))
        for kept, array in zip(before, inputs, strict=True):
            np.testing.assert_array_equal(array, kept, f"{case}: an input was written to")
    _run_in_threads(case, function, generator)
    return artifact


def check(case: Case, results: Any, references: Any) -> None:
    """Compare results with references: shape, dtype, values; NaN equals NaN.

    Raises:
        AssertionError: they differ.
    """
    got = results if isinstance(results, (tuple, list)) else (results,)
    want = references if isinstance(references, (tuple, list)) else (references,)
    assert len(got) == len(want), f"{case}: {len(got)} results, expected {len(want)}"
    for result, reference in zip(got, want, strict=True):
        assert result.dtype == reference.dtype, f"{case}: {result.dtype}, not {reference.dtype}"
        np.testing.assert_allclose(
            result, reference, rtol=case.rtol, atol=case.rtol, err_msg=case.name
        )


def check_description(name: str, arch: str | None = None) -> None:
    """Check that a target describes itself the same way each time, and by what it may.

    Args:
        name: of the target.
        arch: what to describe; None for the device that is present.

    Raises:
        AssertionError: it does not.
    """
    options = CompileOptions(target=name, arch=arch)
    first, second = (describe_target(options) for _ in range(2))
    assert first == second
    assert first.fingerprint() == second.fingerprint()
    assert first.name == name
    assert first.arch not in ("", "native"), "the architecture is resolved"
    assert first.memory, "there is a main memory"
    assert first.memory[-1].size == 0, "the main memory comes last; its size is 0"
    assert first.parallel, "there is a level of parallelism, if only of size 1"
    named = describe_target(CompileOptions(target=name, arch=first.arch))
    assert named.arch == first.arch, "the architecture can be named"
    if first.multiprocessor is not None:
        _check_multiprocessor(first, first.multiprocessor)


def _check_multiprocessor(target: TargetDescription, limits: Multiprocessor) -> None:
    names = [level.name for level in target.parallel]
    assert names == ["grid", "block", "warp", "thread"], "levels that a GPU mapping knows"
    assert [level.name for level in target.memory[:2]] == ["registers", "shared"]
    assert target.memory[0].size == 4 * limits.registers, "registers have 32 bits"
    assert target.memory[1].size == limits.shared
    assert target.parallel[-1].size == limits.warp
    assert limits.threads % limits.warp == 0, "whole warps"
    assert limits.registers % limits.partitions == 0, "equal partitions"
    largest = occupancy(limits, 1, 0, limits.threads_per_block)
    assert largest.blocks >= 1, "the largest block fits"
    greedy = occupancy(
        limits, limits.registers_per_thread, limits.shared_per_block_optin, limits.warp
    )
    assert greedy.blocks >= 1, "a block gets the registers and the shared memory it is promised"


def _run_in_threads(
    case: Case, function: Callable[..., Any], generator: np.random.Generator
) -> None:
    jobs = [case.inputs(generator) for _ in range(2)]
    results: list[Any] = [None, None]

    def work(number: int) -> None:
        results[number] = function(*jobs[number])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for inputs, result in zip(jobs, results, strict=True):
        check(case, result, case.reference(*inputs))


def _floats(*shapes: tuple[int, ...], dtype: str = "float32") -> Any:
    return lambda rng: [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def _integers(*shapes: tuple[int, ...], dtype: str = "int32") -> Any:
    return lambda rng: [rng.integers(-100, 100, shape).astype(dtype) for shape in shapes]


def _pointwise(element: str, body: str, inputs: int = 2, shape: str = "6x10") -> str:
    """A linalg.generic over arrays of one shape; ``body`` computes %r from %x (and %y)."""
    tensor = f"tensor<{shape}x{element}>" if shape else f"tensor<{element}>"
    rank = shape.count("x") + 1 if shape else 0
    dims = ", ".join(f"d{i}" for i in range(rank))
    maps = ", ".join([f"affine_map<({dims}) -> ({dims})>"] * (inputs + 1))
    iterators = ", ".join(['"parallel"'] * rank)
    names = ["x", "y"][:inputs]
    arguments = ", ".join(f"%{n}_: {tensor}" for n in names)
    types = ", ".join([tensor] * inputs)
    scalars = ", ".join(f"%{n}: {element}" for n in [*names, "o"])
    return f"""
func.func @main({arguments}) -> {tensor} {{
  %e = tensor.empty() : {tensor}
  %t = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}}
      ins({", ".join(f"%{n}_" for n in names)} : {types}) outs(%e : {tensor}) {{
    ^bb0({scalars}):
      {body}
      linalg.yield %r : {element}
  }} -> {tensor}
  return %t : {tensor}
}}
"""


def _reduction(kind: str, start: str, shape: str = "7x33") -> str:
    rows = shape.split("x")[0]
    return f"""
func.func @main(%a: tensor<{shape}xf32>) -> tensor<{rows}xf32> {{
  %c = arith.constant {start} : f32
  %e = tensor.empty() : tensor<{rows}xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<{rows}xf32>) -> tensor<{rows}xf32>
  %t = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"]}}
      ins(%a : tensor<{shape}xf32>) outs(%f : tensor<{rows}xf32>) {{
    ^bb0(%x: f32, %s: f32):
      %r = arith.{kind} %x, %s : f32
      linalg.yield %r : f32
  }} -> tensor<{rows}xf32>
  return %t : tensor<{rows}xf32>
}}
"""


MATMUL = """
func.func @main(%a: tensor<9x17xf32>, %b: tensor<17x5xf32>) -> tensor<9x5xf32> {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<9x5xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<9x5xf32>) -> tensor<9x5xf32>
  %t = linalg.matmul ins(%a, %b : tensor<9x17xf32>, tensor<17x5xf32>)
                     outs(%f : tensor<9x5xf32>) -> tensor<9x5xf32>
  return %t : tensor<9x5xf32>
}
"""

TRANSPOSE_AND_ADD = """
func.func @main(%a: tensor<4x6xf32>, %b: tensor<6xf32>) -> tensor<6x4xf32> {
  %e = tensor.empty() : tensor<6x4xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>,
                                        affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<4x6xf32>, tensor<6xf32>) outs(%e : tensor<6x4xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %r = arith.addf %x, %y : f32
      linalg.yield %r : f32
  } -> tensor<6x4xf32>
  return %t : tensor<6x4xf32>
}
"""

TWO_RESULTS = """
func.func @main(%a: tensor<5x8xf32>) -> (tensor<5x8xf32>, tensor<5x8xf32>) {
  %e = tensor.empty() : tensor<5x8xf32>
  %n = linalg.negf ins(%a : tensor<5x8xf32>) outs(%e : tensor<5x8xf32>) -> tensor<5x8xf32>
  %m = linalg.mul ins(%a, %n : tensor<5x8xf32>, tensor<5x8xf32>)
                  outs(%e : tensor<5x8xf32>) -> tensor<5x8xf32>
  return %n, %m : tensor<5x8xf32>, tensor<5x8xf32>
}
"""

_RELU = "%z = arith.constant 0.0 : f32\n      %r = arith.maximumf %x, %z : f32"
_SELECT = "%c = arith.cmpf olt, %x, %y : f32\n      %r = arith.select %c, %x, %y : f32"
_SPECIAL = np.array([[np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, 3e38, -1.0, 2.0, 0.5]] * 6, "f4")

CASES: tuple[Case, ...] = (
    Case("add f32", _pointwise("f32", "%r = arith.addf %x, %y : f32"), _floats((6, 10), (6, 10)),
         lambda x, y: x + y),
    Case("multiply f64", _pointwise("f64", "%r = arith.mulf %x, %y : f64"),
         _floats((6, 10), (6, 10), dtype="float64"), lambda x, y: x * y),
    Case("subtract i32", _pointwise("i32", "%r = arith.subi %x, %y : i32"),
         _integers((6, 10), (6, 10)), lambda x, y: x - y),
    Case("and i64", _pointwise("i64", "%r = arith.andi %x, %y : i64"),
         _integers((6, 10), (6, 10), dtype="int64"), lambda x, y: x & y),
    Case("divide f16", _pointwise("f16", "%r = arith.divf %x, %y : f16"),
         lambda rng: [rng.uniform(1, 2, (6, 10)).astype("f2") for _ in range(2)],
         lambda x, y: x / y, rtol=1e-3),
    Case("select", _pointwise("f32", _SELECT), _floats((6, 10), (6, 10)), np.minimum),
    Case("maximum keeps NaN", _pointwise("f32", _RELU, inputs=1), lambda _: [_SPECIAL.copy()],
         lambda x: np.maximum(x, np.float32(0))),
    Case("a scalar", _pointwise("f32", "%r = arith.mulf %x, %y : f32", shape=""),
         _floats((), ()), lambda x, y: np.asarray(x * y)),
    Case("no elements", _pointwise("f32", "%r = arith.addf %x, %y : f32", shape="0x4"),
         _floats((0, 4), (0, 4)), lambda x, y: x + y),
    Case("one element", _pointwise("f32", "%r = arith.addf %x, %y : f32", shape="1x1"),
         _floats((1, 1), (1, 1)), lambda x, y: x + y),
    Case("exponential", _pointwise("f32", "%r = math.exp %x : f32", inputs=1),
         _floats((6, 10)), np.exp, rtol=1e-6),
    Case("transpose and broadcast", TRANSPOSE_AND_ADD, _floats((4, 6), (6,)),
         lambda x, y: x.T + y[:, None]),
    Case("two results", TWO_RESULTS, _floats((5, 8)), lambda x: (-x, x * -x)),
    Case("sum of rows", _reduction("addf", "0.0"), _floats((7, 33)),
         lambda x: x.sum(1, dtype="f8").astype("f4"), rtol=1e-5),
    Case("maximum of rows", _reduction("maximumf", "0xFF800000"), _floats((7, 33)),
         lambda x: x.max(1)),
    Case("matrix product", MATMUL, _floats((9, 17), (17, 5)),
         lambda x, y: (x.astype("f8") @ y.astype("f8")).astype("f4"), rtol=1e-5),
)  # fmt: skip
