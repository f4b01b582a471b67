"""Reads a module of final kernels: its functions and its memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from polyblocks.errors import UnsupportedError
from polyblocks.simt.address_space import Region, Window
from polyblocks.simt.constants import constant_bytes
from polyblocks.simt.memory import WRITTEN, Memory
from polyblocks.simt.types import Layout, read_type

_SHARED = 3


@dataclass
class Globals:
    """The globals of a module in memory.

    Attributes:
        addresses: of those in device memory, by symbol.
        shared: bytes of the shared arrays, by symbol; 0 where the launch gives the size.
    """

    addresses: dict[str, int]
    shared: dict[str, int]


def operations(module: Any) -> Iterator[Any]:
    """The functions and globals of a module, or of one ``gpu.module``."""
    root = getattr(module, "operation", module)
    for block in root.regions[0].blocks:
        for view in block.operations:
            op = view.operation
            if op.name in ("builtin.module", "gpu.module"):
                yield from operations(op)
            elif op.name in ("llvm.func", "llvm.mlir.global"):
                yield op


def functions(module: Any) -> dict[str, Any]:
    """Every ``llvm.func`` by its symbol."""
    return {
        op.attributes["sym_name"].value: op for op in operations(module) if op.name == "llvm.func"
    }


def is_kernel(function: Any) -> bool:
    """Whether a function has a body and is launched rather than called."""
    names = [name.rpartition(".")[2] for name in function.attributes]
    return len(function.regions[0].blocks) > 0 and "kernel" in names


def place_globals(module: Any, layout: Layout, window: Window, device: Memory) -> Globals:
    """Place the globals of a module in device memory; find the shared ones.

    Raises:
        UnsupportedError: an initializer that is neither a constant, zero nor undefined.
    """
    found = Globals({}, {})
    for op in operations(module):
        if op.name != "llvm.mlir.global":
            continue
        name = op.attributes["sym_name"].value
        size = layout.size(read_type(op.attributes["global_type"].value))
        space = op.attributes["addr_space"].value if "addr_space" in op.attributes else 0
        if space == _SHARED:
            found.shared[name] = size
            continue
        region = window.add(f"global @{name}", size)
        device.grow(window.used)
        found.addresses[name] = region.base
        _initialize(op, size, region, device, layout)
    return found


def _initialize(op: Any, size: int, region: Region, device: Memory, layout: Layout) -> None:
    part = slice(region.offset, region.offset + size)
    if "value" in op.attributes:
        type_ = read_type(op.attributes["global_type"].value)
        device.data[part] = constant_bytes(op.attributes["value"], type_, layout)
        device.state[part] = WRITTEN
        return
    for block in op.regions[0].blocks:
        names = [inner.operation.name for inner in block.operations]
        if names[0] == "llvm.mlir.zero":
            device.state[part] = WRITTEN
        elif names[0] not in ("llvm.mlir.undef", "llvm.mlir.poison"):
            raise UnsupportedError(
                "the simulator initializes globals from constants, zero and undef, "
                f"not by {names[0]} (@{op.attributes['sym_name'].value})"
            )
