"""Rows of a tile that are computed to the end of a vector: when, and that nothing else changes."""

from __future__ import annotations

import random

import numpy as np
import pytest
from sweeps import sweep
from tests.support.nests import buffer, check, innermost, tiled_like, weighted

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Alloca,
    Buffer,
    For,
    IndirectLoad,
    Load,
    Nest,
    Node,
    Op,
    Store,
    Value,
    walk,
)
from polyblocks.affine.tiles.row_padding import MAX_GROWTH, MIN_ROW, ROW, row_of


def rows_of(nest: Nest) -> list[tuple[int, bool]]:
    """Extents of the innermost loops, in order, and whether they have bounds."""
    return [(loop.var.extent, loop.bounded) for loop in innermost(nest.body)]


def is_padded(row: tuple[int, bool]) -> bool:
    """Whether a row is whole vectors, always."""
    extent, bounded = row
    return extent % ROW == 0 and not bounded


def chain(rows: int, columns: int, *offsets: int) -> tuple[list[Nest], Buffer, Buffer]:
    """A stage that reads the input, one per offset (with a halo along the row), and an output."""
    a = buffer(rows, columns + sum(offsets), kind="input")
    made = [a, buffer(*a.shape)]
    nests = [weighted(made[1], (0, 0), a.shape, (a, (0, 0), 1.5))]
    for k, offset in enumerate(offsets):
        last = k == len(offsets) - 1
        shape = (rows, made[-1].shape[1] - offset)
        new = buffer(*shape, kind="output" if last else "alloc")
        taps = [(made[-1], (0, o), 1.0 + o) for o in sorted({0, offset // 2, offset})]
        nests.append(weighted(new, (0, 0), shape, *taps))
        made.append(new)
    return nests, a, made[-1]


def values(a: Buffer) -> dict[Buffer, np.ndarray]:
    return {a: np.random.default_rng(1).random(a.shape)}


def test_row_of() -> None:
    assert [row_of(n) for n in (1, 15, 16, 17, 33)] == [16, 16, 16, 32, 48]


@pytest.mark.parametrize("columns", [29, 31, 37, 61, 100])
@pytest.mark.parametrize("offsets", [(0, 0), (2, 0), (2, 2, 0), (4, 2, 1)])
def test_stages_between_local_buffers(columns: int, offsets: tuple[int, ...]) -> None:
    """All but the first and the last stage; their buffers have room for what they compute."""
    nests, a, out = chain(9, columns, *offsets)
    nest = check(nests, values(a), out, (2, columns))
    first, *between, last = rows_of(nest)
    assert all(is_padded(row) for row in between)
    assert first == (a.shape[1], False)
    assert last == (columns, False)


@pytest.mark.parametrize("size", [(3, 24), (2, 32), (4, 40), (9, 25)])
def test_tiles_that_cut_rows(size: tuple[int, int]) -> None:
    """At the edges of the image the loops have bounds no more; the outer ones keep theirs."""
    a, b = buffer(9, 70, kind="input"), buffer(9, 70)
    c, out = buffer(9, 68), buffer(9, 66, kind="output")
    nests = [
        weighted(b, (0, 0), (9, 70), (a, (0, 0), 1.0)),
        weighted(c, (0, 0), (9, 68), *((b, (0, k), k + 1.0) for k in range(3))),
        weighted(out, (0, 0), (9, 66), *((c, (0, k), k + 2.0) for k in range(3))),
    ]
    nest = check(nests, values(a), out, size)
    first, middle, last = rows_of(nest)
    assert is_padded(middle)
    assert first[1] == last[1] == (66 % size[1] != 0)


def test_parts_of_a_buffer_in_different_rows() -> None:
    """Two stages write one local buffer, one the upper rows and one the lower ones."""
    a, b, c = buffer(8, 30, kind="input"), buffer(8, 30), buffer(8, 30)
    out = buffer(8, 30, kind="output")
    nests = [
        weighted(b, (0, 0), (8, 30), (a, (0, 0), 1.0)),
        weighted(c, (0, 0), (3, 30), (b, (0, 0), 2.0)),
        weighted(c, (3, 0), (5, 30), (b, (3, 0), 3.0)),
        weighted(out, (0, 0), (8, 30), (c, (0, 0), 1.0)),
    ]
    nest = check(nests, values(a), out, (2, 30))
    assert [is_padded(row) for row in rows_of(nest)] == [False, True, True, False]


def test_what_was_written_before_in_these_rows_stays() -> None:
    """The first part may run over, the second one may not; whichever is on the left."""
    a, b, c = buffer(8, 90, kind="input"), buffer(8, 90), buffer(8, 90)
    out = buffer(8, 90, kind="output")
    left = weighted(c, (0, 0), (8, 20), (b, (0, 0), 2.0))
    right = weighted(c, (0, 20), (8, 70), (b, (0, 20), 3.0))
    for parts, expected in (((left, right), [True, False]), ((right, left), [True, False])):
        nests = [
            weighted(b, (0, 0), (8, 90), (a, (0, 0), 1.0)),
            *parts,
            weighted(out, (0, 0), (8, 90), (c, (0, 0), 1.0)),
        ]
        nest = check(nests, values(a), out, (2, 90))
        assert [is_padded(row) for row in rows_of(nest)][1:3] == expected


def test_short_rows_are_left() -> None:
    for columns, expected in ((MIN_ROW - 1, False), (14, True)):
        nests, a, out = chain(9, columns, 0, 0)
        nest = check(nests, values(a), out, (2, columns))
        assert is_padded(rows_of(nest)[1]) == expected


def test_rows_do_not_grow_much() -> None:
    """A row of 12 would grow by a third; in one dimension there is no room beforehand."""
    for columns in (12, 13):
        nests, a, out = chain(9, columns, 0, 0)
        nest = check(nests, values(a), out, (2, columns))
        assert is_padded(rows_of(nest)[1]) == (ROW / columns <= 1 + MAX_GROWTH)
    for size in (40, 60):
        a, b, c = buffer(size, kind="input"), buffer(size), buffer(size)
        out = buffer(size, kind="output")
        nests = [weighted(t, (0,), (size,), (s, (0,), 2.0)) for s, t in ((a, b), (b, c), (c, out))]
        nest = check(nests, values(a), out, (size,))
        assert is_padded(rows_of(nest)[1]) == (row_of(size) / size <= 1 + MAX_GROWTH)


def test_whole_vectors_are_left() -> None:
    nests, a, out = chain(9, 64, 0, 0)
    nest = check(nests, values(a), out, (2, 64))
    assert rows_of(nest)[1] == (64, False)
    assert {n.buffer.shape for n in walk(nest.body) if isinstance(n, Alloca)} == {(2, 64)}


def between(body: list[Node], i: Var, j: Var, source: Buffer, target: Buffer) -> list[Nest]:
    """A chain of three stages whose middle one, from source to target, has this body."""
    a, out = buffer(*source.shape, kind="input"), buffer(*target.shape, kind="output")
    return [
        weighted(source, (0, 0), source.shape, (a, (0, 0), 1.0)),
        Nest([For(i, [For(j, body)])], [], changed=True),
        weighted(out, (0, 0), target.shape, (target, (0, 0), 1.0)),
    ]


def output(nests: list[Nest]) -> Buffer:
    """What the last nest writes."""
    return next(n.buffer for n in walk(nests[-1].body) if isinstance(n, Store))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("arith.muli", True),
        ("arith.divf", True),
        ("arith.remf", True),
        ("arith.divsi", False),
        ("arith.divui", False),
        ("arith.ceildivsi", False),
        ("arith.ceildivui", False),
        ("arith.floordivsi", False),
        ("arith.remsi", False),
        ("arith.remui", False),
    ],
)
def test_what_traps_sees_no_arbitrary_numbers(name: str, expected: bool) -> None:
    b, c = buffer(8, 30), buffer(8, 30)
    i, j = Var(8), Var(30)
    at = (Expr.of(i), Expr.of(j))
    x, y = Value("i32"), Value("i32")
    body = [Load(x, b, at), Op(name, [x, x], {}, [y]), Store(y, c, at)]
    nests = between(body, i, j, b, c)
    nest = tiled_like(nests, (2, 30), output(nests))
    assert is_padded(rows_of(nest)[1]) == expected


def test_run_time_indices_are_none_beyond_the_row() -> None:
    b, c, table = buffer(8, 30), buffer(8, 30), buffer(50, kind="input")
    i, j = Var(8), Var(30)
    at = (Expr.of(i), Expr.of(j))
    x, y = Value("index"), Value("f32")
    body = [Load(x, b, at), IndirectLoad(y, table, [x]), Store(y, c, at)]
    nests = between(body, i, j, b, c)
    nest = tiled_like(nests, (2, 30), output(nests))
    assert rows_of(nest)[1] == (30, False)


def test_an_input_has_no_room() -> None:
    """Nothing is read beyond an array of the program; what is the same for a row may be."""
    a, b, c = buffer(8, 30, kind="input"), buffer(8, 30), buffer(8, 30)
    out = buffer(8, 30, kind="output")
    nests = [
        weighted(b, (0, 0), (8, 30), (a, (0, 0), 1.0)),
        weighted(c, (0, 0), (8, 30), (b, (0, 0), 2.0), (a, (0, 0), 3.0)),
        weighted(out, (0, 0), (8, 30), (c, (0, 0), 1.0)),
    ]
    nest = check(nests, values(a), out, (2, 30))
    assert rows_of(nest)[1] == (30, False)

    f = buffer(8, kind="input")
    i, j = Var(8), Var(30)
    x, y, z = (Value("f32") for _ in range(3))
    body: list[Node] = [
        Load(x, b, (Expr.of(i), Expr.of(j))),
        Load(y, f, (Expr.of(i),)),
        Op("arith.mulf", [x, y], {}, [z]),
        Store(z, c, (Expr.of(i), Expr.of(j))),
    ]
    nests[1] = Nest([For(i, [For(j, body)])], [], changed=True)
    nest = check(nests, values(a) | values(f), out, (2, 30))
    assert is_padded(rows_of(nest)[1])


@pytest.mark.parametrize("seed", sweep(range(150), *range(30)))
def test_random_chains(seed: int) -> None:
    """Halos, parts and buffers that share storage, at sizes that are no multiples of a vector."""
    rng = random.Random(seed)
    rows, columns = rng.randint(3, 8), rng.randint(20, 70)
    a = buffer(rows, columns, kind="input")
    made = [a]
    nests: list[Nest] = []
    count = rng.randint(3, 6)
    for k in range(count):
        source = made[-1]
        h, w = rng.choice([0, 0, 1]), rng.choice([0, 1, 2, 5])
        h = min(h, source.shape[0] - 1)
        shape = (source.shape[0] - h, source.shape[1] - w)
        new = buffer(*shape, kind="output" if k == count - 1 else "alloc")
        taps = [(source, (rng.randint(0, h), o), rng.random()) for o in {0, w, rng.randint(0, w)}]
        if len(made) > 2:
            taps.append((rng.choice(made[1:]), (0, 0), rng.random()))
        cut = rng.choice([0, 0, rng.randint(1, shape[1] - 1)])
        if cut:
            parts = [
                weighted(new, (0, 0), (shape[0], cut), *taps),
                weighted(
                    new,
                    (0, cut),
                    (shape[0], shape[1] - cut),
                    *((b, (o[0], o[1] + cut), f) for b, o, f in taps),
                ),
            ]
            rng.shuffle(parts)
            nests += parts
        else:
            nests.append(weighted(new, (0, 0), shape, *taps))
        made.append(new)
    tile = (
        rng.randint(1, made[-1].shape[0]),
        rng.randint(min(8, made[-1].shape[1]), made[-1].shape[1]),
    )
    check(nests, values(a), made[-1], tile)


def test_random_chains_are_padded_at_all() -> None:
    """The buffers above are long enough that most stages between are whole vectors."""
    nests, a, out = chain(6, 53, 1, 5, 2)
    nest = check(nests, values(a), out, (2, 20))
    assert [is_padded(row) for row in rows_of(nest)] == [False, True, True, False]
