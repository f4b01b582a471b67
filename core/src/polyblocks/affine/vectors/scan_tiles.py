"""Scans along rows, several rows at a time: every row is a lane of the vectors.

Memory is in order along the rows, and vectors go across. So a block of steps is copied to a tile,
transposed, scanned there, and results are transposed back.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from polyblocks.affine.access import stride_along
from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.analysis.reductions import ReductionNest
from polyblocks.affine.element import dtype_of, element_bytes
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    AffineAccess,
    Alloca,
    Buffer,
    For,
    Index,
    Load,
    Nest,
    Node,
    Pure,
    Renaming,
    Store,
    Value,
    nested,
    remove_dead,
)
from polyblocks.affine.ops import is_constant


@dataclass
class RowScan:
    """A nest with a scan along each of many rows.

    Attributes:
        shape: the nest taken apart.
        loop: along a row.
        row: the parallel loop over the rows.
        moved: accesses in order along a row, and the elements from step to step, 1 or -1.
        constants: those that the loop uses and that are defined before it.
    """

    shape: ReductionNest
    loop: For
    row: For
    moved: dict[AffineAccess, int] = field(default_factory=dict)
    constants: list[Node] = field(default_factory=list)

    @classmethod
    def of(cls, nest: Nest) -> RowScan | None:
        """The parts of a nest; None if it is no such nest, or its rows cannot be lanes."""
        shape = ReductionNest.of(nest)
        if shape is None or len(shape.reductions) != 1 or not shape.parallel:
            return None
        (loop,) = shape.reductions
        if any(f.bounded or f.level or f.tile or f.lanes for f in (*shape.parallel, loop)):
            return None
        if not any(isinstance(n, Store) for n in loop.body):
            return None
        if not all(_is_plain(n) for n in (*shape.before, *loop.body, *shape.after)):
            return None
        written = {n.buffer.base for n in loop.body if isinstance(n, Store)}
        read = {n.buffer.base for n in (*shape.before, *loop.body) if isinstance(n, Load)}
        if written & read:
            return None
        constants = _constants(shape, loop)
        if constants is None:
            return None
        for row in reversed(shape.parallel):
            moved = _moved(loop, row.var)
            if moved and is_parallel(row, nest.body):
                return cls(shape, loop, row, moved, constants)
        return None

    def bits(self) -> set[int]:
        """Sizes of the numbers that the loop computes with; 0 for values without lanes."""
        made = (v for n in self.loop.body if not isinstance(n, Index) for v in n.defines)
        return {dtype_of(v.type).bits for v in (*self.loop.arguments, *made)} - {1}

    def tiled(self, lanes: int, vector_bits: int) -> tuple[list[Node], list[Node]]:
        """The nest for as many rows as there are whole vectors of, and that for the others.

        Args:
            lanes: rows of a tile and steps of a block, a power of two; of both there are enough.
            vector_bits: of a register.
        """
        rows = self.row.var.extent
        whole, left = rows // lanes, rows % lanes
        fresh = {f.var: Var(f.var.extent) for f in self.shape.parallel if f is not self.row}
        tile = Var(whole)
        writer = _TileWriter(self, lanes, vector_bits, {v: Expr.of(f) for v, f in fresh.items()})
        body = writer.write(Expr.of(tile) * lanes)
        remove_dead(body)
        loops = [fresh.get(f.var, tile) for f in self.shape.parallel]
        return nested(loops, body), self._last_rows(rows - left, left) if left else []

    def _last_rows(self, first: int, count: int) -> list[Node]:
        """The nest for the last rows, as it was."""
        fresh = [Var(count if f is self.row else f.var.extent) for f in self.shape.parallel]
        to = Renaming({}, {}, {})
        for loop, var in zip(self.shape.parallel, fresh, strict=True):
            to.variables[loop.var] = Expr.of(var) + (first if loop is self.row else 0)
        parts = [*self.shape.before, self.loop, *self.shape.after]
        nodes = [node.copied(to) for node in parts]
        return nested([v for v in fresh if v.extent > 1] or fresh[-1:], nodes)


@dataclass
class _TileWriter:
    """Writes the scan of as many rows as there are lanes.

    Attributes:
        scan: the nest.
        lanes: rows at a time.
        vector_bits: of a register.
        around: the variables of the other loops.
    """

    scan: RowScan
    lanes: int
    vector_bits: int
    around: dict[Var, Expr]

    def __post_init__(self) -> None:
        loop = self.scan.loop
        #: Running values between two blocks, a row in each element.
        self.states = [_local((self.lanes,), v) for v in loop.arguments]
        # Steps of the last block, with those that would be a block of one step.
        steps = loop.var.extent
        self.blocks, self.last = divmod(steps, self.lanes)
        if self.last == 1:
            self.blocks, self.last = self.blocks - 1, self.lanes + 1
        longest = max(self.lanes, self.last)
        self.tiles = {
            access: _local(
                (longest, self.lanes),
                access.result if isinstance(access, Load) else access.value,  # type: ignore[attr-defined]
            )
            for access in self.scan.moved
        }

    def write(self, first: Expr) -> list[Node]:
        """The code for the rows from ``first`` on."""
        shape, loop = self.scan.shape, self.scan.loop
        body: list[Node] = [Alloca(b) for b in (*self.states, *self.tiles.values())]
        lane = Var(self.lanes)
        to = self._renaming(first, lane)
        before = [n.copied(to) for n in shape.before]
        body.append(For(lane, [*before, *self._kept(to.all(loop.inits), lane)]))
        if self.blocks > 1:
            block = Var(self.blocks)
            body.append(For(block, self._block(first, Expr.of(block) * self.lanes, self.lanes)))
        elif self.blocks:
            body += self._block(first, Expr(0), self.lanes)
        if self.last:
            body += self._block(first, Expr(self.blocks * self.lanes), self.last)
        if shape.after:
            lane = Var(self.lanes)
            values, loads = self._read(lane)
            to = self._renaming(first, lane)
            to.values.update(zip(loop.results, values, strict=True))
            # Values from before the loop may be used behind it.
            nodes = [n.copied(to) for n in (*shape.before, *shape.after)]
            body.append(For(lane, [*loads, *nodes]))
        return body

    def _block(self, first: Expr, begin: Expr, length: int) -> list[Node]:
        """Steps ``begin`` to ``begin + length`` of rows ``first`` to ``first + lanes``."""
        body: list[Node] = []
        for access in self.tiles:
            if isinstance(access, Load):
                body += self._moves(access, first, begin, length)
        body.append(self._scanned(first, begin, length))
        for access in self.tiles:
            if isinstance(access, Store):
                body += self._moves(access, first, begin, length)
        return body

    def _scanned(self, first: Expr, begin: Expr, length: int) -> For:
        """The scan of a block, in its tiles."""
        loop, lane, step = self.scan.loop, Var(self.lanes), Var(length)
        to = self._renaming(first, lane)
        to.variables[loop.var] = begin + Expr.of(step)
        outside = [n.copied(to) for n in self.scan.constants]
        values, loads = self._read(lane)
        arguments = [to.fresh(a) for a in loop.arguments]
        body: list[Node] = []
        for node in loop.body:
            if not isinstance(node, AffineAccess) or node not in self.tiles:
                body.append(node.copied(to))
                continue
            place = Expr.of(step)
            if self.scan.moved[node] < 0:
                place = Expr(length - 1) - place
            index = (place, Expr.of(lane))
            if isinstance(node, Load):
                body.append(Load(to.fresh(node.result), self.tiles[node], index, node.location))
            elif isinstance(node, Store):
                body.append(Store(to.use(node.value), self.tiles[node], index, node.location))
        results = [Value(v.type) for v in arguments]
        along = For(step, body, values, arguments, results, to.all(loop.yields))
        nodes = [*outside, *loads, along, *self._kept(results, lane)]
        return For(lane, nodes, lanes=self.lanes)

    def _moves(self, access: AffineAccess, first: Expr, begin: Expr, length: int) -> list[Node]:
        """Copy a block between memory and its tile, in squares as large as a register has lanes.

        A tile is in order along the rows' numbers; memory along the steps.
        """
        width = min(self.lanes, self.vector_bits // (8 * access.buffer.bytes_per_element))
        whole = length - length % width
        parts = [(0, whole, width), (whole, length - whole, 1)]
        out: list[Node] = []
        for start, count, side in parts:
            if not count:
                continue
            rows, steps = Var(self.lanes // side), Var(count // side)
            row, step = (Var(side), Var(side)) if side > 1 else (rows, steps)
            at_row, at_step = Expr.of(row), Expr.of(step)
            if side > 1:
                at_row, at_step = Expr.of(rows) * side + at_row, Expr.of(steps) * side + at_step
            place = at_step + start
            node = self._move(access, first + at_row, begin, length, (place, at_row))
            loads = isinstance(access, Load)
            inner = [step, row] if loads else [row, step]
            outer = [rows, steps] if side > 1 else []
            out += nested([v for v in (*outer, *inner) if v.extent > 1] or inner[-1:], node)
        return out

    def _move(
        self,
        access: AffineAccess,
        row: Expr,
        begin: Expr,
        length: int,
        place: tuple[Expr, Expr],
    ) -> list[Node]:
        """Copy one element. Tiles are in the order of memory, steps may go backward in it."""
        step = place[0] if self.scan.moved[access] > 0 else Expr(length - 1) - place[0]
        replaced = self.around | {self.scan.row.var: row, self.scan.loop.var: begin + step}
        index = tuple(e.substitute(replaced) for e in access.index)
        tile, location = self.tiles[access], access.location
        value = Value(tile.element)
        if isinstance(access, Load):
            return [
                Load(value, access.buffer, index, location),
                Store(value, tile, place, location),
            ]
        return [Load(value, tile, place, location), Store(value, access.buffer, index, location)]

    def _renaming(self, first: Expr, lane: Var) -> Renaming:
        return Renaming({}, self.around | {self.scan.row.var: first + Expr.of(lane)}, {})

    def _read(self, lane: Var) -> tuple[list[Value], list[Node]]:
        """The running values of a row, and their loads."""
        values = [Value(b.element) for b in self.states]
        at = (Expr.of(lane),)
        return values, [Load(v, b, at) for v, b in zip(values, self.states, strict=True)]

    def _kept(self, values: list[Value], lane: Var) -> list[Node]:
        at = (Expr.of(lane),)
        return [Store(v, b, at) for v, b in zip(values, self.states, strict=True)]


def _local(shape: tuple[int, ...], value: Value) -> Buffer:
    return Buffer(shape, value.type, "local", bytes_per_element=element_bytes(value.type))


def _is_plain(node: Node) -> bool:
    """Whether a node may be in a lane's code; the loop of the scan itself is not asked."""
    return isinstance(node, Pure) or (isinstance(node, AffineAccess) and not node.where)


def _constants(shape: ReductionNest, loop: For) -> list[Node] | None:
    """The constants before the loop that it uses; None if it uses other values, too."""
    used = {v for node in loop.body for v in node.uses} | set(loop.yields)
    found = [n for n in shape.before if any(v in used for v in n.defines)]
    if not all(is_constant(n) for n in found):
        return None
    return found


def _moved(loop: For, row: Var) -> dict[AffineAccess, int] | None:
    """Accesses in order along the loop, with 1 or -1; None if one has no order for lanes."""
    found: dict[AffineAccess, int] = {}
    for node in loop.body:
        if not isinstance(node, AffineAccess):
            continue
        across = stride_along(node.buffer, node.index, row)
        along = stride_along(node.buffer, node.index, loop.var)
        if across == 1 or (across == 0 and isinstance(node, Load)):
            continue
        if across in (0, None) or along not in (1, -1):
            return None
        found[node] = along
    return found
