"""The generic launch path, with programs that are Python functions on raw addresses."""

from __future__ import annotations

import ctypes
import struct
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from manifest_rows import row

from polyblocks.errors import ExecutionError, InputError
from polyblocks.program import DTYPES, ArraySpec
from polyblocks.runtime import buffers, threads
from polyblocks.runtime.arrays import HOST, ArrayInterface, Device
from polyblocks.runtime.executable import Executable
from polyblocks.runtime.launch import bind
from polyblocks.runtime.numpy_arrays import NumpyArrays

NUMPY = NumpyArrays()


class Fake(Executable):
    """A program written in Python; ``body`` gets one flat array per argument."""

    def __init__(self, arguments: list[dict], body=lambda *a: 0, checks=()) -> None:
        self.manifest = {"name": "f", "arguments": arguments, "checks": list(checks)}
        self.body = body
        self.thread_counts: list[int] = []

    def entry(self, packed: bytes, num_threads: int) -> int:
        self.thread_counts.append(num_threads)
        rows = self.manifest["arguments"]
        arrays = []
        for argument, address in zip(rows, struct.unpack(f"{len(rows)}Q", packed), strict=True):
            if argument["role"] == "status":
                argument = row("status", "status", (1,), "int32")
            elif argument["role"] == "workspace":
                argument = row("workspace", "w", argument["shape"], "int8")
            spec = ArraySpec(
                tuple(argument["shape"]), argument["dtype"], tuple(argument["strides"])
            )
            memory = (ctypes.c_char * spec.nbytes).from_address(address)
            arrays.append(np.frombuffer(memory, NUMPY.empty(spec, HOST).dtype))
        return self.body(*arrays) or 0

    def close(self) -> None:
        pass


def add(x, y, out) -> None:
    out[:] = x + y


def adder() -> Fake:
    return Fake([row("input", "x"), row("input", "y"), row("output", "out")], add)


def ones(shape=(2, 3), dtype=np.float32) -> np.ndarray:
    return np.ones(shape, dtype)


def test_fake_is_an_executable():
    assert isinstance(adder(), Executable)


def test_runtime_imports_no_compiler_and_no_numpy_before_use():
    import subprocess

    code = (
        "import sys; from polyblocks.runtime import launch, buffers, threads, executable, arrays\n"
        "print(sorted({m.split('.')[0] for m in sys.modules}"
        " & {'torch', 'torch_mlir', 'llvmlite', 'numpy', 'pluggy', 'stevedore'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# --- calls ---------------------------------------------------------------------------------------


def test_one_result():
    call = bind(adder(), NUMPY)
    assert call.__name__ == "f"
    out = call(ones(), 2 * ones())
    assert out.shape == (2, 3)
    assert (out == 3).all()


def test_several_results_in_order():
    def both(x, a, b) -> None:
        a[:], b[:] = x + 1, x + 2

    program = Fake([row("input", "x"), row("output", "a"), row("output", "b")], both)
    a, b = bind(program, NUMPY)(ones())
    assert (a == 2).all()
    assert (b == 3).all()


def test_in_place_update_of_an_argument():
    def double(x) -> None:
        x[:] *= 2

    x = ones()
    assert bind(Fake([row("input", "x", updates=0)], double), NUMPY)(x) is None
    assert (x == 2).all()


def test_output_that_is_an_argument():
    def double(y, x, out) -> None:
        out[:] = x * 2

    program = Fake([row("input", "y"), row("input", "x"), row("output", "o", updates=1)], double)
    x = ones()
    assert bind(program, NUMPY)(ones(), x) is None
    assert (x == 2).all()


def test_workspace_and_status():
    def use(x, out, workspace, status) -> int:
        assert workspace.nbytes == 1000
        workspace[:] = 1
        status[0] = 0
        out[:] = x
        return 0

    workspace = {"role": "workspace", "name": "workspace", "shape": [1000]}
    program = Fake([row("input", "x"), row("output", "o"), workspace, {"role": "status"}], use)
    call = bind(program, NUMPY)
    for _ in range(3):
        call(ones())
    assert buffers.workspaces.idle_bytes > 0


def test_strided_result():
    def fill(x, out) -> None:
        out[:] = np.arange(6)

    program = Fake([row("input", "x"), row("output", "o", strides=(1, 2))], fill)
    out = bind(program, NUMPY)(ones())
    assert out.strides == (4, 8)
    assert out.tolist() == [[0, 2, 4], [1, 3, 5]]


def test_large_result_comes_from_the_pool():
    program = Fake([row("input", "x"), row("output", "o", (1 << 19,))])
    call = bind(program, NUMPY)
    out = call(ones())
    address = out.ctypes.data
    del out
    assert call(ones()).ctypes.data == address


def test_scalars_and_empty_arrays():
    program = Fake([row("input", "x", ()), row("input", "e", (0, 4)), row("output", "o", (0,))])
    out = bind(program, NUMPY)(np.array(1, np.float32), np.empty((0, 4), np.float32))
    assert out.shape == (0,)


def test_threads_and_iterations(monkeypatch):
    program = adder()
    bind(program, NUMPY, num_threads=3)(ones(), ones())
    bind(program, NUMPY, num_iters=4, num_threads=2)(ones(), ones())
    monkeypatch.setattr(threads, "_default", lambda: 5)
    bind(program, NUMPY)(ones(), ones())
    assert program.thread_counts == [3, 2, 2, 2, 2, 5]


@pytest.mark.parametrize(
    "code, message", [(2, "f: index out of range"), (7, "f: the program returned status 7")]
)
def test_failed_check(code, message):
    program = Fake([row("input", "x")], lambda x: code, ["division by zero", "index out of range"])
    with pytest.raises(ExecutionError, match=f"^{message}$"):
        bind(program, NUMPY)(ones())


# --- arguments that do not fit -------------------------------------------------------------------


@pytest.mark.parametrize(
    "argument, message",
    [
        ([1.0, 2.0], r"expected an array float32\[2, 3\], got list"),
        (ones(dtype=np.float64), r"expected float32\[2, 3\], got float64\[2, 3\]; convert it"),
        (ones((3, 2)), r"expected float32\[2, 3\], got float32\[3, 2\]; a program takes the shape"),
        (ones((3, 2)).T, r"expected contiguous elements, got strides \[1, 2\]; copy it"),
        (ones((2, 3))[:, ::-1], r"run backwards; use np.ascontiguousarray"),
        (np.ones((2, 3), "U1"), r"unsupported dtype str\d+: expected one of float64, float32"),
        (np.ones((2, 3), ">f4"), r"the array's bytes are swapped \(>f4\); use .astype\(np.float32"),
        (
            np.frombuffer(bytes(25), np.uint8)[1:].view(np.float32).reshape(2, 3),
            r"not aligned to its elements; use .copy\(\)",
        ),
    ],
)
def test_wrong_argument(argument, message):
    call = bind(adder(), NUMPY)
    with pytest.raises(InputError, match=rf"^argument 2 \('y'\) of f: .*{message}"):
        call(ones(), argument)


def test_strides_that_split_elements():
    array = np.ndarray((2, 3), np.float32, buffer=bytes(64), strides=(18, 4))
    with pytest.raises(InputError, match=r"strides of \(18, 4\) bytes are not multiples"):
        NUMPY.describe(array)


def test_expected_strides_are_named():
    program = Fake([row("input", "x", strides=(1, 2))])
    with pytest.raises(InputError, match=r"expected strides \[1, 2\] elements, got strides \[3, 1"):
        bind(program, NUMPY)(ones())
    bind(program, NUMPY)(ones((3, 2)).T)


def test_strides_of_unit_extents_do_not_matter():
    call = bind(Fake([row("input", "x", (1, 3))]), NUMPY)
    call(np.ones((4, 3), np.float32)[::4])


def test_wrong_number_of_arguments():
    with pytest.raises(InputError, match=r"^f\(x, y\) takes 2 arrays, got 1$"):
        bind(adder(), NUMPY)(ones())
    with pytest.raises(InputError, match=r"^f\(x\) takes 1 array, got 0$"):
        bind(Fake([row("input", "x")]), NUMPY)()


def test_read_only_argument_that_is_updated():
    x = ones()
    x.flags.writeable = False
    with pytest.raises(InputError, match=r"updated in place, but cannot be written; pass a copy"):
        bind(Fake([row("input", "x", updates=0)]), NUMPY)(x)


def test_overlap_with_an_argument_that_is_updated():
    program = Fake([row("input", "x"), row("input", "y", updates=1)])
    memory = ones((3, 3))
    with pytest.raises(InputError, match=r"^f: 'y' is updated in place and shares memory with 'x'"):
        bind(program, NUMPY)(memory[:2], memory[1:])
    bind(program, NUMPY)(ones(), ones())
    bind(adder(), NUMPY)(memory[:2], memory[1:])  # reading twice is fine


class Elsewhere(NumpyArrays):
    def device(self, array) -> Device:
        return Device(2, 1)


class Misaligned(NumpyArrays):
    def pointer(self, array) -> int:
        return super().pointer(array) + 2


def test_array_on_another_device():
    with pytest.raises(InputError, match=r"on the host, got one on device \(2, 1\); copy it"):
        bind(adder(), Elsewhere())(ones(), ones())


def test_misaligned_pointer_of_a_framework_without_that_check():
    with pytest.raises(InputError, match=r"its address is not aligned to its elements; copy it"):
        bind(adder(), Misaligned())(ones(), ones())


# --- the interface of NumPy ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bfloat16"])
def test_numpy_round_trip(dtype):
    for spec in (
        ArraySpec.contiguous((2, 3), dtype),
        ArraySpec((2, 3), dtype, (1, 2)),
        ArraySpec.contiguous((), dtype),
        ArraySpec.contiguous((0, 3), dtype),
    ):
        array = NUMPY.empty(spec, HOST)
        assert NUMPY.describe(array).dtype == dtype
        assert NUMPY.describe(array).shape == spec.shape
        assert NUMPY.is_array(array)
        assert NUMPY.is_writable(array)
        assert NUMPY.device(array) == HOST
        assert NUMPY.transfer(array, HOST) is array
        assert NUMPY.stream(HOST) == 0
        if spec.numel:
            assert NUMPY.describe(array) == spec
            assert NUMPY.pointer(array) % 16 == 0


def test_bfloat16_needs_a_package(run_python):
    # In a process of its own: once loaded by anybody, the package has taught NumPy the type.
    code = """
        import sys
        sys.modules["ml_dtypes"] = None
        from polyblocks.program import ArraySpec
        from polyblocks.runtime.arrays import HOST
        from polyblocks.runtime.numpy_arrays import NumpyArrays
        NumpyArrays().empty(ArraySpec.contiguous((2,), "bfloat16"), HOST)
    """
    done = run_python(code)
    assert "NumPy by itself has no bfloat16; pip install ml_dtypes" in done.stderr


def test_bfloat16_with_the_package(monkeypatch):
    # A stand-in: the package is not needed for anything else.
    monkeypatch.setitem(sys.modules, "ml_dtypes", SimpleNamespace(bfloat16=np.uint16))
    assert NUMPY.empty(ArraySpec.contiguous((2,), "bfloat16"), HOST).dtype.itemsize == 2


def test_numpy_arrays_are_on_the_host():
    for call in (
        lambda: NUMPY.transfer(ones(), Device(2, 0)),
        lambda: NUMPY.empty(ArraySpec.contiguous((1,), "int8"), Device(2, 0)),
    ):
        with pytest.raises(InputError, match=r"on the host, not on device \(2, 0\)"):
            call()


def test_interface_is_abstract():
    with pytest.raises(TypeError, match=r"Can't instantiate abstract class ArrayInterface"):
        ArrayInterface()
