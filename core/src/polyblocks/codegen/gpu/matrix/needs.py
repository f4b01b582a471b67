"""Resources of kernels of matrix units, computed once for products of a kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from math import lcm
from typing import Any

import numpy as np

from polyblocks.affine.model import For, Nest, Node
from polyblocks.codegen.gpu.mapping.contraction import extent
from polyblocks.codegen.gpu.mapping.registers import registers
from polyblocks.codegen.gpu.matrix.kernel import (
    MatrixKernel,
    Product,
    Tiling,
    calls_of,
    matrix_kernels,
)
from polyblocks.occupancy import occupancy
from polyblocks.target import Multiprocessor

#: One number for each kernel.
Numbers = np.ndarray[Any, np.dtype[Any]]
#: Kinds of products that are remembered.
_REMEMBERED = 256

_known: dict[tuple[Any, ...], tuple[list[Tiling], Needs]] = {}


@dataclass(frozen=True)
class Needs:
    """Of kernels of one product, the number of each.

    Attributes:
        tile: rows, columns and steps of a block.
        threads: of a block.
        copied_bytes: of memory that a step of a tile takes.
        shared_bytes: that a block's warps write and read of shared memory for a tile of both
            operands.
        issued: instructions of a thread for a tile.
        through_registers: whether no copy goes past the registers.
        idle_copiers: see :attr:`MatrixKernel.has_idle_copiers`.
        stages: tiles in shared memory.
        resident: blocks that a multiprocessor holds; 0 where a block cannot run.
    """

    tile: tuple[Numbers, Numbers, Numbers]
    threads: Numbers
    copied_bytes: Numbers
    shared_bytes: Numbers
    issued: Numbers
    through_registers: Numbers
    idle_copiers: Numbers
    stages: Numbers
    resident: Numbers


def needs_of_all(
    nest: Nest, outer: list[For], body: list[Node], chip: Multiprocessor, found: Product
) -> tuple[list[Tiling], Needs]:
    """All kernels that could compute a product, and what each needs.

    Neither depends on the number of steps but for what :func:`_kind` has of it, nor on that of
    products beside each other, nor on what is done around the sums, so that contractions in parts
    have those of whole ones.
    """
    kind = _kind(found, chip)
    if kind not in _known:
        if len(_known) >= _REMEMBERED:
            del _known[next(iter(_known))]
        kernels = list(matrix_kernels(nest, outer, body, chip, found))
        _known[kind] = [k.tiling for k in kernels], needs_of(kernels, chip)
    return _known[kind]


def needs_of(kernels: Iterable[MatrixKernel], chip: Multiprocessor) -> Needs:
    """The resources of kernels."""
    rows = []
    for _, alike in groupby(kernels, lambda kernel: kernel.tiling[:-1]):
        # Computed once for kernels that differ in stages only.
        first, *others = alike
        needed, numbers = registers(first), _numbers(first)
        possible = needed <= chip.registers_per_thread
        for kernel in (first, *others):
            held = occupancy(chip, needed, kernel.shared_bytes(), kernel.threads).blocks
            rows.append((*numbers, kernel.stages, held if possible else 0))
    columns = np.array(rows).reshape(len(rows), -1).T
    return Needs((columns[0], columns[1], columns[2]), *columns[3:])


def _numbers(kernel: MatrixKernel) -> tuple[float, ...]:
    """Those of :class:`Needs` that are the same for any number of stages."""
    return (
        *kernel.tile,
        kernel.threads,
        kernel.copied_bytes,
        _shared_bytes_of_tile(kernel),
        kernel.reading + sum(kernel.copying(o) for o in kernel.product.operands),
        kernel.copies_through_registers,
        kernel.has_idle_copiers,
    )


def _kind(found: Product, chip: Multiprocessor) -> tuple[Any, ...]:
    """All that kernels depend on and their needs, of what they compute and of the chip."""
    parts, unit = found.parts, found.unit
    steps = parts.reduction.trips
    depths = [calls * unit.shape[2] for calls in calls_of(found)]
    return (
        chip,
        unit,
        found.along,
        found.linear,
        found.aligned,
        found.window,
        found.conditions,
        tuple(map(bool, found.on_the_way)),
        tuple(o.load.buffer.bytes_per_element for o in found.operands),
        len(found.order),
        (len(parts.rows), extent(parts.rows), len(parts.columns), extent(parts.columns)),
        tuple((steps % lcm(found.window, depth) == 0, depth < 2 * steps) for depth in depths),
    )


def _shared_bytes_of_tile(kernel: MatrixKernel) -> float:
    """Of shared memory.

    For each slice a warp reads a row of chunks for each of its rows, and one for each of its
    columns; tiles are written to shared memory once more than they come from the caches.
    """
    rows, columns, depth = kernel.tile
    (m, n, _), (i, j) = kernel.unit.shape, kernel.of_warp
    products = rows * columns * depth
    read = products / (m * i) + products / (n * j)
    return (read + depth * (rows + columns)) * kernel.element_bytes
