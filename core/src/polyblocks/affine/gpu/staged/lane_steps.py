"""The steps of a contraction by arithmetic of lanes as nodes.

While threads compute with a tile of the operands in shared memory, their loads of the next one are
on the way to registers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.buffers.copies import BLOCK, REGISTERS, SHARED, Barrier, BoxCopy
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.gpu.plans.lanes import LanePlan
from polyblocks.affine.gpu.staged.steps import number_of, values_at
from polyblocks.affine.model import Alloca, Buffer, For, Load, Node, Store, Value, clone


@dataclass
class LaneSteps:
    """Builds the nodes that compute the sums of an element.

    Args:
        plan: how tiles are computed.

    Attributes:
        tiles: of each operand, in shared memory.
        loaded: a tile of an element's steps of each operand, in registers.
    """

    plan: LanePlan
    tiles: dict[Operand, Buffer] = field(init=False)
    loaded: dict[Operand, Buffer] = field(init=False)

    def __post_init__(self) -> None:
        plan = self.plan
        operands = plan.sizes.parts.operands
        self.tiles = {o: _buffer(o, plan.shape(o), SHARED) for o in operands}
        self.loaded = {o: _buffer(o, (plan.sizes.depth,), REGISTERS) for o in operands}

    def nodes(self) -> list[Node]:
        """All steps, behind the nest's code before the reduction."""
        depth, steps = self.plan.sizes.depth, self.plan.sizes.counts[2]
        count, rest = divmod(steps, depth)
        reduction = self.plan.sizes.parts.reduction
        out: list[Node] = [Alloca(b) for pair in zip(*self._buffers, strict=True) for b in pair]
        sums, results = list(reduction.loops[0].inits), list(reduction.loops[0].results)
        out += self._loads(Expr(0), count)
        last = None if rest else results
        if count == 1:
            sums = self._tile(Expr(0), sums, out, count, last)
        else:
            var = Var(count, "t")
            carried, after = _like(sums), last or _like(sums)
            body: list[Node] = []
            yields = self._tile(Expr.of(var), carried, body, count)
            out.append(For(var, body, sums, carried, after, yields))
            sums = after
        if rest:
            out += self._loads(Expr(count), count + 1)
            self._tile(Expr(count), sums, out, count, results)
        return out

    @property
    def _buffers(self) -> tuple[list[Buffer], list[Buffer]]:
        return list(self.tiles.values()), list(self.loaded.values())

    def _tile(
        self,
        number: Expr,
        sums: list[Value],
        out: list[Node],
        count: int,
        results: list[Value] | None = None,
    ) -> list[Value]:
        """A tile goes to shared memory, the loads of the next one begin, and it is used.

        Args:
            number: of the tile.
            sums: so far.
            out: gets the nodes.
            count: tiles that are loaded ahead.
            results: the sums behind it; new values if None.
        """
        out += [Barrier(BLOCK), *self._stores(number), Barrier(BLOCK)]
        if number.range()[0] + 1 < count:
            out += self._loads(number + 1, count)
        reduction = self.plan.sizes.parts.reduction
        inner = reduction.loops[-1]
        step, loop = self._steps(number)
        carried = _like(sums)
        values = dict(zip(inner.arguments, carried, strict=True))
        at = values_at(Expr.of(step), reduction.order)
        for node in inner.body:
            operand = self.plan.sizes.parts.operand(node) if isinstance(node, Load) else None
            if operand is None or not isinstance(node, Load):
                loop.body += clone([node], values, dict(at))
                continue
            values[node.result] = Value(node.result.type)
            place = self._place(operand, step)
            tile = self.tiles[operand]
            loop.body.append(Load(values[node.result], tile, place, node.location))
        loop.inits, loop.arguments = sums, carried
        loop.results = results or _like(sums)
        loop.yields = [values[v] for v in inner.yields]
        out.append(loop)
        return loop.results

    def _loads(self, number: Expr, count: int) -> list[Node]:
        """A tile of each operand to registers, if it is one of the first ``count``."""
        out: list[Node] = []
        order = self.plan.sizes.parts.reduction.order
        for operand, loaded in self.loaded.items():
            load = operand.load
            step, loop = self._steps(number)
            if number.range()[1] >= count:
                loop.upper = (*loop.upper, Expr(count * self.plan.sizes.depth))
            at = values_at(Expr.of(step), order)
            source = Load(
                *(Value(load.result.type), load.buffer),
                *(tuple(e.substitute(at) for e in load.index), load.location),
                where=tuple(e.substitute(at) for e in load.where),
                padding=load.padding,
            )
            store = Store(source.result, loaded, (self._in_tile(step),), load.location)
            out.append(BoxCopy("registers", (loop,), source, (), store).loop())
        return out

    def _stores(self, number: Expr) -> list[Node]:
        """The loaded tile of each operand to shared memory."""
        out: list[Node] = []
        for operand, loaded in self.loaded.items():
            load = operand.load
            step, loop = self._steps(number)
            source = Load(Value(load.result.type), loaded, (self._in_tile(step),), load.location)
            place = self._place(operand, step)
            store = Store(source.result, self.tiles[operand], place, load.location)
            out.append(BoxCopy("registers", (loop,), source, (), store).loop())
        return out

    def _steps(self, number: Expr) -> tuple[Var, For]:
        """The steps of a tile, as far as there are any, and the loop over these."""
        depth = self.plan.sizes.depth
        step = Var(self.plan.sizes.counts[2], "k")
        begin = number * depth
        return step, For(step, [], lower=(begin,), upper=(begin + depth,))

    def _in_tile(self, step: Var) -> Expr:
        return Expr.of(step) % self.plan.sizes.depth

    def _place(self, operand: Operand, step: Var) -> tuple[Expr, ...]:
        """Where a step of an element's row (or column) is in shared memory."""
        plan, side = self.plan, operand.side
        parts, length = plan.sizes.parts, plan.sizes.tile[side]
        outer = number_of((parts.rows, parts.columns)[side]) % length
        together, _ = plan.copied_at_once(operand)
        at = self._in_tile(step)
        return at // together, (at % together) * length + outer


def _buffer(operand: Operand, shape: tuple[int, ...], space: str) -> Buffer:
    of = operand.load.buffer
    nbytes = of.bytes_per_element
    return Buffer(shape, of.element, "local", bytes_per_element=nbytes, space=space)


def _like(values: list[Value]) -> list[Value]:
    return [Value(v.type) for v in values]
