"""The generic launch path: an Executable and an ArrayInterface become a checked function.

Frontends generate launch code of their own that assumes what their guards have checked; this one
checks everything at each call. It is for artifacts that are loaded from a file.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from polyblocks.errors import ExecutionError, InputError
from polyblocks.program import DTYPES, ArraySpec
from polyblocks.runtime import buffers, threads
from polyblocks.runtime.arrays import HOST, ArrayInterface
from polyblocks.runtime.executable import Executable


@dataclass(frozen=True)
class _Slot:
    """One argument of the entry."""

    index: int
    role: str
    name: str
    spec: ArraySpec | None
    workspace: int
    updates: int | None


def bind(
    executable: Executable,
    interface: ArrayInterface,
    *,
    num_threads: int | None = None,
    num_iters: int = 1,
) -> Callable[..., Any]:
    """Make a Python function of a loaded host program.

    Args:
        executable: the loaded program.
        interface: of the framework whose arrays come and go.
        num_threads: threads of each call; None: from the environment.
        num_iters: run the program this many times per call, for timing.

    Returns:
        ``call(*arrays)``, which takes the inputs in order and returns the fresh result, a tuple
        of them if there are several, None if all results are in-place updates. It raises
        InputError for arguments that do not fit, ExecutionError for failed run-time checks.
    """
    manifest = executable.manifest
    function = manifest.get("name", "main")
    slots = [_slot(index, row) for index, row in enumerate(manifest["arguments"])]
    inputs = [slot for slot in slots if slot.role == "input"]
    fresh = [slot for slot in slots if slot.role == "output" and slot.updates is None]
    updated = {slot.updates for slot in slots if slot.updates is not None}
    position = {slot.index: k for k, slot in enumerate(inputs)}
    written = [k for k, slot in enumerate(inputs) if slot.index in updated]
    checks = manifest.get("checks", [])
    pack = struct.Struct(f"{len(slots)}Q").pack
    signature = ", ".join(slot.name for slot in inputs)

    def call(*arrays: Any) -> Any:
        if len(arrays) != len(inputs):
            raise InputError(
                f"{function}({signature}) takes {_count(len(inputs), 'array')}, got {len(arrays)}"
            )
        for k, (slot, array) in enumerate(zip(inputs, arrays, strict=True)):
            try:
                _check(interface, slot, array, k in written)
            except InputError as error:
                raise InputError(
                    f"argument {k + 1} ('{slot.name}') of {function}: {error}"
                ) from None
        addresses = [interface.pointer(array) for array in arrays]
        _check_overlaps(function, inputs, addresses, written)
        results = [interface.empty(slot.spec, HOST) for slot in fresh if slot.spec is not None]
        rest = iter(results)
        kept: list[Any] = []  # alive until the program has run
        workspaces = []
        pointers = []
        for slot in slots:
            if slot.role == "input":
                pointers.append(addresses[position[slot.index]])
            elif slot.role == "output":
                if slot.updates is None:
                    pointers.append(interface.pointer(next(rest)))
                else:
                    pointers.append(addresses[position[slot.updates]])
            elif slot.role == "workspace":
                workspaces.append(buffers.workspaces.acquire(slot.workspace))
                pointers.append(workspaces[-1].address)
            else:
                status = interface.empty(ArraySpec.contiguous((1,), "int32"), HOST)
                kept.append(status)
                pointers.append(interface.pointer(status))
        packed = pack(*pointers)
        count = threads.resolve(num_threads)
        code = 0
        for _ in range(num_iters):
            code = code or executable.entry(packed, count)
        for workspace in workspaces:
            workspace.release()
        if code:
            known = 0 < code <= len(checks)
            message = checks[code - 1] if known else f"the program returned status {code}"
            raise ExecutionError(f"{function}: {message}")
        if len(results) == 1:
            return results[0]
        return tuple(results) if results else None

    call.__name__ = call.__qualname__ = function
    call.__doc__ = f"{function}({signature}), compiled for {manifest.get('target', '?')}."
    return call


def _slot(index: int, row: dict[str, Any]) -> _Slot:
    role = row["role"]
    spec = None
    if role in ("input", "output"):
        spec = ArraySpec(tuple(row["shape"]), row["dtype"], tuple(row["strides"]))
    workspace = row["shape"][0] if role == "workspace" else 0
    name = row.get("name", role)
    return _Slot(index, role, name, spec, workspace, row.get("updates"))


def _check(interface: ArrayInterface, slot: _Slot, array: Any, written: bool) -> None:
    """Raise an InputError that says what is expected, what came, and what to do."""
    expected = slot.spec
    assert expected is not None
    if not interface.is_array(array):
        raise InputError(f"expected an array {_text(expected)}, got {type(array).__name__}")
    got = interface.describe(array)
    device = interface.device(array)
    if device != HOST:
        raise InputError(
            f"expected an array on the host, got one on device {tuple(device)}; copy it to the host"
        )
    if got.dtype != expected.dtype:
        raise InputError(f"expected {_text(expected)}, got {_text(got)}; convert it")
    if got.shape != expected.shape:
        raise InputError(
            f"expected {_text(expected)}, got {_text(got)}; a program takes the shape that it was "
            "compiled for"
        )
    if not _same_layout(got, expected):
        layout = "contiguous" if expected.is_contiguous else f"strides {list(expected.strides)}"
        raise InputError(
            f"expected {layout} elements, got strides {list(got.strides)}; copy it to that layout"
        )
    if interface.pointer(array) % _alignment(expected.dtype) and got.numel:
        raise InputError("its address is not aligned to its elements; copy it")
    if written and not interface.is_writable(array):
        raise InputError("it is updated in place, but cannot be written; pass a copy")


def _check_overlaps(
    function: str, inputs: list[_Slot], addresses: list[int], written: list[int]
) -> None:
    # The generated code takes for granted that what it writes is not also read by another name.
    for k in written:
        begin, end = _range(inputs[k], addresses[k])
        for other, slot in enumerate(inputs):
            if other != k:
                first, last = _range(slot, addresses[other])
                if first < end and begin < last:
                    raise InputError(
                        f"{function}: '{inputs[k].name}' is updated in place and shares memory "
                        f"with '{slot.name}'; pass a copy of one"
                    )


def _range(slot: _Slot, address: int) -> tuple[int, int]:
    return address, address + (slot.spec.nbytes if slot.spec is not None else 0)


def _same_layout(got: ArraySpec, expected: ArraySpec) -> bool:
    """Strides of extents below 2 are never used."""
    return got.numel == 0 or all(
        extent == 1 or a == b
        for extent, a, b in zip(got.shape, got.strides, expected.strides, strict=True)
    )


def _alignment(dtype: str) -> int:
    size = DTYPES[dtype][1]
    return size // 2 if dtype.startswith("complex") else size


def _text(spec: ArraySpec) -> str:
    return f"{spec.dtype}[{', '.join(map(str, spec.shape))}]"


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
