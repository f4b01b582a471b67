"""How machine code reads the arrays of a framework: what a frontend offers for its own."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from polyblocks.program import ArraySpec
from polyblocks.runtime.slots import Slot

if TYPE_CHECKING:
    from polyblocks.codegen.array_layout import ArrayLayout
    from polyblocks.runtime.native.guards import Guards
    from polyblocks.runtime.native.watcher import Watcher


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
        text: LLVM IR, as ``polyblocks.codegen.ir_text.expand`` reads it.
        structs: fields of what ``text`` loads from, 8 bytes each.
        state: memory whose address is passed to the functions, kept alive; None: null.
        types: the exact classes of the arrays that it reads.
        dtype: what a row has for the dtype of a name; None: arrays of that are not read.
        strides_in_bytes: whether strides are in bytes, not in elements.
        layout: tells which words describe an array, so that arrays that stay are looked at without
            calls; None, or where it returns None: ``unmoved`` is called for each.
    """

    text: str
    types: tuple[type, ...]
    dtype: Callable[[str], int | None]
    structs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    state: Any = None
    strides_in_bytes: bool = False
    layout: Callable[[], ArrayLayout | None] | None = None

    @functools.cached_property
    def functions(self) -> dict[str, int] | None:
        """Addresses of the functions in machine code; None: this process cannot have any."""
        from polyblocks.codegen import native_call
        from polyblocks.runtime.native import native_code

        text = native_call.call_text(self.text, self.structs)
        return native_code.place(text, native_call.CALL, native_call.UNMOVED)

    @functools.cached_property
    def guards(self) -> Guards | None:
        """Guards of its arrays; None: there are none, and :attr:`text` looks at each array."""
        from polyblocks.runtime.native.guards import guards

        known = None if self.layout is None else self.layout()
        return None if known is None else guards(known)

    def watcher(self, arrays: Sequence[Any], slots: Sequence[Slot]) -> Watcher | None:
        """Looks whether arrays still lie as they did when they were checked.

        Args:
            arrays: which it keeps alive.
            slots: what they are passed for.

        Returns:
            None where there is no machine code, or an array is not read.
        """
        from polyblocks.codegen.native_call import UNMOVED
        from polyblocks.runtime.native.watcher import Watcher

        functions = self.functions
        if any(type(array) not in self.types for array in arrays) or functions is None:
            return None
        rows = [
            self.row(slot.spec, slot.alignment, False) for slot in slots if slot.spec is not None
        ]
        found = [row for row in rows if row is not None]
        if len(found) < len(arrays):
            return None
        ranks = [len(slot.spec.shape) for slot in slots if slot.spec is not None]
        return Watcher(functions[UNMOVED], self.state, self.guards, arrays, found, ranks)

    def row(self, spec: ArraySpec, alignment: int, written: bool) -> tuple[Any, list[Any]] | None:
        """The row of ``native_call.ROW`` that an array must match.

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
