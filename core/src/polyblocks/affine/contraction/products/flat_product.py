"""Products whose axes are one loop each: what vectors and units of a core compute in tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from polyblocks.affine.access import address, stride_along
from polyblocks.affine.analysis.contractions import Contraction, Operand
from polyblocks.affine.analysis.dataflow import makers_of, slice_of, variables_of
from polyblocks.affine.analysis.reductions import in_any_order
from polyblocks.affine.contraction.products.product import Product
from polyblocks.affine.contraction.products.units import Grouped, in_groups
from polyblocks.affine.contraction.products.windows import Windows, longest_last, windows_of
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.flat_views import FlatViews, is_row
from polyblocks.affine.model import AffineAccess, Load, Node, Op, Store, Value, clone
from polyblocks.affine.ops import is_constant
from polyblocks.target import TargetDescription


@dataclass(eq=False, kw_only=True)
class FlatProduct(Product):
    """A product whose loops of each kind are counted as one.

    Attributes:
        row, column, step: one variable for all rows, columns and steps of the reduction.
        waits: whether results wait in a buffer, from which they are stored, since they are not
            stored side by side as columns are.
        in_order: whether columns of the fastest loop are stored side by side.
        crossed: whether rows of the fastest loop are, and columns are not.
        inside: whether columns of the fastest loop are stored closer to each other than rows are.
        body: code of one step, which uses operands and carried values.
        arguments, yields: the carried values before and after a step.
        inits: what the reduction starts with.
        results: what the reduction results in.
        before, after: code around the reduction, of one element of the result.
        combiners: the operation that joins each carried value and a step's, in any order; None if
            steps have an order.
        offset: of a unit's product, what was added to all words of the rows: its products with the
            columns are subtracted from the results. None for nothing.
        windows: how rows are used in place that several loops move; None if they are copied.
        strides: of the loops of the steps in that other order.
        transposed: whether its rows are the contraction's columns.
    """

    row: Var
    column: Var
    step: Var
    waits: bool
    in_order: bool
    crossed: bool
    inside: bool
    body: list[Node]
    arguments: list[Value]
    yields: list[Value]
    inits: list[Value]
    results: list[Value]
    before: list[Node]
    after: list[Node]
    combiners: list[Op] | None
    offset: int | None = None
    windows: Windows | None = None
    strides: list[int] = field(default_factory=list)
    transposed: bool = False

    def by_rows(self, operand: Operand) -> bool:
        """Whether copies of columns lie in rows of a block, since they are not in order.

        Rows of a tile's length would be broken wherever one of their loops ends.
        """
        return operand.in_place is None and len(self.columns) > 1 and not operand.kept

    def in_lines(self, operand: Operand) -> bool:
        """Whether steps of a row, or columns of a step, are neighbours in an operand's memory."""
        if operand.in_place is None:
            return False
        (place,) = operand.in_place.index
        return place.coefficient(self.step if operand.of_rows else self.column) == 1

    def steps_first(self, operand: Operand) -> bool:
        """Whether neighbours in an operand's memory are neighbouring steps, and not columns."""
        if operand.in_place is None:
            return False
        (place,) = operand.in_place.index
        return place.coefficient(self.column) != 1 and place.coefficient(self.step) == 1


def products_of(
    contraction: Contraction, views: FlatViews, target: TargetDescription | None = None
) -> list[FlatProduct]:
    """The products that a contraction with loops over its steps can be seen as.

    If the target has a matrix unit that computes the steps, some of them are those of the unit.

    Either side may be that of the columns. Their loops are one where they go through what is stored
    without a gap, and other loops of theirs are a batch then; or all of them are one, and results
    wait. None for an unrolled contraction.
    """
    if not contraction.reduction.loops:
        return []
    grouped = in_groups(contraction, views, target) if target is not None else []
    found = [product for one in grouped for product in _unit_products(one, contraction, views)]
    sides = (contraction.rows, contraction.columns)
    for transposed, (rows, columns) in enumerate((sides, sides[::-1])):
        products = (
            *_seen_as(contraction, views, rows, columns),
            *_in_windows(contraction, views, rows, columns),
        )
        for product in products:
            product.transposed = bool(transposed)
        found += products
    return found


def _unit_products(grouped: Grouped, whole: Contraction, views: FlatViews) -> list[FlatProduct]:
    """The products of a unit's steps, of those of a whole contraction."""
    contraction = grouped.contraction
    found = _seen_as(contraction, views, contraction.rows, contraction.columns)
    for product in found:
        product.unit, product.offset = grouped.unit, grouped.offset
        product.transposed = contraction.rows == whole.columns
    return found


def _in_windows(
    contraction: Contraction, views: FlatViews, rows: list[Var], columns: list[Var]
) -> list[FlatProduct]:
    """The products with these rows and columns whose rows are used in place, loop by loop."""
    moved = [
        n
        for n in contraction.reduction.body
        if isinstance(n, Load) and any(v in rows for e in n.index for v in e.variables())
    ]
    natural = steps = _steps(contraction)
    if in_any_order(contraction.combiners) is not None:
        steps = longest_last(steps, moved)
    strides = _strides(natural)
    if windows_of(_slowest_first(rows, moved), steps, moved) is None:
        return []
    found: list[FlatProduct] = []
    for product, mine in _with_rows(contraction, views, rows, columns, steps):
        product.windows = windows_of(mine, steps, moved)
        of_rows = [o for o in product.operands if o.of_rows]
        if product.windows is not None and all(_use_in_loops(o, views) for o in of_rows):
            found.append(product)
        product.strides = [strides[v] for v in steps]
        for operand in product.operands:
            if not operand.of_rows and operand.in_place is None:
                operand.natural = _natural(operand, product, views)
    return found


def _strides(variables: list[Var]) -> dict[Var, int]:
    """By how much each variable moves the number that counts all of their values."""
    found: dict[Var, int] = {}
    stride = 1
    for var in reversed(variables):
        found[var] = stride
        stride *= var.extent
    return found


def _natural(operand: Operand, product: FlatProduct, views: FlatViews) -> Load | None:
    """An operand's load, with its steps in the order of ``product.strides``."""
    load = only_load(operand.nodes, operand.value)
    if load is None or not is_row(load.buffer):
        return None
    loops = [Var(v.extent) for v in product.steps]
    number = Expr(0)
    for var in loops:
        number = number * var.extent + var
    place = address(load.buffer, load.index).substitute({product.step: number})
    if place.coefficient(product.column) is None:
        return None
    for var, stride in zip(loops, product.strides, strict=True):
        if var.extent > 1 and place.coefficient(var) != stride:
            return None
    place = place.substitute({var: Expr(0) for var in loops}) + product.step
    return Load(load.result, views.of(load.buffer), (place,), load.location, padding=load.padding)


def _use_in_loops(operand: Operand, views: FlatViews) -> bool:
    """Let an operand that is a load be used in place, however many loops move it."""
    if operand.in_place is None:
        load = only_load(operand.nodes, operand.value)
        if load is None:
            return False
        if is_row(load.buffer):
            place = address(load.buffer, load.index)
            load = Load(
                load.result, views.of(load.buffer), (place,), load.location, padding=load.padding
            )
        operand.in_place, operand.looped = load, True
    return True


def _seen_as(
    contraction: Contraction, views: FlatViews, rows: list[Var], columns: list[Var]
) -> list[FlatProduct]:
    """The products with these rows and columns."""
    return [product for product, _ in _with_rows(contraction, views, rows, columns)]


def _with_rows(
    contraction: Contraction,
    views: FlatViews,
    rows: list[Var],
    columns: list[Var],
    steps: list[Var] | None = None,
) -> list[tuple[FlatProduct, list[Var]]]:
    """The products with these rows and columns, each with the loops of its rows."""
    stored = [n for n in contraction.after if isinstance(n, Store)]
    inner = [n for n in contraction.reduction.body if isinstance(n, Load)]
    # Contiguously stored elements are one row; loops around them are a batch.
    rows, columns = (_slowest_first(side, stored) for side in (rows, columns))
    count = _contiguous_suffix(columns, stored)
    batch = [*contraction.batch, *columns[:-count]]
    one_row = _product(contraction, views, batch, rows, columns[-count:], False, steps)
    by_rows = rows
    rows, columns = (_slowest_first(side, inner) for side in (rows, columns))
    waiting = _product(contraction, views, contraction.batch, rows, columns, True, steps)
    return [(one_row, by_rows), (waiting, rows)]


def _steps(contraction: Contraction) -> list[Var]:
    """The loops of the steps, the fastest in memory last where they may be in any order."""
    steps = contraction.reduction.order
    if in_any_order(contraction.combiners) is None:
        return steps
    return _slowest_first(steps, [n for n in contraction.reduction.body if isinstance(n, Load)])


def _product(
    contraction: Contraction,
    views: FlatViews,
    batch: list[Var],
    rows: list[Var],
    columns: list[Var],
    waits: bool,
    steps: list[Var] | None = None,
) -> FlatProduct:
    chain = contraction.reduction.loops
    combiners = in_any_order(contraction.combiners)
    steps = steps or _steps(contraction)
    stored = [n for n in contraction.after if isinstance(n, Store)]
    row, column, step = (
        Var(prod(v.extent for v in variables), name)
        for variables, name in ((rows, "m"), (columns, "n"), (steps, "k"))
    )
    places = _digits(rows, row) | _digits(columns, column) | _digits(steps, step)
    values: dict[Value, Value] = {}
    before = clone(contraction.before, values, places)
    last = chain[-1]
    for argument in last.arguments:
        values[argument] = Value(argument.type)
    inner = clone(contraction.reduction.body, values, places)
    found = [Value(r.type) for r in chain[0].results]
    inits = [values.get(v, v) for v in chain[0].inits]
    after_values = {**values, **dict(zip(chain[0].results, found, strict=True))}
    after = clone(contraction.after, after_values, places)
    for node in (*before, *inner, *after):
        _flatten(node, views)
    arguments = [values[a] for a in last.arguments]
    yields = [values.get(v, v) for v in last.yields]
    split = _Split(before, inner, arguments, yields, row, column)
    in_order = _side_by_side(stored, columns[-1])
    return FlatProduct(
        contraction=contraction,
        batch=batch,
        rows=rows,
        columns=columns,
        steps=steps,
        row=row,
        column=column,
        step=step,
        waits=waits,
        in_order=in_order,
        crossed=not in_order and _side_by_side(stored, rows[-1]),
        inside=in_order or _closer(stored, columns[-1], rows[-1]),
        operands=[
            Operand(value, nodes, of_rows, _in_place(nodes, value, step, row, column, views))
            for value, nodes, of_rows in split.operands
        ],
        body=split.joint,
        arguments=arguments,
        yields=yields,
        inits=inits,
        results=found,
        before=before,
        after=after,
        combiners=combiners,
    )


def _side_by_side(stores: list[Store], var: Var) -> bool:
    """Whether all that is stored for a variable's values lies one after the other."""
    return all(stride_along(n.buffer, n.index, var) == 1 for n in stores)


def _closer(stores: list[Store], var: Var, other: Var) -> bool:
    """Whether all that is stored for a variable's values is closer together than for another's."""
    strides = [[stride_along(n.buffer, n.index, v) for v in (var, other)] for n in stores]
    return all(a is not None and b is not None and abs(a) < abs(b) for a, b in strides)


def _slowest_first(variables: list[Var], accesses: Sequence[AffineAccess]) -> list[Var]:
    """The variables in the order in which they move accesses through memory, the fastest last."""
    places = [address(n.buffer, n.index) for n in accesses]

    def distance(var: Var) -> int:
        return sum(abs(place.coefficient(var) or 0) for place in places)

    return sorted(variables, key=distance, reverse=True)


def _contiguous_suffix(variables: list[Var], stores: list[Store]) -> int:
    """Number of trailing variables that store contiguously; at least one."""
    count, size = 1, variables[-1].extent
    places = [address(n.buffer, n.index) for n in stores]
    for var in reversed(variables[:-1]):
        steps = [(p.coefficient(variables[-1]), p.coefficient(var)) for p in places]
        if any(fast is None or slow != fast * size for fast, slow in steps):
            break
        count, size = count + 1, size * var.extent
    return count


def _digits(variables: list[Var], whole: Var) -> dict[Var, Expr]:
    """The variables as digits of one that counts all of their combinations, the last fastest."""
    found: dict[Var, Expr] = {}
    rest = Expr.of(whole)
    for position in range(len(variables) - 1, -1, -1):
        var = variables[position]
        found[var] = rest % var.extent if position else rest
        rest = rest // var.extent
    return found


def _flatten(node: Node, views: FlatViews) -> None:
    """Let an access at digits of variables be one of a view, where its address is linear."""
    if not isinstance(node, AffineAccess) or not is_row(node.buffer):
        return
    if all(isinstance(atom, Var) for e in node.index for atom, _ in e.terms):
        return
    place = address(node.buffer, node.index)
    if all(isinstance(atom, Var) for atom, _ in place.terms):
        node.index, node.buffer = (place,), views.of(node.buffer)


def _in_place(
    nodes: list[Node], value: Value, step: Var, row: Var, column: Var, views: FlatViews
) -> Load | None:
    """The operand's load from a one-dimensional view, if the kernel can do it as it is."""
    load = only_load(nodes, value)
    if load is None or not is_row(load.buffer):
        return None
    place = address(load.buffer, load.index)
    if any(place.coefficient(v) is None for v in (row, column, step)):
        return None
    return Load(load.result, views.of(load.buffer), (place,), load.location, padding=load.padding)


def only_load(nodes: list[Node], value: Value) -> Load | None:
    """The load that all of these nodes are; None if they compute something."""
    loads = [n for n in nodes if not is_constant(n)]
    if len(loads) == 1 and isinstance(loads[0], Load) and loads[0].result is value:
        return loads[0]
    return None


class _Split:
    """The code of a step, cut into what rows move, what columns move, and the rest.

    Attributes:
        operands: values of one side that the rest uses, the code for each, whether rows move it.
        joint: the rest.
    """

    ROWS, COLUMNS, CARRIED = "rows", "columns", "carried"

    def __init__(
        self,
        before: list[Node],
        inner: list[Node],
        arguments: list[Value],
        yields: list[Value],
        row: Var,
        column: Var,
    ) -> None:
        self._sides = {row: self.ROWS, column: self.COLUMNS}
        self._inner = inner
        constants = [n for n in before if is_constant(n)]
        self._nodes = [*constants, *inner]
        self._makers = makers_of(self._nodes)
        carried = [*arguments, *(r for n in before for r in n.defines)]
        #: Value -> the sides that move it; values before the reduction belong to one element.
        self._moves = dict.fromkeys(carried, frozenset({self.CARRIED}))
        self._moves |= {r: frozenset() for n in constants for r in n.results}
        for node in inner:
            self._moves.update(dict.fromkeys(node.defines, self._moved(node)))
        joint = {n for n in inner if not self._one_sided(n)}
        used = {v for n in joint for v in n.uses} | set(yields)
        self.operands = [
            (v, self._code(v), self._moves[v] == {self.ROWS})
            for v in sorted(used, key=lambda v: v.number)
            if len(self._moves.get(v, ())) == 1 and self.CARRIED not in self._moves[v]
        ]
        # Values that only steps move are computed where they are used.
        loose = {n for v in used if v in self._makers for n in self._loose(v)}
        self.joint = [n for n in inner if n in joint or n in loose]

    def _moved(self, node: Node) -> frozenset[str]:
        found = {self._sides[v] for v in variables_of([node]) if v in self._sides}
        return frozenset(found).union(*(self._moves.get(v, frozenset()) for v in node.uses))

    def _one_sided(self, node: Node) -> bool:
        moved = frozenset().union(*(self._moves[r] for r in node.defines))
        return len(moved) < 2 and self.CARRIED not in moved

    def _loose(self, value: Value) -> list[Node]:
        return self._code(value) if not self._moves.get(value) else []

    def _code(self, value: Value) -> list[Node]:
        """The nodes that compute a value, in order."""
        needed = slice_of([value], self._makers)
        return [n for n in self._nodes if n in needed]
