"""Loops and branches around nests in the model: what their bodies are, and what is known there."""

from __future__ import annotations

from typing import Any

import pytest

from polyblocks import mlir
from polyblocks.affine.analysis.coverage import digits
from polyblocks.affine.cost.estimate import scaled
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.mlir.nest_cache import NestCache
from polyblocks.affine.mlir.regions import stands_before
from polyblocks.affine.model import (
    Buffer,
    ControlFlow,
    For,
    Nest,
    Sequence,
    Store,
    Value,
    reads,
    writes,
)
from polyblocks.affine.tiles.fusion_stages import FusionStage

PROGRAM = """
func.func @main(%x: memref<10x64xf32>, %p: i1) {
  %state = memref.alloc() : memref<64xf32>
  affine.for %i = 0 to 10 {
    %row = memref.subview %x[%i, 0] [1, 64] [1, 1]
      : memref<10x64xf32> to memref<64xf32, strided<[1], offset: ?>>
    %own = memref.alloc() : memref<64xf32>
    affine.for %j = 0 to 64 {
      %v = affine.load %row[%j] : memref<64xf32, strided<[1], offset: ?>>
      affine.store %v, %own[%j] : memref<64xf32>
    }
    scf.if %p {
      affine.for %j = 0 to 64 {
        %v = affine.load %own[%j] : memref<64xf32>
        affine.store %v, %state[%j] : memref<64xf32>
      }
    } {polyblocks.region = "loop1_branch1"}
  } {polyblocks.region = "loop1"}
  affine.for %j = 0 to 64 {
    %v = affine.load %state[%j] : memref<64xf32>
    affine.store %v, %x[0, %j] : memref<10x64xf32>
  }
  return
}
"""


def held() -> NestCache:
    """The program's model; the module lives as long as it does."""
    return NestCache(mlir.parse(PROGRAM))


def bodies(sequence: Sequence) -> list[Sequence]:
    return [b for item in sequence.items if isinstance(item, ControlFlow) for b in item.bodies]


def test_bodies_are_sequences_with_names() -> None:
    nests = held()
    names = [sequence.name for sequence in nests.sequence.all()]
    # A branch without `else` has an empty block or none.
    assert names[:3] == ["", "loop1_", "loop1_branch1_"]


def test_what_lives_outside_is_carried_in_the_body() -> None:
    nests = held()
    main = nests.sequence
    (loop,) = bodies(main)
    branch = bodies(loop)[0]
    (copy,) = loop.nests()
    (own,) = writes(copy)
    assert own.kind == "alloc"
    (state,) = writes(branch.nests()[0])
    (inner,) = reads(branch.nests()[0])
    assert (state.kind, inner.kind) == ("carried", "carried")
    assert inner.outer is own
    assert state.outer is not None
    assert state.outer.outer in main.buffers


def test_a_loop_reads_what_it_may_leave_as_it_was() -> None:
    nests = held()
    main = nests.sequence
    (region,) = [item for item in main.items if isinstance(item, ControlFlow)]
    x, state = (b for b in main.buffers if b.kind in ("input", "alloc"))
    assert writes(region) == {state}
    assert reads(region) == {x, state}


def test_rows_are_accesses_with_the_variable_of_the_loop() -> None:
    nests = held()
    (loop,) = bodies(nests.sequence)
    nest = loop.nests()[0]
    inner = nest.body[0]
    assert isinstance(inner, For)
    load: Any = inner.body[0]
    assert load.buffer.kind == "input"
    (variable,) = load.index[0].variables()
    assert variable.extent == 10
    assert variable.value is not None


def test_writing_and_reading_again_gives_the_same() -> None:
    nests = held()

    def touch(sequence: Sequence, context: Any) -> None:
        for nest in sequence.nests():
            nest.replace()

    nests.apply(touch, None)
    assert nests.write()
    text = str(nests.module)
    assert nests.module.operation.verify()
    again = NestCache(nests.module)
    again.apply(touch, None)
    again.write()
    assert str(again.module) == text


@pytest.mark.parametrize("outer", [False, True])
def test_the_variable_of_a_loop_around_covers_nothing(outer: bool) -> None:
    i, j = Var(10, value="%i" if outer else None), Var(64)
    buffer = Buffer((10, 64), None, "alloc")
    index = (Expr.of(i), Expr.of(j))
    loops = [j] if outer else [i, j]
    assert (digits(buffer, index, loops) is None) is outer
    body: list[Any] = [For(j, [Store(Value(None), buffer, index)])]
    stage = FusionStage.of(Nest(body if outer else [For(i, body)], []))
    assert stage is not None
    assert (stage.places(stage.stores[0]) is None) is outer


SCALARS = """
func.func @main(%x: memref<64xf32>, %n: memref<index>, %y: memref<64xf32>) {
  affine.for %j = 0 to 64 {
    %v = affine.load %x[%j] : memref<64xf32>
    affine.store %v, %y[%j] : memref<64xf32>
  }
  %at = memref.load %n[] : memref<index>
  %row = memref.subview %x[%at] [8] [1] : memref<64xf32> to memref<8xf32, strided<[1], offset: ?>>
  affine.for %j = 0 to 8 {
    %v = affine.load %row[%j] : memref<8xf32, strided<[1], offset: ?>>
    affine.store %v, %y[%j] : memref<64xf32>
  }
  return
}
"""


def test_what_is_made_between_two_nests_is_not_there_before() -> None:
    nests = NestCache(mlir.parse(SCALARS))
    first, second = nests.sequence.nests()
    assert stands_before(first, second)
    assert not stands_before(second, first)


def test_an_estimate_of_several_runs() -> None:
    one = {
        "iterations": 8,
        "flops": 16,
        "floor_bytes": 32,
        "moved_bytes": 64,
        "bytes": {"L1": 64},
        "seconds": {"L1": 1e-9},
        "predicted_seconds": 1e-9,
        "bound": "L1",
    }
    many = scaled(one, 10)
    assert (many["iterations"], many["bytes"]["L1"], many["bound"]) == (80, 640, "L1")
    assert many["predicted_seconds"] == pytest.approx(1e-8)
