"""Panels of operands that depend on constant arguments alone: filled once, whole.

An operand that is packed per call lies in a panel of one thread and one block. Persistent operands
are packed ahead for all blocks, batches and tiles, in the same order of its elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd, prod

from polyblocks.affine.access import row_of_lines
from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.analysis.dataflow import variables_of
from polyblocks.affine.contraction.loop_digits import counted
from polyblocks.affine.contraction.products.flat_product import FlatProduct
from polyblocks.affine.contraction.products.product import extents
from polyblocks.affine.contraction.tile_prologue import Prologues, TilePrologue
from polyblocks.affine.contraction.tiling import Tiling
from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Div, Expr, Var
from polyblocks.affine.model import (
    Access,
    Buffer,
    For,
    Nest,
    Node,
    Store,
    Value,
    around,
    clone,
    walk,
)

#: Elements of a panel over those that it is copied from, at most: a row that is read again and
#: again, as by a convolution, is not to be kept for each time.
MOST = 2


def can_be_kept(operand: Operand, product: FlatProduct, prologues: Prologues) -> bool:
    """Whether an operand is the same each time, and no larger than what it is made of.

    Operands that are the same in several tiles of one call are used in place if they are in order.
    """
    prologue = prologues.of(operand.nodes)
    if prologue is None:
        return False
    if isinstance(prologue, TilePrologue) and (operand.of_rows or product.in_lines(operand)):
        return False
    side = product.row if operand.of_rows else product.column
    batch = batch_of(operand, product)
    if any(each.var.value is not None for each in batch):
        # It also depends on a loop of the program, which the prologue is not in.
        return False
    elements = prod(each.extent for each in batch) * side.extent * product.step.extent
    sources = {n.buffer.base for n in operand.nodes if isinstance(n, Access)}
    return elements <= MOST * sum(b.numel for b in sources)


@dataclass(frozen=True)
class Moved:
    """A variable that moves an operand.

    Attributes:
        var: the variable.
        every: how many neighbouring values have the same operand: heads of queries that share keys.
    """

    var: Var
    every: int

    @property
    def extent(self) -> int:
        """How many places there are."""
        return -(-self.var.extent // self.every)

    def number(self, place: Mapping[Var, Expr]) -> Expr:
        """Which place it is, where the variables have some values, by default their own."""
        return place.get(self.var, Expr.of(self.var)) // self.every


def batch_of(operand: Operand, product: FlatProduct) -> list[Moved]:
    """The variables that move an operand, but for its side and the step.

    They are those of the batch, and those of tiles around the contraction.
    """
    side = product.row if operand.of_rows else product.column
    found = variables_of(operand.nodes) - {side, product.step}
    batch = [v for v in product.batch if v in found]
    variables = [*sorted(found - {*batch}, key=lambda v: v.id), *batch]
    return [Moved(v, _every(v, operand.nodes)) for v in variables]


def _every(var: Var, nodes: list[Node]) -> int:
    """How many neighbouring values of a variable are the same to code."""
    divisors = [
        atom.divisor if isinstance(atom, Div) and atom.dividend == Expr.of(var) else 1
        for node in walk(nodes)
        for expr in node.exprs
        for atom, _ in expr.terms
        if var in ((atom,) if isinstance(atom, Var) else atom.dividend.variables())
    ]
    return gcd(*divisors) or 1


class KeptPanels:
    """The panels of one product.

    Args:
        product: the contraction.
        tiling: its sizes.
        prologues: what may fill them.
        nest: that the contraction is from.
    """

    def __init__(
        self, product: FlatProduct, tiling: Tiling, prologues: Prologues, nest: Nest
    ) -> None:
        self._product = product
        self._tiling = tiling
        self._prologues = prologues
        self._nest = nest
        self._buffers: dict[Operand, Buffer] = {}
        self._copies: list[tuple[Operand, list[Node]]] = []
        #: Of panels that a thread fills for itself, the loops that it does so in.
        self._own: dict[Operand, list[For]] = {}

    def add(self, operand: Operand) -> None:
        """Keep a panel of an operand."""
        self._own[operand] = self._own_loops(operand)
        batch = [Var(each.extent) for each in self._batch(operand)]
        fill = self._by_rows if operand.of_rows else self._by_panels
        self._copies.append((operand, fill(operand, batch)))

    def _own_loops(self, operand: Operand) -> list[For]:
        """The loops in which a thread fills the panel of an operand; none if it is for all."""
        prologue = self._prologues.of(operand.nodes)
        if not isinstance(prologue, TilePrologue):
            return []
        product = self._product
        side = product.row if operand.of_rows else product.column
        moves = prod(each.extent for each in batch_of(operand, product))
        elements = moves * side.extent * product.step.extent
        return prologue.own_loops(operand.nodes, elements * element_bytes(operand.value.type))

    def _batch(self, operand: Operand) -> list[Moved]:
        """The variables that its panel has dimensions for, but for its side and the step."""
        own = {loop.var for loop in self._own[operand]}
        return [each for each in batch_of(operand, self._product) if each.var not in own]

    def prepare(self) -> None:
        """Let code ahead fill the panels, when it is certain that they are used."""
        for operand, nodes in self._copies:
            prologue = self._prologues.of(operand.nodes)
            assert prologue is not None
            if own := self._own[operand]:
                assert isinstance(prologue, TilePrologue)
                prologue.fill(nodes, self._buffers[operand], own)
                continue
            prologue.keep(self._buffers[operand])
            prologue.append(nodes, self._nest, f"{self._nest.name}_panel", "copy")

    def bytes(self) -> int:
        """Bytes of all of them."""
        return sum(b.nbytes for b in self._buffers.values())

    def buffer(self, operand: Operand) -> Buffer | None:
        """The panel of an operand; None if none is kept."""
        return self._buffers.get(operand)

    def index(
        self, operand: Operand, place: dict[Var, Expr], panel: Expr, lane: Expr
    ) -> tuple[Expr, ...]:
        """Where in its panel an operand is.

        Args:
            operand: one of which a panel is kept.
            place: values of the variables.
            panel: of columns, the panel's number among all.
            lane: the column in it.
        """
        product = self._product
        batch = tuple(each.number(place) for each in self._batch(operand))
        if operand.of_rows:
            return (*batch, place[product.row], place[product.step])
        return (*batch, panel, place[product.step], lane)

    def _by_rows(self, operand: Operand, batch: list[Var]) -> list[Node]:
        """Rows one after the other."""
        product = self._product
        row = Var(product.row.extent)
        size = element_bytes(operand.value.type)
        self._make(operand, batch, (row.extent, row_of_lines(product.step.extent, size)))
        step, steps = counted(extents(product.steps), product.step.extent, ())
        place = {product.row: Expr.of(row), product.step: step}
        return around([*batch, row], steps(self._copied(operand, batch, place, Expr(0), Expr(0))))

    def _by_panels(self, operand: Operand, batch: list[Var]) -> list[Node]:
        """As many columns as a tile has side by side, for all steps."""
        product, lanes = self._product, self._tiling.lanes
        whole, rest = divmod(product.column.extent, lanes)
        self._make(operand, batch, (whole + (rest > 0), product.step.extent, lanes))
        out: list[Node] = []
        for panel, count in ((Var(whole), lanes), (Expr(whole), rest)):
            if not count or not whole and isinstance(panel, Var):
                continue
            lane = Var(count)
            step, steps = counted(extents(product.steps), product.step.extent, ())
            number = Expr.of(panel) if isinstance(panel, Var) else panel
            column = Expr.of(lane) if lane.extent > 1 else Expr(0)
            place = {product.column: number * lanes + column, product.step: step}
            inner = steps(around([lane], self._copied(operand, batch, place, number, column)))
            out += around([panel], inner) if isinstance(panel, Var) else inner
        return _in_loops(batch, out)

    def _make(self, operand: Operand, batch: list[Var], extents: tuple[int, ...]) -> None:
        type_ = operand.value.type
        shape = (*(v.extent for v in batch), *extents)
        size = element_bytes(type_)
        kind = "local" if self._own[operand] else "alloc"
        self._buffers[operand] = Buffer(shape, type_, kind, bytes_per_element=size)

    def _copied(
        self,
        operand: Operand,
        batch: list[Var],
        place: dict[Var, Expr],
        panel: Expr,
        lane: Expr,
    ) -> list[Node]:
        """Copies one element."""
        moved = zip(self._batch(operand), batch, strict=True)
        at = {**{old.var: Expr.of(new) * old.every for old, new in moved}, **place}
        values: dict[Value, Value] = {}
        body = clone(operand.nodes, values, dict(at))
        index = self.index(operand, at, panel, lane)
        body.append(Store(values[operand.value], self._buffers[operand], index))
        return body


def _in_loops(variables: list[Var], nodes: list[Node]) -> list[Node]:
    for var in reversed(variables):
        nodes = [For(var, nodes)]
    return nodes
