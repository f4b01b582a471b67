"""A chain of products as a nest: its rows, and what a block of steps does in each of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.analysis.contractions import Contraction, ReductionLoops
from polyblocks.affine.contraction.products.row_products import product_of
from polyblocks.affine.expr import Div, Expr, Mod, Var
from polyblocks.affine.model import (
    AffineAccess,
    Alloca,
    Buffer,
    For,
    Load,
    Nest,
    Node,
    clone,
    nested,
    transform_indices,
    walk,
)
from polyblocks.affine.subnests import parallel_shell


@dataclass(eq=False)
class ChainedProducts:
    """The parts of a nest that ``chain-products`` makes.

    Buffers of a block of steps, and that of the totals, have an element for each row here, so that
    the products are contractions like others.

    Attributes:
        firsts, second: the products; what is before and behind them is that of a block.
        before: code of a row before the first block.
        blocks: the loop over blocks, and what it carries.
        statements: of a block: code of the row, loops over steps (some with one of the first
            products in it), and the loop over columns with the second one.
        after: code of a row behind the last block; stores are of numbers of the row.
        last: the second product with what is done with its totals.
        passed: buffers of elements that one statement passes to the next ones.
        block: steps of a block.
        totals: the buffer of the second one's sums.
        made, used: the statements of the first products and of the second one.
    """

    firsts: tuple[Contraction, ...]
    second: Contraction
    before: list[Node]
    blocks: For
    statements: list[Node]
    after: list[Node]
    last: Contraction
    passed: set[Buffer]
    totals: Buffer
    block: int
    made: tuple[For, ...]
    used: For

    @property
    def first(self) -> Contraction:
        """The first of the first products, which have the same rows and steps."""
        return self.firsts[0]

    @cached_property
    def touched_bytes(self) -> int:
        """Bytes of all elements in memory that the nest touches, each once."""
        nodes = [*self.before, self.blocks, *self.after, *self.last.after]
        return touched_bytes(nodes, self.passed | {self.totals})

    @cached_property
    def operations(self) -> float:
        """Operations on an element of a block of steps, beside those of the products."""
        return sum(
            cost.operations([n for n in statement.body if not isinstance(n, For)])
            for statement in self.statements
            if isinstance(statement, For)
            and statement is not self.used
            and not is_at_border(statement)
        )

    @property
    def bounds(self) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        """Bounds of the loop over blocks for a row, besides 0 and the extent.

        Those that rows move are left out unless they grow with the only variable of rows, so that
        those of a tile's first and last rows are the tile's: masked elements change nothing.
        """
        rows = self.first.rows
        moved = [e for e in (*self.blocks.lower, *self.blocks.upper) if e.depends_on_any(set(rows))]
        if len(rows) == 1 and all(grows_with(e, rows[0]) for e in moved):
            return self.blocks.lower, self.blocks.upper
        lower, upper = (
            tuple(e for e in bounds if e not in moved)
            for bounds in (self.blocks.lower, self.blocks.upper)
        )
        return lower, upper


def chained_products(nest: Nest) -> ChainedProducts | None:
    """The parts of a nest, which is left as it is; None if it is no such chain."""
    shell, body = parallel_shell(clone(nest.body, {}, {}))
    rows = [loop.var for loop in shell]
    blocks = next((n for n in body if isinstance(n, For) and _has_buffers(n)), None)
    if blocks is None or not isinstance(body[0], Alloca):
        return None
    at, totals, finish = body.index(blocks), body[0].buffer, body[-1]
    statements = [n for n in blocks.body if not isinstance(n, Alloca)]
    local = [n.buffer for n in blocks.body if isinstance(n, Alloca)]
    around = [n for n in statements if isinstance(n, For) and any(map(_is_loop, n.body))]
    if len(around) < 2 or not isinstance(finish, For) or not local:
        return None
    *made, used = around
    for statement in (n for n in statements if isinstance(n, For) and n is not used):
        _rename(statement, made[0].var)
    block = local[0].shape[0]
    # Variables of parts of the steps move bounds alone.
    moving = {v for n in walk(blocks.body) if not isinstance(n, For) for v in n.variables()}
    parts, rows = [v for v in rows if v not in moving], [v for v in rows if v in moving]
    wide = {buffer: _of_rows(buffer, rows, made[0].var.extent) for buffer in local}
    _widen(body, rows, wide, Expr.of(blocks.var) * block)
    sums = _of_rows(totals, rows, used.var.extent)
    _widen(body, rows, {totals: sums}, Expr(0))
    firsts = [product_of(Nest(nested([*rows, each.var], each.body), [])) for each in made]
    used_body = [_unbounded(n) for n in used.body]
    second = product_of(Nest(nested([*rows, used.var], used_body), []))
    found = [replace(c, batch=[*parts, *c.batch]) for c in (*firsts, second) if c is not None]
    if len(found) < len(around):
        return None
    *all_firsts, second = found
    return ChainedProducts(
        firsts=tuple(all_firsts),
        second=second,
        before=[n for n in body[1:at] if not isinstance(n, For)],
        blocks=blocks,
        statements=statements,
        after=[n for n in body[at + 1 :] if n is not finish],
        last=_with_finish(second, finish, used.var),
        passed=set(wide.values()),
        totals=sums,
        block=block,
        made=tuple(made),
        used=used,
    )


def touched_bytes(nodes: list[Node], without: Collection[Buffer] = ()) -> int:
    """Bytes of all elements that code touches, each once; at most those of the buffers.

    Args:
        nodes: the code.
        without: buffers that are none in memory.
    """
    touched: dict[Buffer, int] = {}
    for node in walk(nodes):
        if isinstance(node, AffineAccess) and node.buffer not in without:
            buffer = node.buffer.base
            elements = prod(v.extent for v in set(node.variables()))
            nbytes = min(elements * buffer.bytes_per_element, buffer.nbytes)
            touched[buffer] = max(touched.get(buffer, 0), nbytes)
    return sum(touched.values())


def is_at_border(statement: For) -> bool:
    """Whether a loop over steps runs in some blocks only: it masks elements."""
    return len(statement.lower) + len(statement.upper) > 2


def _has_buffers(loop: For) -> bool:
    return any(isinstance(n, Alloca) for n in loop.body)


def grows_with(expr: Expr, var: Var) -> bool:
    """Whether an expression is surely no smaller for a larger value of a variable."""
    for atom, factor in expr.terms:
        if not Expr(0, {atom: 1}).depends_on(var):
            continue
        if factor < 0 or isinstance(atom, Mod):
            return False
        if isinstance(atom, Div) and not grows_with(atom.dividend, var):
            return False
    return True


def _is_loop(node: Node) -> bool:
    return isinstance(node, For)


def _of_rows(buffer: Buffer, rows: list[Var], extent: int) -> Buffer:
    """A buffer with an element for each row and step (or column)."""
    shape = (*(var.extent for var in rows), extent)
    size = buffer.bytes_per_element
    return Buffer(shape, buffer.element, "alloc", bytes_per_element=size)


def _widen(nodes: list[Node], rows: list[Var], wide: dict[Buffer, Buffer], first: Expr) -> None:
    """Let accesses of a row's buffers be of those of all rows, in place."""
    for node in walk(nodes):
        if isinstance(node, AffineAccess) and node.buffer in wide:
            node.buffer = wide[node.buffer]
            node.index = (*(Expr.of(var) for var in rows), node.index[0] + first)


def _rename(loop: For, var: Var) -> None:
    """Let a loop count with a variable, in place."""
    known = {loop.var: Expr.of(var)}
    transform_indices(loop.body, lambda expr: expr.substitute(known))
    loop.var = var


def _unbounded(node: Node) -> Node:
    """A node, of a loop the same over all steps."""
    return replace(node, lower=(), upper=()) if isinstance(node, For) else node


def _with_finish(second: Contraction, finish: For, column: Var) -> Contraction:
    """The second product with what is done with its totals behind it."""
    nodes = clone(finish.body, {}, {finish.var: Expr.of(column)})
    total = next(n for n in nodes if isinstance(n, Load))
    own = second.reduction.loops[0]
    loop = For(own.var, own.body, own.inits, own.arguments, [total.result], own.yields)
    reduction = ReductionLoops([loop], second.reduction.body)
    after = [n for n in nodes if n is not total]
    return replace(second, reduction=reduction, before=[], after=after)
