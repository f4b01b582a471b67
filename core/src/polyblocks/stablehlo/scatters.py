"""Writing at indices that are computed at run time; updates that are out of range are dropped."""

from __future__ import annotations

import math
from math import prod
from typing import Any

from polyblocks import mlir
from polyblocks.errors import UnsupportedError
from polyblocks.mlir import ir
from polyblocks.stablehlo import code
from polyblocks.stablehlo.array import Array
from polyblocks.stablehlo.attributes import boolean
from polyblocks.stablehlo.convert import convert
from polyblocks.stablehlo.element import BOOL, I64, Element
from polyblocks.stablehlo.gathers import clamped_number, component, start_index
from polyblocks.stablehlo.lowering import Lowering
from polyblocks.stablehlo.rules import rule
from polyblocks.stablehlo.shapes import extract, insert, reshape, transpose
from polyblocks.stablehlo.spread import spread


@rule("stablehlo.scatter")
def _scatter(lowering: Lowering, op: Any, arguments: list[Array]) -> Array:
    if len(arguments) != 3:
        raise UnsupportedError("a scatter into several arrays at once")
    x, indices, updates = arguments
    numbers = mlir.stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    if not updates.numel or not x.numel:
        return x
    window_dims = list(numbers.update_window_dims)
    batching = dict(
        zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
    )
    hidden = {*numbers.inserted_window_dims, *batching}
    to_operand = list(numbers.scattered_dims_to_operand_dims)
    vector = numbers.index_vector_dim
    rest = [d for d in range(updates.rank) if d not in window_dims]
    count = prod(updates.shape[d] for d in rest)
    # One row of updates for each index: its window over all dimensions of the operand.
    rows = transpose(lowering, updates, [*rest, *window_dims])
    sizes = iter(updates.shape[d] for d in window_dims)
    window = [1 if d in hidden else next(sizes) for d in range(x.rank)]
    limits = {d: x.shape[d] - window[d] for d in to_operand}
    if any(limit < 0 for limit in limits.values()):
        return x
    if count == 1 and not batching:
        starts = {d: component(lowering, indices, vector, k) for k, d in enumerate(to_operand)}
        part = reshape(lowering, rows, window)
        return _update(lowering, op.regions[0], x, part, starts, limits)

    shape = [updates.shape[d] for d in rest]
    places: list[Any] = list(range(len(shape)))
    if vector < indices.rank:
        places.insert(vector, None)
    dims = [*to_operand, *batching]
    columns, inside = _indices(lowering, indices, shape, places, dims, limits, batching)
    flat = reshape(lowering, rows, (count, *window))
    valid = reshape(lowering, inside, (count,)) if inside is not None else None
    columns = reshape(lowering, columns, (count, len(dims)))
    unique = boolean(op, "unique_indices")
    return _scatter_rows(lowering, op.regions[0], x, columns, flat, valid, dims, unique)


def _update(
    lowering: Lowering,
    region: Any,
    x: Array,
    part: Array,
    starts: dict[int, Array],
    limits: dict[int, int],
) -> Array:
    """A scatter of one window: read it, combine, and write it back."""
    valid: Any = None
    where: list[Any] = [0] * x.rank
    for d, start in starts.items():
        where[d] = start_index(lowering, start, limits[d])
        bounds = start.bounds
        if bounds is not None and bounds[0] >= 0 and bounds[1] <= limits[d]:
            continue
        scalar = lowering.scalar(start)
        fits = _fits(scalar, start.element, limits[d])
        valid = fits if valid is None else code.both(valid, fits)
    source = lowering.tensor(x)
    old = Array(part.shape, x.element, extract(source, where, list(part.shape), [1] * x.rank))
    inputs = [old, part]
    if valid is not None:
        inputs.append(Array((), BOOL, scalar=valid))
    operands, scalars = spread(lowering, inputs[:2], range(x.rank))
    if valid is not None:
        operands.append((lowering.tensor(inputs[2]), ()))

    def body(loaded: list[Any]) -> list[Any]:
        before, update = scalars(loaded)
        (new,) = lowering.region(region, [before, update])
        return [new if valid is None else code.select(loaded[len(operands) - 1], new, before)]

    (new,) = lowering.generic(part.shape, operands, [x.element], body)
    return Array(x.shape, x.element, insert(lowering.tensor(new), source, where))


def _fits(scalar: Any, element: Element, limit: int) -> Any:
    """Whether an index is one from 0 to ``limit``."""
    if limit >= element.highest and element.is_unsigned:
        return code.constant(BOOL, True)
    return code.compare_int("ule", scalar, code.constant(element, min(limit, element.highest)))


def _indices(
    lowering: Lowering,
    indices: Array,
    shape: list[int],
    places: list[Any],
    dims: list[int],
    limits: dict[int, int],
    batching: dict[int, int],
) -> tuple[Array, Array | None]:
    """Index vectors of the updates, one more dimension behind ``shape``; which are in range."""
    known = len(limits)
    columns: list[Array] = []
    checks: list[Array] = []

    def at(k: int) -> Any:
        exprs = [ir.AffineConstantExpr.get(k) if p is None else p for p in places]
        return lowering.operand(indices, exprs)

    for k, d in enumerate(dims):
        if k >= known:
            from polyblocks.stablehlo.shapes import iota

            loop = places[batching[d]]
            columns.append(iota(lowering, tuple(shape), I64, loop))
            continue
        limit = limits[d]

        def body(loaded: list[Any], limit: int = limit) -> list[Any]:
            start = clamped_number(loaded[0], indices.element, limit)
            return [convert(start, indices.element, I64)]

        def check(loaded: list[Any], limit: int = limit) -> list[Any]:
            return [_fits(loaded[0], indices.element, limit)]

        columns.append(lowering.generic(shape, [at(k)], [I64], body)[0])
        checks.append(lowering.generic(shape, [at(k)], [BOOL], check)[0])
    valid: Array | None = None
    for check_ in checks:
        valid = check_ if valid is None else _and(lowering, valid, check_)
    wide = [*shape, len(dims)]
    if len(columns) == 1:
        return reshape(lowering, columns[0], wide), valid
    from polyblocks.stablehlo.shapes import concatenate

    parts = [reshape(lowering, c, [*shape, 1]) for c in columns]
    return concatenate(lowering, parts, len(shape), tuple(wide), I64), valid


def _and(lowering: Lowering, x: Array, y: Array) -> Array:
    loops = range(x.rank)
    inputs = [lowering.operand(a, loops) for a in (x, y)]
    return lowering.generic(x.shape, inputs, [BOOL], lambda v: [code.both(*v)])[0]


def scatter_flat(lowering: Lowering, x: Array, places: Array, updates: Array, region: Any) -> Array:
    """Combine updates with the elements at their places; a negative place drops its update."""

    def clamp(loaded: list[Any]) -> list[Any]:
        return [code.emit("arith.maxsi", [loaded[0], code.constant(I64, 0)])]

    def check(loaded: list[Any]) -> list[Any]:
        return [code.compare_int("sge", loaded[0], code.constant(I64, 0))]

    source = lowering.operand(places, [0])
    columns = lowering.generic(places.shape, [source], [I64], clamp)[0]
    valid = lowering.generic(places.shape, [source], [BOOL], check)[0]
    count = updates.numel
    columns = reshape(lowering, columns, (count, 1))
    flat = reshape(lowering, updates, (count, 1))
    return _scatter_rows(lowering, region, x, columns, flat, valid, [0], False)


def _scatter_rows(
    lowering: Lowering,
    region: Any,
    x: Array,
    columns: Array,
    rows: Array,
    valid: Array | None,
    dims: list[int],
    unique: bool,
) -> Array:
    """``tm_tensor.scatter``: row ``i`` of the updates is combined at index vector ``i``.

    An update that is dropped becomes one that changes nothing where there is such a number; then
    updates can be added up in parallel. Else the old element is kept.
    """
    name = _only(region)
    neutral = _neutral(name, x.element)
    # The first dimensions of the operand that no window extends along are not in the updates.
    lead = 0
    while lead < x.rank and rows.shape[1 + lead] == 1 and lead in dims:
        lead += 1
    kept = (rows.shape[0], *rows.shape[1 + lead :])
    rows = reshape(lowering, rows, kept)
    masked = valid is not None and neutral is not None
    if masked:
        assert valid is not None
        operands, scalars = spread(lowering, [rows], range(rows.rank))
        operands = [*operands, lowering.operand(valid, [0])]

        def mask(loaded: list[Any]) -> list[Any]:
            (update,) = scalars(loaded)
            nothing = code.constant(x.element, neutral)
            return [code.select(loaded[len(operands) - 1], update, nothing)]

        rows = lowering.generic(rows.shape, operands, [x.element], mask)[0]
        valid = None
    if valid is not None:
        return _scatter_kept(lowering, region, x, columns, rows, valid, dims, unique, lead)

    def body(update: Any, old: Any) -> Any:
        (new,) = lowering.region(region, [old, update])
        return new

    return _emit(lowering, x, columns, rows, dims, unique, body)


def _scatter_kept(
    lowering: Lowering,
    region: Any,
    x: Array,
    columns: Array,
    rows: Array,
    valid: Array,
    dims: list[int],
    unique: bool,
    lead: int,
) -> Array:
    """Dropped updates go to a row of their own, behind the operand's ones."""
    from polyblocks.stablehlo.shapes import concatenate, pad, static_slice

    d = dims[0]
    low, high = [0] * x.rank, [0] * x.rank
    # As far behind as the window reaches.
    extent = rows.shape[1 + d - lead] if d >= lead else 1
    high[d] = extent
    filler = Array((), x.element, splat=False if x.element.is_bool else 0)
    bigger = pad(lowering, x, filler, low, high)
    count = columns.shape[0]
    first = static_slice(lowering, columns, [0, 0], [count, 1])
    inputs = [lowering.operand(first, [0, 1]), lowering.operand(valid, [0])]

    def away(loaded: list[Any]) -> list[Any]:
        return [code.select(loaded[1], loaded[0], code.constant(I64, x.shape[d]))]

    moved = lowering.generic((count, 1), inputs, [I64], away)[0]
    if len(dims) > 1:
        others = static_slice(lowering, columns, [0, 1], [count, len(dims) - 1])
        moved = concatenate(lowering, [moved, others], 1, columns.shape, I64)

    def body(update: Any, old: Any) -> Any:
        (new,) = lowering.region(region, [old, update])
        return new

    done = _emit(lowering, bigger, moved, rows, dims, unique, body)
    return static_slice(lowering, done, [0] * x.rank, x.shape)


def _emit(
    lowering: Lowering,
    x: Array,
    columns: Array,
    rows: Array,
    dims: list[int],
    unique: bool,
    body: Any,
) -> Array:
    operands = [lowering.tensor(a) for a in (rows, columns, x)]
    element = x.element.type
    op = ir.Operation.create(
        "tm_tensor.scatter",
        results=[x.type],
        operands=operands,
        attributes={
            "dimension_map": ir.DenseI64ArrayAttr.get(dims),
            "unique_indices": ir.BoolAttr.get(unique),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 1]),
        },
        regions=1,
    )
    where = [ir.Location.current] * 2
    block = ir.Block.create_at_start(op.regions[0], [element, element], where)
    with lowering.inside(block):
        new = body(*block.arguments)
        ir.Operation.create("tm_tensor.yield", operands=[new])
    return Array(x.shape, x.element, op.results[0])


def _only(region: Any) -> str:
    """The name of a region's only operation, ``stablehlo.return`` if it has none."""
    operations = [op.operation for op in region.blocks[0].operations]
    return operations[0].name if len(operations) <= 2 else ""


def _neutral(name: str, element: Element) -> Any:
    """The number that changes nothing when it is combined with another one."""
    if element.is_complex:
        return None
    if name == "stablehlo.add":
        return -0.0 if element.is_float else False if element.is_bool else 0
    if name == "stablehlo.multiply":
        return 1.0 if element.is_float else True if element.is_bool else 1
    if name == "stablehlo.maximum":
        return -math.inf if element.is_float else element.lowest
    if name == "stablehlo.minimum":
        return math.inf if element.is_float else element.highest
    if name in ("stablehlo.or", "stablehlo.xor"):
        return 0
    return -1 if name == "stablehlo.and" else None
