"""Stores at run-time indices by threads in any order: of those to one element the last one wins.

Each update puts its number in front of the bits of its value, and the largest of all that meet in
an element is the last one's: an atomic maximum finds it, whatever the order, and every run gives
what a loop gives. Then each element that was met takes the bits that are there. Where the elements
of an update are a row, one number does for all of them, see
:mod:`polyblocks.affine.gpu.winning_rows`.
"""

from __future__ import annotations

from math import prod

from polyblocks.affine.element import I64, dtype_of
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.gpu.winning_rows import (
    NUMBER_BYTES,
    Before,
    KnownNumbers,
    WinningRows,
    keep_most,
    number_of,
    ready,
)
from polyblocks.affine.model import (
    AnyLoad,
    Buffer,
    For,
    IndirectStore,
    Load,
    Nest,
    Node,
    Sequence,
    Store,
    Value,
    around,
    clone,
)
from polyblocks.affine.ops import Integers, Ops, integer

#: Bits of a value behind a number.
BITS = 32
_NUMBERS = 1 << 31


def may_race(loops: list[For], body: list[Node], store: IndirectStore) -> bool:
    """Whether threads may make the updates of a nest in any order, as :func:`raced` does."""
    dtype = dtype_of(store.buffer.element)
    if dtype.kind not in ("int", "float") or prod(f.var.extent for f in loops) >= _NUMBERS:
        return False
    base = store.buffer.base
    return not any(isinstance(n, AnyLoad) and n.buffer.base is base for n in body)


def moved_bytes(loops: list[For], body: list[Node], store: IndirectStore) -> int:
    """Bytes that the nests of :func:`raced` move."""
    rows = WinningRows.of(loops, body, store)
    if rows is not None:
        return rows.moved
    # A board is filled, updated, and read with the elements, which are stored.
    steps = prod(f.trips for f in loops)
    return NUMBER_BYTES * (4 * store.buffer.numel + 2 * steps)


def raced(
    sequence: Sequence,
    nest: Nest,
    loops: list[For],
    body: list[Node],
    store: IndirectStore,
    known: KnownNumbers,
    before: Before,
) -> list[Nest]:
    """Nests that do what one does: ready elements, the updates, the values of those that won.

    Args:
        sequence: the program.
        nest: perfect loops around straight-line code with one store.
        loops, body, store: its parts; :func:`may_race` says that they may be raced.
        known: numbers of updates that were found before; the last of the nests is enough then.
        before: what elements are that nothing is stored to.
    """
    rows = WinningRows.of(loops, body, store)
    if rows is not None:
        board = rows.board()
        emptied = _part(nest, "_ready", "pointwise", ready([board]))
        numbered = _part(nest, "_numbers", nest.kind, rows.numbered(board))
        numbers = known.get(sequence, nest, numbered, board)
        taken = _part(nest, "", "pointwise", rows.taken(numbers or board, before))
        return [emptied, numbered, taken] if numbers is None else [taken]
    bits = dtype_of(store.buffer.element).bits
    count = -(-bits // BITS)
    i64 = integer(I64.bits)
    boards = [
        Buffer(store.buffer.shape, i64, "alloc", bytes_per_element=NUMBER_BYTES)
        for _ in range(count)
    ]
    return [
        _part(nest, "_ready", "pointwise", ready(boards)),
        _part(nest, "_numbers", nest.kind, _numbered(loops, body, store, boards)),
        _part(nest, "", "pointwise", _taken(store.buffer, boards, before)),
    ]


def _part(nest: Nest, suffix: str, kind: str, nodes: list[Node]) -> Nest:
    new = Nest(nodes, [], changed=True)
    new.name, new.kind, new.sources = nest.name + suffix, kind, nest.sources
    return new


def _numbered(
    loops: list[For], body: list[Node], store: IndirectStore, boards: list[Buffer]
) -> list[Node]:
    """The updates, each the maximum of what is there and its number in front of its bits."""
    fresh = [Var(f.var.extent) for f in loops]
    variables = {f.var: Expr.of(v) for f, v in zip(loops, fresh, strict=True)}
    values: dict[Value, Value] = {}
    nodes = clone([n for n in body if n is not store], values, variables)
    ops, i64 = Ops(nodes, store.location), boards[0].element
    numbered = number_of(ops, fresh, i64)
    front = ops.op("arith.shli", [numbered, ops.constant(BITS, i64)])
    value = values.get(store.value, store.value)
    index = [values.get(v, v) for v in store.index]
    for board, part in zip(boards, _bits(ops, value, i64), strict=True):
        keep_most(ops, board, index, ops.op("arith.ori", [front, part]))
    return around(fresh, nodes)


def _bits(ops: Ops, value: Value, i64: object) -> list[Value]:
    """The bits of a value, in numbers of at most :data:`BITS` bits, the lowest first."""
    dtype = dtype_of(value.type)
    if dtype.kind == "float":
        value = ops.op("arith.bitcast", [value], integer(dtype.bits))
    if dtype.bits < I64.bits:
        return [ops.op("arith.extui", [value], i64)]
    low = ops.op("arith.andi", [value, ops.constant((1 << BITS) - 1, i64)])
    return [low, ops.op("arith.shrui", [value, ops.constant(BITS, i64)])]


def _taken(target: Buffer, boards: list[Buffer], before: Before) -> list[Node]:
    """Each element is that of the update that won, if there was one; else that ``before``."""
    dims, index = _place(target)
    body: list[Node] = []
    ops, i64, dtype = Ops(body), boards[0].element, dtype_of(target.element)
    found = [Load(Value(i64), board, index) for board in boards]
    body.extend(found)
    old = before.value(target, index, body)
    bits = found[0].result
    if len(found) > 1:
        shift = ops.constant(BITS, i64)
        low = ops.op("arith.andi", [bits, ops.constant((1 << BITS) - 1, i64)])
        bits = ops.op("arith.ori", [low, ops.op("arith.shli", [found[1].result, shift])])
    if dtype.bits < I64.bits:
        bits = ops.op("arith.trunci", [bits], integer(dtype.bits))
    if dtype.kind == "float":
        bits = ops.op("arith.bitcast", [bits], target.element)
    met = ops.compare(Integers.NOT_EQUAL, found[0].result, ops.constant(0, i64))
    body.append(Store(ops.select(met, bits, old), target, index))
    return around(dims, body)


def _place(buffer: Buffer) -> tuple[list[Var], tuple[Expr, ...]]:
    dims = [Var(extent) for extent in buffer.shape]
    return dims, tuple(Expr.of(d) for d in dims)
