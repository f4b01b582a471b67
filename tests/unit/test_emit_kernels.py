"""Programs as GPU kernels: right in every thread, without races, and how they are mapped."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from bench.programs import in_torch
from sweeps import sweep
from tests.support.captured import captured
from tests.support.emit_kernels import emit_kernels
from tests.support.gpu_target import gpu_target
from tests.support.lanes import Launch, run_main
from torch.nn import functional

from polyblocks import events, mlir, signature
from polyblocks.affine.gpu.choose import choose
from polyblocks.affine.model import Nest
from polyblocks.errors import UnsupportedError
from polyblocks.options import CompileOptions
from polyblocks.passes.standard import standard_pipeline
from polyblocks.pipeline import PassContext


def compiled(function: Callable[..., Any], inputs: list[torch.Tensor]) -> tuple[Any, list[Any]]:
    """The module after S3 for a GPU, and the decisions of ``choose-kernels``."""
    program = captured(function, inputs)
    target, options = gpu_target(), CompileOptions()
    decisions: list[Any] = []

    def listen(event: events.Event) -> None:
        if event.kind == "decision" and event.data["pass"] == "choose-kernels":
            decisions.append(event.data)

    with events.listening(listen):
        standard_pipeline(target, options).run(program.module, PassContext.create(target, options))
    return program.module, decisions


def run(module: Any, inputs: list[torch.Tensor]) -> tuple[list[np.ndarray], list[Launch]]:
    """Outputs and launches of a program after ``emit-kernels``."""
    given = iter(inputs)
    arrays, outputs = [], []
    for row in signature.rows(module):
        if row["role"] == "input":
            arrays.append(next(given).numpy().copy())
        else:
            arrays.append(np.zeros(row["shape"], row["dtype"]))
            if row["role"] == "output":
                outputs.append(arrays[-1])
    return outputs, run_main(module, arrays)


def check(function: Callable[..., Any], *inputs: torch.Tensor) -> list[Launch]:
    """Run a program as kernels and compare with PyTorch."""
    module, _ = compiled(function, list(inputs))
    outputs, launches = run(module, list(inputs))
    expected = function(*inputs)
    for found, wanted in zip(
        outputs, expected if isinstance(expected, tuple) else (expected,), strict=True
    ):
        torch.testing.assert_close(torch.from_numpy(found), wanted, rtol=2e-4, atol=2e-5)
    return launches


r = torch.randn

PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], list[torch.Tensor]]]] = {
    "element-wise": (in_torch.elementwise_chain, lambda: [r(37, 53), r(37, 53)]),
    "row means": (in_torch.row_means, lambda: [r(100, 777)]),
    "few long rows": (in_torch.row_means, lambda: [r(5, 4001)]),
    "softmax": (in_torch.softmax, lambda: [r(64, 1000)]),
    "softmax, short rows": (in_torch.softmax, lambda: [r(501, 50)]),
    "layer norm": (in_torch.layer_norm, lambda: [r(40, 1024), r(1024), r(1024)]),
    "column means": (in_torch.column_means, lambda: [r(100, 777)]),
    "transpose": (in_torch.transpose, lambda: [r(100, 77)]),
    "blur": (in_torch.blur_x_blur_y, lambda: [r(3, 70, 75)]),
    "group norm": (in_torch.group_norm, lambda: [r(4, 32, 14, 14), r(32), r(32)]),
    "matmul": (torch.matmul, lambda: [r(40, 50), r(50, 60)]),
    "cumsum": (in_torch.row_cumsum, lambda: [r(10, 1000)]),
    "cumsum of columns": (lambda x: x.cumsum(0), lambda: [r(100, 70)]),
    "gather": (lambda x, i: x[i] * 2, lambda: [r(100, 30), torch.randint(-99, 100, (57,))]),
    "scatter": (
        lambda x, i, v: x.index_add(0, i, v),
        lambda: [r(100, 30), torch.randint(0, 100, (57,)), r(57, 30)],
    ),
    "total": (in_torch.total, lambda: [r(300, 300)]),
    "argmax": (in_torch.row_argmax, lambda: [r(100, 1000)]),
    "convolution": (
        lambda x, w: functional.conv2d(x, w, padding=1),
        lambda: [r(2, 8, 16, 16), r(16, 8, 3, 3)],
    ),
    "max pool": (lambda x: functional.max_pool2d(x, 2), lambda: [r(2, 8, 16, 16)]),
    "all": (lambda x: (x > -3).all(1), lambda: [r(20, 300)]),
}


@pytest.mark.parametrize(
    "name",
    sweep(
        PROGRAMS,
        "element-wise",
        "few long rows",
        "softmax",
        "layer norm",
        "column means",
        "transpose",
        "blur",
        "matmul",
        "cumsum of columns",
        "gather",
        "scatter",
        "argmax",
        "convolution",
        "all",
    ),
)
def test_kernels_compute_what_pytorch_does(name: str) -> None:
    torch.manual_seed(0)
    function, inputs = PROGRAMS[name]
    assert check(function, *inputs())


def test_a_failed_check_stays_with_its_thread() -> None:
    x, i = torch.randn(10, 4), torch.tensor([1, 12])
    module, _ = compiled(lambda x, i: x[i], [x, i])
    arrays = [x.numpy(), i.numpy(), np.full((2, 4), 7.0, np.float32)]
    (launch,) = run_main(module, arrays)
    expected = "index out of range: it must be at least 0 and less than 10"
    assert launch.machine.failures == [expected]
    np.testing.assert_array_equal(arrays[2][0], x[1].numpy())
    np.testing.assert_array_equal(arrays[2][1], 7.0)


def test_both_gpu_targets_have_one_list_of_passes_and_share_most_with_the_cpu() -> None:
    names = {}
    for package, arch in (
        ("polyblocks_nvgpu", "sm_90a"),
        ("polyblocks_amdgpu", "gfx1100"),
        ("polyblocks_cpu", "x86-64-v3"),
    ):
        options = CompileOptions(arch=arch)
        target = importlib.import_module(f"{package}.describe").describe(options)
        names[package] = standard_pipeline(target, options).steps()
    gpu, cpu = names["polyblocks_nvgpu"], names["polyblocks_cpu"]
    assert gpu == names["polyblocks_amdgpu"]
    assert [n for n in gpu if n in cpu] == [n for n in cpu if n in gpu]
    units = {"absorb-margins", "jam-windows", "chain-products", "split-contractions"}
    launches = {"roll-nests", "join-nests", "estimate-nests"}
    launches |= {"choose-kernels", "stage-operands", "emit-kernels"}
    assert set(gpu) - set(cpu) == launches | units
    team = {"order-loops", "jam-reductions", "block-summation", "map-parallelism"}
    team |= {"straighten-copies", "choose-layouts", "interchange-loops"}
    team |= {"split-margins", "split-stacks", "merge-margins"}
    vectors = {
        "split-complex",
        "pack-arguments",
        "plan-contractions",
        "tile-contractions",
        "expand-packing",
        "tile-transposes",
        "vectorize-nests",
    }
    vectors |= {"unroll-short-loops", "narrow-values", "jam-stencils", "split-columns"}
    vectors |= {"interleave-lookups", "split-steps", "select-layers"}
    vectors |= {
        "update-in-place",
        "interleave-batches",
        "copy-columns",
        "delinearize-loops",
        "gather-rows",
        "share-indices",
        "promote-accumulators",
        "cut-masks",
        "split-masks",
        "split-columns",
        "tile-scans",
    }
    weights = {"form-preparation", "prepare-arguments"}
    assert set(cpu) - set(gpu) == team | vectors | weights


def test_what_only_the_host_could_do_is_refused() -> None:
    module = mlir.parse(
        """
        func.func @main(%a: memref<8xindex>, %b: memref<8xf32>) {
          %zero = arith.constant 0.0 : f32
          %n = affine.load %a[0] : memref<8xindex>
          scf.for %i = %n to %n step %n { memref.store %zero, %b[%i] : memref<8xf32> }
          return
        }
        """
    )
    target = gpu_target()
    with pytest.raises(UnsupportedError, match="only the host could run it"):
        emit_kernels(module, target)


def mapped(text: str) -> Any:
    """A module after ``emit-kernels``; IN and OUT stand for the roles of arguments."""
    for role in ("in", "out"):
        row = (
            f'{{polyblocks.arg = {{role = "{role}put", name = "{role}", dtype = "float32", '
            "shape = array<i64>, strides = array<i64>, constant = false, updates = -1}}"
        )
        text = text.replace(f" {role.upper()}", f" {row}")
    module = mlir.parse(text)
    return emit_kernels(module, gpu_target())


#: The last nest reads a row that a number in memory names; ``{before}`` and ``{behind}`` the load.
NUMBERED = """
func.func @main(%at: memref<1xi32> IN, %a: memref<9x64xf32> IN, %b: memref<64xf32> OUT) {{
  %one = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %first = arith.constant 0 : index
  %other = memref.alloc() : memref<1xi32>
  {before}
  %n = memref.load %at[%first] : memref<1xi32>
  %i = arith.index_cast %n : i32 to index
  {behind}
  %row = memref.subview %a[%i, 0] [1, 64] [1, 1]
    : memref<9x64xf32> to memref<64xf32, strided<[1], offset: ?>>
  affine.for %k = 0 to 64 {{
    %x = affine.load %row[%k] : memref<64xf32, strided<[1], offset: ?>>
    affine.store %x, %b[%k] : memref<64xf32>
  }}
  return
}}
"""
CHANGE = "affine.for %k = 0 to 1 {{ affine.store %one, %{}[%k] : memref<1xi32> }}"
LOOP = """
affine.for %t = 0 to 2 {
  affine.for %k = 0 to 64 { affine.store %zero, %b[%k] : memref<64xf32> }
} {polyblocks.region = "loop1"}"""
CHANGE_IN_LOOP = (
    f'affine.for %t = 0 to 2 {{ {CHANGE.format("at")} }} {{polyblocks.region = "loop1"}}'
)


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        (CHANGE.format("at"), ""),
        (CHANGE_IN_LOOP, ""),
        ("", LOOP),
        ("", CHANGE.format("other")),
    ],
)
def test_a_kernel_loads_again_what_nobody_changes(before: str, behind: str) -> None:
    module = mapped(NUMBERED.format(before=before, behind=behind))
    program = str(module).partition("func.func @main")[2]
    assert "gpu.launch_func" in program
    assert "memref.load" not in program


@pytest.mark.parametrize("behind", [CHANGE.format("at"), CHANGE_IN_LOOP])
def test_a_number_that_changes_behind_its_load_is_refused(behind: str) -> None:
    with pytest.raises(UnsupportedError, match=r"'memref\.load' stands outside of all loop nests"):
        mapped(NUMBERED.format(before="", behind=behind))


#: As above, with the last nest in a loop of the host; ``{behind}`` is in it, behind the nest.
IN_LOOP = NUMBERED.replace("  affine.for %k", "  affine.for %u = 0 to 3 {{ affine.for %k").replace(
    "  }}\n  return", '  }} {behind} }} {{polyblocks.region = "loop0"}}\n  return'
)


def test_kernels_in_a_loop_load_what_the_loop_leaves_alone() -> None:
    text = IN_LOOP.replace("{behind}", "", 1)
    program = str(mapped(text.format(before="", behind=CHANGE.format("other"))))
    assert "memref.load" not in program.partition("func.func @main")[2]


def test_a_number_that_a_loop_changes_behind_the_kernel_is_refused() -> None:
    text = IN_LOOP.replace("{behind}", "", 1)
    with pytest.raises(UnsupportedError, match=r"'memref\.load' stands outside of all loop nests"):
        mapped(text.format(before="", behind=CHANGE.format("at")))


@pytest.mark.parametrize("count", [400, 401])
def test_long_sums_of_a_thread_leave_nothing_out(count: int) -> None:
    module = mapped(
        """
        func.func @main(%x: memref<3xCOUNTx512xf32> IN, %y: memref<3x511xf32> OUT) {
          %one = arith.constant 1.0 : f32
          affine.for %i = 0 to 3 {
            %l = memref.alloca() : memref<512xf32>
            affine.for %j = 0 to 512 {
              %s = affine.for %k = 0 to COUNT iter_args(%t = %one) -> (f32) {
                %v = affine.load %x[%i, %k, %j] : memref<3xCOUNTx512xf32>
                %n = arith.addf %v, %t fastmath<reassoc> : f32
                affine.yield %n : f32
              }
              affine.store %s, %l[%j] : memref<512xf32>
            }
            affine.for %j = 0 to 511 {
              %a = affine.load %l[%j] : memref<512xf32>
              %b = affine.load %l[%j + 1] : memref<512xf32>
              %c = arith.mulf %a, %b : f32
              affine.store %c, %y[%i, %j] : memref<3x511xf32>
            }
          }
          return
        }
        """.replace("COUNT", str(count))
    )
    # A loop in a loop: blocks of the sum.
    assert str(module).count("scf.for") >= 2
    x = np.random.default_rng(0).integers(0, 2, (3, count, 512)).astype(np.float32)
    y = np.zeros((3, 511), np.float32)
    run_main(module, [x, y])
    sums = 1 + x.sum(1)
    np.testing.assert_array_equal(y, sums[:, :-1] * sums[:, 1:])


def test_long_sums_of_a_block_leave_nothing_out() -> None:
    module = mapped(
        """
        func.func @main(%x: memref<2x300001xf32> IN, %y: memref<2xf32> OUT) {
          %one = arith.constant 1.0 : f32
          affine.for %i = 0 to 2 {
            %s = affine.for %k = 0 to 300001 iter_args(%t = %one) -> (f32) {
              %v = affine.load %x[%i, %k] : memref<2x300001xf32>
              %n = arith.addf %v, %t fastmath<reassoc> : f32
              affine.yield %n : f32
            }
            affine.store %s, %y[%i] : memref<2xf32>
          }
          return
        }
        """
    )
    assert str(module).count("scf.for") == 2
    x = np.random.default_rng(0).integers(0, 2, (2, 300001)).astype(np.float32)
    y = np.zeros(2, np.float32)
    run_main(module, [x, y])
    np.testing.assert_array_equal(y, 1 + x.sum(1))


def limited(blocks: int) -> str:
    """100 million independent iterations for a chip whose grids have so many blocks."""
    module = mlir.parse(
        """
        func.func @main(%a: memref<100000000xf64>, %b: memref<100000000xf32>) {
          affine.for %i = 0 to 100000000 {
            %x = affine.load %a[%i] : memref<100000000xf64>
            %y = math.sqrt %x : f64
            %z = arith.truncf %y : f64 to f32
            affine.store %z, %b[%i] : memref<100000000xf32>
          }
          return
        }
        """
    )
    target = gpu_target()
    assert target.multiprocessor is not None
    chip = dataclasses.replace(target.multiprocessor, grid_limits=(blocks, 1, 1))
    target = dataclasses.replace(target, multiprocessor=chip)
    emit_kernels(module, target)
    return str(module)


def test_blocks_are_larger_where_a_grid_would_have_too_many() -> None:
    assert "known_block_size = array<i32: 256, 1, 1>" in limited(1000000)
    assert "known_block_size = array<i32: 1024, 1, 1>" in limited(25000)


def test_more_blocks_than_a_grid_may_have_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="blocks of 1024 threads, where a grid .* 1000;"):
        limited(1000)


def test_a_block_with_too_little_shared_memory_is_refused() -> None:
    target = gpu_target()
    assert target.multiprocessor is not None
    chip = dataclasses.replace(target.multiprocessor, shared_per_block_optin=1024)
    target = dataclasses.replace(target, multiprocessor=chip)
    with pytest.raises(UnsupportedError, match="more than the 1024 bytes of shared memory that a"):
        choose(Nest([], []), target)


def test_a_target_without_grids_cannot_be_chosen_for() -> None:
    target = dataclasses.replace(gpu_target(), multiprocessor=None, matrix_units=())
    with pytest.raises(ValueError, match="has no grids of blocks"):
        choose(Nest([], []), target)
