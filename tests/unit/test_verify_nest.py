"""What verify_nest refuses, and that a pipeline checks nests behind each pass if it is told to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import pytest

from polyblocks import mlir
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.mlir.verify import InvalidNestError, verify_nest
from polyblocks.affine.model import (
    Alloca,
    Buffer,
    For,
    Load,
    Nest,
    Op,
    Sequence,
    Store,
    Value,
    walk,
)
from polyblocks.errors import PassError
from polyblocks.options import CompileOptions
from polyblocks.passes.base import NestPass
from polyblocks.pipeline import PassContext, run_stage
from polyblocks.target import MemoryLevel, ParallelLevel, TargetDescription

A, B = Buffer((8,), "f32", "input"), Buffer((8,), "f32", "output")


def doubled() -> tuple[Nest, For]:
    """``b[i] = a[i] + a[i]`` as a nest, and its loop."""
    i, x, y = Var(8, "i"), Value("f32"), Value("f32")
    at = (Expr.of(i),)
    loop = For(i, [Load(x, A, at), Op("arith.addf", [x, x], {}, [y]), Store(y, B, at)])
    return Nest([loop], []), loop


def use_before(loop: For) -> None:
    loop.body.insert(0, loop.body.pop())


def define_twice(loop: For) -> None:
    loop.body.append(loop.body[0])


def other_variable(loop: For) -> None:
    loop.body.append(Load(Value("f32"), A, (Expr.of(Var(8, "j")),)))


def wrong_rank(loop: For) -> None:
    loop.body.append(Load(Value("f32"), A, (Expr(0), Expr(0))))


def lost_buffer(loop: For) -> None:
    local = Buffer((1,), "f32", "local")
    loop.body.append(For(Var(2), [Alloca(local)]))
    loop.body.append(Load(Value("f32"), local, (Expr(0),)))


def half_carried(loop: For) -> None:
    loop.inits = [Value("f32", external="outside")]


def other_type(loop: For) -> None:
    start = Value("f32", external="outside")
    loop.inits, loop.arguments, loop.results = [start], [Value("f32")], [Value("f64")]
    loop.yields = [loop.arguments[0]]


class ForgetLoops(NestPass):
    name = "forget-loops"

    def transform(self, sequence: Sequence, context: object) -> None:
        for nest in sequence.nests():
            (loop,) = nest.body
            assert isinstance(loop, For)
            nest.replace(loop.body)


class LookAtAll(NestPass):
    name = "look-at-all"

    def transform(self, sequence: Sequence, context: object) -> None:
        pass


@dataclass
class IndexTwice(NestPass):
    """Gives a store another index than its array has dimensions."""

    replace: bool = True
    name: ClassVar[str] = "index-twice"

    def transform(self, sequence: Sequence, context: object) -> None:
        for nest in sequence.nests():
            for node in walk(nest.body):
                if isinstance(node, Store):
                    node.index = (*node.index, *node.index)
                    if self.replace:
                        nest.replace()


def test_a_well_formed_nest_passes() -> None:
    nest, loop = doubled()
    loop.body.append(Load(Value("f32"), A, (Expr.of(Var(8, "j", value="of the program")),)))
    verify_nest(nest)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (use_before, "a Store is wrong: expected values that are defined before"),
        (define_twice, "a Load is wrong: expected new results"),
        (other_variable, "expected variables of loops around"),
        (wrong_rank, "expected 1 indices of input.*, got 2"),
        (lost_buffer, "expected a buffer that lives there"),
        (half_carried, r"expected as many of each, got \[1, 0, 0, 0\] carried"),
        (other_type, r"expected one type, got \['f32', 'f32', 'f64', 'f32'\] carried"),
    ],
)
def test_what_is_wrong_is_said(change: Callable[[For], None], message: str) -> None:
    nest, loop = doubled()
    change(loop)
    with pytest.raises(InvalidNestError, match=message):
        verify_nest(nest)


def test_a_change_without_replace_is_found() -> None:
    nest, loop = doubled()
    assert nest.effects()[0] == {A}
    del loop.body[:]
    with pytest.raises(InvalidNestError, match=r"expected a call of Nest\.replace"):
        verify_nest(nest)
    nest.replace()
    verify_nest(nest)
    assert nest.effects() == (set(), set())


def test_a_body_that_was_checked_is_checked_again_if_it_is_replaced() -> None:
    nest, loop = doubled()
    verify_nest(nest, again=False)
    wrong_rank(loop)
    verify_nest(nest, again=False)
    with pytest.raises(InvalidNestError, match="expected 1 indices"):
        verify_nest(nest)
    nest.replace()
    with pytest.raises(InvalidNestError, match="a nest: a Load is wrong: expected 1 indices"):
        verify_nest(nest, again=False)


MODULE = (
    "func.func @main(%a: memref<8xf32>) { %c = arith.constant 0.0 : f32\n"
    "affine.for %i = 0 to 8 { affine.store %c, %a[%i] : memref<8xf32> }\n return }"
)


@pytest.mark.parametrize(
    ("passes", "message"),
    [
        ([ForgetLoops()], "forget-loops.*expected variables of loops around"),
        # What a pass says nothing of is found before the module is written.
        ([LookAtAll(), IndexTwice(replace=True)], "index-twice.*expected 1 indices"),
        ([LookAtAll(), IndexTwice(replace=False)], "expected 1 indices"),
    ],
)
def test_a_pipeline_names_the_pass_that_leaves_such_a_nest(
    monkeypatch: pytest.MonkeyPatch, passes: list[NestPass], message: str
) -> None:
    """With ``POLYBLOCKS_VERIFY``, as in all tests."""
    monkeypatch.setenv("POLYBLOCKS_VERIFY", "1")
    target = TargetDescription("t", "a", (ParallelLevel("team", 2),), (MemoryLevel("main", 0),))
    context = PassContext.create(target, CompileOptions())
    with pytest.raises((PassError, InvalidNestError), match=message):
        run_stage("S3", passes, mlir.parse(MODULE), context)
