"""How many threads work on one outer iteration: the smallest predicted time of a few choices."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.analysis.access_order import fastest_last
from polyblocks.affine.cost import rates
from polyblocks.affine.model import For, Nest, Node
from polyblocks.codegen.gpu.mapping.atomics import form_atomics
from polyblocks.codegen.gpu.mapping.banks import pitch_rows
from polyblocks.codegen.gpu.mapping.barriers import place_barriers
from polyblocks.codegen.gpu.mapping.contraction import TiledKernel
from polyblocks.codegen.gpu.mapping.contraction_cost import quickest_contraction
from polyblocks.codegen.gpu.mapping.distribution import (
    ThreadDistribution,
    has_loops,
    outer_loops,
)
from polyblocks.codegen.gpu.mapping.kernel import Kernel
from polyblocks.codegen.gpu.mapping.kernel_cost import Predicted, predict_kernel
from polyblocks.codegen.gpu.mapping.placement import COPIED_BYTES, place_buffers, same_for_all
from polyblocks.codegen.gpu.mapping.registers import live_registers, registers
from polyblocks.codegen.gpu.mapping.wide import is_one_walk, widen_loops, widest
from polyblocks.codegen.gpu.matrix.cost import quickest_matrix
from polyblocks.errors import UnsupportedError
from polyblocks.target import Multiprocessor, TargetDescription

#: Threads of a block, where nothing speaks for another number.
THREADS = 256
#: Bytes of shared memory that the joins of reductions take, at most.
SCRATCH = 4096


def choose(nest: Nest, target: TargetDescription) -> tuple[Kernel, Predicted]:
    """The kernel of a nest.

    Raises:
        ValueError: the target has no grids.
        UnsupportedError: it takes more blocks than a grid may have.
    """
    chip = target.multiprocessor
    if chip is None:
        raise ValueError(f"the target '{target.name}' has no grids of blocks: it maps to a team")
    form_atomics(nest.body)
    outer, body = outer_loops(nest.body)
    chosen = _contraction(nest, outer, body, target, chip)
    # Whatever the threads, they compute all that there is.
    least = rates.compute_seconds(target, cost.work(nest.body)) or 0.0
    if chosen is None or chosen[1].seconds >= least:
        chosen = _of_groups(nest, outer, body, target, chip, chosen)
    kernel, predicted = chosen
    if not isinstance(kernel, TiledKernel):
        _widen(kernel, target, chip)
        _fit_grid(kernel, chip)
        place_barriers(kernel)
    if kernel.blocks > chip.grid_limits[0]:
        raise UnsupportedError(
            f"it would take {kernel.blocks} blocks of {kernel.threads} threads, where a grid of "
            f"the target '{target.name}' has at most {chip.grid_limits[0]}; compute parts of the "
            "arrays one after the other"
        )
    return kernel, predicted


def _of_groups(
    nest: Nest,
    outer: list[For],
    body: list[Node],
    target: TargetDescription,
    chip: Multiprocessor,
    other: tuple[Kernel, Predicted] | None,
) -> tuple[Kernel, Predicted]:
    """The quickest kernel whose groups of threads do outer iterations, or another one if it is."""
    kernels = _Kernels(nest, outer, body, chip)
    found: list[tuple[tuple[bool, float], Kernel, Predicted]] = []
    for group, groups, strided, copies in _choices(chip, has_loops(body)):
        kernel = kernels.of(group, groups, strided)
        if group > 1 and not kernel.distributed:
            continue
        if copies:
            kernel.copied = same_for_all(kernel) if kernel.groups == groups else []
            if not kernel.copied or sum(b.nbytes for b in kernel.copied) > COPIED_BYTES:
                continue
        else:
            _shrink(kernel, target.shared_level.size)
        if kernel.shared_bytes() + SCRATCH > chip.shared_per_block_optin:
            continue
        predicted = predict_kernel(kernel, target, chip)
        # Private memory that is no register is worse than anything the model knows of.
        scratch = registers(kernel) > chip.registers_per_thread
        found.append(((scratch, predicted.seconds), kernel, predicted))
    if other is not None:
        found.append(((False, other[1].seconds), *other))
    # Ties go to the simpler one, which comes first.
    _, kernel, predicted = min(found, key=lambda entry: entry[0])
    return kernel, predicted


def _contraction(
    nest: Nest, outer: list[For], body: list[Node], target: TargetDescription, chip: Multiprocessor
) -> tuple[Kernel, Predicted] | None:
    """The quickest kernel that computes tiles of a contraction, if there is one."""
    given = nest, outer, body, target, chip
    by_unit = quickest_matrix(*given)
    tiled = quickest_contraction(*given, most=inf if by_unit is None else by_unit[1].seconds)
    return by_unit if tiled is None else tiled


def _fit_grid(kernel: Kernel, chip: Multiprocessor) -> None:
    """Larger blocks where there would be too many; only of threads that work by themselves."""
    while kernel.blocks > chip.grid_limits[0] and kernel.group == 1 and not kernel.distributed:
        if 2 * kernel.threads > chip.threads_per_block:
            return
        kernel.groups *= 2


def _widen(kernel: Kernel, target: TargetDescription, chip: Multiprocessor) -> None:
    """Let threads do several iterations at once, where as many threads are left as keep busy."""
    width = widest(kernel, chip)
    while width > 1 and kernel.iterations // width < target.shared_level.size * chip.threads:
        width //= 2
    kernel.width, kernel.as_one = width, width > 1 and is_one_walk(kernel)


def _choices(chip: Multiprocessor, loops: bool) -> Iterator[tuple[int, int, bool, bool]]:
    """Threads of a group, groups of a block, and whether a group's threads are apart.

    And whether a block begins with copies of what all of its groups read.
    """
    yield 1, THREADS, False, False
    if not loops:
        return
    group = chip.warp
    while group <= min(chip.threads_per_block, 1024):
        yield group, max(1, THREADS // group), False, False
        groups = 2
        while group * groups <= chip.threads_per_block:
            yield group, groups, False, True
            groups *= 2
        group *= 2
    group = 4
    while group * chip.warp <= min(chip.threads_per_block, 1024):
        yield group, chip.warp, True, False
        group *= 2


class _Kernels:
    """Ways to run one nest; what they have in common is found out once."""

    def __init__(
        self, nest: Nest, outer: list[For], body: list[Node], chip: Multiprocessor
    ) -> None:
        self.nest, self.outer, self.body, self.chip = nest, outer, body, chip
        self._variables = [loop.var for loop in outer]
        # Neighbouring threads work on neighbouring outer iterations.
        self._by_threads = fastest_last(self._variables, body)
        self._sharing = ThreadDistribution(body)
        self._live = live_registers(body)

    def of(self, group: int, groups: int, strided: bool) -> Kernel:
        """The kernel with ``group`` threads per group and ``groups`` groups per block."""
        order = self._by_threads if group == 1 or strided else self._variables
        kernel = Kernel(self.nest, self.outer, list(order), self.body, group, groups, strided)
        kernel.warp, kernel.live = self.chip.warp, self._live
        kernel.access_bytes = self.chip.access_bits // 8
        kernel.distributed = self._sharing.of(group, scans=not strided)
        if group > 1 and kernel.may_differ():
            kernel.groups, kernel.strided = 1, False
        widen_loops(kernel, self.chip)
        place_buffers(kernel, self.chip)
        pitch_rows(kernel, self.chip.sector)
        return kernel


def _shrink(kernel: Kernel, units: int) -> None:
    """Smaller blocks, as long as there are too few for all multiprocessors."""
    least = kernel.warp if kernel.group == 1 or kernel.strided else 1
    while kernel.groups > least and kernel.blocks < 2 * units:
        kernel.groups //= 2


def choose_block(nests: list[Nest], chip: Multiprocessor) -> list[Kernel]:
    """How one block of threads runs nests one after the other: the threads share all loops."""
    most = max((_iterations(nest) for nest in nests), default=1)
    threads = chip.warp
    while threads < min(most, THREADS, chip.threads_per_block):
        threads *= 2
    return [_of_block(nest, threads, chip) for nest in nests]


def _of_block(nest: Nest, threads: int, chip: Multiprocessor) -> Kernel:
    form_atomics(nest.body)
    kernel = Kernel(nest, [], [], nest.body, threads, warp=chip.warp)
    kernel.distributed = ThreadDistribution(nest.body).of(threads)
    place_buffers(kernel, chip)
    pitch_rows(kernel, chip.sector)
    place_barriers(kernel)
    return kernel


def _iterations(nest: Nest) -> int:
    """Most iterations of a loop of the nest, with those nested perfectly in it."""
    most = 1
    for node in nest.body:
        count, body = 1, [node]
        while len(body) == 1 and isinstance(body[0], For):
            count *= max(body[0].var.extent, 1)
            body = body[0].body
        most = max(most, count)
    return most
