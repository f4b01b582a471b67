"""Run a lowered module, or an artifact's code, on arrays. Call it in a process that may die."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyblocks.bisect import reference
from polyblocks.bisect.guarded import Guarded
from polyblocks.bisect.reference import Lowered, NotRunnableError, Slot
from polyblocks.bisect.team import SIZE, SerialTeam, address_of
from polyblocks.codegen import jit
from polyblocks.errors import UnsupportedError
from polyblocks.program import DTYPES

Array = np.ndarray[Any, Any]
#: The whole body of a large program may keep its values on the stack, since nothing is optimized.
_STACK_BYTES = 256 << 20


@dataclass(frozen=True)
class Variant:
    """One way to run a module: all ways must give the same.

    Attributes:
        backwards: parallel loops and threads run in the opposite order.
        fill: the byte that outputs, workspaces and allocations hold at first.
    """

    backwards: bool
    fill: int


#: Filled so that what was never written is NaN (or -1) in one and huge in the other.
VARIANTS = (Variant(False, 0xFF), Variant(True, 0x7F))


class RunError(Exception):
    """The module ran, but not to its end; the message says how it ended."""


class CheckError(RunError):
    """A check of the module's own failed; the message is the check's."""


class Program:
    """A module that can be called.

    Args:
        lowered: the module.

    Raises:
        NotRunnableError: it calls functions that are nowhere.
    """

    def __init__(self, lowered: Lowered) -> None:
        self._lowered = lowered
        self._team = SerialTeam()
        self._memory: Guarded | None = None
        self._failed: int | None = None
        self._end = threading.Event()
        pointer, int_ = ctypes.c_void_p, ctypes.c_int32
        self._callbacks = {
            reference.CHECK_FAILED: ctypes.CFUNCTYPE(None, int_)(self._check_failed),
            "malloc": ctypes.CFUNCTYPE(pointer, ctypes.c_size_t)(self._allocate),
            "free": ctypes.CFUNCTYPE(None, pointer)(lambda _: None),
        }
        imports = {name: address_of(f) for name, f in self._callbacks.items()}
        exports = [lowered.entry, *([reference.BACKWARDS] if lowered.descriptors else [])]
        try:
            self._code = jit.load(lowered.text, exports, imports | self._team.symbols())
        except (RuntimeError, UnsupportedError) as error:
            raise NotRunnableError(" ".join(str(error).split())) from None

    def __call__(self, inputs: Sequence[Array], variant: Variant, limit_s: float) -> list[Array]:
        """Run once.

        Args:
            inputs: one per input of the signature, of its shape.
            variant: how.
            limit_s: seconds after which it counts as endless.

        Returns:
            The fresh outputs in order, then the inputs that are updated in place.

        Raises:
            RunError: a check failed, or it did not end.
        """
        lowered = self._lowered
        self._team.backwards = variant.backwards
        if lowered.descriptors:
            flag = ctypes.c_int32.from_address(self._code.addresses[reference.BACKWARDS])
            flag.value = int(variant.backwards)
        self._memory = Guarded(not variant.backwards, variant.fill)
        arguments = Arguments([s.row for s in lowered.slots], self._memory, inputs, lowered.slots)
        types: list[Any] = [ctypes.c_void_p] * len(lowered.slots)
        values: list[Any] = list(arguments.addresses)
        if lowered.descriptors:
            headers = [_descriptor(a, s) for a, s in zip(values, lowered.slots, strict=True)]
            values = [header.ctypes.data for header in headers]
        if lowered.threads:
            types.append(ctypes.c_int32)
            values.append(SIZE)
        result = ctypes.c_int32 if lowered.returns_status else None
        function = ctypes.CFUNCTYPE(result, *types)(self._code.addresses[lowered.entry])
        status = self._run(lambda: function(*values), limit_s)
        if status:
            raise CheckError(f"a check fails (status {status})")
        arguments.raise_status()
        return arguments.outputs()

    def _run(self, call: Callable[[], Any], limit_s: float) -> Any:
        """Call in a thread of its own, which a failed check or an endless loop keeps forever."""
        results: list[Any] = []
        self._failed = None
        self._end = threading.Event()

        def job() -> None:
            results.append(call())
            self._end.set()

        before = threading.stack_size(_STACK_BYTES)
        try:
            threading.Thread(target=job, daemon=True).start()
        finally:
            threading.stack_size(before)
        if not self._end.wait(limit_s):
            raise RunError(f"it does not end within {limit_s:g} s")
        if self._failed is not None:
            raise CheckError(f"a check fails: {self._lowered.messages[self._failed]}")
        return results[0]

    def _check_failed(self, index: int) -> None:
        self._failed = index
        self._end.set()
        # Later code relies on the check. The thread stays here until the process ends.
        threading.Event().wait()

    def _allocate(self, nbytes: int) -> int:
        assert self._memory is not None
        return int(self._memory.allocate(nbytes).ctypes.data)


class Arguments:
    """The memory of one call, by the rows of a signature."""

    def __init__(
        self,
        rows: Sequence[dict[str, Any]],
        memory: Guarded,
        inputs: Sequence[Array],
        slots: Sequence[Slot] | None = None,
    ) -> None:
        self._views: list[tuple[dict[str, Any], Array]] = []
        self.addresses: list[int] = []
        rest = iter(inputs)
        for k, row in enumerate(rows):
            shape, strides = tuple(row["shape"]), tuple(row["strides"])
            if slots is not None and 0 not in shape:
                shape, strides = slots[k].shape, slots[k].strides
            view = self._allocate(row["dtype"], shape, strides, memory)
            if row["role"] == "input":
                view[...] = next(rest).reshape(view.shape)
            elif row["role"] == "status":
                view[...] = 0
            self._views.append((row, view))
            self.addresses.append(int(view.ctypes.data))

    def _allocate(
        self, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], memory: Guarded
    ) -> Array:
        kind = storage(dtype)
        span = 0
        if 0 not in shape:
            span = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        flat = memory.allocate(span * kind.itemsize).view(kind)
        steps = [s * kind.itemsize for s in strides]
        return np.lib.stride_tricks.as_strided(flat, shape, steps)

    def outputs(self) -> list[Array]:
        """Copies of the fresh outputs in order, then of the inputs that are updated in place."""
        rows = list(enumerate(self._views))
        fresh = [v for _, (r, v) in rows if r["role"] == "output" and r["updates"] is None]
        # Before S2 a result says which input it updates; later the input itself says so.
        before = {r["updates"]: v for _, (r, v) in rows if r["role"] == "output"}
        after = {k: v for k, (r, v) in rows if r["role"] == "input" and r["updates"] is not None}
        before.pop(None, None)
        updated = before | after
        return [v.copy() for v in [*fresh, *(updated[k] for k in sorted(updated))]]

    def raise_status(self) -> None:
        """Raise if a status argument says that a check failed."""
        for row, view in self._views:
            if row["role"] == "status" and view.any():
                raise CheckError(f"a check fails (status {int(view.reshape(-1)[0])})")


def storage(dtype: str) -> np.dtype[Any]:
    """How an element lies in memory, as NumPy knows it: bfloat16 is bits, booleans are bytes."""
    if dtype == "bfloat16":
        return np.dtype(np.uint16)
    return np.dtype(np.uint8 if DTYPES[dtype][0] == "i1" else dtype)


def _descriptor(address: int, slot: Slot) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A memref descriptor: allocated and aligned pointer, offset, sizes, strides."""
    return np.array([address, address, 0, *slot.shape, *slot.strides], np.int64)
