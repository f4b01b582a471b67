"""What a kernel is predicted to take, and how it is mapped, hangs on the description's rates."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.support.gpu_target import gpu_target

from polyblocks import mlir
from polyblocks.affine.cost.predicted import IMPOSSIBLE, Predicted
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.gpu.choose import choose
from polyblocks.affine.gpu.mapping.kernel_cost import _of_warp
from polyblocks.affine.gpu.plans.numbers import Numbers
from polyblocks.affine.mlir import reader
from polyblocks.affine.model import Buffer, Load, Value
from polyblocks.explanation.decisions import sentence
from polyblocks.target import TargetDescription

PRODUCT = """
func.func @main(%a: memref<{m}x{k}xf32>, %b: memref<{k}x{n}xf32>, %c: memref<{m}x{n}xf32>) {{
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to {m} {{
    affine.for %j = 0 to {n} {{
      %s = affine.for %l = 0 to {k} iter_args(%t = %zero) -> (f32) {{
        %x = affine.load %a[%i, %l] : memref<{m}x{k}xf32>
        %y = affine.load %b[%l, %j] : memref<{k}x{n}xf32>
        %z = arith.mulf %x, %y : f32
        %u = arith.addf %t, %z fastmath<reassoc> : f32
        affine.yield %u : f32
      }}
      affine.store %s, %c[%i, %j] : memref<{m}x{n}xf32>
    }}
  }}
  return
}}
"""
#: Of every row the sum, weighted with what is in one column of another array.
WEIGHTED_SUM = """
func.func @main(%a: memref<{m}x{k}xf32>, %w: memref<{k}x{n}xf32>, %c: memref<{m}xf32>) {{
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to {m} {{
    %s = affine.for %l = 0 to {k} iter_args(%t = %zero) -> (f32) {{
      %x = affine.load %a[%i, %l] : memref<{m}x{k}xf32>
      %y = affine.load %w[%l, 0] : memref<{k}x{n}xf32>
      %z = arith.mulf %x, %y : f32
      %u = arith.addf %t, %z fastmath<reassoc> : f32
      affine.yield %u : f32
    }}
    affine.store %s, %c[%i] : memref<{m}xf32>
  }}
  return
}}
"""
RUNNING_SUM = """
func.func @main(%a: memref<{m}x{k}xf32>, %c: memref<{m}x{k}xf32>) {{
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to {m} {{
    %s = affine.for %l = 0 to {k} iter_args(%t = %zero) -> (f32) {{
      %x = affine.load %a[%i, %l] : memref<{m}x{k}xf32>
      %u = arith.addf %t, %x fastmath<reassoc> : f32
      affine.store %u, %c[%i, %l] : memref<{m}x{k}xf32>
      affine.yield %u : f32
    }}
  }}
  return
}}
"""
#: A buffer of which every thread keeps its own elements.
SHARES = """
func.func @main(%a: memref<{m}x{k}xf32>, %c: memref<{m}x{k}xf32>) {{
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to {m} {{
    %e = memref.alloca() : memref<{k}xf32>
    affine.for %l = 0 to {k} {{
      %x = affine.load %a[%i, %l] : memref<{m}x{k}xf32>
      %y = math.exp %x : f32
      affine.store %y, %e[%l] : memref<{k}xf32>
    }}
    %s = affine.for %l = 0 to {k} iter_args(%t = %zero) -> (f32) {{
      %x = affine.load %e[%l] : memref<{k}xf32>
      %u = arith.addf %t, %x fastmath<reassoc> : f32
      affine.yield %u : f32
    }}
    affine.for %l = 0 to {k} {{
      %x = affine.load %e[%l] : memref<{k}xf32>
      %y = arith.divf %x, %s : f32
      affine.store %y, %c[%i, %l] : memref<{m}x{k}xf32>
    }}
  }}
  return
}}
"""


def chosen(text: str, target: TargetDescription) -> tuple[Any, Predicted]:
    """How the only nest is run: threads of a group, groups of a block or the tile, copies."""
    module = mlir.parse(text)
    from polyblocks.mlir import ir

    with module.context, ir.Location.unknown():
        (nest,) = reader.read(module).nests()
        numbers = Numbers(nest)
        kernel, predicted = choose(nest, target)
        return kernel.plan.schedule(numbers), predicted


def slower(name: str, factor: float) -> TargetDescription:
    """A GPU with one number of its description multiplied."""
    target = gpu_target()
    chip = target.multiprocessor
    assert chip is not None
    if name == "flops":
        return dataclasses.replace(target, flops={"float32": factor * target.flops["float32"]})
    if any(level.name == name for level in target.memory):
        memory = (
            dataclasses.replace(m, bandwidth=factor * m.bandwidth) if m.name == name else m
            for m in target.memory
        )
        return dataclasses.replace(target, memory=tuple(memory))
    if hasattr(chip.latencies, name):
        seconds = {name: factor * getattr(chip.latencies, name)}
        chip = dataclasses.replace(chip, latencies=dataclasses.replace(chip.latencies, **seconds))
    else:
        chip = dataclasses.replace(chip, **{name: int(factor * getattr(chip, name))})
    return dataclasses.replace(target, multiprocessor=chip)


@pytest.mark.parametrize(
    ("name", "factor", "text", "sizes"),
    [
        ("flops", 0.01, PRODUCT, (512, 512, 512)),
        ("shared", 0.01, PRODUCT, (512, 512, 512)),
        ("main", 0.01, PRODUCT, (512, 512, 512)),
        ("memory", 100, PRODUCT, (512, 512, 512)),
        ("exchange", 100, PRODUCT, (512, 512, 512)),
        ("busy_warps", 100, PRODUCT, (512, 512, 512)),
        ("load_step", 100, WEIGHTED_SUM, (1000, 1001, 1)),
        ("loads_in_flight", 100, WEIGHTED_SUM, (1000, 1001, 1)),
        ("busy_threads", 100, WEIGHTED_SUM, (1000, 1000, 1)),
        ("barrier", 100, WEIGHTED_SUM, (1000, 1000, 1)),
        ("warp_reduce", 100, WEIGHTED_SUM, (1000, 1000, 1)),
        ("cache", 0, WEIGHTED_SUM, (1000, 1000, 8)),
        ("shared_load", 100, RUNNING_SUM, (4096, 256, 1)),
        ("issue", 100, SHARES, (5000, 100, 1)),
    ],
)
def test_every_rate_decides(
    name: str, factor: float, text: str, sizes: tuple[int, int, int]
) -> None:
    program = text.format(m=sizes[0], k=sizes[1], n=sizes[2])
    usual, predicted = chosen(program, gpu_target())
    other, changed = chosen(program, slower(name, factor))
    assert other != usual
    assert None not in {**predicted.numbers(), **changed.numbers()}.values()


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("flops", {"compute"}),
        ("main", {"memory"}),
        *((n, {"latency"}) for n in ("memory", "load_step", "shared_load", "exchange")),
        *((n, {"latency"}) for n in ("barrier", "warp_reduce", "issue")),
    ],
)
@pytest.mark.parametrize("text", [PRODUCT, WEIGHTED_SUM], ids=["tiled", "groups"])
def test_what_is_unknown_is_not_predicted(name: str, parts: set[str], text: str) -> None:
    """The choice is made by what is known, and no time is made of it."""
    _, predicted = chosen(text.format(m=512, k=512, n=512), slower(name, 0))
    numbers = predicted.numbers()
    unknown = {key.removesuffix("_seconds") for key, value in numbers.items() if value is None}
    assert unknown == {"predicted", *parts}
    known = [value for value in numbers.values() if value is not None]
    assert max(known) <= predicted.seconds < sum(known)


def test_without_any_rate_every_outer_iteration_has_a_thread() -> None:
    """The simplest mapping: nothing tells that another one is better."""
    target = gpu_target()
    assert target.multiprocessor is not None
    chip = dataclasses.replace(
        target.multiprocessor,
        latencies=dataclasses.replace(target.multiprocessor.latencies, barrier=0.0),
    )
    bare = dataclasses.replace(target, flops={}, memory=(), multiprocessor=chip)
    for text in (PRODUCT, WEIGHTED_SUM, RUNNING_SUM, SHARES):
        how, predicted = chosen(text.format(m=512, k=64, n=512), bare)
        assert how["group"] == 1
        assert predicted.seconds == 0
        assert set(predicted.numbers().values()) == {None}


def test_what_nothing_tells_about_a_chip_is_taken_for_all_of_it() -> None:
    """Without a number of threads that keep it busy, these are all that it holds."""
    _, usual = chosen(WEIGHTED_SUM.format(m=64, k=64, n=1), gpu_target())
    _, all_of_it = chosen(WEIGHTED_SUM.format(m=64, k=64, n=1), slower("busy_threads", 4))
    _, unknown = chosen(WEIGHTED_SUM.format(m=64, k=64, n=1), slower("busy_threads", 0))
    assert unknown == all_of_it != usual
    _, all_of_it = chosen(PRODUCT.format(m=512, k=512, n=512), slower("busy_warps", 8))
    _, unknown = chosen(PRODUCT.format(m=512, k=512, n=512), slower("busy_warps", 0))
    assert unknown == all_of_it


def test_the_time_is_the_bottleneck_and_a_part_of_the_others() -> None:
    assert Predicted(1.0, 5.0, 2.0).seconds == 5.0 + 0.2 * 3.0
    assert Predicted(None, None, 2.0).seconds == 2.0
    assert IMPOSSIBLE.seconds > Predicted(1e9, 1e9, 1e9).seconds


def test_a_mapping_of_unknown_time_is_told_without_one() -> None:
    mapped = {"nest": "f", "what": "mapped", "blocks": 2, "threads": 64}
    known = Predicted(1e-6, 2e-6, 3e-6)
    assert sentence(mapped | known.numbers()).endswith("64 threads; predicted 3.6 µs")
    unknown = dataclasses.replace(known, compute=None)
    assert sentence(mapped | unknown.numbers()).endswith("64 threads")


def test_steps_of_changing_length_are_counted_by_warps() -> None:
    j = Var(4096)
    buffer = Buffer((2, 4096), "f32", "input")

    def moved(*index: Expr) -> float:
        return _of_warp(Load(Value("f32"), buffer, index), j, 32, 32)

    # Rows that are rolled: neighbours but for one step, here in the first warp.
    rolled = moved(Expr(0), (Expr.of(j) + 4093) % 4096)
    assert 4.0 < rolled <= 5.0
    # Elements of two rows in turn: each has half of a warp's.
    assert moved(Expr.of(j) % 2, Expr.of(j) // 2) == 4.0
    # Every eighth element: a transaction each.
    assert moved(Expr(0), Expr.of(j) * 8 % 4096) == 32.0
