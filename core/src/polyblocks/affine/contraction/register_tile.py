"""Register tiles: rows and columns whose sums go through the steps of the reduction together."""

from __future__ import annotations

from dataclasses import dataclass

from polyblocks.affine.access import join_parts
from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.contraction.absent import Absent
from polyblocks.affine.contraction.frame import Frame, like
from polyblocks.affine.contraction.kept_panels import KeptPanels
from polyblocks.affine.contraction.partial_results import PartialResults
from polyblocks.affine.contraction.products.windows import innermost
from polyblocks.affine.contraction.staging import Staging
from polyblocks.affine.contraction.step_loops import Place, StepLoops
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, For, Load, Node, Op, Store, Value, clone
from polyblocks.affine.ops import Ops


@dataclass(frozen=True)
class Rows:
    """The rows of a register tile.

    Attributes:
        rows: places in the block.
        panel: the panel that its columns are.
        lane: counts these.
        column: their places in the block.
        values: for each row, what stands for values of the code before the reduction.
    """

    rows: list[Expr]
    panel: Expr
    lane: Var
    column: Expr
    values: list[dict[Value, Value]]


class StepCode:
    """Code of single steps: operands from panels or from where they are, and what is done of them.

    Args:
        frame: the block.
        staging: its panels.
        kept: panels that are kept between calls; None if there are no constant arguments.
    """

    def __init__(self, frame: Frame, staging: Staging, kept: KeptPanels | None) -> None:
        self.frame = frame
        self.product = frame.product
        self.tiling = frame.tiling
        self.staging = staging
        self.kept = kept

    def step(
        self,
        tile: Rows,
        at: Expr,
        local: Expr,
        sums: dict[int, list[Value]],
        out: list[Node],
    ) -> dict[int, list[Value]]:
        """One step of some rows: ``at`` counts all of them, ``local`` those of the pass."""
        product = self.product
        found: dict[int, list[Value]] = {}
        shared: dict[Value, Value] = {}
        self.columns(tile, local, at, shared, out)
        for number, carried in sums.items():
            row = tile.rows[number]
            arguments = dict(zip(product.arguments, carried, strict=True))
            own = {**tile.values[number], **shared, **arguments}
            place = {**self.frame.at(row, tile.column), product.step: at}
            for operand in product.operands:
                if operand.of_rows:
                    index: tuple[Expr, ...] = (row, local)
                    if id(operand) in self.staging.along_rows:
                        index = (local, row)
                    if self._is_kept(operand):
                        index = self._kept_index(operand, place, tile)
                    self._operand(operand, place, index, own, out)
            out += clone(product.body, own, place)
            found[number] = [own.get(v, v) for v in product.yields]
        return found

    def columns(
        self, tile: Rows, local: Expr, at: Expr, values: dict[Value, Value], out: list[Node]
    ) -> None:
        """Load what columns move for a step, which ``at`` and ``local`` count as in a tile."""
        for operand in self.product.operands:
            if operand.of_rows:
                continue
            place = {**self.frame.at(Expr(0), tile.column), self.product.step: at}
            copied = local if self.frame.by_pass else at
            index: tuple[Expr, ...] = (tile.panel, copied, Expr.of(tile.lane))
            if self.product.by_rows(operand):
                index = (copied, tile.column)
            if self._is_kept(operand):
                index = self._kept_index(operand, place, tile)
            self._operand(operand, place, index, values, out)

    def _operand(
        self,
        operand: Operand,
        place: Place,
        index: tuple[Expr, ...],
        values: dict[Value, Value],
        out: list[Node],
    ) -> None:
        """Load an operand from its panel, or from where it is."""
        panel = self.staging.panels.get(id(operand))
        if self.kept is not None and self._is_kept(operand):
            panel = self.kept.buffer(operand)
            assert panel is not None
            values[operand.value] = Value(panel.element)
            out.append(Load(values[operand.value], panel, index))
            return
        if panel is not None:
            values[operand.value] = self.frame.load(out, panel, index)
            return
        assert operand.in_place is not None
        (load,) = clone([operand.in_place], values, place)
        if operand.looped:
            assert isinstance(load, Load)
            load.index = tuple(join_parts(e) for e in load.index)
        out.append(load)

    def _is_kept(self, operand: Operand) -> bool:
        return self.kept is not None and self.kept.buffer(operand) is not None

    def _kept_index(self, operand: Operand, place: Place, tile: Rows) -> tuple[Expr, ...]:
        """Where an operand is in what is kept of it."""
        assert self.kept is not None
        panels = self.frame.column.number * (self.frame.column.size // self.tiling.lanes)
        first = panels if self.frame.column.count > 1 else Expr(0)
        return self.kept.index(operand, place, first + tile.panel, Expr.of(tile.lane))


class RegisterTiles:
    """Code of register tiles, in vectors or row by row.

    Args:
        frame: the block.
        operands: code of a step.
        partial: where results wait.
        buffers: of the sums of a tile, one for each result; empty where sums are values.
        one_by_one: whether rows go through the epilogue one after the other.
        absent: what rows need not be multiplied; None for nothing.
    """

    def __init__(
        self,
        frame: Frame,
        operands: StepCode,
        partial: PartialResults,
        buffers: list[Buffer],
        one_by_one: bool,
        absent: Absent | None,
    ) -> None:
        self.frame = frame
        self.product = frame.product
        self.tiling = frame.tiling
        self.operands = operands
        self.partial = partial
        self.buffers = buffers
        self.one_by_one = one_by_one
        self.absent = absent

    def excess(
        self, panel: Expr, lane: Var, first: Expr, upper: tuple[Expr, ...], out: list[Node]
    ) -> Value | None:
        """The contribution of the rows' offset to a column's sum in this pass, or None."""
        product = self.product
        if product.offset is None:
            return None
        (argument,), (neutral,) = product.arguments, self.zeros()
        step = Var(self.tiling.depth)
        column = panel * self.tiling.lanes + Expr.of(lane)
        inner: list[Node] = []
        values = {argument: Value(argument.type)}
        place = (Expr.of(step), first + step)
        self.operands.columns(Rows([], panel, lane, column, []), *place, values, inner)
        for operand in product.operands:
            if operand.of_rows:
                values[operand.value] = Ops(inner).constant(product.offset, operand.value.type)
        inner += clone(product.body, values, {})
        (value,) = product.yields
        found = Value(argument.type)
        out.append(neutral)
        out.append(
            For(
                *(step, inner, [neutral.results[0]], [values[argument]], [found], [values[value]]),
                upper=upper,
            )
        )
        return found

    def tile(
        self,
        rows: list[Expr],
        panel: Expr,
        lane: Var,
        first: Expr,
        upper: tuple[Expr, ...],
        excess: Value | None,
    ) -> list[Node]:
        """One register tile: its rows go through the steps together."""
        product = self.product
        column = panel * self.tiling.lanes + Expr.of(lane)
        out: list[Node] = []
        maps: list[dict[Value, Value]] = []
        inits: list[Value] = []
        for row in rows:
            nodes, values = self.frame.before(row, column)
            maps.append(values)
            out += nodes
            if self.partial:
                inits += self.partial.inits(out, row, column)
            else:
                inits += [values.get(v, v) for v in product.inits]
        if excess is not None:
            inits = [Ops(out).op("arith.subi", [init, excess]) for init in inits]
        tile = Rows(rows, panel, lane, column, maps)
        if self.tiling.chained:
            self._chains(tile, inits, first, upper, out)
            found = [] if self.one_by_one else self._sums(tile, out)
        else:
            count = len(product.results)
            starts = {n: inits[n * count : (n + 1) * count] for n in range(len(rows))}
            loops = self._step_loops(tile, first, upper)
            after = self._steps(tile, loops, 0, {}, starts, first, out)
            found = [value for n in range(len(rows)) for value in after[n]]
        if self.one_by_one:
            return [*out, *self.rows_behind(tile, found)]
        count = len(product.results)
        for number, (row, values) in enumerate(zip(rows, maps, strict=True)):
            mine = found[number * count : (number + 1) * count]
            if self.partial:
                out += self.partial.join(mine, row, column)
            else:
                values.update(zip(product.results, mine, strict=True))
                out += clone(product.after, values, self.frame.at(row, column))
        return out

    def _chains(
        self,
        tile: Rows,
        inits: list[Value],
        first: Expr,
        upper: tuple[Expr, ...],
        out: list[Node],
    ) -> None:
        """As many steps as a chain of additions may have at a time, the sums added up."""
        out += [
            Store(init, buffer, at)
            for init, (buffer, at) in zip(inits, self._places(tile), strict=True)
        ]
        rows = tuple(range(len(tile.rows)))
        out += self._around_chains(tile, self._step_loops(tile, first, upper), 0, {}, rows, first)

    def _around_chains(
        self,
        tile: Rows,
        loops: StepLoops,
        level: int,
        values: Place,
        rows: tuple[int, ...],
        first: Expr,
    ) -> list[Node]:
        """The loops around chains from one of them on.

        Args:
            tile: a register tile.
            loops: over its steps.
            level: the number of the loop.
            values: of the variables of loops around that.
            rows: those that take part.
            first: the first step.
        """
        if level == len(loops.outside):
            return self._chain(tile, loops, values, rows, first)
        var, bounds = loops.outside[level]
        out: list[Node] = []
        for fresh, value, present in loops.iterations(var, rows):
            inside = {**values, var: value}
            body = self._around_chains(tile, loops, level + 1, inside, present, first)
            lower, upper = (tuple(e.substitute(values) for e in side) for side in bounds)
            out += body if fresh is None else [For(fresh, body, lower=lower, upper=upper)]
        return out

    def _chain(
        self, tile: Rows, loops: StepLoops, values: Place, rows: tuple[int, ...], first: Expr
    ) -> list[Node]:
        """One chain of additions, added to the sums."""
        combiners = self.product.combiners
        assert combiners is not None
        neutral = self.frame.neutral()
        assert neutral is not None
        body: list[Node] = [*neutral]
        sums = {row: [op.results[0] for op in neutral] for row in rows}
        found = self._steps(tile, loops, 0, values, sums, first, body)
        places = self._places(tile)
        count = len(combiners)
        for row in rows:
            mine = places[row * count : (row + 1) * count]
            for op, value, (buffer, at) in zip(combiners, found[row], mine, strict=True):
                old = self.frame.load(body, buffer, at)
                body.append(Store(Ops(body).like(op, [old, value]), buffer, at))
        return body

    def _step_loops(self, tile: Rows, first: Expr, upper: tuple[Expr, ...]) -> StepLoops:
        """The loops over the steps of a pass, from the step ``first`` on up to bounds of these."""
        windows = self.product.windows
        chain = self.tiling.chain
        if windows is None:
            loops = StepLoops.of([self.tiling.depth], chain)
            return loops.until(upper) if upper else loops
        if self.absent is not None:
            # Loop by loop: those that are one may differ in what is absent.
            extents = innermost(
                [v.extent for v in self.product.steps if v.extent > 1] or [1], self.tiling.depth
            )
            if extents is not None:
                single = StepLoops.of(extents, chain)
                single = single.without(self.absent, self._row_places(tile, first + single.number))
                if single.written_out is not None:
                    return single
        extents = innermost(windows.steps, self.tiling.depth)
        assert extents is not None
        loops = StepLoops.of(extents, chain)
        if self.absent is None:
            return loops
        return loops.without(self.absent, self._row_places(tile, first + loops.number))

    def _row_places(self, tile: Rows, step: Expr) -> list[Place]:
        return [{**self.frame.at(row, tile.column), self.product.step: step} for row in tile.rows]

    def _places(self, tile: Rows) -> list[tuple[Buffer, tuple[Expr, ...]]]:
        """Where the sums of a tile are."""
        return [
            (buffer, (Expr(number), Expr.of(tile.lane)))
            for number in range(len(tile.rows))
            for buffer in self.buffers
        ]

    def _sums(self, tile: Rows, out: list[Node]) -> list[Value]:
        return [self.frame.load(out, buffer, at) for buffer, at in self._places(tile)]

    def rows_behind(self, tile: Rows, found: list[Value]) -> list[Node]:
        """The epilogue, row by row; results stay where sums are.

        Args:
            tile: its rows.
            found: the results; none if they are there already.
        """
        out: list[Node] = [
            Store(value, buffer, at)
            for value, (buffer, at) in zip(found, self._places(tile) if found else (), strict=True)
        ]
        number = Var(len(tile.rows))
        row = tile.rows[0] + number
        body, values = self.frame.before(row, tile.column)
        sums = [
            self.frame.load(body, b, (Expr.of(number), Expr.of(tile.lane))) for b in self.buffers
        ]
        if self.partial:
            return [*out, For(number, [*body, *self.partial.join(sums, row, tile.column)])]
        if self.frame.in_tiles:
            sums = self.frame.with_inits(sums, values, body)
        values.update(zip(self.product.results, sums, strict=True))
        body += clone(self.product.after, values, self.frame.at(row, tile.column))
        return [*out, For(number, body)]

    def _steps(
        self,
        tile: Rows,
        loops: StepLoops,
        level: int,
        values: Place,
        sums: dict[int, list[Value]],
        first: Expr,
        out: list[Node],
    ) -> dict[int, list[Value]]:
        """The loops that a chain is, from one of them on.

        Args:
            tile: a register tile.
            loops: over its steps.
            level: the number of the loop.
            values: of the variables of loops around that.
            sums: for each row that takes part, the values that are carried.
            first: the first step.
            out: gets the loops.

        Returns:
            For each row, the values after the steps.
        """
        if level == len(loops.within):
            number = loops.number.substitute(values)
            return self.operands.step(tile, first + number, number, sums, out)
        var, bounds = loops.within[level]
        found = dict(sums)
        for fresh, value, present in loops.iterations(var, tuple(sums)):
            before = {row: found[row] for row in present}
            inside = {**values, var: value}
            if fresh is None:
                found |= self._steps(tile, loops, level + 1, inside, before, first, out)
                continue
            carried = {row: like(mine) for row, mine in before.items()}
            after = {row: like(mine) for row, mine in before.items()}
            body: list[Node] = []
            yielded = self._steps(tile, loops, level + 1, inside, carried, first, body)
            lower, upper = (tuple(e.substitute(values) for e in side) for side in bounds)
            inits, arguments, results, yields = (
                [v for row in present for v in each[row]]
                for each in (before, carried, after, yielded)
            )
            out.append(
                For(fresh, body, inits, arguments, results, yields, lower=lower, upper=upper)
            )
            found |= after
        return found

    def zeros(self) -> list[Op]:
        """Constants of the sums of a unit."""
        neutral = self.frame.neutral()
        assert neutral is not None
        return neutral
