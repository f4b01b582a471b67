"""The ArrayInterface of arrays that are known by protocols alone: DLPack and those of vendors."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

from polyblocks.errors import InputError
from polyblocks.program import DTYPES, ArraySpec
from polyblocks.runtime.arrays import HOST, ArrayInterface, Device
from polyblocks.runtime.device.exported import ExportedArray, tensor_in
from polyblocks.runtime.foreign.array_packages import ArrayPackage
from polyblocks.runtime.numpy_arrays import NumpyArrays
from polyblocks.runtime.slots import same_layout, text_of

#: Bytes that addresses of results on the host are a multiple of: packages copy what is aligned less
#: than their own arrays.
_ALIGNMENT = 64
#: Version of a vendor's array interface from which on it says for which stream to wait.
_WITH_STREAM = 3


_DEVICE = operator.methodcaller("__dlpack_device__")


class _Shown(NamedTuple):
    """A reading of arrays that speak a vendor's protocol.

    Attributes:
        copies: of the protocol's dictionaries, which a package may write anew; None: not copied.
        places: the devices.
        reading: see :meth:`ArrayInterface.readings`.
    """

    copies: list[dict[str, Any]] | None
    places: list[Any]
    reading: tuple[list[int], Any]


class ProtocolArrays(ArrayInterface):
    """Arrays of any package; results are arrays of one.

    Results are in memory of ours and become arrays by the package's ``from_dlpack``. On the host
    they are NumPy's if the package has none.

    Args:
        package: of the results.
        protocols: attributes through which a vendor's arrays tell their address and shape.
        executable: a program of that vendor, whose driver knows where memory is.
    """

    def __init__(
        self, package: ArrayPackage, protocols: Sequence[str] = (), executable: Any = None
    ) -> None:
        self._package = package
        self._protocols = tuple(protocols)
        self._executable = executable
        self._numpy = NumpyArrays()
        self._last: _Shown | None = None

    def is_array(self, value: Any) -> bool:
        """Whether ``value`` speaks one of the protocols."""
        return hasattr(value, "__dlpack__") or self._protocol(value) is not None

    def describe(self, array: Any) -> ArraySpec:
        """Shape, dtype and strides of an array."""
        spec = self._read(array)[2]
        if spec is None:
            raise InputError(
                f"unsupported array: expected one of the dtypes {', '.join(DTYPES)} and no "
                "negative strides; pass a copy"
            )
        return spec

    def pointer(self, array: Any) -> int:
        """The address of the first element.

        Raises:
            InputError: the array gives a copy through DLPack, which would be gone by the time that
                it is read.
        """
        if self._protocol(array) is not None:
            return self._read(array)[0]
        # Memory of two that are alive together is one only if it is the array's own.
        capsules = self._capsule(array), self._capsule(array)
        address, _, spec = tensor_in(capsules[0])
        if address != tensor_in(capsules[1])[0] and not (spec is not None and spec.numel == 0):
            raise InputError(
                f"{type(array).__name__} gives a copy of its elements through DLPack, expected its "
                "own memory; pass an array that has its elements in this layout, as NumPy's"
            )
        return address

    def device(self, array: Any) -> Device:
        """Where the array lies."""
        if hasattr(array, "__dlpack_device__"):
            kind, number = array.__dlpack_device__()
            return Device(int(kind), int(number))
        return self._read(array)[1]

    def is_writable(self, array: Any) -> bool:
        """Whether it can be updated, as far as its package says."""
        shown = self._protocol(array)
        if shown is not None:
            return not shown["data"][1]
        flags = getattr(array, "flags", None)
        return bool(getattr(flags, "writeable", True)) and hasattr(array, "__setitem__")

    def empty(self, spec: ArraySpec, device: Device) -> Any:
        """A new array on the host."""
        if not self._package.takes_memory:
            return self._numpy.empty(spec, device)
        plain = ArraySpec.contiguous((spec.nbytes + _ALIGNMENT,), "uint8")
        memory = self._numpy.empty(plain, device)
        exported = ExportedArray(memory, -self._numpy.pointer(memory) % _ALIGNMENT, spec)
        array = self.adopt(exported)
        address, _, got = self._read(array)
        # It is written after this.
        if spec.numel and (address != exported.address or not got or not same_layout(got, spec)):
            raise InputError(
                f"package '{self._package.name}' copies memory of strides {list(spec.strides)} "
                "instead of taking it over; pass NumPy arrays"
            )
        return array

    def transfer(self, array: Any, device: Device) -> Any:
        """The array itself, if it is there."""
        if self.device(array) != device:
            raise InputError(f"{type(array).__name__} cannot be copied to device {tuple(device)}")
        return array

    def make_ready(self, array: Any, stream: int) -> None:
        """Tell the array's owner on which stream it is read; it lets that wait."""
        waits = self.waits((array,))
        if waits is None:
            array.__dlpack__(stream=stream)
            return
        for theirs in waits - {stream}:
            self._executable.driver.order(theirs, stream)

    def waits(self, arrays: Sequence[Any]) -> frozenset[int] | None:
        """See the base class. Interfaces of version 3 say it; of others, DLPack has to be asked."""
        theirs: set[int] = set()
        for array in arrays:
            shown = self._protocol(array)
            if shown is not None and shown.get("version", 0) >= _WITH_STREAM:
                if shown.get("stream") is not None:
                    theirs.add(shown["stream"])
            elif hasattr(array, "__dlpack__"):
                return None
        return frozenset(theirs)

    def readings(self, arrays: Sequence[Any]) -> tuple[list[int], Any] | None:
        """See the base class."""
        if len(self._protocols) == 1:
            with contextlib.suppress(AttributeError, TypeError):
                return self._shown(arrays)
        # Some speak DLPack alone: one capsule per array, where a check asks for several.
        read = [self._read(array) for array in arrays]
        writable = [self.is_writable(array) for array in arrays]
        return [address for address, *_ in read], ([rest for _, *rest in read], writable)

    def _shown(self, arrays: Sequence[Any]) -> tuple[list[int], Any]:
        """The reading of arrays that all speak the vendor's protocol.

        Raises:
            AttributeError, TypeError: one does not.
        """
        shown = list(map(operator.attrgetter(self._protocols[0]), arrays))
        places = self._places(arrays)
        last = self._last
        if last is not None and last.copies == shown and last.places == places:
            return last.reading
        reading = _by_columns(shown, places)
        if last is None or reading[1] != last.reading[1]:
            reading = reading[0], tuple(map(_with_tuples, reading[1]))
            last = None
        else:
            reading = reading[0], last.reading[1]
        # Arrays whose addresses are others each time are not worth a copy of what they show.
        repeated = last is not None and last.reading[0] == reading[0]
        self._last = _Shown(_copies(shown) if repeated else None, places, reading)
        return reading

    def _places(self, arrays: Sequence[Any]) -> list[Any]:
        """The device of each array; of those that tell none, that of the first such one."""
        try:
            return list(map(_DEVICE, arrays))
        except AttributeError:
            places = [
                array.__dlpack_device__() if hasattr(array, "__dlpack_device__") else None
                for array in arrays
            ]
            if None in places:
                places.append(self._place(arrays[places.index(None)]))
            return places

    def adopt(self, memory: Any) -> Any:
        """An array of the package."""
        array = self._package.take(memory)
        got, expected = self._read(array)[2], memory.spec
        if got is None or (got.shape, got.dtype) != (expected.shape, expected.dtype):
            made = "something else" if got is None else text_of(got)
            raise InputError(
                f"package '{self._package.name}' makes {made} of a result {text_of(expected)}; "
                "allow that dtype in its settings, or pass NumPy arrays"
            )
        return array

    def _protocol(self, array: Any) -> dict[str, Any] | None:
        for name in self._protocols:
            shown = getattr(array, name, None)
            if isinstance(shown, dict):
                return shown
        return None

    def _read(self, array: Any) -> tuple[int, Device, ArraySpec | None]:
        shown = self._protocol(array)
        if shown is not None:
            return shown["data"][0], self._place(array), _spec_of(shown)
        return tensor_in(self._capsule(array))

    def _capsule(self, array: Any) -> Any:
        if not hasattr(array, "__dlpack__"):
            raise InputError(f"{type(array).__name__} is no array that speaks DLPack")
        # -1: no wait here; see make_ready.
        host = self.device(array) == HOST
        return array.__dlpack__() if host else array.__dlpack__(stream=-1)

    def _place(self, array: Any) -> Device:
        if hasattr(array, "__dlpack_device__"):
            return self.device(array)
        driver = self._executable.driver
        return Device(driver.device_kinds[0], driver.current_device())


def _by_columns(shown: list[Any], places: list[Any]) -> tuple[list[int], Any]:
    """The reading of arrays; a tuple per array would keep the garbage collector busy."""
    data = [each["data"] for each in shown]
    return [address for address, _ in data], (
        [each["typestr"] for each in shown],
        [each["shape"] for each in shown],
        [each.get("strides") for each in shown],
        [each.get("stream") for each in shown],
        [each.get("version") for each in shown],
        [read_only for _, read_only in data],
        places,
    )


def _with_tuples(values: list[Any]) -> list[Any]:
    """Values with tuples instead of lists, which a package may write anew."""
    return [tuple(each) if type(each) is list else each for each in values]


def _copies(shown: list[Any]) -> list[dict[str, Any]] | None:
    """Copies that do not change with what they are made of; None where that is not sure."""
    made = [_copy(each) for each in shown]
    return made if all(type(each) is dict for each in made) else None


def _copy(value: Any) -> Any:
    """A copy of a value of Python's own classes; Ellipsis, which shows nothing, for others."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) in (list, tuple):
        items = [_copy(each) for each in value]
        return ... if ... in items else type(value)(items)
    if type(value) is dict:
        found = {key: _copy(each) for key, each in value.items() if type(key) is str}
        return ... if ... in found.values() or len(found) < len(value) else found
    return ...


def _spec_of(shown: dict[str, Any]) -> ArraySpec | None:
    """The layout in an array interface, version 3: ``typestr``, ``shape``, ``strides`` in bytes."""
    code, width = shown["typestr"][1], int(shown["typestr"][2:])
    names = {"f": "float", "i": "int", "u": "uint", "c": "complex", "b": "bool"}
    dtype = names.get(code, "?") + ("" if code == "b" else str(8 * width))
    if dtype not in DTYPES or shown["typestr"][0] == ">":
        return None
    shape = tuple(shown["shape"])
    if shown.get("strides") is None:
        return ArraySpec.contiguous(shape, dtype)
    steps = [divmod(stride, width) for stride in shown["strides"]]
    if any(rest or step < 0 for step, rest in steps):
        return None
    return ArraySpec(shape, dtype, tuple(step for step, _ in steps))
