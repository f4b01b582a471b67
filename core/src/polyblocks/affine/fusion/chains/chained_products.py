"""Chains of nests from one product of matrices to the next one, row by row.

Accesses alone say which elements a row of the last product needs: each nest stores them where the
next ones load them. So every nest can be written in the variables of the last one: its rows, and
the steps of its sum.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from polyblocks.affine.analysis.contractions import Contraction
from polyblocks.affine.analysis.coverage import digits, iteration_at
from polyblocks.affine.contraction.products.row_products import product_of
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.fusion.product_chains import chain_of
from polyblocks.affine.model import (
    Buffer,
    For,
    Index,
    Load,
    Nest,
    Node,
    Op,
    Opaque,
    Store,
    walk,
)
from polyblocks.affine.subnests import parallel_shell
from polyblocks.affine.users import Users


@dataclass(eq=False)
class Link:
    """A nest of a chain in the variables of the last one.

    Attributes:
        nest: what it is.
        variables: what its own outer variables are, of rows and steps.
        body: the code in its outer loops.
        reduction: the loop over the steps of a row; None if it has none.
    """

    nest: Nest
    variables: dict[Var, Expr]
    body: list[Node]
    reduction: For | None = None
    of_elements: bool = False


@dataclass(eq=False)
class ProductChain:
    """Nests from a product to the last one, whose steps are the columns of the first one.

    Attributes:
        links: all but the last nest, in the order of the program.
        last: the last nest, a product.
        product: its parts; one variable of columns, and one of steps.
        rows: the loops of batch and rows, as they stand in the last nest.
        step: the variable of the steps.
        passed: buffers that only the chain touches, with an element for each step of a row.
        held: those with an element for each row.
    """

    links: list[Link]
    last: Nest
    product: Contraction
    rows: list[Var]
    step: Var
    passed: set[Buffer] = field(default_factory=set)
    held: set[Buffer] = field(default_factory=set)

    @property
    def nests(self) -> list[Nest]:
        """All nests, in the order of the program."""
        return [*(link.nest for link in self.links), self.last]


def chain_to(
    last: Nest, products: Collection[Nest], stages: Collection[Nest], users: Users
) -> ProductChain | None:
    """The chain that ends with a product, or None where nests need other rows' elements.

    Args:
        last: a product.
        products: all nests that are one.
        stages: all nests that may be part of a chain.
        users: of all buffers.
    """
    parts = product_of(last)
    if parts is None or len(parts.columns) != 1 or len(parts.reduction.loops) != 1:
        return None
    found = _between(last, parts, products, stages, users)
    if found is None:
        return None
    shell, _ = parallel_shell(last.body)
    (column,), (step,) = parts.columns, parts.reduction.order
    rows = [loop.var for loop in shell if loop.var is not column]
    links = _Links(rows, step, users, {*found, last})
    return links.chain(sorted(found, key=users.position), last, parts)


def _between(
    last: Nest,
    parts: Contraction,
    products: Collection[Nest],
    stages: Collection[Nest],
    users: Users,
) -> set[Nest] | None:
    """The nests from one product to the last one; None unless there is exactly one.

    Rows come through one operand of the last product. Other buffers of it that depend on the same
    product are numbers of rows; of others there is nothing to compute with the rows.
    """
    chains: dict[Buffer, set[Nest]] = {}
    for buffer in dict.fromkeys(n.buffer.base for n in walk(last.body) if isinstance(n, Load)):
        chain = chain_of(last, [buffer], products, stages, users)
        if chain is not None:
            chains[buffer] = set(chain) - {last}
    of_rows = [o for o in parts.operands if o.of_rows and o.load.buffer.base in chains]
    if len(of_rows) != 1:
        return None
    found = chains[of_rows[0].load.buffer.base]
    (first, *others) = [nest for nest in found if nest in products]
    if others:
        return None
    for nests in chains.values():
        if first in nests:
            found = found | nests
    return found if sum(nest in products for nest in found) == 1 else None


class _Links:
    """Finds what the variables of nests are, from the last one back."""

    def __init__(self, rows: list[Var], step: Var, users: Users, inside: set[Nest]) -> None:
        self.rows, self.step, self.users, self.inside = rows, step, users, inside
        #: Where the readers seen so far load a buffer's elements.
        self.wanted: dict[Buffer, tuple[Expr, ...]] = {}
        self.passed: set[Buffer] = set()
        self.held: set[Buffer] = set()

    def chain(self, nests: list[Nest], last: Nest, parts: Contraction) -> ProductChain | None:
        """See :func:`chain_to`."""
        if not self._read(walk(last.body), {}):
            return None
        links = []
        for nest in reversed(nests):
            link = self._link(nest)
            if link is None:
                return None
            links.append(link)
        links.reverse()
        if self._moves(last) or not self.passed:
            return None
        return ProductChain(links, last, parts, self.rows, self.step, self.passed, self.held)

    def _moves(self, last: Nest) -> bool:
        """Whether others between the nests change what these read, or need what they write."""
        return any(
            self.users.written_between(*self.users.touched(nest)[:1], nest, last, self.inside)
            or self.users.written_between(self.users.touched(nest)[1], nest, last, self.inside)
            for nest in self.inside
            if nest is not last
        )

    def _link(self, nest: Nest) -> Link | None:
        shell, body = parallel_shell(nest.body)
        nodes = list(walk(nest.body))
        known = (For, Op, Index, Load, Store)
        if not all(isinstance(n, known) for n in nodes):
            return None
        if any(isinstance(n, For) and (n.bounded or n.level or n.schedule) for n in nodes):
            return None
        variables = self._variables(shell, [n for n in nodes if isinstance(n, Store)])
        if variables is None:
            return None
        link = Link(nest, variables, body)
        link.of_elements = any(self.step in set(e.variables()) for e in variables.values())
        loops = [n for n in body if isinstance(n, For)]
        if not link.of_elements and loops:
            link.reduction = _over(loops, self.step)
            if link.reduction is None:
                return None
            variables[link.reduction.var] = Expr.of(self.step)
        return link if self._read(nodes, variables) else None

    def _variables(self, shell: list[For], stores: list[Store]) -> dict[Var, Expr] | None:
        """Map variables of loops to those of the readers of stores; None if readers differ."""
        found: dict[Var, Expr] = {}
        outer = {loop.var for loop in shell}
        for store in stores:
            wanted = self.wanted.get(store.buffer)
            if wanted is None or not self._is_inside(store.buffer):
                return None
            # Loops that together count through a dimension of the buffer are digits of its index.
            counted = digits(store.buffer, store.index, list(outer))
            if counted is None:
                counted = _single(store, wanted, outer)
                if counted is None:
                    return None
            at = iteration_at(counted, store.buffer.shape, wanted)
            if any(found.setdefault(var, given) != given for var, given in at.items()):
                return None
        for var in outer - found.keys():
            if var.extent != 1:
                return None
        for store in stores:
            moving = any(self.step in set(e.variables()) for e in self.wanted[store.buffer])
            (self.passed if moving else self.held).add(store.buffer)
        return found

    def _is_inside(self, buffer: Buffer) -> bool:
        """Whether one nest of the chain writes a buffer, and nothing else touches it."""
        if not self.users.is_only_accessed(buffer):
            return False
        writers = self.users.writers(buffer)
        inside = all(item in self.inside for item in [*writers, *self.users.readers(buffer)])
        return inside and len(writers) == 1

    def _read(self, nodes: Iterable[Node], variables: dict[Var, Expr]) -> bool:
        """Take note of where nodes load elements; whether all load the same one in an iteration."""
        for node in nodes:
            if isinstance(node, Load):
                writers = self.users.writers(node.buffer.base)
                if not any(not isinstance(w, Opaque) and w in self.inside for w in writers):
                    continue
                place = tuple(e.substitute(variables) for e in node.index)
                if node.where or self.wanted.setdefault(node.buffer, place) != place:
                    return False
        return True


def _over(loops: list[For], step: Var) -> For | None:
    """The only loop, a reduction over as many steps."""
    (loop, *others) = loops
    if others or not loop.inits or loop.var.extent != step.extent:
        return None
    return None if any(isinstance(n, For) for n in loop.body) else loop


def _single(
    store: Store, wanted: tuple[Expr, ...], outer: set[Var]
) -> dict[Var, tuple[int, int]] | None:
    """The dimensions that single variables of loops count; None if others are not as wanted."""
    found: dict[Var, tuple[int, int]] = {}
    for dimension, (own, given) in enumerate(zip(store.index, wanted, strict=True)):
        ((var, factor),) = own.terms if len(own.terms) == 1 else ((None, 0),)
        if not own.const and factor == 1 and isinstance(var, Var):
            if var not in outer or found.setdefault(var, (dimension, 1)) != (dimension, 1):
                return None
        elif own != given:
            return None
    return found
