"""Contractions tile by tile: kernels whose threads share what they read.

A block computes a tile of rows and columns, step by step along the reduction: its threads copy what
a step needs to shared memory, then every thread adds to the elements that it keeps in registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import gcd, prod
from typing import Any

from polyblocks.affine.access import address, begins_and_ends_with_memory
from polyblocks.affine.analysis.contractions import Contraction, Operand
from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.expr import Var
from polyblocks.affine.model import For, Index, Nest, Node
from polyblocks.codegen.gpu.mapping.kernel import Kernel
from polyblocks.codegen.gpu.mapping.wide import ELEMENTS
from polyblocks.target import Multiprocessor

#: Elements of a thread along rows and along columns.
_OF_THREAD = (1, 2, 4, 8)
#: Threads along columns and along rows.
_COLUMNS = (16, 32)
_ROWS = (4, 8, 16)
#: Candidate K blocks: steps of the reduction whose operands are staged together.
_DEPTHS = (1, 2, 4, 8, 16)
#: Values of all operands for one row or column that are copied at once, at most.
_COPIED = 32


@dataclass(eq=False)
class TiledKernel(Kernel):
    """A kernel whose blocks compute tiles of a contraction.

    Attributes:
        parts: of the nest.
        of_thread: rows and columns of a thread.
        across: threads of a block along rows and along columns.
        depth: steps of the reduction whose operands are in shared memory at a time.
        banks: of the shared memory, of 32 bits each.
    """

    parts: Contraction = field(default=None)  # type: ignore[assignment]
    of_thread: tuple[int, int] = (1, 1)
    across: tuple[int, int] = (1, 1)
    depth: int = 1
    banks: int = 32

    @property
    def tile(self) -> tuple[int, ...]:
        """Rows, columns and steps of a block."""
        (r, c), (rows, columns) = self.of_thread, self.across
        return r * rows, c * columns, self.depth

    @cached_property
    def counts(self) -> tuple[int, int, int]:
        """Rows, columns and steps that there are."""
        parts = self.parts
        return extent(parts.rows), extent(parts.columns), parts.reduction.trips

    @property
    def grid(self) -> tuple[int, int]:
        """Tiles along rows and along columns."""
        (rows, columns, _), (height, width, _) = self.counts, self.tile
        return -(-rows // height), -(-columns // width)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return prod(self.across)

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return extent(self.parts.batch) * prod(self.grid)

    @property
    def ragged(self) -> bool:
        """Whether tiles reach beyond the last row or column."""
        return any(n % size for n, size in zip(self.counts[:2], self.tile[:2], strict=True))

    def chunk(self, side: int) -> int:
        """Rows (or columns) of a thread that follow each other: it reads them with one access."""
        operands = [o for o in self.parts.operands if o.of_rows == (side == 0)]
        if any(str(o.load.buffer.element) not in ELEMENTS for o in operands):
            return 1
        widest = max(o.load.buffer.bytes_per_element for o in operands)
        return gcd(self.of_thread[side], max(self.access_bytes // widest, 1))

    def copied_at_once(self, operand: Operand) -> tuple[int, int]:
        """Steps, and rows (or columns), that a thread copies of an operand with one access.

        More than one of either only if they follow each other in memory, and begin at multiples of
        the piece where the buffer does.
        """
        load, side = operand.load, operand.side
        buffer = load.buffer
        most = self.access_bytes // buffer.bytes_per_element
        whole = begins_and_ends_with_memory(buffer) and begins_and_ends_with_memory(buffer.base)
        if most < 2 or load.where or str(buffer.element) not in ELEMENTS or not whole:
            return 1, 1
        place = address(buffer, load.index)
        steps = self.parts.reduction.order[-1]
        outer = (self.parts.rows, self.parts.columns)[side][-1]
        for var, here, is_step in ((outer, self.tile[side], False), (steps, self.depth, True)):
            others = [c for atom, c in place.terms if atom is not var]
            size = gcd(most, var.extent, place.const, here, *others)
            if place.coefficient(var) == 1 and size > 1:
                return (size, 1) if is_step else (1, size)
        return 1, 1

    def copied_beside(self, operand: Operand) -> int:
        """Pieces of steps that neighbouring threads copy before others take the next row."""
        steps, _ = self.copied_at_once(operand)
        if steps == 1 and not operand.steps_first:
            return 1
        pieces = self.depth // steps
        side = operand.side
        most = self.banks // self.chunk(side)
        return pieces if pieces <= most or pieces % most else most

    def shape(self, operand: Operand) -> tuple[int, ...]:
        """An operand's tile: groups of steps, and the elements of a group.

        A group is what a thread copies at once. Behind it is room that keeps banks apart: threads
        that store neighbouring groups are a group apart, and several elements of each are stored
        at once. Every group begins at a multiple of what a thread reads.
        """
        steps, _ = self.copied_at_once(operand)
        side = operand.side
        pad, beside, chunk = 0, self.copied_beside(operand), self.chunk(side)
        if beside > 1:
            words = max(1, self.banks // beside)
            pad = max(1, words * 4 // operand.load.buffer.bytes_per_element)
            pad = -(-pad // chunk) * chunk
        return self.depth // steps, steps * self.tile[side] + pad

    def element_of(self, operand: Operand) -> Any:
        """The MLIR type of an element of an operand's tile."""
        return operand.load.buffer.element

    def shared_bytes(self) -> int:
        """Bytes of the operands' tiles."""
        return sum(
            prod(self.shape(o)) * o.load.buffer.bytes_per_element for o in self.parts.operands
        )


def extent(variables: list[Var]) -> int:
    """Values of variables together."""
    return prod(v.extent for v in variables)


def refusal(parts: Contraction) -> str | None:
    """Why a kernel cannot compute tiles of a contraction; None if it can."""
    if not parts.reduction.loops:
        return "its reduction is unrolled: there are no steps whose operands could be copied"
    if any(isinstance(n, Index) for n in (*parts.before, *parts.reduction.body)):
        return "it computes with loop variables, and each thread has several values of them"
    return None


def tiled_kernels(
    nest: Nest, outer: list[For], body: list[Node], chip: Multiprocessor
) -> Iterator[TiledKernel]:
    """Candidates for a nest; none if it has no tiles."""
    parts = facts_of(nest).contraction
    if parts is None or refusal(parts):
        return
    order = [f.var for f in outer]
    widest = max(sum(o.of_rows for o in parts.operands), sum(not o.of_rows for o in parts.operands))
    for depth in _DEPTHS:
        if depth > 1 and (depth * widest > _COPIED or depth > parts.reduction.trips):
            continue
        for r, c, rows, columns in product(_OF_THREAD, _OF_THREAD, _ROWS, _COLUMNS):
            kernel = TiledKernel(
                nest, outer, order, body, warp=chip.warp, parts=parts, of_thread=(r, c),
                across=(rows, columns), depth=depth, banks=chip.banks,
                access_bytes=chip.access_bits // 8,
            )  # fmt: skip
            if kernel.threads <= chip.threads_per_block and _fits(kernel):
                yield kernel


def _fits(kernel: TiledKernel) -> bool:
    """Whether less than half of a tile is beyond the end."""
    pairs = zip(kernel.counts[:2], kernel.tile[:2], kernel.of_thread, strict=True)
    return all(size < 2 * n or per == 1 for n, size, per in pairs)
