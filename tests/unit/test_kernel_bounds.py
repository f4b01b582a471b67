"""Bounds that searches for kernels use, against the time that is predicted for each of these."""

from __future__ import annotations

import random
from collections.abc import Iterator
from math import isfinite
from typing import Any

import pytest
from tests.support.gpu_target import gpu_target

from polyblocks import mlir
from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.gpu import choose
from polyblocks.affine.gpu.mapping.kernel_cost import least_groups
from polyblocks.affine.gpu.plans.kernel import Kernel
from polyblocks.affine.gpu.plans.numbers import Numbers
from polyblocks.affine.gpu.plans.unit_access import unit_access
from polyblocks.affine.gpu.predict import predict
from polyblocks.affine.gpu.schedule import schedule_of
from polyblocks.affine.gpu.scheduled import scheduled_kernel
from polyblocks.affine.gpu.tiles.lane_plans import lane_plans
from polyblocks.affine.gpu.tiles.lanes_cost import least_lanes, least_of_all
from polyblocks.affine.gpu.tiles.unit_plans import unit_plans
from polyblocks.affine.gpu.tiles.units_cost import least_units
from polyblocks.affine.mlir import reader
from polyblocks.affine.model import Nest
from polyblocks.affine.plan.old_keys import read
from polyblocks.mlir import ir
from polyblocks.options import CompileOptions
from polyblocks.registry.honoured_options import describe_target
from polyblocks.target import TargetDescription

#: A nest over rows, and over columns or steps; ``around`` is what is done with a result.
PRODUCT = """
func.func @main(%a: memref<{m}x{k}x{t}>, %b: memref<{k}x{n}x{t}>, %c: memref<{m}x{n}x{t}>) {{
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to {m} {{ affine.for %j = 0 to {n} {{
    %s = affine.for %l = 0 to {k} iter_args(%p = %zero) -> (f32) {{
      %v = affine.load %a[%i, %l] : memref<{m}x{k}x{t}>
      %w = affine.load %b[%l, %j] : memref<{k}x{n}x{t}>
      {extend}
      %z = arith.mulf %x, %y : f32
      %u = arith.addf %p, %z fastmath<reassoc> : f32
      affine.yield %u : f32
    }}
    {store}
    affine.store %r, %c[%i, %j] : memref<{m}x{n}x{t}>
  }} }}
  return
}}
"""
SUM = """
func.func @main(%a: memref<{m}x{k}x{t}>, %c: memref<{m}xf32>) {{
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to {m} {{
    %s = affine.for %l = 0 to {k} iter_args(%p = %zero) -> (f32) {{
      %v = affine.load %a[%i, %l] : memref<{m}x{k}x{t}>
      %w = affine.load %a[%i, 0] : memref<{m}x{k}x{t}>
      {extend}
      %z = arith.divf %x, %y : f32
      %u = arith.addf %p, %z fastmath<reassoc> : f32
      affine.yield %u : f32
    }}
    affine.store %s, %c[%i] : memref<{m}xf32>
  }}
  return
}}
"""
MAP = """
func.func @main(%a: memref<{m}x{k}x{t}>, %c: memref<{m}x{k}x{t}>) {{
  affine.for %i = 0 to {m} {{ affine.for %l = 0 to {k} {{
    %v = affine.load %a[%i, %l] : memref<{m}x{k}x{t}>
    %w = affine.load %a[%i, 0] : memref<{m}x{k}x{t}>
    {extend}
    %s = arith.subf %x, %y : f32
    {store}
    affine.store %r, %c[%i, %l] : memref<{m}x{k}x{t}>
  }} }}
  return
}}
"""
TEXTS = {"product": PRODUCT, "sum": SUM, "map": MAP}
ROUNDING = 1 + 1e-9


def target_of(arch: str) -> TargetDescription:
    if arch == "imaginary":
        return gpu_target()
    name = "nvgpu" if arch.startswith("sm") else "amdgpu"
    return describe_target(CompileOptions(target=name, arch=arch))


def program(draw: random.Random, kind: str) -> str:
    """A nest with loops of random lengths, short and odd ones among them."""
    m, n, k = (draw.choice([1, 7, 31, 64, 200, draw.randrange(2, 3000)]) for _ in range(3))
    type_ = draw.choice(["f16", "f32"])
    narrow = type_ == "f16"
    extend = "\n".join(
        f"%{to} = arith.extf %{name} : f16 to f32"
        if narrow
        else f"%{to} = arith.bitcast %{name} : f32 to f32"
        for name, to in (("v", "x"), ("w", "y"))
    )
    store = "%r = arith.truncf %s : f32 to f16" if narrow else "%r = arith.negf %s : f32"
    return TEXTS[kind].format(m=m, n=n, k=k, t=type_, extend=extend, store=store)


def nests(arch: str, kind: str, count: int) -> Iterator[Nest]:
    draw = random.Random(f"{arch} {kind}")
    for _ in range(count):
        module = mlir.parse(program(draw, kind))
        with module.context, ir.Location.unknown():
            (nest,) = reader.read(module).nests()
            yield nest


ARCHS = ["imaginary", "sm_80", "sm_90a", "gfx1100"]


@pytest.mark.parametrize("arch", ARCHS)
def test_tiles_of_lanes_take_no_less_than_their_bounds(arch: str) -> None:
    target = target_of(arch)
    chip = target.multiprocessor
    assert chip is not None
    seen = 0
    bound = least_lanes(target, chip)
    for nest in nests(arch, "product", 10):
        parts = facts_of(nest).contraction
        if parts is None:
            continue
        of_all = least_of_all(parts, target)
        for plan in lane_plans(nest, chip):
            seconds = predict(Kernel(nest, plan), target).seconds
            assert 0 < of_all <= bound(plan) * ROUNDING
            assert bound(plan) <= seconds * ROUNDING
            seen += isfinite(seconds)
    assert seen > 500


@pytest.mark.parametrize("arch", ARCHS[1:])
def test_tiles_of_units_take_no_less_than_their_bound(arch: str) -> None:
    target = target_of(arch)
    chip = target.multiprocessor
    assert chip is not None
    seen = 0
    for nest in nests(arch, "product", 10):
        found = unit_access(nest, target.matrix_units)
        for plan in [] if found is None else list(unit_plans(chip, found))[::5]:
            assert found is not None
            seconds = predict(Kernel(nest, plan), target).seconds
            assert 0 < least_units(found) <= seconds * ROUNDING
            seen += isfinite(seconds)
    assert seen > 40


@pytest.mark.each_choice
@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("arch", ARCHS)
def test_groups_take_no_less_than_their_bound(
    arch: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = target_of(arch)
    seen = []

    def checked(kernel: Kernel, description: Any) -> Any:
        found = predict(kernel, description)
        if not kernel.plan.tile:
            seen.append((least_groups(kernel.nest, description), found.seconds))
        return found

    monkeypatch.setattr(choose, "predict", checked)
    for nest in nests(arch, kind, 4):
        choose.choose(nest, target)
    assert len(seen) >= 4
    assert all(0 < least <= seconds * ROUNDING for least, seconds in seen)


@pytest.mark.each_choice
@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("arch", ARCHS)
def test_the_prediction_is_that_of_the_kernel_that_runs(arch: str, kind: str) -> None:
    """What a schedule says that it takes is what its plan, read back, is predicted to take."""
    target = target_of(arch)
    for nest in nests(arch, kind, 4):
        numbers = Numbers(nest)
        kernel, predicted = choose.choose(nest, target)
        schedule = schedule_of(kernel, numbers, "main", 1, predicted)
        again, _ = scheduled_kernel(nest, numbers, read(schedule, "main", target), target)
        assert predict(again, target) == predicted
