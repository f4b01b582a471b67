"""The cost model's counts of straight-line code."""

from __future__ import annotations

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, For, Load, Node, Op, Store, Value

A = Buffer((8,), "f32", "input")
AT = (Expr.of(Var(8)),)


def op(name: str, *operands: Value) -> Op:
    """One op on floats."""
    return Op(name, list(operands), {}, [Value("f32")])


def load() -> Load:
    return Load(Value("f32"), A, AT)


def test_depth_of_nothing() -> None:
    assert cost.depth([]) == 0
    x = load()
    assert cost.depth([x, Store(x.result, A, AT)]) == 0


def test_depth_is_the_longest_chain() -> None:
    """What does not wait for each other counts once; loads and constants cost no operation."""
    x, y = load(), load()
    c = op("arith.constant")
    a = op("arith.addf", x.result, y.result)
    b = op("arith.addf", x.result, c.results[0])
    nodes: list[Node] = [x, y, c, a, b]
    assert cost.depth(nodes) == 1
    assert cost.operations(nodes) == 2
    nodes.append(op("arith.addf", a.results[0], b.results[0]))
    assert cost.depth(nodes) == 2
    e = op("math.exp", nodes[-1].results[0])
    nodes.append(e)
    assert cost.depth(nodes) == 2 + cost.operation_cost("math.exp")
    # Beside it a shorter one, which ends later.
    nodes.append(op("arith.mulf", x.result, x.result))
    assert cost.depth(nodes) == 2 + cost.operation_cost("math.exp")


def test_depth_counts_only_straight_line_code() -> None:
    """A value of an inner loop, or of outside, is there when the chain begins."""
    carried = Value("f32")
    e = op("math.exp", carried)
    result = Value("f32")
    inner = For(Var(4), [e], [carried], [Value("f32")], [result], [e.results[0]])
    last = op("arith.addf", result, Value("f32"))
    assert cost.depth([inner, last]) == 1


def test_functions_have_constants_once() -> None:
    x = load()
    e, f = op("math.exp", x.result), op("math.tanh", x.result)
    once = cost.constants([x, e, f])
    assert once > cost.constants([x, e]) > 0
    assert cost.constants([x, e, f, op("math.exp", e.results[0])]) == once
    assert cost.constants([x, op("arith.addf", x.result, x.result)]) == 0


def test_alive_are_values_that_something_later_needs() -> None:
    """Not constants, and nothing that comes from outside of the nodes counts twice."""
    x, y = load(), load()
    c = op("arith.constant")
    a = op("arith.addf", x.result, c.results[0])
    b = op("arith.addf", a.results[0], y.result)
    store = Store(b.results[0], A, AT)
    assert cost.alive([x, y, c, a, b, store]) == 2
    # The second one is loaded when the first has been used.
    assert cost.alive([x, c, a, y, b, store]) == 2
    assert cost.alive([x, c, a, Store(a.results[0], A, AT)]) == 1
