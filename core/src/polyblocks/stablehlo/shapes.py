"""Operations that move elements: shapes, slices, padding, concatenation."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from polyblocks import mlir
from polyblocks.affine.padding.padded import Padded
from polyblocks.errors import UnsupportedError
from polyblocks.mlir import ir
from polyblocks.stablehlo import code
from polyblocks.stablehlo.array import MOST_NUMBERS, Array, known_array
from polyblocks.stablehlo.attributes import integer, integers
from polyblocks.stablehlo.constants import from_attribute, from_complex
from polyblocks.stablehlo.convert import convert
from polyblocks.stablehlo.element import I64, Element
from polyblocks.stablehlo.rules import rule

if TYPE_CHECKING:
    from polyblocks.stablehlo.lowering import Lowering


@rule("stablehlo.constant", "chlo.constant")
def _constant(lowering: Lowering, op: Any, arguments: list[Array]) -> Array:
    shape, element = lowering.type_of(op.results[0])
    if not element.is_complex or not prod(shape):
        return from_attribute(op, shape, element)
    re, im = from_complex(op, shape, element)
    if _is_splat(re) and _is_splat(im):
        return Array(shape, element, splat=complex(re.flat[0], im.flat[0]))
    loops = range(len(shape))
    parts = [
        (code.emit("arith.constant", [], p.type, value=p), loops)
        for p in (ir.DenseElementsAttr.get(np.ascontiguousarray(v)) for v in (re, im))
    ]
    return lowering.generic(shape, parts, [element], lambda loaded: [code.join(*loaded)])[0]


def _is_splat(numbers: np.ndarray[Any, Any]) -> bool:
    """Whether all are the same bits: a NaN is not equal to itself, and -0 is no 0."""
    bits = np.ascontiguousarray(numbers).view(f"u{numbers.itemsize}")
    return bool((bits == bits.flat[0]).all())


@rule("stablehlo.iota")
def _iota(lowering: Lowering, op: Any, arguments: list[Array]) -> Array:
    shape, element = lowering.type_of(op.results[0])
    return iota(lowering, shape, element, integer(op, "iota_dimension"))


def iota(lowering: Lowering, shape: tuple[int, ...], element: Element, dim: int) -> Array:
    """Every element is its position along a dimension."""
    if element.is_integer and prod(shape) <= MOST_NUMBERS:
        found = known_array(element, np.indices(shape)[dim] if prod(shape) else np.zeros(shape))
        found.iota = dim
        return found

    def body(loaded: list[Any]) -> list[Any]:
        where = code.emit(
            "linalg.index", [], ir.IndexType.get(), dim=ir.IntegerAttr.get(I64.type, dim)
        )
        wide = code.emit("arith.index_cast", [where], I64.type)
        return [convert(wide, I64, element)]

    found = lowering.generic(shape, [], [element], body)[0]
    found.iota = dim
    return found


@rule("stablehlo.reshape")
def _reshape(lowering: Lowering, op: Any, arguments: list[Array]) -> Array:
    shape, _ = lowering.type_of(op.results[0])
    return reshape(lowering, arguments[0], shape)


def reshape(lowering: Lowering, x: Array, shape: Sequence[int]) -> Array:
    """The same elements in another shape."""
    shape = tuple(shape)
    if x.shape == shape:
        return x
    if x.splat is not None:
        return Array(shape, x.element, splat=x.splat)
    if x.numbers is not None:
        return known_array(x.element, x.numbers.reshape(shape))
    if not prod(shape):
        return Array(shape, x.element, splat=0)
    if x.rank == 0 and x.scalar is not None:
        return Array(shape, x.element, base=x, dims=())
    source = lowering.tensor(x)
    groups = _groups(x.shape, shape)
    if groups is None:
        # Through one dimension.
        flat = reassociate(source, (x.numel,), x.element)
        return Array(shape, x.element, reassociate(flat, shape, x.element))
    return Array(shape, x.element, reassociate(source, shape, x.element))


def _groups(source: Sequence[int], target: Sequence[int]) -> bool | None:
    """Whether one of two shapes is made of the other by splitting dimensions."""
    short, long = sorted((source, target), key=len)
    return True if association(short, long) is not None else None


def association(short: Sequence[int], long: Sequence[int]) -> list[list[int]] | None:
    """For each dimension of the shorter shape the ones of the longer that it is made of."""
    if not short:
        return [] if all(e == 1 for e in long) else None
    groups: list[list[int]] = []
    at = 0
    for extent in short:
        group: list[int] = []
        size = 1
        while at < len(long) and (size < extent or not group):
            size *= long[at]
            group.append(at)
            at += 1
        if size != extent or not group:
            return None
        groups.append(group)
    while at < len(long):
        if long[at] != 1:
            return None
        groups[-1].append(at)
        at += 1
    return groups


def reassociate(source: Any, shape: Sequence[int], element: Element) -> Any:
    """``tensor.expand_shape`` or ``tensor.collapse_shape`` to a shape that allows it."""
    own = list(source.type.shape)
    shape = list(shape)
    if own == shape:
        return source
    kind = element.tensor(shape)
    i64 = ir.IntegerType.get_signless(64)

    def attribute(groups: list[list[int]]) -> Any:
        return ir.ArrayAttr.get(
            [ir.ArrayAttr.get([ir.IntegerAttr.get(i64, i) for i in g]) for g in groups]
        )

    if len(own) > len(shape):
        groups = association(shape, own)
        assert groups is not None
        return code.emit("tensor.collapse_shape", [source], kind, reassociation=attribute(groups))
    groups = association(own, shape)
    if groups is None or len(own) == len(shape):
        flat = reassociate(source, [prod(own)], element)
        return reassociate(flat, shape, element)
    return code.emit(
        "tensor.expand_shape",
        [source],
        kind,
        reassociation=attribute(groups),
        static_output_shape=ir.DenseI64ArrayAttr.get(shape),
    )


@rule("stablehlo.broadcast_in_dim")
def _broadcast_in_dim(lowering: Lowering, op: Any, arguments: list[Array]) -> Array:
    shape, _ = lowering.type_of(op.results[0])
    return broadcast(arguments[0], shape, integers(op, "broadcast_dimensions", []))


@rule("stablehlo.broadcast")
def _broadcast(lowering: Lowering, op: Any, arguments: list[Array]) -> Array:
    shape, _ = lowering.type_of(op.results[0])
    new = len(shape) - arguments[0].rank
    return broadcast(arguments[0], shape, range(new, len(shape)))


def broadcast(x: Array, shape: Sequence[int], dims: Sequence[int]) -> Array:
    """Spread an array; ``dims`` are the result's dimensions of its own ones."""
    found = _spread(x, tuple(shape), list(dims))
    if x.iota is not None and x.shape[x.iota] == found.shape[dims[x.iota]]:
        found.iota = dims[x.iota]
    return found


def _spread(x: Array, shape: tuple[int, ...], dims: list[int]) -> Array:
    if x.shape == shape and dims == list(range(len(shape))):
        return x
    if x.splat is not None:
        return Array(shape, x.element, splat=x.splat)
    if not prod(shape):
        return Array(shape, x.element, splat=0)
    own = [
        None if extent == 1 and shape[d] != 1 else d
        for extent, d in zip(x.shape, dims, strict=True)
    ]
    if x.numbers is not None and prod(shape) <= MOST_NUMBERS:
        where = [1] * len(shape)
        for extent, d in zip(x.shape, dims, strict=True):
            where[d] = extent
        order = sorted(range(x.rank), key=lambda i: dims[i])
        moved = x.numbers.transpose(order).reshape(where)
        return known_array(x.element, np.broadcast_to(moved, shape))
    if x.base is not None and x.tensor is None:
        through = tuple(None if d is None else own[d] for d in x.dims)
        return Array(shape, x.element, base=x.base, dims=through)
    return Array(shape, x.element, base=x, dims=tuple(own))


@rule("stablehlo.transpose")
def _transpose(lowering: Lowering, op: Any, arguments: list[Array]) -> Array:
    return transpose(lowering, arguments[0], integers(op, "permutation"))


def transpose(lowering: Lowering, x: Array, order: Sequence[int]) -> Array:
    """Dimension ``i`` of the result is ``order[i]`` of the operand."""
    shape = tuple(x.shape[d] for d in order)
    if list(order) == list(range(x.rank)):
        return x
    if x.splat is not None:
        return Array(shape, x.element, splat=x.splat)
    if x.numbers is not None:
        return known_array(x.element, x.numbers.transpose(order))
    place = {d: i for i, d in enumerate(order)}
    if x.base is not None and x.tensor is None:
        through = tuple(None if d is None else place[d] for d in x.dims)
        return Array(shape, x.element, base=x.base, dims=through)
    source = lowering.tensor(x), [place[d] for d in range(x.rank)]
    return lowering.generic(shape, [source], [x.element], lambda loaded: [loaded[0]])[0]


@rule("stablehlo.reverse")
def _reverse(lowering: Lowering, op: Any, arguments: list[Array]) -> Array:
    (x,) = arguments
    dims = integers(op, "dimensions")
    if x.splat is not None:
        return x
    if x.numbers is not None:
        return known_array(x.element, np.flip(x.numbers, tuple(dims)))
    return reverse(lowering, x, dims)


def reverse(lowering: Lowering, x: Array, dims: Sequence[int]) -> Array:
    """The elements in opposite order along some dimensions."""
    index = [
        ir.AffineConstantExpr.get(extent - 1) - ir.AffineDimExpr.get(d) if d in dims else d
        for d, extent in enumerate(x.shape)
    ]
    source = lowering.operand(x, index)
    return lowering.generic(x.shape, [source], [x.element], lambda loaded: [loaded[0]])[0]


@rule("stablehlo.slice")
def _slice(lowering: Lowering, op: Any, arguments: list[Array]) -> Array:
    (x,) = arguments
    shape, _ = lowering.type_of(op.results[0])
    starts, steps = integers(op, "start_indices"), integers(op, "strides")
    if x.numbers is not None:
        limits = integers(op, "limit_indices")
        where = tuple(slice(*s) for s in zip(starts, limits, steps, strict=True))
        return known_array(x.element, x.numbers[where])
    return static_slice(lowering, x, starts, shape, steps)


def static_slice(
    lowering: Lowering,
    x: Array,
    starts: Sequence[int],
    shape: Sequence[int],
    steps: Sequence[int] | None = None,
) -> Array:
    """A part of an array, from ``starts`` on."""
    shape = tuple(shape)
    if x.shape == shape:
        return x
    if x.splat is not None:
        return Array(shape, x.element, splat=x.splat)
    if not prod(shape):
        return Array(shape, x.element, splat=0)
    if (
        x.base is not None
        and x.tensor is None
        and all(d is None or (starts[d], shape[d]) == (0, x.shape[d]) for d in x.dims)
    ):
        return Array(shape, x.element, base=x.base, dims=x.dims)
    steps = list(steps) if steps is not None else [1] * x.rank
    if x.pieces and x.tensor is None and set(steps) == {1}:
        return _slice_of_pieces(lowering, x, starts, shape)
    part = extract(lowering.tensor(x), list(starts), list(shape), steps)
    return Array(shape, x.element, part)


def extract(source: Any, starts: Sequence[Any], shape: list[int], steps: list[int]) -> Any:
    """``tensor.extract_slice``; starts are numbers or values of type index."""
    dynamic, static = _starts(starts)
    kind = ir.RankedTensorType.get(shape, source.type.element_type)
    return (
        mlir.dialect("tensor")
        .ExtractSliceOp(kind, source, dynamic, [], [], static, shape, steps)
        .result
    )


def insert(source: Any, into: Any, starts: Sequence[Any], steps: list[int] | None = None) -> Any:
    """``tensor.insert_slice``; starts are numbers or values of type index."""
    dynamic, static = _starts(starts)
    shape = list(source.type.shape)
    return (
        mlir.dialect("tensor")
        .InsertSliceOp(source, into, dynamic, [], [], static, shape, steps or [1] * len(shape))
        .result
    )


def _starts(starts: Sequence[Any]) -> tuple[list[Any], list[int]]:
    unknown = ir.ShapedType.get_dynamic_size()
    dynamic = [s for s in starts if not isinstance(s, int)]
    return dynamic, [s if isinstance(s, int) else unknown for s in starts]


@rule("stablehlo.pad")
def _pad(lowering: Lowering, op: Any, arguments: list[Array]) -> Array:
    x, value = arguments
    low, high = integers(op, "edge_padding_low"), integers(op, "edge_padding_high")
    return pad(lowering, x, value, low, high, integers(op, "interior_padding"))


def pad(
    lowering: Lowering,
    x: Array,
    value: Array,
    low: Sequence[int],
    high: Sequence[int],
    interior: Sequence[int] | None = None,
) -> Array:
    """Surround an array, and fill between its elements, with a number; negative edges cut."""
    inner = list(interior) if interior is not None else [0] * x.rank
    if not any(low) and not any(high) and not any(inner):
        return x
    shape = _padded_shape(x.shape, low, high, inner)
    if not prod(shape):
        return Array(shape, x.element, splat=0)
    if x.splat is not None and x.splat == value.splat:
        return Array(shape, x.element, splat=x.splat)
    starts, sizes, places = _survivors(x.shape, shape, low, inner)
    number = value.splat if value.splat is not None else value
    if not any(inner) and min(*low, *high) >= 0 and all(x.shape):
        return Array(shape, x.element, _surround(lowering, x, number, low, high))
    around = lowering.filled(shape, x.element, number)
    if any(size <= 0 for size in sizes):
        return Array(shape, x.element, around)
    part = static_slice(lowering, x, starts, sizes)
    placed = insert(lowering.tensor(part), around, places, [g + 1 for g in inner])
    return Array(shape, x.element, placed)


def padded_by(
    shape: Sequence[int], low: Sequence[int], high: Sequence[int], inner: Sequence[int]
) -> Padded | None:
    """Where :func:`pad` puts the elements of an array; None for no zeros, or nothing else."""
    whole = _padded_shape(shape, low, high, inner)
    _, sizes, places = _survivors(shape, whole, low, inner)
    if min(sizes) < 1 or tuple(sizes) == whole:
        return None
    return Padded(tuple(places), tuple(sizes), tuple(gap + 1 for gap in inner))


def _padded_shape(
    shape: Sequence[int], low: Sequence[int], high: Sequence[int], inner: Sequence[int]
) -> tuple[int, ...]:
    spread = [max(e + (e - 1) * g, 0) if e else 0 for e, g in zip(shape, inner, strict=True)]
    return tuple(e + a + b for e, a, b in zip(spread, low, high, strict=True))


def _survivors(
    shape: Sequence[int], whole: Sequence[int], low: Sequence[int], inner: Sequence[int]
) -> tuple[list[int], list[int], list[int]]:
    """Elements whose place in the padded array exists: the first, how many, and its place."""
    starts, sizes, places = [], [], []
    for extent, gap, before, size in zip(shape, inner, low, whole, strict=True):
        step = gap + 1
        first = max(0, -(before // step)) if before < 0 else 0
        last = min(extent - 1, (size - 1 - before) // step)
        starts.append(first)
        sizes.append(last - first + 1)
        places.append(before + first * step)
    return starts, sizes, places


def _surround(
    lowering: Lowering, x: Array, number: Any, low: Sequence[int], high: Sequence[int]
) -> Any:
    """``tensor.pad`` with one number, or with the element of a rank-0 array."""
    value = (
        lowering.scalar(number) if isinstance(number, Array) else code.constant(x.element, number)
    )
    tensor = mlir.dialect("tensor")
    source = lowering.tensor(x)
    shape = [a + e + b for a, e, b in zip(low, x.shape, high, strict=True)]
    kind = ir.RankedTensorType.get(shape, source.type.element_type)
    op = tensor.PadOp(kind, source, [], [], list(low), list(high))
    block = op.regions[0].blocks.append(*[ir.IndexType.get()] * x.rank)
    with ir.InsertionPoint(block):
        tensor.YieldOp(value)
    return op.result


@rule("stablehlo.concatenate")
def _concatenate(lowering: Lowering, op: Any, arguments: list[Array]) -> Array:
    shape, element = lowering.type_of(op.results[0])
    dim = integer(op, "dimension")
    found = concatenate(lowering, arguments, dim, shape, element)
    if found.pieces and not _is_only_cut(op, arguments, dim):
        found.tensor = lowering.tensor(found)
    return found


def _is_only_cut(op: Any, parts: list[Array], dim: int) -> bool:
    """Whether no user takes more than a piece of a concatenation, or than a half of it.

    So is a rotation, half of an array behind itself. Windows that overlap, as those of a stencil,
    would be put together once each; and if one of them needs the whole, the others have it.
    """
    ends = np.cumsum([part.shape[dim] for part in parts])
    for use in op.results[0].uses:
        owner = use.owner.operation
        if owner.name not in ("stablehlo.slice", "stablehlo.dynamic_slice"):
            return False
        if owner.block != op.block:
            # It would be put together where it is used first, which may be the body of a loop.
            return False
        if owner.name == "stablehlo.dynamic_slice":
            begin, size = 0, integers(owner, "slice_sizes")[dim]
        else:
            begin = integers(owner, "start_indices")[dim]
            size = integers(owner, "limit_indices")[dim] - begin
            if set(integers(owner, "strides")) != {1}:
                return False
        inside = owner.name == "stablehlo.slice" and any(
            end - part.shape[dim] <= begin and begin + size <= end
            for part, end in zip(parts, ends, strict=True)
        )
        if not inside and 2 * size > ends[-1]:
            return False
    return True


def concatenate(
    lowering: Lowering, parts: list[Array], dim: int, shape: tuple[int, ...], element: Element
) -> Array:
    """Arrays behind each other along a dimension."""
    known = [part.known for part in parts]
    if prod(shape) <= MOST_NUMBERS and all(k is not None for k in known):
        return known_array(element, np.concatenate([k for k in known if k is not None], dim))
    parts = [part for part in parts if part.numel]
    if not parts:
        return Array(shape, element, splat=0)
    if len(parts) == 1:
        return parts[0]
    return Array(shape, element, pieces=tuple(parts), along=dim)


def joined(lowering: Lowering, x: Array) -> Any:
    """The tensor of an array in pieces."""
    parts = [lowering.tensor(part) for part in x.pieces]
    i64 = ir.IntegerType.get_signless(64)
    return code.emit("tensor.concat", parts, x.type, dim=ir.IntegerAttr.get(i64, x.along))


def _slice_of_pieces(
    lowering: Lowering, x: Array, starts: Sequence[int], shape: tuple[int, ...]
) -> Array:
    """Slices of the pieces, behind each other."""
    begin, end = starts[x.along], starts[x.along] + shape[x.along]
    parts: list[Array] = []
    at = 0
    for piece in x.pieces:
        extent = piece.shape[x.along]
        low, high = max(begin, at) - at, min(end, at + extent) - at
        if low < high:
            first, size = list(starts), list(shape)
            first[x.along], size[x.along] = low, high - low
            parts.append(static_slice(lowering, piece, first, size))
        at += extent
    return concatenate(lowering, parts, x.along, shape, x.element)


@rule("stablehlo.bitcast_convert")
def _bitcast_convert(lowering: Lowering, op: Any, arguments: list[Array]) -> Array:
    (x,) = arguments
    shape, element = lowering.type_of(op.results[0])
    if x.element.is_complex or element.is_complex:
        raise UnsupportedError("bits of complex numbers")
    if x.element.width == element.width:
        return lowering.elementwise(op, arguments)[0]
    if x.element.is_bool or element.is_bool:
        raise UnsupportedError("bits of truth values")
    wide, narrow = sorted((x.element, element), key=lambda e: -e.width)
    count = wide.width // narrow.width
    as_wide, as_narrow = Element(f"ui{wide.width}"), Element(f"ui{narrow.width}")
    if x.element.width > element.width:
        # One element becomes several, along a new last dimension; the lowest bits come first.
        def split(loaded: list[Any]) -> list[Any]:
            bits, part = loaded
            bits = _cast(bits, as_wide)
            bits = code.emit("arith.shrui", [bits, part])
            return [_cast(convert(bits, as_wide, as_narrow), element)]

        source = lowering.operand(x, range(x.rank))
        shifts = lowering.tensor(known_array(as_wide, [narrow.width * i for i in range(count)]))
        return lowering.generic(shape, [source, (shifts, [x.rank])], [element], split)[0]

    def join(loaded: list[Any]) -> list[Any]:
        total: Any = None
        for i, part in enumerate(loaded):
            bits = convert(_cast(part, as_narrow), as_narrow, as_wide)
            shift = code.constant(as_wide, i * narrow.width)
            bits = code.emit("arith.shli", [bits, shift])
            total = bits if total is None else code.either(total, bits)
        return [_cast(total, element)]

    inputs = [
        (lowering.tensor(x), [*range(len(shape)), ir.AffineConstantExpr.get(i)])
        for i in range(count)
    ]
    return lowering.generic(shape, inputs, [element], join)[0]


def _cast(bits: Any, element: Element) -> Any:
    kind = element.type
    return bits if bits.type == kind else code.emit("arith.bitcast", [bits], kind)


@rule("stablehlo.optimization_barrier")
def _barrier(lowering: Lowering, op: Any, arguments: list[Array]) -> list[Array]:
    return arguments


@rule("func.call", "stablehlo.composite")
def _call(lowering: Lowering, op: Any, arguments: list[Array]) -> list[Array]:
    name = "callee" if op.name == "func.call" else "decomposition"
    callee = ir.FlatSymbolRefAttr(op.attributes[name]).value
    function = lowering.functions[callee]
    return lowering.block(function.regions[0].blocks[0], arguments)
