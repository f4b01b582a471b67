"""Which stores pass the caches."""

from __future__ import annotations

import pytest

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Buffer,
    For,
    IndirectStore,
    Load,
    Nest,
    Node,
    Sequence,
    Store,
    Value,
)
from polyblocks.passes.map.nontemporal_stores import mark_nontemporal_stores
from polyblocks.target import MemoryLevel, ParallelLevel, TargetDescription

CHIP = TargetDescription(
    name="test",
    arch="test",
    parallel=(ParallelLevel("team", 1),),
    memory=(MemoryLevel("L1", 1024), MemoryLevel("L2", 4096), MemoryLevel("main", 0)),
    vector_bits=512,
)


def stream_of(
    kind: str = "output",
    shape: tuple[int, int] = (64, 64),
    read_again: bool = False,
    lower: int = 0,
    across: bool = False,
    shift: int = 0,
    width: int = 16,
    reads: int = 0,
    step: int = 1,
    joined: bool = False,
    scattered: bool = False,
    tile: int = 0,
) -> int:
    """What a store to ``out[i, j + shift]`` in ``for i: for j`` is marked with.

    The nest reads ``reads`` rows of an input on the way, every element or each ``step``-th. Rows
    are ``joined`` if the pass is told of the loop around; a local buffer of ``tile`` rows is read.
    """
    out = Buffer(shape, "f32", kind)
    i, j = Var(shape[0]), Var(shape[1] - shift)
    lanes = i if across else j
    value = Value("f32")
    store = Store(value, out, (Expr.of(i), Expr.of(j) + shift))
    inside: list[Node] = [store]
    if reads:
        rows = Buffer((reads, shape[1]), "f32", "input")
        inside.insert(0, Load(value, rows, (Expr.of(Var(reads)), Expr(0, {j: step}))))
    if tile:
        rows = Buffer((tile, shape[1]), "f32", "local")
        inside.insert(0, Load(value, rows, (Expr.of(Var(tile)), Expr.of(j))))
    loop = For(lanes, inside, lower=(Expr(lower),) if lower else ())
    nests = [Nest([loop], [])]
    if read_again:
        body: list[Node] = [Load(Value("f32"), out, (Expr(0), Expr(0)))]
        nests.append(Nest(body, []))
    if scattered:
        place = Value("index")
        nests.append(Nest([IndirectStore(Value("f32"), out, [place, place])], []))
    sequence = Sequence(list(nests), [out])
    around = [For(i, [loop])] if joined else []
    mark_nontemporal_stores(loop, j if across else None, width, sequence, CHIP, around)
    return store.stream


def test_large_outputs_pass_the_caches() -> None:
    assert stream_of() == 64
    assert stream_of(width=8) == 32
    assert stream_of(across=True) == 64
    assert stream_of(lower=16) == 64


def test_what_is_touched_with_an_output_drives_it_out() -> None:
    """The last cache of 4096 bytes keeps most of 5120; rows have 512."""
    assert stream_of(shape=(3, 128), reads=8) == 64
    assert stream_of(shape=(3, 128), reads=7) == 0
    # Lines that are read several times have half of it.
    assert stream_of(shape=(3, 128), reads=2, step=2) == 64
    assert stream_of(shape=(3, 128), reads=1, step=2) == 0
    # A small output is left to whoever reads it next.
    assert stream_of(shape=(2, 128), reads=64) == 0


def test_lines_of_an_output_do_not_drive_out_a_tile() -> None:
    """Two rows of a tile fill the first cache of 1024 bytes; one more is in the second."""
    assert stream_of(shape=(3, 128), reads=1, tile=2) == 0
    assert stream_of(shape=(3, 128), reads=1, tile=3) == 0
    assert stream_of(shape=(4, 128), reads=1, tile=2) == 0
    assert stream_of(shape=(4, 128), reads=1, tile=3) == 64
    assert stream_of(shape=(10, 128), reads=1, tile=2) == 64


def test_a_tile_does_not_wait_for_lines_of_the_one_before_it() -> None:
    """Where nothing else is read, while a tile is computed memory is idle."""
    assert stream_of(shape=(4, 128), tile=2) == 0
    assert stream_of(shape=(5, 128), tile=2) == 64
    # Nothing is computed before a constant is stored.
    assert stream_of(shape=(5, 128)) == 0


def test_short_runs_wait_for_lines() -> None:
    """Rows of 256 bytes have half of the last cache."""
    assert stream_of(shape=(5, 64), reads=4) == 64
    assert stream_of(shape=(5, 64), reads=3) == 0
    # Where a row goes on behind the one before it they are one run.
    assert stream_of(shape=(5, 64), reads=4, joined=True) == 0
    assert stream_of(shape=(5, 64), reads=4, joined=True, shift=16) == 64


@pytest.mark.parametrize(
    "case",
    [
        {"kind": "alloc"},
        {"kind": "input"},
        {"shape": (8, 64)},
        {"shape": (64, 65)},
        {"read_again": True},
        {"scattered": True},
        {"lower": 1},
        {"shift": 8},
        {"width": 4},
    ],
    ids=str,
)
def test_others_do_not(case: dict[str, object]) -> None:
    assert stream_of(**case) == 0  # type: ignore[arg-type]


@pytest.mark.parametrize(("first", "stream"), [(0, 64), (16, 64), (1, 0)])
def test_stores_in_turns_are_those_of_the_first_one(first: int, stream: int) -> None:
    """Together they fill whole vectors from the first place on."""
    out, i = Buffer((3 * 4096 + 16,), "f32", "output"), Var(4096)
    value = Value("f32")
    body: list[Node] = [Store(value, out, (Expr.of(i) * 3 + (first + k),)) for k in range(3)]
    loop = For(i, body)
    mark_nontemporal_stores(loop, None, 16, Sequence([Nest([loop], [])], [out]), CHIP)
    assert [n.stream for n in body if isinstance(n, Store)] == [stream] * 3
    pair = body[:2]
    loop = For(i, pair)
    for node in pair:
        assert isinstance(node, Store)
        node.stream = 0
    mark_nontemporal_stores(loop, None, 16, Sequence([Nest([loop], [])], [out]), CHIP)
    assert not any(n.stream for n in pair if isinstance(n, Store))
