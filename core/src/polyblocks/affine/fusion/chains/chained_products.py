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
    reads,
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
        passed: buffers that the chain writes, with an element for each step of a row.
        held: those with an element for each row.
        places: where the element of a row is in each of these.
        kept: those of them that others read: the chain stores them.
    """

    links: list[Link]
    last: Nest
    product: Contraction
    rows: list[Var]
    step: Var
    passed: set[Buffer] = field(default_factory=set)
    held: set[Buffer] = field(default_factory=set)
    places: dict[Buffer, tuple[Expr, ...]] = field(default_factory=dict)
    kept: set[Buffer] = field(default_factory=set)

    @property
    def nests(self) -> list[Nest]:
        """All nests, in the order of the program."""
        return [*(link.nest for link in self.links), self.last]

    @property
    def products(self) -> int:
        """How many products the last one is computed from."""
        loops = [any(isinstance(n, For) for n in link.body) for link in self.links]
        return sum(has and link.of_elements for has, link in zip(loops, self.links, strict=True))

    @property
    def needs(self) -> set[Buffer]:
        """Buffers that are written before."""
        return {b.base for n in self.nests for b in reads(n)} - self.passed - self.held


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
    links = _Links(last, parts, users, {*found, last})
    return links.chain(sorted(found, key=users.position))


def elements_to(last: Nest, products: Collection[Nest], users: Users) -> ProductChain | None:
    """The chain of all that computes elements of a product's rows and steps; None if none does.

    Numbers of a row or of a step alone are there before. So there may be several products in
    it: a block's elements of all of them are at hand.

    Args:
        last: a product.
        products: all nests that are one.
        users: of all buffers.
    """
    parts = product_of(last)
    if parts is None or len(parts.columns) != 1 or len(parts.reduction.loops) != 1:
        return None
    without: set[Nest] = set()
    while True:
        links = _Links(last, parts, users, {last}, set(parts.rows), without)
        chain = links.grown(products)
        if links.refused is None:
            return chain if chain is not None and chain.products else None
        without.add(links.refused)


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

    def __init__(
        self,
        last: Nest,
        parts: Contraction,
        users: Users,
        inside: set[Nest],
        own_rows: Collection[Var] = (),
        without: Collection[Nest] = (),
    ) -> None:
        shell, _ = parallel_shell(last.body)
        (column,), (self.step,) = parts.columns, parts.reduction.order
        self.rows = [loop.var for loop in shell if loop.var is not column]
        self.last, self.parts, self.users, self.inside = last, parts, users, inside
        #: Nests that write elements of these rows are taken in, but for some.
        self.own_rows, self.without = own_rows, without
        self.refused: Nest | None = None
        #: Where the readers seen so far load a buffer's elements.
        self.wanted: dict[Buffer, tuple[Expr, ...]] = {}
        self.passed: set[Buffer] = set()
        self.held: set[Buffer] = set()

    def chain(self, nests: list[Nest]) -> ProductChain | None:
        """See :func:`chain_to`."""
        if not self._read(walk(self.last.body), {}):
            return None
        links = []
        for nest in reversed(nests):
            link = self._link(nest)
            if link is None:
                return None
            links.append(link)
        return self._whole(links[::-1])

    def grown(self, products: Collection[Nest]) -> ProductChain | None:
        """See :func:`elements_to`; the nest that cannot be part of it is ``refused``."""
        if not self._read(walk(self.last.body), {}):
            return None
        links: list[Link] = []
        done = {self.last}
        while rest := self.inside - done:
            nest = max(rest, key=self.users.position)
            done.add(nest)
            link = self._link(nest)
            loops = link is not None and any(isinstance(n, For) for n in link.body)
            if link is None or not link.of_elements or (loops and nest not in products):
                self.refused = nest
                return None
            links.append(link)
        return self._whole(links[::-1])

    def _whole(self, links: list[Link]) -> ProductChain | None:
        if self._moves(self.last) or not self.passed:
            return None
        given = links, self.last, self.parts, self.rows, self.step, self.passed, self.held
        chain = ProductChain(*given)
        chain.places = {buffer: self.wanted[buffer] for buffer in self.held}
        return chain

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
        stores = [n for n in nodes if isinstance(n, Store)]
        if self.own_rows:
            # Stores that others need are theirs.
            body = [n for n in body if not isinstance(n, Store) or n.buffer in self.wanted]
            stores = [n for n in stores if n.buffer in self.wanted]
        variables = self._variables(shell, stores)
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
        """Whether one nest of the chain writes a buffer, and nothing else does."""
        if not self.users.is_only_accessed(buffer):
            return False
        (writer, *others) = self.users.writers(buffer)
        return not others and writer in self.inside

    def _read(self, nodes: Iterable[Node], variables: dict[Var, Expr]) -> bool:
        """Take note of where nodes load elements; whether all load the same one in an iteration."""
        for node in nodes:
            if isinstance(node, Load):
                writers = self.users.writers(node.buffer.base)
                place = tuple(e.substitute(variables) for e in node.index)
                if self._is_of_elements(place):
                    self.inside.update(self._to_take_in(node.buffer))
                if not any(not isinstance(w, Opaque) and w in self.inside for w in writers):
                    continue
                if node.where or self.wanted.setdefault(node.buffer, place) != place:
                    return False
        return True

    def _is_of_elements(self, place: tuple[Expr, ...]) -> bool:
        """Whether a place is another one for each row and step."""
        found = {v for e in place for v in e.variables()}
        return self.step in found and any(v in found for v in self.own_rows)

    def _to_take_in(self, buffer: Buffer) -> list[Nest]:
        """The only nest that writes a buffer of elements."""
        writers = self.users.writers(buffer.base)
        if not self.users.is_only_accessed(buffer) or len(writers) != 1:
            return []
        found = [w for w in writers if isinstance(w, Nest) and w not in self.without]
        return [w for w in found if self.users.before(w, self.last)]


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
