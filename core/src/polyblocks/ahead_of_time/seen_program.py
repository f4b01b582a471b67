"""A program that is called but not run, and what it learns: whose arrays it is given, and where
the arrays go that it would have written.

Frameworks pass arrays and hand out results in ways of their own: as they are, as copies, in another
order, twice. An address says which array it is, as long as the array was not copied; else its
contents do, and a program that is not run can write into its results whatever it likes.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyblocks.artifact import Artifact
from polyblocks.errors import InputError
from polyblocks.program import DTYPES, ArraySpec
from polyblocks.runtime.arrays import ArrayInterface
from polyblocks.runtime.executable import Executable
from polyblocks.runtime.native_entry import NativeEntry
from polyblocks.runtime.slots import same_layout, text_of
from polyblocks.signature import spec_of

#: Bytes at the beginning of a result by which it is known again.
_MARK_BYTES = 4096


class Seen(Executable):
    """Stands in for a loaded program: keeps what it is called with, and computes nothing.

    Results are filled with a mark, which is different for each.

    Attributes:
        artifact: the program.
        manifest: its manifest.
        addresses: of its arguments in the first call; None before.
        contents: for each input the bytes that it had then.
        changed: inputs that had other contents in a later call.
        calls: how often it was called.
    """

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self.manifest = artifact.manifest
        self.addresses: tuple[int, ...] | None = None
        self.contents: dict[int, bytes] = {}
        self.changed: set[int] = set()
        self.calls = 0

    @functools.cached_property
    def native_entry(self) -> NativeEntry:
        """:meth:`entry` for callers without Python."""
        rows, checks = self.manifest["arguments"], self.manifest.get("checks", ())
        return NativeEntry(self.entry, len(rows), len(checks))

    def entry(self, pointers: bytes, num_threads: int) -> int:
        """Look at the inputs, mark the results."""
        del num_threads
        rows = self.manifest["arguments"]
        addresses = struct.unpack(f"{len(rows)}Q", pointers)
        for index, (row, address) in enumerate(zip(rows, addresses, strict=True)):
            if row["role"] == "input":
                contents = _bytes_at(address, spec_of(row).nbytes)
                if self.contents.setdefault(index, contents) != contents:
                    self.changed.add(index)
            elif is_fresh(row):
                _fill(address, spec_of(row).nbytes, mark_of(index, row["dtype"]))
        if self.addresses is None:
            self.addresses = addresses
        self.calls += 1
        return 0

    def close(self) -> None:
        """There is nothing to unload."""


def is_fresh(row: Mapping[str, Any]) -> bool:
    """Whether an argument is a result in memory of its own."""
    return bool(row["role"] == "output" and row["updates"] is None)


def mark_of(index: int, dtype: str) -> bytes:
    """The repeated pattern in the result with this number among the arguments.

    Read as elements these are numbers, positive and finite, and proper truth values.
    """
    random = np.frombuffer(hashlib.shake_128(str(index).encode()).digest(_MARK_BYTES), np.uint8)
    return (random & (1 if dtype == "bool" else 0x3F)).tobytes()


def _fill(address: int, size: int, mark: bytes) -> None:
    for begin in range(0, size, len(mark)):
        ctypes.memmove(address + begin, mark, min(len(mark), size - begin))


def _bytes_at(address: int, size: int) -> bytes:
    return ctypes.string_at(address, size) if size else b""


def source_of_inputs(
    seen: Seen, arrays: ArrayInterface, leaves: Sequence[Any]
) -> dict[int, int | None]:
    """For each input of a program the number of the array that it is; None: the function's own.

    Args:
        seen: after a call.
        arrays: of the framework.
        leaves: the arrays that the function was called with.

    Raises:
        InputError: two share an address, or one has the contents of an array of the function's.
    """
    assert seen.addresses is not None
    places: dict[int, int] = {}
    for number, leaf in enumerate(leaves):
        if arrays.describe(leaf).numel:
            first = places.setdefault(arrays.pointer(leaf), number)
            if first != number:
                raise InputError(
                    f"example arrays {first + 1} and {number + 1} share an address; pass a copy of "
                    "one"
                )
    found = {row: places.get(seen.addresses[row]) for row in seen.contents}
    passed = list(found.values())
    # Frameworks may pass a copy, in another layout for example.
    copied = [number for number in range(len(leaves)) if number not in passed]
    for k, number in enumerate(copied):
        free = [
            row
            for row, source in found.items()
            if source is None and is_copy(arrays, leaves[number], seen, row)
        ]
        if free:
            alike = [n for n in copied[k:] if is_copy(arrays, leaves[n], seen, free[0])]
            if len(free) > len(alike):
                raise _held_too(number)
            found[free[0]] = number
    for number in range(len(leaves)):
        if list(found.values()).count(number) > 1:
            raise _held_too(number)
    return found


def _held_too(number: int) -> InputError:
    return InputError(
        f"example array {number + 1} has the same contents as an array that the function holds; "
        "pass an example with other contents"
    )


def is_copy(arrays: ArrayInterface, leaf: Any, seen: Seen, row: int) -> bool:
    """Whether an input has the elements of an array, in whatever layout."""
    spec, own = spec_of(seen.manifest["arguments"][row]), arrays.describe(leaf)
    if (own.shape, own.dtype) != (spec.shape, spec.dtype):
        return False
    held = _bytes_at(arrays.pointer(leaf), own.nbytes)
    return np.array_equal(_elements(held, own), _elements(seen.contents[row], spec))


def _elements(contents: bytes, spec: ArraySpec) -> np.ndarray[Any, Any]:
    """The bytes of the elements in logical order, an element in the last dimension."""
    size = DTYPES[spec.dtype][1]
    strides = (*(step * size for step in spec.strides), 1)
    return np.ndarray((*spec.shape, size), np.uint8, contents, strides=strides)


def places_of_results(
    seen: Seen,
    arrays: ArrayInterface,
    results: Sequence[Any],
    sources: Mapping[int, int | None],
) -> list[int | dict[str, Any]]:
    """A function's result, as a description for the program's caller.

    Args:
        seen: after the call that gave the results.
        arrays: of the framework.
        results: what the function returned, without what is None.
        sources: see :func:`source_of_inputs`.

    Returns:
        For each result the number of the argument that it is: a fresh result, or an input that is
        passed. One without elements is a dictionary with ``dtype`` and ``shape``.

    Raises:
        InputError: a result is something else.
    """
    return _Results(seen, arrays, sources).places(results)


class _Results:
    def __init__(
        self, seen: Seen, arrays: ArrayInterface, sources: Mapping[int, int | None]
    ) -> None:
        assert seen.addresses is not None
        self.seen = seen
        self.arrays = arrays
        self.sources = sources
        self.addresses: tuple[int, ...] = seen.addresses
        self.rows = seen.manifest["arguments"]
        self.specs = {
            k: spec_of(row) for k, row in enumerate(self.rows) if row["role"] in ("input", "output")
        }

    def places(self, results: Sequence[Any]) -> list[int | dict[str, Any]]:
        found: dict[int, int | dict[str, Any]] = {}
        function = self.seen.manifest["name"]
        for number, result in enumerate(results):
            if not self.arrays.is_array(result):
                raise InputError(
                    f"result number {number + 1} of {function} is of type "
                    f"{type(result).__name__}; a program returns arrays only, so leave it out"
                )
            spec = self.arrays.describe(result)
            if not spec.numel:
                found[number] = {"dtype": spec.dtype, "shape": list(spec.shape)}
            else:
                row = self._at(self.arrays.pointer(result), spec)
                if row is not None:
                    found[number] = row
        for number, result in enumerate(results):
            if number not in found:
                row = self._marked(result, {k for k in found.values() if isinstance(k, int)})
                if row is None:
                    spec = self.arrays.describe(result)
                    raise InputError(
                        f"result number {number + 1} of {function} ({text_of(spec)}) "
                        f"{self._what(self.arrays.pointer(result), spec)}"
                    )
                found[number] = row
        return [found[number] for number in range(len(results))]

    def _at(self, address: int, spec: ArraySpec) -> int | None:
        """The argument that lies there. That the memory is still the same, its contents say."""
        for row in self._rows_at(address, spec):
            contents = self._contents(row)
            if (is_fresh(self.rows[row]) or self.sources[row] is not None) and contents.startswith(
                _bytes_at(address, min(spec.nbytes, len(contents)))
            ):
                return row
        return None

    def _rows_at(self, address: int, spec: ArraySpec) -> list[int]:
        return [
            row
            for row, own in self.specs.items()
            if self.addresses[row] == address
            and _is_alike(own, spec)
            and (row in self.seen.contents or is_fresh(self.rows[row]))
        ]

    def _contents(self, row: int) -> bytes:
        if row in self.seen.contents:
            return self.seen.contents[row]
        return mark_of(row, self.rows[row]["dtype"])

    def _marked(self, result: Any, taken: set[int]) -> int | None:
        """The fresh result that an array is a copy of."""
        spec = self.arrays.describe(result)
        begin = _bytes_at(self.arrays.pointer(result), min(spec.nbytes, _MARK_BYTES))
        # Something else may have the contents of a small result, and small ones the same mark;
        # copies of these are in the order of the program's results.
        telling = len(begin) >= (64 if spec.dtype == "bool" else 16)
        marked = [
            row
            for row, own in self.specs.items()
            if is_fresh(self.rows[row])
            and _is_alike(own, spec)
            and mark_of(row, spec.dtype).startswith(begin)
            and (telling or row not in taken)
        ]
        return marked[0] if marked else None

    def _what(self, address: int, spec: ArraySpec) -> str:
        """Why a result cannot be returned."""
        if self._rows_at(address, spec):
            return "is an array that the function holds; leave it out"
        for row, own in self.specs.items():
            if self.addresses[row] <= address < self.addresses[row] + own.nbytes:
                whose = "an argument" if row in self.seen.contents else "another result"
                return f"is a view of {whose}; return a copy of it"
        if any(
            _is_alike(own, spec) and self.seen.contents.get(row) == _bytes_at(address, own.nbytes)
            for row, own in self.specs.items()
        ):
            return "is an argument as it came, or a constant with the same contents; leave it out"
        return "is a constant, which the program does not compute; leave it out"


def _is_alike(one: ArraySpec, other: ArraySpec) -> bool:
    return (one.shape, one.dtype) == (other.shape, other.dtype) and same_layout(one, other)
