"""What is found out once and remembered: it follows every change, and outlives no compilation."""

from __future__ import annotations

import pytest
import torch

from polyblocks.affine.buffers.layout_votes import Ballot
from polyblocks.affine.element import printed
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, For, Load, Nest, Node, Store, Value
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch


def copy(source: Buffer, target: Buffer, swapped: bool = False) -> Nest:
    rows, columns = Var(source.shape[0]), Var(source.shape[1])
    index = (Expr.of(rows), Expr.of(columns))
    value = Value(None)
    body: list[Node] = [Load(value, source, index), Store(value, target, index)]
    loops = (columns, rows) if swapped else (rows, columns)
    return Nest([For(loops[0], [For(loops[1], body)])], [])


def test_a_nest_knows_who_accesses_a_buffer_until_it_changes() -> None:
    a, b = Buffer((4, 8), None, "alloc"), Buffer((4, 8), None, "alloc")
    view = Buffer((4, 8), None, "other", base=a)
    nest = copy(view, b)
    (outer,) = nest.body
    assert isinstance(outer, For)
    (inner,) = outer.body
    assert isinstance(inner, For)
    load, store = inner.body
    assert nest.touching(a) == [load]
    assert nest.touching(b) == [store]
    assert nest.touching(view) == []
    again = Load(Value(None), b, (Expr(0), Expr(0)))
    inner.body.append(again)
    nest.replace()
    assert nest.touching(b) == [store, again]
    assert nest.effects() == ({view, b}, {b})


def test_an_array_whose_layout_is_decided_votes() -> None:
    a, b, c = (Buffer((4, 8), None, kind) for kind in ("input", "alloc", "alloc"))
    first, second = copy(a, b), copy(b, c, swapped=True)
    ballot = Ballot({b, c})
    assert ballot.votes(b, [first, second]) == [0, 4 * 4 * 8]
    assert ballot.votes(c, [second]) == [0, 0]
    ballot.close(b, [first, second], 1)
    assert ballot.votes(c, [second]) == [0, 4 * 4 * 8]


def test_equal_quotients_are_equal_keys() -> None:
    x, y = Var(100), Var(100)
    assert {Expr.of(x) // 7: 1} == {Expr.of(x) // 7: 1}
    assert Expr.of(x) // 7 != Expr.of(y) // 7
    assert Expr.of(x) // 7 != Expr.of(x) % 7
    assert (Expr.of(x) // 7).depends_on(x)
    assert not (Expr.of(x) // 7).depends_on(y)
    assert (Expr.of(x) // 7 + y).depends_on_any({y})
    assert not Expr.of(x).depends_on_any({y})


def test_printed_types_keep_no_context_alive(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("POLYBLOCKS_ISOLATE", "0")
    monkeypatch.setenv("POLYBLOCKS_CACHE_DIR", str(tmp_path))
    printed("f32")
    assert printed.cache_info().currsize
    with torch.no_grad():
        polyblocks_jit_torch(lambda x: torch.exp(x) / 3)(torch.ones(40))
    assert not printed.cache_info().currsize
