"""fuse-sibling-loops on the model, without MLIR: what it makes computes what was there before."""

from __future__ import annotations

import random

import numpy as np
import pytest
from sweeps import sweep
from tests.support.nests import Context, buffer, innermost, row_sum, run, tiled_like, weighted

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    AffineAccess,
    Alloca,
    Buffer,
    For,
    Load,
    Nest,
    Node,
    Op,
    Sequence,
    Store,
    Value,
    around,
    walk,
)
from polyblocks.affine.naming.names import name_nests
from polyblocks.affine.rewrites.merging import forward
from polyblocks.passes.fuse.fuse_sibling_loops import FuseSiblingLoopsPass
from polyblocks.passes.fuse.fuse_tiles import FuseTilesPass


def merge(sequence: Sequence, **options: int) -> Context:
    """Run the pass on nests that have their kinds."""
    context = Context()
    name_nests("test", sequence, context)
    context.decisions.clear()
    FuseSiblingLoopsPass(**options).transform(sequence, context)
    return context


def loads(nodes: list[Node], source: Buffer) -> int:
    """Loads of a buffer in these nodes."""
    return sum(isinstance(n, Load) and n.buffer is source for n in walk(nodes))


def both(first: Nest, second: Nest) -> Nest:
    """The bodies of two nests under one outer loop, which both have."""
    a, b = first.body[0], second.body[0]
    assert isinstance(a, For)
    assert isinstance(b, For)
    for node in walk(b.body):
        if isinstance(node, AffineAccess):
            node.index = tuple(e.substitute({b.var: Expr.of(a.var)}) for e in node.index)
    return Nest([For(a.var, [*a.body, *b.body])], [], changed=True)


def with_alloca(nest: Nest, *local: Buffer) -> Nest:
    """The nest with buffers of its own in its outermost loop."""
    loop = nest.body[0]
    assert isinstance(loop, For)
    loop.body[:0] = [Alloca(b) for b in local]
    return nest


def unchanged(sequence: Sequence) -> None:
    """The pass leaves all loops as they are."""
    before = len(innermost([n for nest in sequence.nests() for n in nest.body]))
    nests = list(sequence.nests())
    context = merge(sequence)
    assert sequence.nests() == nests
    assert len(innermost([n for nest in nests for n in nest.body])) == before
    assert context.decisions == []


def test_what_a_reduction_loads_stays_in_a_register() -> None:
    """A row is computed and summed by one loop, and the row itself goes."""
    a, t, out = buffer(6, 9, kind="input"), buffer(6, 9, kind="local"), buffer(6, kind="output")
    nest = both(weighted(t, (0, 0), (6, 9), (a, (0, 0), 2.0)), row_sum(out, t))
    sequence = Sequence([with_alloca(nest, t)], [])
    values = {a: np.random.default_rng(1).random(a.shape)}
    expected = run(sequence, values, out)
    context = merge(sequence)
    assert context.decisions == [("merged", {"loops": 1})]
    assert len(innermost(nest.body)) == 1
    assert not any(isinstance(n, Alloca) for n in walk(nest.body))
    assert loads(nest.body, t) == 0
    np.testing.assert_array_equal(run(sequence, values, out), expected)


def test_a_row_that_is_read_again_is_kept() -> None:
    """The load behind the store goes; the store stays, for a loop that cannot be merged."""
    a, t = buffer(6, 9, kind="input"), buffer(6, 9, kind="local")
    s, out = buffer(6, kind="local"), buffer(6, 9, kind="output")
    first = both(weighted(t, (0, 0), (6, 9), (a, (0, 0), 2.0)), row_sum(s, t))
    nest = with_alloca(both(first, _scaled_rows(out, t, s)), t, s)
    sequence = Sequence([nest], [])
    values = {a: np.random.default_rng(1).random(a.shape)}
    expected = run(sequence, values, out)
    merge(sequence)
    assert len(innermost(nest.body)) == 2
    assert loads(nest.body, t) == 1
    np.testing.assert_array_equal(run(sequence, values, out), expected)


def _scaled_rows(target: Buffer, source: Buffer, factor: Buffer) -> Nest:
    """``target[i, j] = source[i, j] * factor[i]``; the factor is loaded in front of the loop."""
    i, j = (Var(n) for n in target.shape)
    f, x, y = (Value("f32") for _ in range(3))
    inner = For(
        j,
        [
            Load(x, source, (Expr.of(i), Expr.of(j))),
            Op("arith.mulf", [x, f], {}, [y]),
            Store(y, target, (Expr.of(i), Expr.of(j))),
        ],
    )
    return Nest([For(i, [Load(f, factor, (Expr.of(i),)), inner])], [], changed=True)


def test_a_buffer_is_there_before_the_merged_loop() -> None:
    """Storage that begins between two loops begins in front of the loop that they become."""
    a, t = buffer(6, 9, kind="input"), buffer(6, 9, kind="local")
    b, out = buffer(6, 9, kind="output"), buffer(6, 9, kind="output")
    nest = both(
        weighted(b, (0, 0), (6, 9), (a, (0, 0), 2.0)),
        weighted(t, (0, 0), (6, 9), (a, (0, 0), 3.0)),
    )
    loop = nest.body[0]
    assert isinstance(loop, For)
    loop.body.insert(1, Alloca(t))
    # Backwards along the row: it stays a loop of its own, and the buffer stays.
    i, j = loop.var, Var(9)
    x = Value("f32")
    loop.body.append(
        For(
            j,
            [
                Load(x, t, (Expr.of(i), Expr.of(j) * -1 + 8)),
                Store(x, out, (Expr.of(i), Expr.of(j))),
            ],
        )
    )
    sequence = Sequence([nest], [])
    values = {a: np.random.default_rng(1).random(a.shape)}
    expected = run(sequence, values, out)
    merge(sequence)
    assert len(innermost(nest.body)) == 2
    assert isinstance(loop.body[0], Alloca)
    np.testing.assert_array_equal(run(sequence, values, out), expected)


def test_siblings_read_an_argument_once() -> None:
    a, b, c = buffer(6, 9, kind="input"), buffer(6, 9, kind="output"), buffer(6, kind="output")
    other, d = buffer(7, kind="input"), buffer(7, kind="output")
    nests = [
        weighted(b, (0, 0), (6, 9), (a, (0, 0), 2.0)),
        weighted(d, (0,), (7,), (other, (0,), 1.0)),
        row_sum(c, a),
    ]
    sequence = Sequence(list(nests), [])
    generator = np.random.default_rng(2)
    values = {a: generator.random(a.shape), other: generator.random(other.shape)}
    expected = [run(sequence, values, out) for out in (b, c, d)]
    context = merge(sequence)
    what, numbers = context.decisions[0]
    assert what == "merged"
    assert isinstance(numbers["with_"], list)
    assert len(sequence.nests()) == 2
    assert loads(sequence.nests()[0].body, a) == 1
    for out, before in zip((b, c, d), expected, strict=True):
        np.testing.assert_array_equal(run(sequence, values, out), before)


def pairs(target: Buffer, a: Buffer, b: Buffer, name: str) -> Nest:
    """``target[i, j] = sum over k of op(a[i, k], b[j, k])``."""
    i, j, k = Var(a.shape[0]), Var(b.shape[0]), Var(a.shape[1])
    zero, argument, x, y, made, new, result = (Value("f32") for _ in range(7))
    step: list[Node] = [
        Load(x, a, (Expr.of(i), Expr.of(k))),
        Load(y, b, (Expr.of(j), Expr.of(k))),
        Op(name, [x, y], {}, [made]),
        Op("arith.addf", [argument, made], {"fastmath": "reassoc"}, [new]),
    ]
    body: list[Node] = [
        Op("arith.constant", [], {"value": 0.0}, [zero]),
        For(k, step, [zero], [argument], [result], [new]),
        Store(result, target, (Expr.of(i), Expr.of(j))),
    ]
    return Nest(around([i, j], body), [], changed=True)


@pytest.mark.parametrize(("name", "count"), [("arith.mulf", 2), ("arith.subf", 1)])
def test_products_have_no_siblings_and_other_contractions_do(name: str, count: int) -> None:
    """One kind; but a product is scheduled for the registers of one."""
    a, b = buffer(6, 9, kind="input"), buffer(5, 9, kind="input")
    outs = [buffer(6, 5, kind="output") for _ in range(2)]
    sequence = Sequence([pairs(out, a, b, name) for out in outs], [])
    values = {x: np.random.default_rng(1).random(x.shape) for x in (a, b)}
    expected = run(sequence, values, outs[1])
    merge(sequence)
    assert [nest.kind for nest in sequence.nests()] == ["contraction"] * count
    assert loads(sequence.nests()[0].body, a) == 1
    np.testing.assert_array_equal(run(sequence, values, outs[1]), expected)


def test_what_only_siblings_load_is_not_stored() -> None:
    a, t = buffer(6, 9, kind="input"), buffer(6, 9)
    outs = [buffer(6, 9, kind="output") for _ in range(3)]
    nests = [weighted(t, (0, 0), (6, 9), (a, (0, 0), 2.0))]
    nests += [weighted(o, (0, 0), (6, 9), (t, (0, 0), 1.0 + i)) for i, o in enumerate(outs)]
    sequence = Sequence(list(nests), [])
    values = {a: np.random.default_rng(3).random(a.shape)}
    expected = [run(sequence, values, out) for out in outs]
    merge(sequence)
    (nest,) = sequence.nests()
    assert loads(nest.body, t) == 0
    assert not any(isinstance(n, Store) and n.buffer is t for n in walk(nest.body))
    for out, before in zip(outs, expected, strict=True):
        np.testing.assert_array_equal(run(sequence, values, out), before)


def test_what_others_load_too_is_still_stored() -> None:
    a, t = buffer(6, 9, kind="input"), buffer(6, 9)
    out, shifted = buffer(6, 9, kind="output"), buffer(5, 9, kind="output")
    nests = [
        weighted(t, (0, 0), (6, 9), (a, (0, 0), 2.0)),
        weighted(out, (0, 0), (6, 9), (t, (0, 0), 3.0)),
        weighted(shifted, (0, 0), (5, 9), (t, (1, 0), 1.0)),
    ]
    sequence = Sequence(list(nests), [])
    values = {a: np.random.default_rng(4).random(a.shape)}
    expected = [run(sequence, values, o) for o in (out, shifted)]
    merge(sequence)
    assert len(sequence.nests()) == 2
    for o, before in zip((out, shifted), expected, strict=True):
        np.testing.assert_array_equal(run(sequence, values, o), before)


@pytest.mark.parametrize("place, count", [(8, 1), (11, 1), (7, 2), (1, 2)])
def test_parts_of_one_buffer_that_do_not_overlap(place: int, count: int) -> None:
    a, out = buffer(8, kind="input"), buffer(24, kind="output")
    nests = [
        weighted(out, (0,), (8,), (a, (0,), 2.0)),
        weighted(out, (place,), (8,), (a, (0,), 3.0)),
    ]
    sequence = Sequence(list(nests), [])
    values = {a: np.random.default_rng(5).random(a.shape)}
    expected = run(sequence, values, out)
    merge(sequence)
    assert len(sequence.nests()) == count
    np.testing.assert_array_equal(run(sequence, values, out), expected)


def test_a_sibling_does_not_pass_who_writes_what_it_reads() -> None:
    """Between the two a nest changes what the second one reads besides."""
    a, b, c = buffer(8, kind="input"), buffer(8, kind="output"), buffer(8, kind="output")
    t = buffer(8)
    unchanged(
        Sequence(
            [
                weighted(b, (0,), (8,), (a, (0,), 2.0)),
                weighted(t, (0,), (5,), (c, (2,), 1.0)),
                weighted(c, (0,), (8,), (a, (0,), 2.0), (t, (0,), 1.0)),
            ],
            [],
        )
    )


def test_a_sibling_does_not_pass_who_reads_what_it_writes() -> None:
    a, b, c = buffer(8, kind="input"), buffer(8, kind="output"), buffer(8, kind="output")
    t = buffer(5)
    unchanged(
        Sequence(
            [
                weighted(b, (0,), (8,), (a, (0,), 2.0)),
                weighted(t, (0,), (5,), (c, (2,), 1.0)),
                weighted(c, (0,), (8,), (a, (0,), 3.0)),
            ],
            [],
        )
    )


@pytest.mark.parametrize("shift", [-1, 1, 3])
def test_a_shifted_read_of_what_is_stored_is_not_merged(shift: int) -> None:
    """Another iteration stores what this one would read."""
    a, t, out = buffer(16, kind="input"), buffer(16), buffer(8, kind="output")
    unchanged(
        Sequence(
            [
                weighted(t, (4,), (8,), (a, (4,), 2.0)),
                weighted(out, (0,), (8,), (t, (4 + shift,), 1.0), (a, (0,), 1.0)),
            ],
            [],
        )
    )


def test_other_extents_are_not_merged() -> None:
    a, b, c = buffer(9, kind="input"), buffer(9, kind="output"), buffer(8, kind="output")
    unchanged(
        Sequence(
            [
                weighted(b, (0,), (9,), (a, (0,), 2.0)),
                weighted(c, (0,), (8,), (a, (0,), 2.0)),
            ],
            [],
        )
    )


def test_nothing_in_common_is_nothing_to_gain() -> None:
    a, b = buffer(9, kind="input"), buffer(9, kind="output")
    c, d = buffer(9, kind="input"), buffer(9, kind="output")
    unchanged(
        Sequence(
            [
                weighted(b, (0,), (9,), (a, (0,), 2.0)),
                weighted(d, (0,), (9,), (c, (0,), 2.0)),
            ],
            [],
        )
    )


def test_bodies_stay_short_enough() -> None:
    a, b, c = buffer(9, kind="input"), buffer(9, kind="output"), buffer(9, kind="output")

    def nests() -> Sequence:
        taps = [(a, (0,), 2.0), (a, (0,), 3.0)]
        return Sequence([weighted(b, (0,), (9,), *taps), weighted(c, (0,), (9,), *taps)], [])

    for options, left in (
        ({}, 1),
        ({"max_operations": 1}, 2),
        ({"max_accesses": 5}, 2),
    ):
        sequence = nests()
        merge(sequence, **options)
        assert len(sequence.nests()) == left, options


def test_siblings_far_apart_stay_apart() -> None:
    a = buffer(9, kind="input")
    outs = [buffer(9 + (k % 4 > 0), kind="output") for k in range(5)]
    others = [buffer(10, kind="input") for _ in outs]
    nests = [
        weighted(o, (0,), o.shape, (a if o.shape == (9,) else other, (0,), 2.0))
        for o, other in zip(outs, others, strict=True)
    ]
    assert len([o for o in outs if o.shape == (9,)]) == 2
    for reach, left in ((3, 5), (4, 4)):
        sequence = Sequence(list(nests), [])
        merge(sequence, reach=reach)
        assert len(sequence.nests()) == left


def test_without_fusion_nothing_is_merged() -> None:
    a, b, c = buffer(9, kind="input"), buffer(9, kind="output"), buffer(9, kind="output")
    sequence = Sequence([weighted(o, (0,), (9,), (a, (0,), 2.0)) for o in (b, c)], [])
    context = Context()
    context.options.polyblocks_disable_affine_fusion = True
    name_nests("test", sequence, context)
    FuseSiblingLoopsPass().transform(sequence, context)
    assert len(sequence.nests()) == 2


def test_forward_forgets_what_is_overwritten() -> None:
    """A value is known until another store may have hit its buffer."""
    a, i = buffer(8), Expr.of(Var(8))
    x, y, z, u = (Value("f32") for _ in range(4))
    body: list[Node] = [
        Load(x, a, (i,)),
        Load(y, a, (i,)),
        Store(y, a, (i + 1,)),
        Load(z, a, (i,)),
        Load(u, a, (i + 1,)),
    ]
    known: dict[Value, Value] = {}
    forward(body, known)
    assert known == {y: x, u: x}
    assert [n.result for n in body if isinstance(n, Load)] == [x, z]


def _program(rng: random.Random) -> tuple[list[Nest], Buffer, list[Buffer]]:
    """Neighbouring nests over few shapes: shared arguments, chains, partial and shifted ones."""
    rows, columns = rng.randint(2, 7), rng.randint(2, 6)
    a = buffer(rows, columns, kind="input")
    made, outs = [a], []
    nests: list[Nest] = []
    for _ in range(rng.randint(2, 6)):
        if rng.random() < 0.3:
            out = buffer(rows)
            nests.append(row_sum(out, rng.choice(made)))
            outs.append(out)
            continue
        new = buffer(rows, columns)
        h, w = (rng.choice([0, 0, 0, 1]) for _ in range(2))
        taps = [
            (rng.choice(made), (rng.randint(0, h), rng.randint(0, w)), rng.random())
            for _ in range(rng.randint(1, 3))
        ]
        place = (rng.randint(0, h), rng.randint(0, w))
        if h or w:
            # What is not written below is read all the same.
            nests.append(weighted(new, (0, 0), (rows, columns), (rng.choice(made), (0, 0), 0.5)))
        nests.append(weighted(new, place, (rows - h, columns - w), *taps))
        made.append(new)
        outs.append(new)
    for out in outs:
        out.kind = "output"
    return nests, a, outs


@pytest.mark.parametrize("seed", sweep(range(120), *range(50)))
def test_random_programs(seed: int) -> None:
    """Whatever is merged, all results are what they were."""
    nests, a, outs = _program(random.Random(seed))
    values = {a: np.random.default_rng(seed).random(a.shape)}
    sequence = Sequence(list(nests), [])
    expected = [run(sequence, values, out) for out in outs]
    merge(sequence)
    for out, before in zip(outs, expected, strict=True):
        np.testing.assert_array_equal(run(sequence, values, out), before)


def test_random_programs_are_merged_at_all() -> None:
    """The programs above are no good if the pass has nothing to do with them."""
    merged = 0
    for seed in range(40):
        nests, _, _ = _program(random.Random(seed))
        sequence = Sequence(list(nests), [])
        merge(sequence)
        merged += len(sequence.nests()) < len(nests)
    assert merged >= 20


@pytest.mark.parametrize("seed", sweep(range(80), *range(30)))
def test_random_tiles(seed: int) -> None:
    """Chains in tiles, whose sweeps are then merged: what is needed of a row is all there."""
    rng = random.Random(seed)
    rows, columns = rng.randint(2, 20), rng.choice([5, 9, 17, 20, 33])
    a, out = buffer(rows, columns, kind="input"), buffer(rows, columns, kind="output")
    made = [a]
    nests: list[Nest] = []
    for k in range(count := rng.randint(2, 5)):
        new = out if k == count - 1 else buffer(rows, columns)
        taps = [(b, (0, 0), rng.random()) for b in rng.sample(made, min(len(made), 2))]
        if rng.random() < 0.3 and made[-1] is not a:
            # Not to be merged: it reads what other iterations store.
            nests.append(weighted(new, (0, 0), (1, columns), (made[-1], (0, 0), 0.5)))
            taps.append((made[-1], (-1, 0), 0.7))
            taps = [(b, (o[0] + 1, o[1]), f) for b, o, f in taps]
            nests.append(weighted(new, (1, 0), (rows - 1, columns), *taps))
        else:
            nests.append(weighted(new, (0, 0), (rows, columns), (made[-1], (0, 0), 0.3), *taps))
        made.append(new)
    used, needed = [], {out}
    for nest in reversed(nests):
        reads, writes = nest.effects()
        if writes & needed:
            needed |= reads
            used.append(nest)
    used.reverse()
    values = {a: np.random.default_rng(seed).random(a.shape)}
    expected = run(Sequence(list(used), []), values, out)
    tile = (rng.randint(1, rows), rng.choice([columns, rng.randint(1, columns)]))
    sequence = Sequence([tiled_like(used, tile, out)], [])
    np.testing.assert_array_equal(run(sequence, values, out), expected)
    merge(sequence)
    np.testing.assert_array_equal(run(sequence, values, out), expected)


def test_sweeps_of_a_tile_become_one() -> None:
    """After fuse-tiles a chain without halo is one loop over registers."""
    a, b, c = buffer(256, 64, kind="input"), buffer(256, 64), buffer(256, 64)
    out = buffer(256, 64, kind="output")
    nests = [
        weighted(b, (0, 0), (256, 64), (a, (0, 0), 2.0)),
        weighted(c, (0, 0), (256, 64), (b, (0, 0), 3.0)),
        weighted(out, (0, 0), (256, 64), (c, (0, 0), 1.0), (b, (0, 0), 1.0)),
    ]
    values = {a: np.random.default_rng(6).random(a.shape)}
    expected = run(Sequence(list(nests), []), values, out)
    sequence = Sequence(list(nests), [a, b, c, out])
    FuseTilesPass().transform(sequence, Context())
    merge(sequence)
    (nest,) = sequence.nests()
    assert len(innermost(nest.body)) == 1
    assert not any(isinstance(n, Alloca) for n in walk(nest.body))
    np.testing.assert_array_equal(run(sequence, values, out), expected)
