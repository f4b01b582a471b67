"""Launches kernels of a module on simulated threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyblocks.errors import InputError, TargetError
from polyblocks.runtime.device.tensor_map import TensorMap
from polyblocks.simt import modules
from polyblocks.simt.address_space import global_window
from polyblocks.simt.buffers import Address, Buffer, span
from polyblocks.simt.chip import Chip
from polyblocks.simt.counts import Counts
from polyblocks.simt.decode import Decoder
from polyblocks.simt.findings import Finding
from polyblocks.simt.machine import Machine
from polyblocks.simt.memory import WRITTEN, Memory
from polyblocks.simt.program import Kernel
from polyblocks.simt.races import Clock
from polyblocks.simt.semantics import Semantics
from polyblocks.simt.types import Array, Float, Int, Layout, Pointer, Type, dtype_of, signed

#: Lanes that run at once, and most bytes of their shared and private memory.
_LANES, _LOCAL_BYTES = 16384, 1 << 26
#: Bytes of a parameter that describes an array.
TENSOR_MAP_BYTES = 128
#: The golden ratio less 1.
_GOLDEN = 0.6180339887498949
Index = tuple[int, int, int]
Argument = Buffer | Address | int | float | bool | np.generic


@dataclass(frozen=True)
class LaunchResult:
    """The counts and findings of one launch.

    Attributes:
        kernel, grid, block: what was launched.
        counts: see `Counts`.
        findings: what is wrong, in the order of occurrence; empty for a correct kernel.
        finished: False if the launch was stopped at the step limit.
    """

    kernel: str
    grid: Index
    block: Index
    counts: Counts
    findings: tuple[Finding, ...]
    finished: bool


class Simulator:
    """Executes the kernels of a module on the CPU.

    Args:
        module: an MLIR module with ``gpu.module``s (or one of those) whose kernels are in the
            LLVM dialect plus ops of the target.
        semantics: the target's ops.
        chip: widths of subgroup, sectors and banks.
        max_steps: basic blocks that some blocks of a grid may run before the launch is stopped.
        measure: count traffic; launches are quicker without.

    Raises:
        UnsupportedError: a global that cannot be initialized.
    """

    def __init__(
        self,
        module: Any,
        semantics: Semantics,
        chip: Chip | None = None,
        *,
        max_steps: int = 10_000_000,
        measure: bool = True,
    ) -> None:
        self.chip = chip or Chip()
        self.max_steps, self.measure = max_steps, measure
        self._module = module
        self._layout = Layout(dict(self.chip.pointer_bytes))
        self._window, self._device = global_window(), Memory("global")
        placed = modules.place_globals(module, self._layout, self._window, self._device)
        self._functions = modules.functions(module)
        self._decoder = Decoder(self._functions, placed, semantics, self._layout)
        self._kernels: dict[str, Kernel] = {}
        self._tick = 0
        #: Of the place of each: the buffer of its array, and the map.
        self._tensor_maps: dict[int, tuple[Buffer, TensorMap]] = {}

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels of the module."""
        return tuple(name for name, f in self._functions.items() if modules.is_kernel(f))

    def buffer(self, contents: Array | int, written: bool = True, name: str = "") -> Buffer:
        """Device memory with the bytes of an array, or a number of bytes.

        Args:
            contents: an array (copied with its strides), or a size in bytes.
            written: whether it counts as written; reading what is not is a finding.
            name: as findings call it; numbered if empty.

        Raises:
            InputError: an array with a negative stride.
        """
        array = contents if isinstance(contents, np.ndarray) else None
        size = span(array) if array is not None else int(contents)
        window = self._window
        region = window.add(name or f"buffer {len(window.regions)}", size)
        self._device.grow(window.used)
        part = slice(region.offset, region.offset + size)
        self._device.data[part] = 0
        self._device.state[part] = 0
        buffer = Buffer(self._device, region)
        if array is not None:
            buffer.put(array)
            if not written:
                self._device.state[part] = 0
        elif written:
            self._device.state[part] = WRITTEN
        return buffer

    def tensor_map(self, place: Address, described: Mapping[str, Any]) -> Buffer:
        """The parameter of a kernel that copies boxes of an array.

        Args:
            place: of the array's first element.
            described: see :mod:`polyblocks.codegen.gpu.plan`.
        """
        buffer = self.buffer(TENSOR_MAP_BYTES, name="tensor map")
        found = TensorMap.read(described, place.value)
        self._tensor_maps[(buffer + 0).value] = place.buffer, found
        return buffer

    def _maps(self) -> dict[int, TensorMap]:
        """All of them; those whose array's buffer is gone have no place."""
        here = {id(region) for region in self._window.regions}
        return {
            at: found if id(array.region) in here else replace(found, place=None)
            for at, (array, found) in self._tensor_maps.items()
        }

    @contextmanager
    def scratch(self) -> Iterator[None]:
        """Buffers made inside are gone afterwards."""
        window = self._window
        keep = len(window.regions)
        try:
            yield
        finally:
            window.truncate(keep)

    def launch(
        self,
        kernel: str,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: Sequence[Argument],
        shared_bytes: int = 0,
        sample: int | None = None,
        cluster: int = 1,
    ) -> LaunchResult:
        """Run a kernel on all blocks of a grid, or on a sample of them.

        Args:
            kernel: its symbol.
            grid, block: up to three extents.
            arguments: buffers, places in them (``buffer + bytes``), or numbers.
            shared_bytes: of the dynamic shared memory.
            sample: blocks to run at most, where the grid has more: the first, the last, and others
                spread between these. Counts are for the whole grid; the other blocks write
                nothing.
            cluster: blocks that follow each other and run at the same time; a sample is of such.

        Raises:
            InputError: an unknown kernel, arguments that do not fit it, a sample of fewer than
                three blocks, or a grid that is no whole clusters.
            TargetError: more threads or shared memory than the chip has.
            UnsupportedError: an op that the simulator does not know.
        """
        program = self._program(kernel)
        extent, threads = _extents("grid", grid), _extents("block", block)
        self._check(program, threads, shared_bytes)
        values = self._values(program, arguments)
        if program.dynamic is not None:
            program.dynamic = program.shared.resize(program.dynamic, shared_bytes)
        windows = {"global": self._window, "shared": program.shared, "private": program.private}
        width = self.chip.subgroup_width
        lanes = -(-threads[0] * threads[1] * threads[2] // width) * width
        total = extent[0] * extent[1] * extent[2]
        if total * lanes >= 1 << 30:
            raise InputError(f"expected a grid of fewer than 2^30 threads, got {grid} x {block}")
        if total % cluster:
            raise InputError(f"expected a grid of whole clusters of {cluster} blocks, got {total}")
        clock = Clock(total, lanes, width, self._tick + 1, cluster)
        machine = Machine(self.chip, windows, self._device, clock, program.granule, self.measure)
        machine.tensor_maps = self._maps()
        local = program.shared.used + lanes * program.private.used
        batch = max(1, min(_LANES // lanes, _LOCAL_BYTES // max(local, 1)) // cluster) * cluster
        finished = True
        counts = Counts()
        for clusters, times in _parts(total // cluster, sample):
            numbers = (clusters[:, None] * cluster + np.arange(cluster)).reshape(-1)
            for first in range(0, numbers.size, batch):
                part = numbers[first : first + batch]
                machine.launch_blocks(program, extent, threads, part)
                for register, value in zip(program.arguments, values, strict=True):
                    machine.registers[register] = value
                finished = finished and machine.run(self.max_steps)
                if not finished:
                    break
            counts.add(machine.take_counts(), times)
        self._tick = clock.now
        found = machine.findings.listed()
        return LaunchResult(kernel, extent, threads, counts, found, finished)

    def run_plan(
        self, plan: Mapping[str, Any], arrays: Sequence[Array], sample: int | None = None
    ) -> tuple[LaunchResult, ...]:
        """Run the launches of a launch plan in order; see `polyblocks.simt.plan`."""
        from polyblocks.simt.plan import run_plan

        return run_plan(self, plan, arrays, sample)

    def _program(self, name: str) -> Kernel:
        if name not in self._kernels:
            if name not in self._functions or not modules.is_kernel(self._functions[name]):
                known = ", ".join(self.kernels) or "none"
                raise InputError(f"expected a kernel of the module ({known}), got {name!r}")
            self._kernels[name] = self._decoder.kernel(name)
        return self._kernels[name]

    def _check(self, program: Kernel, block: Index, shared_bytes: int) -> None:
        threads, most = block[0] * block[1] * block[2], self.chip.block_threads
        if threads > most:
            raise TargetError(
                f"{self.chip.name} runs at most {most} threads per block, got {block}"
            )
        asked = program.shared_bytes + shared_bytes
        if self.chip.shared_bytes and asked > self.chip.shared_bytes:
            raise TargetError(
                f"{self.chip.name} has {self.chip.shared_bytes} bytes of shared memory per block, "
                f"{program.name} asks for {asked}: use smaller tiles"
            )
        known = self._functions[program.name].attributes
        if "gpu.known_block_size" in known:
            expected = tuple(int(n) for n in known["gpu.known_block_size"])
            if expected != block:
                raise InputError(
                    f"{program.name} is compiled for blocks of {expected}, got {block}"
                )

    def _values(self, program: Kernel, arguments: Sequence[Argument]) -> list[Array]:
        if len(arguments) != len(program.argument_types):
            raise InputError(
                f"{program.name} takes {len(program.argument_types)} arguments, "
                f"got {len(arguments)}"
            )
        pairs = zip(program.argument_types, arguments, strict=True)
        return [_value(program.name, index, t, a) for index, (t, a) in enumerate(pairs)]


def _parts(total: int, sample: int | None) -> list[tuple[Array, float]]:
    """Numbers of the blocks to run, in parts, and how many blocks each of a part stands for."""
    if sample is not None and sample < 3:
        raise InputError(f"expected a sample of at least 3 blocks, got {sample}")
    if sample is None or total <= sample:
        return [(np.arange(total), 1.0)]
    between = total - 2
    # Multiples of the golden ratio, modulo 1: spread evenly, and in step with no row of blocks.
    places = (np.arange(1, sample - 1) * _GOLDEN) % 1.0
    numbers = np.unique((places * between).astype(np.int64)) + 1
    return [(np.array([0, total - 1]), 1.0), (numbers, between / numbers.size)]


def _value(kernel: str, index: int, type_: Type, argument: Argument) -> Array:
    if isinstance(argument, Buffer):
        argument = argument + 0
    if isinstance(argument, Address):
        if isinstance(type_, Pointer):
            return np.array([argument.value], np.int64)
        raise InputError(f"argument {index} of {kernel} is a number ({type_}), got a buffer")
    if isinstance(type_, Int):
        raw = np.array([int(argument) & ((1 << 64) - 1)], np.uint64)
        return signed(raw.view(np.int64), type_.bits)
    if isinstance(type_, Float):
        return np.array([float(argument)], dtype_of(type_))
    raise InputError(f"argument {index} of {kernel} is a pointer, expected a buffer: {argument}")


def _extents(what: str, sizes: Sequence[int]) -> Index:
    if not 1 <= len(sizes) <= 3 or any(int(n) < 1 for n in sizes):
        raise InputError(f"expected one to three positive extents of the {what}, got {list(sizes)}")
    x, y, z = (*map(int, sizes), 1, 1)[:3]
    return x, y, z
