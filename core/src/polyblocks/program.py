"""Program: what a frontend hands to the core.

A Program is an MLIR module at linalg-on-tensors level with one public function ``@main`` of
static, value-semantic tensors, and the description of how each argument and result lies in the
framework's memory. Weights are arguments; only small constants are inside the module.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: dtype name -> (MLIR element type, bytes per element). Booleans take one byte in memory.
DTYPES: dict[str, tuple[str, int]] = {
    "float64": ("f64", 8),
    "float32": ("f32", 4),
    "float16": ("f16", 2),
    "bfloat16": ("bf16", 2),
    "int64": ("i64", 8),
    "int32": ("i32", 4),
    "int16": ("i16", 2),
    "int8": ("i8", 1),
    "uint64": ("i64", 8),
    "uint32": ("i32", 4),
    "uint16": ("i16", 2),
    "uint8": ("i8", 1),
    "bool": ("i1", 1),
    "complex64": ("complex<f32>", 8),
    "complex128": ("complex<f64>", 16),
}


@dataclass(frozen=True)
class ArraySpec:
    """Shape, dtype and layout of one array.

    Attributes:
        shape: extents, all static.
        dtype: a key of :data:`DTYPES`.
        strides: in elements, one per dimension; never negative, 0 for an expanded dimension.
    """

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype is one of {', '.join(DTYPES)}, not {self.dtype!r}")
        if len(self.shape) != len(self.strides):
            raise ValueError(f"{len(self.shape)} extents but {len(self.strides)} strides")

    @classmethod
    def contiguous(cls, shape: tuple[int, ...], dtype: str) -> ArraySpec:
        """The row-major spec of this shape."""
        return cls(tuple(shape), dtype, row_major(shape))

    @property
    def mlir_type(self) -> str:
        """The MLIR element type, e.g. ``f32``."""
        return DTYPES[self.dtype][0]

    @property
    def numel(self) -> int:
        """Number of elements."""
        n = 1
        for extent in self.shape:
            n *= extent
        return n

    @property
    def span(self) -> int:
        """Elements from the first to one past the last that can be touched."""
        if self.numel == 0:
            return 0
        return 1 + sum((e - 1) * s for e, s in zip(self.shape, self.strides, strict=True))

    @property
    def nbytes(self) -> int:
        """Bytes of the memory that the array spans."""
        return self.span * DTYPES[self.dtype][1]

    @property
    def is_contiguous(self) -> bool:
        """Whether it lies densely in row-major order (strides of unit extents do not matter)."""
        expected = row_major(self.shape)
        return self.numel == 0 or all(
            e == 1 or s == x for e, s, x in zip(self.shape, self.strides, expected, strict=True)
        )


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements; an extent of 0 counts as 1."""
    strides = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


@dataclass(frozen=True)
class Argument:
    """One argument of ``@main``.

    Attributes:
        name: a readable name, for reports.
        spec: how it lies in memory.
        constant: the frontend passes the same array at every call (a weight of the graph).
    """

    name: str
    spec: ArraySpec
    constant: bool = False


@dataclass(frozen=True)
class Result:
    """One result of ``@main``.

    Attributes:
        name: a readable name, for reports.
        spec: how it must lie in memory.
        updates: index of the argument whose buffer receives this result (an in-place update);
            None for a result that is written to a fresh buffer.
    """

    name: str
    spec: ArraySpec
    updates: int | None = None


@dataclass
class Program:
    """A captured function, ready for stage S1.

    Attributes:
        name: the user's function name.
        module: MLIR module (``polyblocks.mlir.ir.Module``) with ``@main``.
        arguments: one per argument of ``@main``, in order.
        results: one per result of ``@main``, in order.
        metadata: JSON values for reports, e.g. the source ops.
    """

    name: str
    module: Any
    arguments: tuple[Argument, ...]
    results: tuple[Result, ...]
    metadata: dict[str, Any] = field(default_factory=dict)
