"""Weights that are bound to a loaded program: by name, checked once, read where they are."""

from __future__ import annotations

import re
import struct

import numpy as np
import pytest
from fake_driver import KIND, DeviceArray, FakeArrays, FakeDriver, artifact, launch, view
from manifest_rows import row

from polyblocks.errors import InputError
from polyblocks.runtime.arrays import HOST, Device
from polyblocks.runtime.bound_weights import bind_weights
from polyblocks.runtime.device.executable import DeviceExecutable
from polyblocks.runtime.executable import Executable
from polyblocks.runtime.launch import bind
from polyblocks.runtime.numpy_arrays import NumpyArrays
from polyblocks.runtime.slots import WEIGHT_NAMES

NUMPY = NumpyArrays()
ROWS = [row("input", "x"), row("input", "w"), row("input", "v"), row("output", "o")]
NAMES = [["layer.w", "head.w"], ["layer.v"]]


class Program(Executable):
    """``o = x * w + v``, and counts how often it runs."""

    def __init__(self, rows=ROWS, names=NAMES) -> None:
        self.manifest = {"name": "f", "arguments": rows, WEIGHT_NAMES: names}
        self.calls = 0

    def entry(self, packed: bytes, num_threads: int) -> int:
        self.calls += 1
        x, w, v, o = (view(address, 6) for address in struct.unpack("4Q", packed))
        o[:] = x * w + v
        return 0


def full(value: float, shape=(2, 3), dtype=np.float32) -> np.ndarray:
    return np.full(shape, value, dtype)


def bound(weights, program: Program | None = None):
    program = program or Program()
    held = bind_weights(program.manifest, {}, weights, lambda array: NUMPY)
    return bind(program, NUMPY, weights=held)


def given() -> dict[str, np.ndarray]:
    return {"layer.w": full(2), "layer.v": full(3), "unused": full(4)}


def test_by_name_and_in_order():
    assert (bound(given())(full(5)) == 13).all()
    assert (bound([full(2), full(3)])(full(5)) == 13).all()
    other = {"head.w": full(2), "layer.v": full(3)}
    assert (bound(other)(full(5)) == 13).all()


def test_values_that_change_in_place_are_seen():
    weights = given()
    call = bound(weights)
    weights["layer.v"] += 1
    assert (call(full(5)) == 14).all()


def test_the_other_arrays_are_still_checked():
    call = bound(given())
    with pytest.raises(InputError, match=re.escape("f(x) takes 1 array, got 3")):
        call(full(5), full(2), full(3))
    with pytest.raises(InputError, match=r"argument 1 \('x'\) of f: expected float32\[2, 3\]"):
        call(full(5, (3, 2)))


@pytest.mark.parametrize(
    "weights, said",
    [
        ({"layer.v": full(3)}, r"needs weights that are not there: 'layer.w' \(there is 'layer.v'"),
        ({}, r"'layer.w', 'layer.v'; pass all of them, by these names"),
        ([full(2)], "f has 2 weights, got 1; expected them in this order: 'w', 'v'"),
        (7, "weights must be a mapping of names to arrays, or a list of arrays, not int"),
        ("layer", "not str"),
        ({**given(), "layer.v": full(3, (2, 2))}, r"weight 'v' of f: expected float32\[2, 3\]"),
        ({**given(), "layer.v": full(3, dtype="f8")}, "weight 'v' of f: .*convert it"),
        ({**given(), "layer.v": 3.0}, r"weight 'v' of f: expected an array .*, got float"),
        ({**given(), "head.w": full(9)}, "'layer.w' and 'head.w' are one weight of f, and here"),
        ({**given(), "head.w": full(2, (3, 2))}, "'layer.w' and 'head.w' are one weight of f"),
        ({**given(), "head.w": 2.0}, "'layer.w' and 'head.w' are one weight of f"),
    ],
)
def test_what_does_not_fit(weights, said):
    with pytest.raises(InputError, match=said):
        bound(weights)


def test_shared_weights_may_be_two_arrays_of_one_content():
    assert (bound({**given(), "head.w": full(2)})(full(5)) == 13).all()


def test_more_names_than_an_error_tells():
    rows = [row("input", "x"), *(row("input", f"w{k}") for k in range(8)), row("output", "o")]
    with pytest.raises(InputError, match="'w3', 'w4' and 3 more; pass all"):
        bound({}, Program(rows, [[f"w{k}"] for k in range(8)]))


def test_weights_without_a_name_come_in_order():
    program = Program(names=[["layer.w"], []])
    with pytest.raises(InputError, match="weights that stand nowhere by a name: 'v'; pass a list"):
        bound(given(), program)
    assert (bound([full(2), full(3)], program)(full(5)) == 13).all()


def test_programs_that_take_none():
    program = Program(names=[])
    with pytest.raises(InputError, match=r"f takes no weights: it has none, .*weights='arguments'"):
        bound(given(), program)
    stored = [ROWS[0], {**ROWS[1], "stored": "w.bin"}, ROWS[2], ROWS[3]]
    with pytest.raises(InputError, match="its weights are stored in the file; compile it with"):
        bound(given(), Program(stored, []))


def test_an_updated_weight():
    rows = [row("input", "x"), row("input", "w"), row("output", "o", updates=1)]
    program = Program(rows, [["w"]])

    def entry(packed: bytes, num_threads: int) -> int:
        x, w, o = struct.unpack("3Q", packed)
        assert w == o
        view(w, 6)[:] += view(x, 6)
        return 0

    program.entry = entry
    program.manifest["results"] = [1]
    weight = full(2)
    call = bound({"w": weight}, program)
    assert call(full(5)) is weight
    assert (weight == 7).all()
    with pytest.raises(InputError, match="'w' is updated in place and shares memory with 'x'"):
        call(weight)
    weight.flags.writeable = False
    with pytest.raises(InputError, match="weight 'w' of f: it is updated in place, but cannot be"):
        call(full(5))


# --- on a device ---------------------------------------------------------------------------------

ONE, OTHER = Device(KIND, 0), Device(KIND, 1)


def scale(x: int, w: int, v: int, o: int) -> None:
    view(o, 6)[:] = view(x, 6) * view(w, 6) + view(v, 6)


def on_device(weights):
    source = artifact(ROWS, [launch("scale", 0, 1, 2, 3)])
    source.manifest[WEIGHT_NAMES] = NAMES
    driver = FakeDriver({"scale": scale}, ("v1", "v1"), eager=True)
    executable = DeviceExecutable(source, lambda: driver)
    held = bind_weights(executable.manifest, source.blobs, weights, lambda array: FakeArrays())
    return driver, bind(executable, FakeArrays(), blobs=source.blobs, weights=held)


def on(device: Device, value: float) -> DeviceArray:
    return DeviceArray(full(value), device)


@pytest.mark.parametrize("place", [ONE, OTHER, HOST])
def test_weights_are_where_the_other_arrays_are(place):
    driver, call = on_device({"layer.w": on(place, 2), "layer.v": on(place, 3)})
    result = call(on(place, 5))
    assert result.place == place
    assert (result.values == 13).all()
    assert driver.counts["copy_in"] == (3 if place == HOST else 0)


@pytest.mark.parametrize("places", [(ONE, HOST), (HOST, ONE), (OTHER, ONE)])
def test_weights_in_another_place(places):
    _, call = on_device({"layer.w": on(places[0], 2), "layer.v": on(places[0], 3)})
    with pytest.raises(InputError, match="the arrays are in several places: 'x' on .*'weights' on"):
        call(on(places[1], 5))


def test_weights_in_several_places():
    with pytest.raises(InputError, match="weight 'v' of f: expected an array on device"):
        on_device({"layer.w": on(ONE, 2), "layer.v": on(HOST, 3)})


# --- where they are ------------------------------------------------------------------------------


@pytest.mark.parametrize("package", ["numpy", "torch"])
def test_machine_code_looks_where_weights_are(package):
    """After some calls; what has moved is bound anew, and looked at by machine code again."""
    if package == "torch":
        torch = pytest.importorskip("torch")
        from polyblocks_torch.launch.arrays import TorchArrays

        interface = TorchArrays()
        arrays = [torch.full((2, 3), 2.0), torch.nn.Parameter(torch.full((2, 3), 3.0))]
    else:
        interface = NUMPY
        arrays = [full(2), full(3)]
    asked = []

    class Asked(type(interface)):
        def pointer(self, array):
            asked.append(array)
            return super().pointer(array)

    program = Program()
    held = bind_weights(program.manifest, {}, arrays, lambda array: Asked())
    for _ in range(4):
        held.addresses()
    asked.clear()
    assert held.addresses() == [interface.pointer(each) for each in arrays]
    assert not asked
    if package == "torch":
        arrays[1].data = torch.full((2, 3), 4.0)
        assert held.addresses()[1] == arrays[1].data_ptr()
        assert asked
        asked.clear()
        held.addresses()
        assert not asked
        arrays[1].data = torch.full((3, 2), 4.0)
        with pytest.raises(InputError, match=r"weight 'v' of f: expected float32\[2, 3\]"):
            held.addresses()
