"""Which loops carry the winner of all elements so far, in parts that may be joined."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, For, Index, Load, Node, Op, Store, Value
from polyblocks.affine.ops import Floats, Integers, Ops
from polyblocks.affine.vectors.choices import Choice
from polyblocks.mlir import ir

#: From the operations, the new element, what is carried, the place and the place so far: whether
#: the new one wins.
Rule = Callable[[Ops, Value, Value, Value, Value], Value]


@pytest.fixture(autouse=True)
def context() -> object:
    with ir.Context(), ir.Location.unknown():
        yield


def scan(rule: Rule, kind: str = "f32", extra: str = "") -> For:
    """The loop of a running extremum and its place."""
    type_, i64 = ir.Type.parse(kind), ir.IntegerType.get_signless(64)
    k = Var(8)
    best, place, x = Value(type_), Value(i64), Value(type_)
    source, out = Buffer((8,), type_, "input"), Buffer((8,), i64, "output")
    body: list[Node] = [Load(x, source, (Expr.of(k),))]
    ops = Ops(body)
    index = Value(ir.IndexType.get())
    body.append(Index(index, Expr.of(k)))
    here = ops.op("arith.index_cast", [index], i64)
    if extra == "depends":
        x = ops.op("arith.addf", [x, best])
    take = rule(ops, x, best, here, place)
    new, at = ops.select(take, x, best), ops.select(take, here, place)
    body.append(Store(place if extra == "before" else at, out, (Expr.of(k),)))
    starts = [Value(type_), Value(i64)]
    results = [Value(type_), Value(i64)]
    return For(k, body, starts, [best, place], results, [new, at])


def greater(ops: Ops, x: Value, best: Value, here: Value, place: Value) -> Value:
    return ops.compare(Floats.GREATER, x, best)


def not_less_or_nan(ops: Ops, x: Value, best: Value, here: Value, place: Value) -> Value:
    """The running maximum of PyTorch: the later of equal ones, and the last NaN of all."""
    less = ops.compare(Floats.LESS, x, best)
    always = ops.compare(Integers.EQUAL, here, here)
    not_less = ops.op("arith.xori", [less, always])
    nan = ops.compare(Floats.UNORDERED, x, x)
    number = ops.compare(Floats.ORDERED, best, best)
    return ops.op("arith.andi", [not_less, ops.op("arith.ori", [nan, number])])


def different(ops: Ops, x: Value, best: Value, here: Value, place: Value) -> Value:
    """Who wins depends on who is beside whom."""
    less, greater_ = ops.compare(Floats.LESS, x, best), ops.compare(Floats.GREATER, x, best)
    return ops.op("arith.ori", [less, greater_])


def test_a_running_maximum_and_its_place() -> None:
    found = Choice.of(scan(not_less_or_nan))
    assert found is not None
    assert [op.name for op in found.selections] == ["arith.select", "arith.select"]
    assert found.begins_with([float("-inf"), 0])
    assert not found.begins_with([0.0, 0])


def test_a_maximum_that_stays_before_no_number_is_none_of_parts() -> None:
    # 1 > NaN is false, and NaN > 0 is: of (0, NaN, 1) the last or the first wins.
    assert Choice.of(scan(greater)) is None


def test_integers() -> None:
    def less(ops: Ops, x: Value, best: Value, here: Value, place: Value) -> Value:
        return ops.compare(Integers.LESS, x, best)

    found = Choice.of(scan(less, "i32"))
    assert found is not None
    # The first of equal ones wins: what begins must be no number of the type.
    assert not found.begins_with([(1 << 31) - 1, 0])


def test_the_larger_of_two_and_the_place_of_the_later() -> None:
    loop = scan(lambda ops, x, best, here, place: ops.compare(Integers.LESS, best, x), "i32")
    new = loop.yields[0]
    (maker,) = (n for n in loop.body if new in n.defines)
    assert isinstance(maker, Op)
    at = loop.body.index(maker)
    loop.body[at] = Op("arith.maxsi", maker.operands[1:], {}, [new])
    assert Choice.of(loop) is not None


@pytest.mark.parametrize(
    "loop",
    [
        lambda: scan(different),
        lambda: scan(not_less_or_nan, extra="depends"),
        lambda: scan(not_less_or_nan, extra="before"),
    ],
    ids=["neighbours decide", "the element depends on it", "what was carried is seen"],
)
def test_what_is_none(loop: Callable[[], For]) -> None:
    assert Choice.of(loop()) is None


def test_parts_are_joined_by_the_same_operations() -> None:
    loop = scan(not_less_or_nan)
    found = Choice.of(loop)
    assert found is not None
    types = [v.type for v in loop.arguments]
    first, second = ([Value(t) for t in types] for _ in range(2))
    out: list[Node] = []
    results = found.join(first, second, out)
    assert [v.type for v in results] == types
    assert len(out) == len(found.nodes)
    assert not set(results) & set(found.results)
