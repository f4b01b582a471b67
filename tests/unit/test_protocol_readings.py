"""Arrays that show the same as in the last calls pass; all that changes is noticed."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from polyblocks.runtime.arrays import Device
from polyblocks.runtime.foreign import protocol_arrays
from polyblocks.runtime.foreign.array_packages import ArrayPackage
from polyblocks.runtime.foreign.protocol_arrays import ProtocolArrays


class Array:
    """Shows what it is told, each time as one dictionary that its owner may write anew."""

    def __init__(self, address: int, place: tuple[int, int] = (2, 0), **shown: Any) -> None:
        self.place = place
        self.__vendor_array_interface__ = {
            "version": 3, "typestr": "<f4", "shape": (2, 3), "strides": None,
            "data": (address, False), "stream": None, **shown,
        }  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.place

    def write(self, **shown: Any) -> None:
        self.__vendor_array_interface__.update(shown)


class Silent:
    """Tells no device."""

    def __init__(self, of: Array) -> None:
        self.__vendor_array_interface__ = of.__vendor_array_interface__


class Driver:
    device_kinds = (2,)
    current: ClassVar[int] = 0

    def current_device(self) -> int:
        return self.current


class Executable:
    driver = Driver()


@pytest.fixture
def interface() -> ProtocolArrays:
    return ProtocolArrays(
        ArrayPackage("package", None), ("__vendor_array_interface__",), Executable()
    )


@pytest.fixture
def columns(monkeypatch) -> list[int]:
    """Counts the readings by columns."""
    seen: list[int] = []
    plain = protocol_arrays._by_columns

    def counted(shown: Any, places: Any) -> Any:
        seen.append(len(shown))
        return plain(shown, places)

    monkeypatch.setattr(protocol_arrays, "_by_columns", counted)
    return seen


def settled(interface: ProtocolArrays, arrays: Any) -> Any:
    """The reading, once the same arrays have been read often."""
    for _ in range(4):
        reading = interface.readings(arrays)
    return reading


def test_what_is_the_same_is_compared_at_once(interface, columns):
    arrays = [Array(64 * k, descr=[("", "<f4")]) for k in range(1, 5)]
    reading = settled(interface, arrays)
    assert len(columns) == 2
    assert interface.readings([Array(64 * k, descr=[("", "<f4")]) for k in range(1, 5)]) == reading
    assert len(columns) == 2
    assert reading[0] == [64, 128, 192, 256]


CHANGES = {
    "address": {"data": (4096, False)},
    "read only": {"data": (64, True)},
    "dtype": {"typestr": "<i4"},
    "bytes": {"typestr": ">f4"},
    "shape": {"shape": (3, 2)},
    "rank": {"shape": (6,)},
    "strides": {"strides": (4, 8)},
    "stream": {"stream": 7},
    "version": {"version": 2},
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("how", ["written", "another array"])
def test_changes(interface, change, how):
    arrays = [Array(64), Array(128)]
    before = settled(interface, arrays)
    if how == "written":
        arrays[0].write(**CHANGES[change])
    else:
        arrays[0] = Array(64, **CHANGES[change])
    after = interface.readings(arrays)
    assert after != before
    assert after == protocol_arrays._by_columns(
        [each.__vendor_array_interface__ for each in arrays], [(2, 0), (2, 0)]
    )
    assert settled(interface, arrays) == after
    assert settled(interface, [Array(64), Array(128)]) == before


def test_lists_that_are_written_anew(interface):
    shape = [2, 3]
    arrays = [Array(64, shape=shape)]
    before = settled(interface, arrays)
    assert before[1][1] == [(2, 3)]
    shape[:] = [3, 2]
    assert interface.readings(arrays)[1][1] == [(3, 2)]
    assert before[1][1] == [(2, 3)]


@pytest.mark.parametrize("place", [(2, 1), (1, 0)])
def test_the_same_on_another_device(interface, place):
    before = settled(interface, [Array(64), Array(128)])
    assert interface.readings([Array(64, place), Array(128)]) != before


def test_arrays_that_tell_no_device_are_on_the_current_one(interface, monkeypatch):
    arrays = [Array(64), Silent(Array(128))]
    before = settled(interface, arrays)
    assert before[1][-1] == [(2, 0), None, Device(2, 0)]
    monkeypatch.setattr(Driver, "current", 1)
    assert interface.readings(arrays)[1][-1] == [(2, 0), None, Device(2, 1)]


def test_a_device_that_cannot_be_told(interface):
    class Broken(Array):
        def __dlpack_device__(self) -> tuple[int, int]:
            raise AttributeError("no such device")

    with pytest.raises(AttributeError, match="no such device"):
        interface.readings([Broken(64)])


def test_more_and_fewer_arrays(interface):
    arrays = [Array(64), Array(128)]
    settled(interface, arrays)
    assert interface.readings(arrays[:1])[0] == [64]
    assert interface.readings([*arrays, Array(192)])[0] == [64, 128, 192]


class Equal:
    """Equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class Dictionary(dict):
    """May do anything."""


@pytest.mark.parametrize(
    "shown",
    [{"mask": Equal()}, {"mask": bytearray(3)}, {"mask": {1: 2}}, {"mask": [{"a": Equal()}]},
     {"strides": (Equal(),)}],
)  # fmt: skip
def test_values_of_other_classes_are_read_by_columns(interface, columns, shown):
    settled(interface, [Array(64, **shown)])
    assert len(columns) == 4


def test_dictionaries_of_other_classes_are_read_by_columns(interface, columns):
    array = Array(64)
    array.__vendor_array_interface__ = Dictionary(array.__vendor_array_interface__)
    settled(interface, [array])
    assert len(columns) == 4


def test_addresses_that_are_others_each_time_are_not_copied(interface, columns, monkeypatch):
    monkeypatch.setattr(protocol_arrays, "_copies", lambda shown: pytest.fail("copied"))
    for k in range(1, 10):
        assert interface.readings([Array(64 * k)])[0] == [64 * k]
    assert len(columns) == 9
