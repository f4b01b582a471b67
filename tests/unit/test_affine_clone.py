"""Copies of nodes: every field of every kind of node is copied, or replaced as was asked."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from polyblocks.affine.buffers.copies import Barrier, Commit, Wait
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Access,
    Alloca,
    Buffer,
    Check,
    For,
    GuardedStore,
    Index,
    IndirectAtomic,
    IndirectLoad,
    IndirectStore,
    Load,
    Node,
    Op,
    Prefetch,
    Simd,
    Store,
    Value,
    clone,
)
from polyblocks.affine.multiply import Multiply
from polyblocks.affine.swizzles import Swizzle

F32, INDEX = "f32", "index"
ROW, OTHER = Var(8, "i"), Var(8, "j")
OLD, NEW = Buffer((8, 8), F32, "input"), Buffer((8, 8), F32, "input")
GIVEN, TAKEN = Value(F32), Value(F32)
AT, TO = Value(INDEX), Value(INDEX)
PLACE = (Expr.of(ROW), Expr.of(ROW) + 1)
MOVED = (Expr.of(OTHER), Expr.of(OTHER) + 1)
#: What is replaced by what; all else stays.
REPLACED = {OLD: NEW, GIVEN: TAKEN, AT: TO, PLACE: MOVED}

#: A remembered signature: that of no operation, so that all make theirs anew.
SIGNED = (("marks", 0), "name", {}, F32, 0)

ORDER = [
    *("Op", "Index", "Load", "Store", "IndirectLoad", "IndirectStore", "GuardedStore"),
    *("IndirectAtomic", "Alloca", "Check", "Commit", "Wait", "Barrier", "Multiply", "For"),
]

NODES: list[Node] = [
    Op("math.exp", [GIVEN], {"fastmath": "reassoc"}, [Value(F32)], "here", SIGNED),
    Index(Value(INDEX), PLACE[1]),
    Load(Value(F32), OLD, PLACE, "here", PLACE, frozenset({2})),
    Store(GIVEN, OLD, PLACE, "here", stream=64, peel=True, padding=frozenset({2})),
    IndirectLoad(Value(F32), OLD, [AT], "here"),
    IndirectStore(GIVEN, OLD, [AT], "here"),
    GuardedStore(AT, GIVEN, OLD, [AT], "here"),
    IndirectAtomic("arith.addf", GIVEN, OLD, [AT], "here"),
    Alloca(Buffer((4,), F32, "local", space="shared", layout=(Swizzle(0, 0, (0, 1)),))),
    Check(GIVEN, "too large", "here"),
    Commit("here", "products"),
    Wait(2, "here", "products"),
    Barrier("warp", "here"),
    Multiply("llvm.call_intrinsic", [GIVEN], {"intrin": "dot"}, [Value(F32)], "here", SIGNED),
    For(
        Var(8),
        [],
        [GIVEN],
        [Value(F32)],
        [Value(F32)],
        [GIVEN],
        "team",
        PLACE,
        PLACE,
        True,
        32,
        {"k_block": 8},
        "tiles",
        "pack",
        Simd(8, masked=False),
        [Prefetch(OLD, PLACE, True, 2)],
    ),
]


def copied(node: Node) -> Node:
    values, variables = {GIVEN: TAKEN, AT: TO}, {ROW: Expr.of(OTHER)}
    (new,) = clone([node], values, variables, {OLD: NEW})
    return new


def same(old: Any, new: Any) -> bool:
    """Whether ``new`` is the copy of a field."""
    if isinstance(old, (list, tuple)) and old not in (PLACE,):
        return len(old) == len(new) and all(map(same, old, new))
    if isinstance(old, Prefetch):
        return all(
            same(getattr(old, f.name), getattr(new, f.name)) for f in dataclasses.fields(old)
        )
    if isinstance(old, (Value, Buffer, tuple)) and old in REPLACED:
        return new == REPLACED[old]
    if isinstance(old, Value):  # a result
        return new is not old and new.type == old.type
    if isinstance(old, Buffer):  # a local one
        same_memory = (new.space, new.layout) == (old.space, old.layout)
        return new is not old and new.shape == old.shape and new.kind == old.kind and same_memory
    if isinstance(old, Var):
        return new is not old and (new.extent, new.name) == (old.extent, old.name)
    if isinstance(old, Expr):
        return new == old.substitute({ROW: Expr.of(OTHER)})
    return bool(new == old)


def test_there_is_an_example_of_every_kind() -> None:
    def concrete(kind: type) -> set[type]:
        found = {kind} if dataclasses.is_dataclass(kind) else set()
        return found.union(*map(concrete, kind.__subclasses__()))

    # A dataclass with slots is made anew, and the class that it was made of stays.
    kinds = {kind.__name__ for kind in concrete(Node)}
    assert [type(node).__name__ for node in NODES] == sorted(kinds, key=ORDER.index)


@pytest.mark.parametrize("node", NODES, ids=lambda node: type(node).__name__)
def test_no_field_has_its_default(node: Node) -> None:
    """Else a field that is forgotten would look as if it were copied."""
    for field in dataclasses.fields(node):
        made = field.default_factory
        default = field.default if made is dataclasses.MISSING else made()
        empty = isinstance(node, For) and field.name == "body"
        assert empty or getattr(node, field.name) != default, field.name


@pytest.mark.parametrize("node", NODES, ids=lambda node: type(node).__name__)
def test_every_field_is_copied(node: Node) -> None:
    new = copied(node)
    assert type(new) is type(node)
    assert new is not node
    for field in dataclasses.fields(node):
        assert same(getattr(node, field.name), getattr(new, field.name)), field.name


def test_the_body_of_a_loop_is_copied() -> None:
    inner = NODES[3]
    loop = copied(For(Var(4), [inner]))
    assert isinstance(loop, For)
    (store,) = loop.body
    assert isinstance(store, Store)
    assert store.buffer is NEW


@pytest.mark.parametrize("node", NODES, ids=lambda node: type(node).__name__)
def test_a_node_tells_all_its_values_expressions_and_buffers(node: Node) -> None:
    node = copied(node)
    held: list[Any] = []
    for field in dataclasses.fields(node):
        value = getattr(node, field.name)
        held += value if isinstance(value, (list, tuple)) else [value]
    # Arguments of a loop are its own, and so is its variable.
    own = set(node.arguments) if isinstance(node, For) else set()
    values = {v for v in held if isinstance(v, Value)} - own
    assert values == {*node.uses, *node.defines}
    assert {e for e in held if isinstance(e, Expr)} == set(node.exprs)
    assert isinstance(node, Access) == (node.reads or node.writes)


@pytest.mark.parametrize("node", NODES, ids=lambda node: type(node).__name__)
def test_all_that_is_used_can_be_replaced_in_place(node: Node) -> None:
    node = copied(node)
    defined, marks = node.defines, node.marks
    values = {value: Value(value.type) for value in node.uses}
    node.replace_uses(values.__getitem__)
    node.replace_exprs(lambda expr: expr + 5)
    assert set(node.uses) == set(values.values())
    assert all(min(e.const for e in node.exprs) >= 5 for _ in node.exprs)
    assert (node.defines, node.marks) == (defined, marks)


def test_a_remembered_signature_is_of_the_operation_as_it_is() -> None:
    one = Op("math.exp", [GIVEN], {"fastmath": "reassoc"}, [Value(F32)], "here")
    before = one.signature()
    new = copied(one)
    assert new.signature() == before
    assert isinstance(new, Op)
    new.name = "math.exp2"
    assert new.signature() != before
    new.name, new.attributes = one.name, {**one.attributes, "rounds": "free"}
    assert new.signature() != before
    new.attributes = one.attributes
    assert new.signature() == before
    other = Op(one.name, [GIVEN], one.attributes, [Value("f64")], "here", one.signed)
    assert other.signature() != before
