"""What offers NumPy an array is read at each call, in every framework, or refused."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from polyblocks.errors import InputError

pytestmark = pytest.mark.cpu

BASE = np.arange(1, 13, dtype=np.float32).reshape(3, 4)


class Subclass(np.ndarray):
    """An array of somebody's."""


class Offers:
    """No array, but one for NumPy to see."""

    def __init__(self) -> None:
        self.held = BASE.copy()

    def __array__(self, dtype=None, copy=None):
        return self.held if dtype is None else self.held.astype(dtype)


def _unaligned() -> np.ndarray:
    return np.frombuffer(bytearray(1 + BASE.nbytes), np.uint8)[1:].view(np.float32).reshape(3, 4)


def _readonly() -> np.ndarray:
    view = BASE.copy().view()
    view.flags.writeable = False
    return view


#: Name -> makes the argument.
READ = {
    "big-endian": lambda: BASE.astype(">f4"),
    "big-endian int16": lambda: BASE.astype(">i2"),
    "big-endian complex": lambda: BASE.astype(">c8"),
    "big-endian reversed": lambda: BASE.astype(">f8")[::-1, ::2],
    "matrix": lambda: np.asmatrix(BASE.copy()),
    "subclass": lambda: BASE.copy().view(Subclass),
    "record array": lambda: np.rec.array(BASE),
    "read-only": _readonly,
    "negative strides": lambda: BASE.copy()[::-1, ::-2],
    "transposed": lambda: BASE.copy().T,
    "broadcast": lambda: np.broadcast_to(np.float32(3), (3, 4)),
    "overlapping": lambda: np.lib.stride_tricks.sliding_window_view(np.arange(9.0, dtype="f4"), 3),
    "unaligned": _unaligned,
    "no dimensions": lambda: np.array(3.0, np.float32),
    "float16 scalar": lambda: np.float16(3),
    "offers an array": Offers,
}
REFUSED = {
    "masked": (lambda: np.ma.masked_array(BASE, BASE > 5), "mask"),
    "structured": (lambda: np.zeros(3, [("a", "f4"), ("b", "i4")]), "void64"),
    "longdouble": (lambda: np.ones(3, np.longdouble), "float128"),
    "longdouble scalar": (lambda: np.longdouble(3), "float128"),
    "objects": (lambda: np.array([1.0, 2.0], object), "object"),
    "strings": (lambda: np.array(["a"]), "string"),
    "dates": (lambda: np.array(["2020"], "M8[D]"), "datetime64"),
}


def _thrice(x):
    return x * 3 + 1


def _compiled(framework: str):
    importlib.import_module({"tf": "tensorflow"}.get(framework, framework))
    module = importlib.import_module(f"polyblocks.{framework}_polyblocks_compiler")
    return getattr(module, f"polyblocks_jit_{framework}")(_thrice)


@pytest.fixture(scope="module", params=["tf", "jax", "torch"])
def function(request):
    pytest.importorskip({"tf": "tensorflow"}.get(request.param, request.param))
    return request.param, _compiled(request.param)


def _held(value):
    return value.held if isinstance(value, Offers) else value


def _agree(result, value) -> None:
    given = np.asarray(_held(value))
    expected = _thrice(given.astype(given.dtype.newbyteorder("=")))
    np.testing.assert_array_equal(np.asarray(result), np.asarray(expected))


@pytest.mark.each_choice
@pytest.mark.parametrize("kind", READ)
def test_array_is_read_at_each_call(function, kind):
    framework, compiled = function
    value = READ[kind]()
    # The other two refuse some kinds in words of their own, Dynamo with an AssertionError.
    raises = () if framework == "tf" else (TypeError, ValueError, AssertionError, InputError)
    for _ in range(3):
        try:
            result = compiled(value)
        except raises:
            return
        _agree(result, value)
        written = _held(value)
        if isinstance(written, np.ndarray) and written.flags.writeable:
            written[...] = written + 5


def test_mapped_file_is_read_at_each_call(function, tmp_path):
    _, compiled = function
    value = np.memmap(tmp_path / "numbers", np.float32, "w+", shape=(3, 4))
    for start in (0, 7, -3):
        value[:] = BASE + start
        _agree(compiled(value), value)


@pytest.mark.each_choice
@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_array_of_numbers_is_refused(function, kind):
    framework, compiled = function
    make, word = REFUSED[kind]
    if framework == "tf":
        # Strings are TensorFlow's, which does not multiply them.
        with pytest.raises(TypeError if kind == "strings" else InputError, match=word):
            compiled(make())
        return
    try:
        result = compiled(make())
    except Exception:
        return
    # PyTorch leaves it to Python, and NumPy computes it.
    np.testing.assert_array_equal(result, _thrice(make()))


def test_mask_is_not_dropped_by_a_signature():
    tf = pytest.importorskip("tensorflow")
    from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf

    spec = [tf.TensorSpec([3, 4], tf.float32)]
    with pytest.raises(InputError, match="mask"):
        polyblocks_jit_tf(input_signature=spec)(_thrice)(np.ma.masked_array(BASE, BASE > 5))
