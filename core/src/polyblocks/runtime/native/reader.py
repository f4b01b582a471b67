"""How machine code reads the arrays of a framework: what a frontend offers for its own."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polyblocks.program import ArraySpec
from polyblocks.runtime.slots import Slot


@dataclass(frozen=True)
class NativeReader:
    """How machine code reads arrays of a framework on the host, and what it must ask before.

    ``text`` defines four internal functions with the attributes ``#0``. They need no relocations,
    raise nothing, wait for nothing, and are called with Python's lock held:

    - ``i1 @read(ptr %state, ptr %array, ptr %row, ptr %into)`` stores the address of an array's
      first element at ``into``; false if it is not exactly as the row says, also where it is of
      another class. ``i1 @fits(ptr %row, i64 %rank, ptr %shape, ptr %strides, ptr %data)`` is
      there to compare with.
    - ``i1 @unmoved(ptr %state, ptr %array, ptr %row, ptr %address)``: whether an array that was
      read before is still at this address, and lies as the row says.
    - ``i1 @allowed(ptr %state)``: whether arrays are what they look like at the moment (no tracing,
      no mode that wants to see every operation).
    - ``i64 @threads(ptr %state)``: what the framework is set to, 0 if nothing is set.

    NumPy's is :mod:`polyblocks.codegen.numpy_reader`.

    Attributes:
        text: LLVM IR, as ``polyblocks.codegen.native_call.expand`` reads it.
        structs: fields of what ``text`` loads from, 8 bytes each.
        state: memory whose address is passed to the functions, kept alive; None: null.
        types: the exact classes of the arrays that it reads.
        dtype: what a row has for the dtype of a name; None: arrays of that are not read.
        strides_in_bytes: whether strides are in bytes, not in elements.
    """

    text: str
    types: tuple[type, ...]
    dtype: Callable[[str], int | None]
    structs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    state: Any = None
    strides_in_bytes: bool = False

    @functools.cached_property
    def functions(self) -> dict[str, int] | None:
        """Addresses of the functions in machine code; None: this process cannot have any."""
        from polyblocks.codegen import native_call
        from polyblocks.runtime.native import native_code

        text = native_call.call_text(self.text, self.structs)
        return native_code.place(text, native_call.CALL, native_call.UNMOVED)

    def unmoved(
        self, arrays: Sequence[Any], slots: Sequence[Slot], addresses: Any
    ) -> Unmoved | None:
        """Tells whether arrays still lie as they did when they were checked.

        Args:
            arrays: which it keeps alive.
            slots: what they are passed for.
            addresses: where they were, an array of ``ctypes.c_int64``, which may change.

        Returns:
            None where there is no machine code, or an array is not read.
        """
        from polyblocks.codegen import native_call

        if any(type(array) not in self.types for array in arrays) or self.functions is None:
            return None
        rows = [
            self.row(slot.spec, slot.alignment, False) for slot in slots if slot.spec is not None
        ]
        values = [value for row in rows if row is not None for value in row[0]]
        if len(values) < len(arrays) * len(native_call.ROW):
            return None
        objects = (ctypes.c_void_p * len(arrays))(*map(id, arrays))
        table = (ctypes.c_int64 * len(values))(*values)
        held = self.state, objects, table, addresses, list(arrays), rows
        places = [0 if each is None else ctypes.addressof(each) for each in held[:4]]
        return Unmoved(self.functions[native_call.UNMOVED], places, len(arrays), held)

    def row(self, spec: ArraySpec, alignment: int, written: bool) -> tuple[Any, list[Any]] | None:
        """What is expected of an array, as ``native_call.ROW`` says it.

        Returns:
            The values, and what they point to; None for a dtype that is not read.
        """
        from polyblocks.codegen import native_call
        from polyblocks.program import DTYPES

        dtype = self.dtype(spec.dtype)
        if dtype is None:
            return None
        unit = DTYPES[spec.dtype][1] if self.strides_in_bytes else 1
        rank = len(spec.shape)
        shape = (ctypes.c_int64 * rank)(*spec.shape)
        strides = (ctypes.c_int64 * rank)(*(unit * step for step in spec.strides))
        flags = native_call.WRITTEN * written | native_call.EMPTY * (spec.numel == 0)
        flags |= native_call.COMPLEX * spec.dtype.startswith("complex")
        places = ctypes.addressof(shape), ctypes.addressof(strides)
        values = (dtype, rank, *places, alignment - 1, spec.nbytes, flags)
        return values, [shape, strides]


class Unmoved:
    """A function of machine code with all that it is called with: ``unmoved() -> bool``.

    Attributes:
        address: of the function.
        places: addresses of the reader's state, of the arrays, of their rows, and of where they
            were.

    Args:
        address: see there.
        places: see there.
        count: of arrays.
        held: what is kept alive.
    """

    def __init__(self, address: int, places: Sequence[int], count: int, held: Any) -> None:
        self.address = address
        self.places = tuple(places)
        # A function of this kind keeps Python's lock.
        kind = ctypes.PYFUNCTYPE(ctypes.c_int32, *(ctypes.c_void_p,) * 4, ctypes.c_int64)
        self._function = kind(address)
        self._count = count
        self._held = held

    def __call__(self) -> bool:
        return bool(self._function(*self.places, self._count))
