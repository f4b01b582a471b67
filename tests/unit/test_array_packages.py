"""Arrays of packages that no frontend is for: what they are read by, and what results are."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from fake_driver import KIND, FakeDriver, artifact, launch, view
from manifest_rows import row

import polyblocks
from polyblocks.api import compile_text
from polyblocks.artifact import Artifact
from polyblocks.errors import InputError
from polyblocks.options import CompileOptions
from polyblocks.program import ArraySpec
from polyblocks.runtime.arrays import HOST
from polyblocks.runtime.device.executable import DeviceExecutable
from polyblocks.runtime.foreign import foreign_arrays
from polyblocks.runtime.foreign.array_packages import ArrayPackage
from polyblocks.runtime.foreign.protocol_arrays import ProtocolArrays
from polyblocks.runtime.launch import bind

pytestmark = pytest.mark.usefixtures("compiled_in_this_process")

N = 6
DEVICE = artifact([row("input", "x"), row("output", "o")], [launch("twice", 0, 1)])
MODULE = """
func.func @main(%x: tensor<3x5xf32>) -> tensor<3x5xDTYPE> {
  %e = tensor.empty() : tensor<3x5xDTYPE>
  %r = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<3x5xf32>) outs(%e : tensor<3x5xDTYPE>) {
    ^bb0(%a: f32, %o: DTYPE):
      %m = arith.addf %a, %a : f32
      RESULT
  } -> tensor<3x5xDTYPE>
  return %r : tensor<3x5xDTYPE>
}
"""
BODIES = {
    "f32": "linalg.yield %m : f32",
    "bf16": "%c = arith.truncf %m : f32 to bf16\n linalg.yield %c : bf16",
    "f64": "%c = arith.extf %m : f32 to f64\n linalg.yield %c : f64",
}


@pytest.fixture(scope="module")
def program():
    """Programs that double a float32[3, 5]; the result's dtype by MLIR's name."""
    pytest.importorskip("polyblocks_cpu")
    made: dict[str, Artifact] = {}

    def compiled(dtype: str) -> Artifact:
        if dtype not in made:
            text = MODULE.replace("DTYPE", dtype).replace("RESULT", BODIES[dtype])
            made[dtype] = compile_text(text, CompileOptions())
        return made[dtype]

    return compiled


@pytest.fixture(autouse=True)
def no_frontends(monkeypatch):
    """As where no frontend is installed."""
    monkeypatch.setattr(
        foreign_arrays, "get_registry", lambda: SimpleNamespace(names=lambda group: [])
    )


class Array:
    """An array on a device that is made up, or on the host."""

    def __init__(self, values: np.ndarray, kind: int = KIND) -> None:
        self.values = values
        self.kind = kind

    def __dlpack_device__(self):
        return self.kind, 0

    def __dlpack__(self, stream=None):
        return self.values.__dlpack__()


class Standard(Array):
    """As the array API standard asks, and JAX does."""

    def __array_namespace__(self):
        return SimpleNamespace(from_dlpack=lambda memory: adopted(Standard, memory))


class AtTheTop(Array):
    """As of CuPy and PyTorch, whose packages have ``from_dlpack``."""


class Derived(AtTheTop):
    """A class of the user's."""


def adopted(kind, memory):
    array = kind(view(memory.address, memory.spec.numel).reshape(memory.spec.shape))
    array.kind, array.memory = memory.device.kind, memory
    return array


@pytest.fixture
def packages(monkeypatch):
    """Where the classes above are said to come from."""
    package = ModuleType("atthetop")
    package.from_dlpack = lambda memory: adopted(AtTheTop, memory)
    monkeypatch.setitem(sys.modules, "atthetop", package)
    monkeypatch.setattr(AtTheTop, "__module__", "atthetop.arrays")
    monkeypatch.setattr(Derived, "__module__", "users")
    # What pytest calls this module has nothing of the kind.
    monkeypatch.setattr(Array, "__module__", "neither.arrays")


def on_device(array):
    driver = FakeDriver({"twice": lambda x, out: view(out, N).__setitem__(..., 2 * view(x, N))})
    executable = DeviceExecutable(DEVICE, lambda: driver)
    return foreign_arrays.by_framework(lambda arrays: bind(executable, arrays), executable)(array)


@pytest.mark.parametrize(
    "kind, result", [(Standard, Standard), (AtTheTop, AtTheTop), (Derived, AtTheTop)]
)
def test_results_on_a_device_are_the_packages(packages, kind, result):
    made = on_device(kind(np.full((2, 3), 4, np.float32)))
    assert type(made) is result
    assert (made.values == 8).all()


@pytest.mark.parametrize(
    "kind, result", [(Standard, Standard), (Derived, AtTheTop), (Array, np.ndarray)]
)
def test_results_on_the_host_are_the_packages_if_it_takes_memory(program, packages, kind, result):
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    made = polyblocks.load(program("f32"))(kind(x, HOST.kind))
    assert type(made) is result
    np.testing.assert_array_equal(getattr(made, "values", made), x + x)


def test_a_package_that_takes_no_memory(packages):
    with pytest.raises(
        InputError,
        match="package 'neither' takes no memory through DLPack: neither the namespace of its "
        "arrays nor itself has 'from_dlpack'; install the PolyBlocks frontend for it, or",
    ):
        on_device(Array(np.ones((2, 3), np.float32)))


def test_a_package_that_copies(packages):
    def copied(memory):
        return AtTheTop(np.empty(memory.spec.shape, np.float32), HOST.kind)

    arrays = ProtocolArrays(ArrayPackage("copying", copied))
    with pytest.raises(
        InputError, match=r"package 'copying' copies memory of strides \[1, 2\] instead"
    ):
        arrays.empty(ArraySpec((2, 3), "float32", (1, 2)), HOST)


class Copying(AtTheTop):
    """What it gives is gone with the capsule."""

    def __dlpack__(self, stream=None):
        return self.values.copy().__dlpack__()


def test_arrays_that_give_copies(packages):
    with pytest.raises(
        InputError,
        match=r"argument 1 .* of f: Copying gives a copy of its elements through DLPack, expected "
        "its own memory; pass an array that has its elements in this layout, as NumPy's",
    ):
        on_device(Copying(np.ones((2, 3), np.float32)))
    arrays = ProtocolArrays(ArrayPackage("copying", None))
    with pytest.raises(InputError, match="Copying gives a copy"):
        arrays.pointer(Copying(np.ones(1), HOST.kind))
    x = np.ones(1)
    assert arrays.pointer(AtTheTop(x, HOST.kind)) == x.ctypes.data
    arrays.pointer(Copying(np.ones(0), HOST.kind))  # nothing is read


@pytest.mark.parametrize("dtype, name", [("f32", "float32"), ("bf16", "bfloat16")])
def test_arrays_of_jax_without_its_frontend(program, dtype, name):
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(15.0).reshape(3, 5)
    double = polyblocks.load(program(dtype))
    made = double(x)
    assert isinstance(made, jax.Array)
    assert made.dtype == name
    np.testing.assert_array_equal(made.astype("float32"), x + x)
    with pytest.raises(InputError, match=r"argument 1 \('arg0'\) of main: expected float32\[3, 5"):
        double(x.astype("int32"))


def test_what_jax_does_not_make_without_its_frontend(program):
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(15.0, dtype="float32").reshape(3, 5)
    double = polyblocks.load(program("f64"))
    with pytest.raises(
        InputError, match=r"'jaxlib' makes float32\[3, 5\] of a result float64\[3, 5\]; allow that"
    ):
        double(x)
    with jax.enable_x64(True):
        made = double(x)
    assert made.dtype == "float64"
    np.testing.assert_array_equal(made, x + x)


def test_arrays_of_pytorch_without_its_frontend(program):
    torch = pytest.importorskip("torch")

    class Mine(torch.Tensor):
        """Of a user's module."""

    x = torch.arange(15.0).reshape(3, 5)
    double = polyblocks.load(program("bf16"))
    for given in (x, x.as_subclass(Mine)):
        made = double(given)
        assert type(made) is torch.Tensor
        torch.testing.assert_close(made, (x + x).bfloat16(), rtol=0, atol=0)
