"""Keys of code that are equal for code that is the same but for its names."""

from __future__ import annotations

from typing import Any

import pytest

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.likeness import Remembered, likeness
from polyblocks.affine.model import (
    Buffer,
    For,
    Load,
    Nest,
    Node,
    Op,
    Prefetch,
    Simd,
    Store,
    Value,
    clone,
)

F32 = "f32"


def _nest(
    rows: int = 8, op: str = "arith.addf", shift: int = 0, kinds: str = "input input", kind=F32
) -> list[Node]:
    """``c[i] = a[i + shift] op b[i]``; the buffers may be one."""
    i = Var(rows)
    first, second = kinds.split()
    a = Buffer((16,), F32, first)
    b = a if second == "same" else Buffer((16,), F32, second)
    c = Buffer((16,), F32, "alloc")
    x, y, z = Value(kind), Value(kind), Value(kind)
    body: list[Node] = [
        Load(x, a, (Expr.of(i) + shift,)),
        Load(y, b, (Expr.of(i),)),
        Op(op, [x, y], {}, [z]),
        Store(z, c, (Expr.of(i),)),
    ]
    return [For(i, body)]


def test_names_do_not_matter() -> None:
    nodes = _nest()
    assert likeness(nodes) == likeness(_nest()) == likeness(clone(nodes, {}, {}))


def test_what_the_code_does_matters() -> None:
    others = [
        _nest(rows=7),
        _nest(op="arith.mulf"),
        _nest(shift=1),
        _nest(kinds="input same"),
        _nest(kinds="input alloc"),
        _nest(kind="f64"),
    ]
    keys = [likeness(nodes) for nodes in (_nest(), *others)]
    assert len(set(keys)) == len(keys)


def test_the_order_of_operands_matters() -> None:
    (loop,) = nodes = _nest(op="arith.subf")
    before = likeness(nodes)
    assert isinstance(loop, For)
    op = loop.body[2]
    assert isinstance(op, Op)
    op.operands.reverse()
    assert likeness(nodes) != before


def test_how_a_loop_is_written_matters() -> None:
    (loop,) = nodes = _nest()
    before = likeness(nodes)
    assert isinstance(loop, For)
    loop.lower = (Expr(1),)
    bounded = likeness(nodes)
    loop.lower, loop.level = (), "team"
    assert len({before, bounded, likeness(nodes)}) == 3


def test_what_a_loop_around_counts_matters() -> None:
    """A body by itself: how far the variable runs that it does not contain."""
    bodies = []
    for extent in (4, 5):
        (loop,) = _nest()
        assert isinstance(loop, For)
        loop.var.extent = extent
        bodies.append(likeness(loop.body))
    assert bodies[0] != bodies[1]


def test_quotients_and_remainders_matter() -> None:
    def at(place: Expr) -> list[Node]:
        x = Value(F32)
        a, c = Buffer((16,), F32, "input"), Buffer((16,), F32, "alloc")
        return [Load(x, a, (place,)), Store(x, c, (Expr(0),))]

    i = Var(16)
    places = [Expr.of(i), Expr.of(i) // 2, Expr.of(i) // 4, Expr.of(i) % 2, (Expr.of(i) + 1) // 2]
    assert len({likeness(at(place)) for place in places}) == len(places)


def test_what_was_found_for_code_like_it_is_not_found_again() -> None:
    """Nests of other loops are not even compared, and what else counts is part of the key."""
    bodies = (_nest(), _nest(), _nest(shift=1), _nest(rows=7))
    nests = [Nest(nodes, []) for nodes in bodies]
    remembered: Remembered[int] = Remembered(nests)
    asked: list[int] = []

    def ask(number: int, *also: bool) -> int:
        def find() -> int:
            asked.append(number)
            return number

        return remembered.get(nests[number], nests[number].body, find, *also)

    assert [ask(number) for number in range(4)] == [0, 0, 2, 3]
    assert ask(1, True) == 1
    assert ask(0, True) == 1
    assert asked == [0, 2, 3, 1]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("upper", (Expr(3),)),
        ("tile", True),
        ("lanes", 8),
        ("unit", "mma"),
        ("simd", Simd(8)),
        ("prefetches", [Prefetch(Buffer((16,), F32, "input"), (Expr(0),), False, 1)]),
    ],
)
def test_marks_of_loops_matter(field: str, value: Any) -> None:
    (loop,) = nodes = _nest()
    before = likeness(nodes)
    setattr(loop, field, value)
    assert likeness(nodes) != before


@pytest.mark.parametrize(
    ("node", "field", "value"), [(0, "where", (Expr(1),)), (3, "stream", 64), (3, "peel", True)]
)
def test_marks_of_accesses_matter(node: int, field: str, value: Any) -> None:
    (loop,) = nodes = _nest()
    before = likeness(nodes)
    assert isinstance(loop, For)
    setattr(loop.body[node], field, value)
    assert likeness(nodes) != before


def test_carried_values_matter() -> None:
    """A sum that starts with what was loaded first, and one that starts with what came second."""
    keys = []
    for chosen in (0, 1):
        given, c = [Value(F32), Value(F32)], Buffer((16,), F32, "alloc")
        a = Buffer((16,), F32, "input")
        loads: list[Node] = [Load(v, a, (Expr(i),)) for i, v in enumerate(given)]
        carried, total, result = Value(F32), Value(F32), Value(F32)
        add = Op("arith.addf", [carried, given[0]], {}, [total])
        loop = For(Var(4), [add], [given[chosen]], [carried], [result], [total])
        keys.append(likeness([*loads, loop, Store(result, c, (Expr(0),))]))
    assert keys[0] != keys[1]


def test_where_what_is_only_read_begins_need_not_matter() -> None:
    keys = {likeness(_nest(shift=shift), anywhere=True) for shift in (0, 1, 5)}
    assert len(keys) == 1
    # Of one buffer it matters how far two loads are apart, and of what is stored to everything.
    apart = {likeness(_nest(shift=k, kinds="input same"), anywhere=True) for k in (0, 1, 5)}
    assert len(apart) == 3
    assert len({likeness(_updated(shift), anywhere=True) for shift in (0, 1)}) == 2
    wrapped = {likeness(_wrapped(shift), anywhere=True) for shift in (0, 1)}
    assert len(wrapped) == 2


def _updated(shift: int) -> list[Node]:
    """``a[i] = a[i + shift]``."""
    i, a, x = Var(8), Buffer((16,), F32, "alloc"), Value(F32)
    return [For(i, [Load(x, a, (Expr.of(i) + shift,)), Store(x, a, (Expr.of(i),))])]


def _wrapped(shift: int) -> list[Node]:
    """``b[i] = a[(i + shift) mod 3]``."""
    i, a, b, x = Var(8), Buffer((16,), F32, "input"), Buffer((8,), F32, "alloc"), Value(F32)
    index = (Expr.of(i) + shift) % 3
    return [For(i, [Load(x, a, (index,)), Store(x, b, (Expr.of(i),))])]


def test_what_was_found_for_code_at_another_place_is_known() -> None:
    nests = [Nest(_nest(shift=shift), []) for shift in (0, 3)]
    for anywhere, count in ((False, 2), (True, 1)):
        known: Remembered[int] = Remembered(nests, anywhere=anywhere)
        found: list[int] = []
        for nest in nests:
            known.get(nest, nest.body, lambda found=found: found.append(1) or 1)
        assert len(found) == count
