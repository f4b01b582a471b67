"""Nests through which the rows of one array are reduced, so that blocks of columns are enough.

An array with a long dimension, its *columns*, such as the scores of attention or all distances of
two sets of points, is needed in memory only as far as something reads a whole row at once. Nests
that go through the columns element by element and reductions over them never do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from polyblocks.affine.analysis.reductions import ReductionNest, identities
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.fusion.rescaling import Maximum, Rescaling, Scales
from polyblocks.affine.model import (
    Access,
    AffineAccess,
    AnyLoad,
    AnyStore,
    Buffer,
    Load,
    Nest,
    Op,
    Opaque,
    Store,
    walk,
)
from polyblocks.affine.subnests import parallel_shell
from polyblocks.affine.users import Users


@dataclass
class ColumnReduction:
    """A nest that reduces the columns.

    Attributes:
        nest: the nest.
        shape: its parts; one loop reduces.
        combiners: of its carried values.
        rescaling: by what each carried value has to be multiplied that was computed with another
            maximum; None for one that depends on none.
    """

    nest: Nest
    shape: ReductionNest
    combiners: list[Op]
    rescaling: list[Rescaling | None] = field(default_factory=list)


@dataclass
class ColumnChain:
    """Nests from the one that writes an array to the last reduction of its columns.

    Attributes:
        columns: how many there are.
        dimensions: of each array with these columns, which dimension they are.
        elementwise: nests that write such arrays, in program order; the first one reads none.
        reductions: in program order.
        maxima: of those that are maxima by which other nests scale, what these have to know.
        variables: of each nest that writes such an array, the loop that counts the columns.
        in_order: all nests, in program order.
    """

    columns: int
    dimensions: dict[Buffer, int]
    elementwise: list[Nest] = field(default_factory=list)
    reductions: list[ColumnReduction] = field(default_factory=list)
    maxima: dict[Buffer, Maximum] = field(default_factory=dict)
    variables: dict[Nest, Var] = field(default_factory=dict)
    in_order: list[Nest] = field(default_factory=list)

    @property
    def nests(self) -> list[Nest]:
        """All nests."""
        return [*self.elementwise, *(r.nest for r in self.reductions)]

    @property
    def rows(self) -> int:
        """Rows of the first array."""
        first = next(iter(self.dimensions))
        return prod(first.shape) // self.columns

    @classmethod
    def of(cls, buffer: Buffer, dimension: int, users: Users) -> ColumnChain | None:
        """The chain that starts where an array is written; None if something needs whole rows.

        Args:
            buffer: the array, the program's own.
            dimension: its columns.
            users: of all buffers.
        """
        chain = cls(buffer.shape[dimension], {buffer: dimension})
        writer = _only_writer(buffer, users)
        var = None if writer is None else chain._written_columns(writer)
        if writer is None or var is None:
            return None
        chain.elementwise.append(writer)
        chain.variables[writer] = var
        if not chain._extend(users) or not chain.reductions:
            return None
        chain.in_order = sorted(chain.nests, key=users.position)
        return chain if chain._may_stand_together(users) else None

    def _extend(self, users: Users) -> bool:
        """Take in all readers, in program order; whether all go through the columns in order."""
        known = Scales(self.maxima)
        while True:
            readers = {r for b in self.dimensions for r in users.readers(b)} - {*self.nests}
            if not readers:
                return True
            nest = min(readers, key=users.position)
            if not isinstance(nest, Nest) or self._columns_of(nest) is None:
                return False
            if not (self._take_elementwise(nest, known, users) or self._take(nest, known)):
                return False

    def _take_elementwise(self, nest: Nest, known: Scales, users: Users) -> bool:
        """Take in a nest that writes an array with the columns."""
        stores = [n for n in walk(nest.body) if isinstance(n, AnyStore)]
        if len(stores) != 1 or not users.is_only_accessed(stores[0].buffer):
            return False
        (store,) = stores
        var = self._columns_of(nest)
        if var is None or not isinstance(store, Store):
            return False
        places = [d for d, e in enumerate(store.index) if e == Expr.of(var)]
        if len(places) != 1 or _only_writer(store.buffer, users) is not nest:
            return False
        self.dimensions[store.buffer] = places[0]
        if self._written_columns(nest) is not var or not known.learn(nest, store):
            del self.dimensions[store.buffer]
            return False
        self.elementwise.append(nest)
        self.variables[nest] = var
        return True

    def _take(self, nest: Nest, known: Scales) -> bool:
        """Take in a reduction of the columns."""
        shape = ReductionNest.of(nest)
        var = self._columns_of(nest)
        if shape is None or any(f.bounded for f in (*shape.parallel, *shape.reductions)):
            return False
        if [loop.var for loop in shape.reductions] != [var]:
            return False
        if any(isinstance(n, Access) and n.buffer in self.dimensions for n in shape.after):
            return False
        combiners = shape.combiners()
        if combiners is None or identities(combiners) is None:
            return False
        rescaling = known.of(shape, combiners)
        if rescaling is None:
            return False
        self.reductions.append(ColumnReduction(nest, shape, combiners, rescaling))
        maximum = Maximum.of_reduction(shape, combiners, self.dimensions)
        if maximum is not None:
            self.maxima[maximum.buffer] = maximum
        return True

    def _columns_of(self, nest: Nest) -> Var | None:
        """The loop of a nest that counts the columns of what it reads; None for other nests."""
        found: set[Expr] = set()
        for buffer, dimension in self.dimensions.items():
            for node in nest.touching(buffer):
                if not isinstance(node, AffineAccess) or node.buffer is not buffer:
                    return None
                found.add(node.index[dimension])
                rest = [e for d, e in enumerate(node.index) if d != dimension]
                if any(e.depends_on_any(set(node.index[dimension].variables())) for e in rest):
                    return None
                if isinstance(node, Load) and node.where:
                    return None
        if len(found) != 1:
            return None
        expr = found.pop()
        variables = list(expr.variables())
        return variables[0] if len(variables) == 1 and expr == Expr.of(variables[0]) else None

    def _written_columns(self, nest: Nest) -> Var | None:
        """The parallel loop that counts the columns of what a nest writes; None for other nests.

        Everything else in the nest is inside of its parallel loops.
        """
        stores = [n for n in walk(nest.body) if isinstance(n, AnyStore)]
        loops, body = parallel_shell(nest.body)
        if len(stores) != 1 or stores[0] not in body or not isinstance(stores[0], Store):
            return None
        var = self._columns_of(nest)
        if var is None or var.extent != self.columns or any(loop.bounded for loop in loops):
            return None
        return var if any(loop.var is var for loop in loops) else None

    def _may_stand_together(self, users: Users) -> bool:
        """Whether all nests may be computed where the last one is, in blocks of columns."""
        nests = set(self.nests)
        last = max(nests, key=users.position)
        for nest in nests:
            read, written = users.touched(nest)
            if users.written_between(read | written, nest, last, nests):
                return False
            if users.read_between(written, nest, last, nests):
                return False
        # A whole row's result may only be a maximum, which is looked up block by block.
        results = {b for r in self.reductions for b in users.touched(r.nest)[1]} - {*self.maxima}
        code = [n for nest in self.elementwise for n in walk(nest.body)]
        code += [n for r in self.reductions for n in (*r.shape.before, *walk(r.shape.inner))]
        return not any(isinstance(n, AnyLoad) and n.buffer.base in results for n in code)


def _only_writer(buffer: Buffer, users: Users) -> Nest | None:
    writers: list[Nest | Opaque] = users.writers(buffer)
    return writers[0] if len(writers) == 1 and isinstance(writers[0], Nest) else None
