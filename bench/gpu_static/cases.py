"""What is built: products of matrices, convolutions, attention, programs without units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.gpu_static.model import Problem
from bench.gpu_static.resnet_50 import Layer, layers

#: Bytes of an element.
SIZES = {"float16": 2, "bfloat16": 2, "int8": 1}
#: Images of a batch.
BATCH = 32

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """One program.

    Attributes:
        name: of the case.
        group: ``products``, ``resnet-50``, ``resnet-50-nchw``, ``attention`` or ``vector``.
        dtype: of the arguments.
        shapes: of the arguments.
        problem: what it computes.
        make: the function, of PyTorch's tensors; imports PyTorch when it is called.
        size: by which the bars of :mod:`bench.gpu_static.bars` know it.
        channels_last: whether images and windows have their channels next to each other in memory.
        program: what cases that are the same program have in common; empty: there is no other one.
    """

    name: str
    group: str
    dtype: str
    shapes: tuple[Shape, ...]
    problem: Problem
    make: Callable[[], Callable[..., Any]]
    size: str = ""
    channels_last: bool = False
    program: str = ""


@dataclass(frozen=True)
class VectorCase(Case):
    """A program that no matrix unit computes.

    Attributes:
        is_product: whether multiply-adds are to take its main loop's issue slots.
        narrow: why some of its accesses of memory have to be narrow; empty if none has.
        wide: whether there have to be wide ones all the same.
    """

    is_product: bool = False
    narrow: str = ""
    wide: bool = True


def _product() -> Callable[..., Any]:
    return lambda a, b: a @ b


def _rows() -> Callable[..., Any]:
    return lambda x, w: x @ w.T


def _integer_rows() -> Callable[..., Any]:
    import torch

    return lambda x, w: torch._int_mm(x, w.T)


def product(dtype: str, rows: int, columns: int, steps: int, *, transposed: bool = False) -> Case:
    """``a @ b``, or ``x @ w.T``."""
    size = SIZES[dtype]
    result = rows * columns * (4 if dtype == "int8" else size)
    extents = "x".join(map(str, (rows, columns, steps)))
    made = _integer_rows if dtype == "int8" else _rows if transposed else _product
    return Case(
        f"{'x @ w.T' if transposed else 'a @ b'} {dtype} {extents}",
        "products",
        dtype,
        ((rows, steps), (columns, steps) if transposed else (steps, columns)),
        Problem(rows, columns, steps, (rows + columns) * steps * size + result),
        made,
        extents,
    )


def convolution(
    number: int, layer: Layer, dtype: str = "float16", *, channels_last: bool = True
) -> Case:
    """A layer as a case; ``number`` is its place in the network."""
    size = SIZES[dtype]
    shapes = (
        (BATCH, layer.inputs, layer.image, layer.image),
        (layer.outputs, layer.inputs, layer.window, layer.window),
    )
    pixels = BATCH * layer.result**2
    steps = layer.inputs * layer.window**2
    read = BATCH * layer.inputs * layer.image**2 + layer.outputs * steps

    def make() -> Callable[..., Any]:
        from torch.nn.functional import conv2d

        return lambda x, w: conv2d(x, w, stride=layer.stride, padding=layer.window // 2)

    program = (
        f"{dtype}: {layer.window}x{layer.window} /{layer.stride} "
        f"{layer.inputs}->{layer.outputs}, {layer.image}x{layer.image}"
    )
    return Case(
        f"convolution {number} {program}",
        "resnet-50" if channels_last else "resnet-50-nchw",
        dtype,
        shapes,
        Problem(layer.outputs, pixels, steps, (read + layer.outputs * pixels) * size),
        make,
        channels_last=channels_last,
        program=program,
    )


PRODUCTS = (
    *(
        product(dtype, *extents, transposed=transposed)
        for dtype in ("float16", "bfloat16")
        for extents, transposed in (
            ((8192, 8192, 8192), False),
            ((8192, 8192, 8192), True),
            ((4096, 4096, 4096), False),
            ((4096, 4096, 1024), True),
            ((1000, 1000, 1000), False),
            ((128, 128, 16384), False),
        )
    ),
    product("int8", 8192, 8192, 8192, transposed=True),
)


def attention(
    heads: int,
    length: int,
    size: int,
    *,
    causal: bool = False,
    batch: int = 1,
    rows: int = 0,
    of_keys: int = 0,
) -> Case:
    """Attention in float16.

    Args:
        heads: of queries.
        length: keys and values of each.
        size: of a head.
        causal: whether a row attends to those up to its own number only.
        batch: how many of all that.
        rows: queries of a head; 0: as many as keys.
        of_keys: heads of keys and values; 0: as many as of queries.
    """
    decodes, rows, of_keys = bool(rows), rows or length, of_keys or heads
    queries, keys = (batch, heads, rows, size), (batch, of_keys, length, size)

    def make() -> Callable[..., Any]:
        from torch.nn.functional import scaled_dot_product_attention as attend

        grouped = of_keys < heads
        return lambda q, k, v: attend(q, k, v, is_causal=causal, enable_gqa=grouped)

    extents = "x".join(map(str, (*((batch,) if batch > 1 else ()), heads, length, size)))
    name = "decode" if decodes else "causal attention" if causal else "attention"
    grouped = f", {of_keys} heads of keys" if of_keys < heads else ""
    nbytes = 2 * batch * size * (heads * rows + of_keys * length) * SIZES["float16"]
    problem = Problem(
        batch * heads * rows,
        length,
        2 * size,
        nbytes,
        sequence=rows * (heads // of_keys if decodes else 1),
        causal=causal,
        shared_out=decodes,
    )
    return Case(
        f"{name} float16 {extents}{grouped}",
        "attention",
        "float16",
        (queries, keys, keys),
        problem,
        make,
        "decode" if decodes else "causal" if causal else "full",
    )


ATTENTION = (
    *(
        attention(*extents, causal=causal)
        for extents in ((16, 4096, 128), (32, 2048, 64))
        for causal in (False, True)
    ),
    attention(32, 4096, 128, of_keys=8),
    attention(32, 4096, 128, of_keys=8, causal=True),
    attention(32, 4096, 128, batch=8, rows=1),
    attention(32, 4096, 128, batch=8, rows=1, of_keys=8),
    attention(32, 32768, 128, rows=1, of_keys=8),
)


def _chain() -> Callable[..., Any]:
    import torch

    return lambda x, y: torch.relu(x * y + 1.5) * 0.25 + y


def _copy() -> Callable[..., Any]:
    return lambda x: x.clone()


def _transposed() -> Callable[..., Any]:
    return lambda x: x.T.contiguous()


def _softmax() -> Callable[..., Any]:
    import torch

    return lambda x: torch.softmax(x, -1)


def _layer_norm() -> Callable[..., Any]:
    from torch.nn.functional import layer_norm

    return lambda x, w, b: layer_norm(x, w.shape, w, b)


def _sum() -> Callable[..., Any]:
    return lambda x: x.sum(-1)


def vector(
    name: str,
    make: Callable[[], Callable[..., Any]],
    *shapes: Shape,
    dtype: str = "float32",
    narrow: str = "",
    wide: bool = True,
) -> VectorCase:
    """A program without matrix units."""
    extents = "x".join(map(str, shapes[0]))
    is_product = make in (_product, _rows)
    full = f"{name} {dtype} {extents}"
    nothing = Problem(0, 0, 0, 0)
    return VectorCase(
        full, "vector", dtype, shapes, nothing, make,
        is_product=is_product, narrow=narrow, wide=wide,
    )  # fmt: skip


_ODD = "rows of odd lengths begin at any element"
_ONE = "each row has one result"
_ENDS = "the array's end is no multiple of an access"
_TURNED = "warps exchange rows for columns of single elements"
_ROW, _SQUARE = (4096, 1024), (4096, 4096)
VECTOR = (
    vector("a @ b", _product, (1024, 1024), (1024, 1024)),
    vector("x @ w.T", _rows, (1024, 1024), (1024, 1024)),
    vector("a @ b", _product, (1000, 1000), (1000, 1000)),
    vector("a @ b", _product, (1001, 1001), (1001, 1001), narrow=_ODD, wide=False),
    *(
        case
        for dtype in ("float32", "float16")
        for case in (
            vector("softmax", _softmax, _ROW, dtype=dtype),
            vector("softmax", _softmax, (4096, 1000), dtype=dtype),
            vector("layer norm", _layer_norm, _ROW, (1024,), (1024,), dtype=dtype),
            vector("sum of rows", _sum, _ROW, dtype=dtype, narrow=_ONE),
            vector("copy", _copy, _SQUARE, dtype=dtype),
            vector("chain", _chain, _SQUARE, _SQUARE, dtype=dtype),
        )
    ),
    vector("chain", _chain, (2001, 2001), (2001, 2001), narrow=_ENDS),
    vector("softmax", _softmax, (4096, 1001), narrow=_ODD, wide=False),
    vector("transposed copy", _transposed, _SQUARE, narrow=_TURNED, wide=False),
)
GROUPS = {
    "products": PRODUCTS,
    # As PyTorch's users give them to matrix units, and as its tensors are by themselves.
    "resnet-50": tuple(convolution(n, layer) for n, layer in enumerate(layers(), 1)),
    "resnet-50-nchw": tuple(
        convolution(n, layer, channels_last=False) for n, layer in enumerate(layers(), 1)
    ),
    "attention": ATTENTION,
    "vector": VECTOR,
}


def arguments(case: Case, make: Callable[..., Any]) -> list[Any]:
    """A case's arguments; ``make`` is a function such as ``torch.empty``."""
    import torch

    made = [make(shape, dtype=getattr(torch, case.dtype)) for shape in case.shapes]
    if case.channels_last:
        made = [tensor.to(memory_format=torch.channels_last) for tensor in made]
    return made


def named(groups: str, only: str = "") -> list[Case]:
    """The cases of groups whose names contain one of the parts of ``only``.

    Raises:
        ValueError: a group is unknown, or a part fits no case; lists what there is.
    """
    wanted = groups.split(",")
    if unknown := [g for g in wanted if g not in GROUPS]:
        raise ValueError(f"no group {unknown[0]!r}; the groups are {', '.join(GROUPS)}")
    every = [case for group in wanted for case in GROUPS[group]]
    parts = [part.strip() for part in only.split(",")]
    for part in parts:
        if not any(part in case.name for case in every):
            names = "; ".join(case.name for case in every)
            raise ValueError(f"no case contains {part!r}; the cases are {names}")
    return [case for case in every if any(part in case.name for part in parts)]
