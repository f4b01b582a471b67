"""Programs whose entry is a C function, as those of host targets are, with a body in Python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from manifest_rows import row

from polyblocks.program import ArraySpec
from polyblocks.runtime.arrays import HOST, ArrayInterface
from polyblocks.runtime.executable import Executable
from polyblocks.runtime.launch import bind
from polyblocks.runtime.native.dispatch import dispatched
from polyblocks.runtime.numpy_arrays import NumpyArrays
from polyblocks.runtime.slots import WEIGHT_NAMES

_NUMPY = NumpyArrays()


class CProgram(Executable):
    """``body`` gets an array for each argument of the entry; what it returns is the status."""

    def __init__(
        self,
        arguments: list[dict[str, Any]],
        body: Callable[..., int | None] = lambda *_: 0,
        **manifest: Any,
    ) -> None:
        self.manifest = {"name": "f", "arguments": arguments, "checks": [], **manifest}
        self.body = body
        self.thread_counts: list[int] = []
        self.entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32)(self._run)

    def _run(self, pointers: int, num_threads: int) -> int:
        self.thread_counts.append(num_threads)
        rows = self.manifest["arguments"]
        places = (ctypes.c_uint64 * max(len(rows), 1)).from_address(pointers)
        arrays = []
        for argument, address in zip(rows, places, strict=False):
            shape, dtype = tuple(argument["shape"]), argument["dtype"]
            strides = tuple(argument["strides"])
            if argument["role"] == "status":
                shape, dtype, strides = (1,), "int32", (1,)
            elif argument["role"] in ("workspace", "kept"):
                dtype = "uint8"
            spec = ArraySpec(shape, dtype, strides)
            kind = _NUMPY.empty(ArraySpec.contiguous((1,), dtype), HOST).dtype
            steps = tuple(kind.itemsize * step for step in strides)
            memory = (ctypes.c_char * max(spec.nbytes, 1)).from_address(address or id(self))
            arrays.append(np.ndarray(shape, kind, memory, strides=steps))
        return self.body(*arrays) or 0

    def close(self) -> None:
        """Nothing."""


class Both:
    """A program, called by Python and by machine code.

    With ``generated``, by Python and by Python that is generated for the program.

    Args:
        program: the program.
        interface: of the arrays; it counts in ``described`` how many arrays Python looked at.
        good: arrays that machine code takes.
        settings: of :func:`polyblocks.runtime.launch.bind`.
    """

    generated = False

    def __init__(
        self,
        program: Executable,
        interface: ArrayInterface,
        good: Sequence[Any] | None,
        **settings: Any,
    ) -> None:
        self.interface = interface
        self.slow = bind(program, interface, **settings)
        if self.generated:
            self.slow.native_call = lambda slow: None  # type: ignore[attr-defined]
        slow = self.slow
        self.fast = dispatched(slow, lambda *_: slow)
        if good is not None:
            self.fast(*good)
            self.fast(*good)

    def is_fast(self, *arrays: Any) -> bool:
        """Whether machine code, or generated Python, takes these."""
        before = self.interface.described  # type: ignore[attr-defined]
        self.fast(*arrays)
        return bool(self.interface.described == before)  # type: ignore[attr-defined]

    @property
    def is_native(self) -> bool:
        """Whether there is machine code for its arrays."""
        return bool(self.fast.__self__.count)  # type: ignore[attr-defined]

    def outcome(self, which: str, *arrays: Any, **named: Any) -> tuple[Any, ...]:
        """The results, or the class and the text of what is raised."""
        try:
            found = getattr(self, which)(*arrays, **named)
        except Exception as error:
            return type(error), str(error)
        found = found if isinstance(found, tuple) else (found,)
        return tuple(None if each is None else _contents(each) for each in found)


def weighted(body: Callable[..., int | None], **more: Any) -> CProgram:
    """A program of ``x``, of weights ``w`` and ``v`` and of a result; ``w`` may be updated."""
    rows = [row("input", "x"), row("input", "w"), row("input", "v"), row("output", "out")]
    if more.pop("updated", False):
        rows.append(row("output", "w", updates=1))
    return CProgram(rows, body, **{WEIGHT_NAMES: [["w"], ["v"]]}, **more)


def _contents(array: Any) -> tuple[Any, ...]:
    values = array.detach().numpy() if hasattr(array, "detach") else np.asarray(array)
    steps = array.stride() if hasattr(array, "stride") else array.strides
    return type(array), str(array.dtype), tuple(array.shape), tuple(steps), values.tobytes()


class CountingArrays(NumpyArrays):
    """NumPy's, which count the arrays that Python looks at."""

    described = 0

    def describe(self, array: Any) -> ArraySpec:
        """As of the base class."""
        self.described += 1
        return super().describe(array)
