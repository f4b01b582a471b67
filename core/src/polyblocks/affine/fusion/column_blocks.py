"""A chain of nests through the columns of an array, done in blocks of columns and then joined."""

from __future__ import annotations

from dataclasses import dataclass, field

from polyblocks.affine.analysis.reductions import identities
from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.fusion.column_chains import ColumnChain, ColumnReduction
from polyblocks.affine.fusion.rescaling import Rescaling
from polyblocks.affine.model import (
    AffineAccess,
    Buffer,
    For,
    Load,
    Nest,
    Node,
    Op,
    Store,
    Value,
    clone,
    nested,
    remove_dead,
    replace_values,
    walk,
)
from polyblocks.affine.ops import Floats, Ops
from polyblocks.affine.rewrites.parts import part_nest
from polyblocks.affine.subnests import parallel_shell


@dataclass
class _Piece:
    """Blocks of one length: all but a shorter last one, or that.

    Attributes:
        count: blocks.
        length: columns of each.
        offset: the first one's first column.
        arrays: what the blocks of each array with the columns are in.
        results: what each reduction leaves of each block, one buffer for each carried value.
    """

    count: int
    length: int
    offset: int
    arrays: dict[Buffer, Buffer] = field(default_factory=dict)
    results: dict[Nest, list[Buffer]] = field(default_factory=dict)


def in_blocks(chain: ColumnChain, length: int) -> list[Nest]:
    """The nests of a chain in blocks of ``length`` columns.

    Blocks do not depend on each other. Where a reduction depends on a maximum, a block takes its
    own; a last nest for each reduction joins the blocks, scaled to the maximum of all.

    Args:
        chain: its reductions are changed in place, they become the nests that join.
        length: columns of a block, fewer than there are; the last one may be shorter.

    Returns:
        All nests, in order.
    """
    count, tail = divmod(chain.columns, length)
    pieces = [_Piece(count, length, 0)]
    if tail:
        pieces.append(_Piece(1, tail, count * length))
    blocks = _Blocks(chain)
    nests = [nest for piece in pieces for nest in blocks.of(piece)]
    for reduction in chain.reductions:
        nests += blocks.scaled(reduction, pieces)
        blocks.join(reduction, pieces)
        nests.append(reduction.nest)
    return nests


class _Blocks:
    def __init__(self, chain: ColumnChain) -> None:
        self.chain = chain
        self.reduction_of = {
            maximum: next(r for r in chain.reductions if _stores_to(r.nest, maximum))
            for maximum in chain.maxima
        }
        #: Factors of blocks: by maximum and steps, for each piece.
        self.scales: dict[tuple[Buffer, tuple[Op, ...]], list[Buffer]] = {}

    def of(self, piece: _Piece) -> list[Nest]:
        """The nests of all blocks of a piece."""
        nests: list[Nest] = []
        for buffer, dimension in self.chain.dimensions.items():
            shape = list(buffer.shape)
            shape[dimension] = piece.length
            piece.arrays[buffer] = _buffer((piece.count, *shape), buffer)
        reductions = {r.nest: r for r in self.chain.reductions}
        for nest in self.chain.in_order:
            reduction = reductions.get(nest)
            new = self._cut(nest, piece) if reduction is None else self._part(reduction, piece)
            new.name, new.kind, new.sources = f"{nest.name}_blocks", nest.kind, nest.sources
            self._into_blocks(new, piece)
            nests.append(new)
        return nests

    def _cut(self, nest: Nest, piece: _Piece) -> Nest:
        """A nest that writes an array, for all blocks."""
        loops, body = parallel_shell(nest.body)
        columns = self.chain.variables[nest]
        block = Var(piece.count)
        variables = [Var(piece.length if f.var is columns else f.var.extent) for f in loops]
        at = {f.var: Expr.of(v) for f, v in zip(loops, variables, strict=True)}
        at[columns] = Expr.of(block) * piece.length + at[columns] + piece.offset
        return Nest(nested([block, *variables], clone(body, {}, at)), [], changed=True)

    def _part(self, reduction: ColumnReduction, piece: _Piece) -> Nest:
        """A reduction of each block."""
        shape = reduction.shape
        starts = identities(reduction.combiners)
        assert starts is not None
        outer = tuple(loop.var.extent for loop in shape.parallel)
        piece.results[reduction.nest] = results = [
            Buffer(
                (piece.count, *outer),
                init.type,
                "alloc",
                bytes_per_element=element_bytes(init.type),
            )
            for init in shape.reductions[0].inits
        ]
        block = Var(piece.count)
        return part_nest(shape, starts, results, block, piece.length, piece.offset, 0)

    def _into_blocks(self, nest: Nest, piece: _Piece) -> None:
        """Access blocks of the arrays and of the maxima."""
        (first,) = nest.body
        assert isinstance(first, For)
        block = Expr.of(first.var)
        begin = block * piece.length + piece.offset
        for node in walk(nest.body):
            if isinstance(node, AffineAccess) and node.buffer in self.chain.dimensions:
                index = list(node.index)
                dimension = self.chain.dimensions[node.buffer]
                index[dimension] = index[dimension] - begin
                node.buffer, node.index = piece.arrays[node.buffer], (block, *index)
        found: dict[Value, Value] = {}
        self._own_maxima(nest.body, block, piece, found)
        replace_values(nest.body, found)
        nest.replace()

    def _own_maxima(
        self, nodes: list[Node], block: Expr, piece: _Piece, found: dict[Value, Value]
    ) -> None:
        """Load the block's maximum in place of that of a row."""
        out: list[Node] = []
        for node in nodes:
            if isinstance(node, For):
                self._own_maxima(node.body, block, piece, found)
            if not isinstance(node, Load) or node.buffer not in self.chain.maxima:
                out.append(node)
                continue
            loaded = Value(node.result.type)
            out.append(Load(loaded, *self._place(node.buffer, node.index, block, piece)))
            found[node.result] = _finite(loaded, out)
        nodes[:] = out

    def _place(
        self, maximum: Buffer, row: tuple[Expr, ...], block: Expr, piece: _Piece
    ) -> tuple[Buffer, tuple[Expr, ...]]:
        """Where a row's maximum of a block is."""
        (results,) = piece.results[self.reduction_of[maximum].nest]
        return results, (block, *(row[d] for d in self.chain.maxima[maximum].outer))

    def scaled(self, reduction: ColumnReduction, pieces: list[_Piece]) -> list[Nest]:
        """Nests for the factors of a reduction's blocks that are not there yet."""
        nests: list[Nest] = []
        for rescaling in reduction.rescaling:
            if rescaling is None:
                continue
            maximum = rescaling.maximum.buffer
            key = maximum, rescaling.steps
            if key in self.scales:
                continue
            self.scales[key] = []
            for piece in pieces:
                block, rows = Var(piece.count), [Var(n) for n in maximum.shape]
                row = tuple(Expr.of(v) for v in rows)
                old, new = (Value(maximum.element) for _ in range(2))
                place = self._place(maximum, row, Expr.of(block), piece)
                body: list[Node] = [Load(old, *place), Load(new, maximum, row)]
                factor = rescaling.factor(_finite(old, body, lowest=False), new, body)
                factors = _buffer((piece.count, *maximum.shape), maximum)
                body.append(Store(factor, factors, (Expr.of(block), *row)))
                self.scales[key].append(factors)
                nests.append(Nest(nested([block, *rows], body), [], changed=True))
                nests[-1].sources = reduction.nest.sources
        return nests

    def join(self, reduction: ColumnReduction, pieces: list[_Piece]) -> None:
        """Let a reduction's nest combine what the blocks have left."""
        shape, (loop,) = reduction.shape, reduction.shape.reductions
        inits = list(loop.inits)
        body: list[Node] = list(shape.before)
        outer = tuple(Expr.of(f.var) for f in shape.parallel)
        for at, piece in enumerate(pieces):
            block = Var(piece.count)
            single = piece.count == 1
            arguments = inits if single else [Value(v.type) for v in inits]
            inner: list[Node] = []
            yields: list[Value] = []
            for k, op in enumerate(reduction.combiners):
                value = Value(op.results[0].type)
                results = piece.results[reduction.nest][k]
                inner.append(Load(value, results, (Expr.of(block), *outer)))
                value = self._rescaled(value, reduction.rescaling[k], at, block, inner)
                yields.append(Ops(inner).like(op, [arguments[k], value]))
            if single:
                body, inits = [*body, *inner], yields
                continue
            results_ = [Value(v.type) for v in inits]
            body.append(For(block, inner, inits, arguments, results_, yields))
            inits = results_
        after = list(shape.after)
        replace_values(after, dict(zip(loop.results, inits, strict=True)))
        body += after
        for around in reversed(shape.parallel):
            body = [For(around.var, body)]
        remove_dead(body)
        nest = reduction.nest
        if nest.kind == "contraction":
            nest.kind = "reduction"
        nest.replace(body)

    def _rescaled(
        self, value: Value, rescaling: Rescaling | None, at: int, block: Var, out: list[Node]
    ) -> Value:
        """A block's value, as it would be with the maximum of all."""
        if rescaling is None:
            return value
        factors = self.scales[rescaling.maximum.buffer, rescaling.steps][at]
        row = tuple(e for e in rescaling.row if isinstance(e, Expr))
        factor = Value(value.type)
        out.append(Load(factor, factors, (Expr.of(block), *row)))
        # Rounding is free, as that of the difference is.
        return Ops(out).op("arith.mulf", [value, factor], None, rescaling.steps[0].attributes)


def _finite(maximum: Value, out: list[Node], *, lowest: bool = True) -> Value:
    """The number that a block scales its elements by: 0 in place of an infinite maximum.

    Differences of infinities are no numbers, also of elements that the row's maximum makes 0.

    Args:
        maximum: of the block.
        out: gets the code.
        lowest: whether minus infinity is replaced, too. Not where blocks are joined: one without
            finite elements adds nothing there.
    """
    ops = Ops(out)
    infinite, zero = (ops.constant(n, maximum.type) for n in (float("inf"), 0.0))
    size = ops.op("math.absf", [maximum]) if lowest else maximum
    return ops.select(ops.compare(Floats.EQUAL, size, infinite), zero, maximum)


def _stores_to(nest: Nest, buffer: Buffer) -> bool:
    return any(isinstance(n, Store) and n.buffer is buffer for n in walk(nest.body))


def _buffer(shape: tuple[int, ...], like: Buffer) -> Buffer:
    return Buffer(shape, like.element, "alloc", bytes_per_element=like.bytes_per_element)
