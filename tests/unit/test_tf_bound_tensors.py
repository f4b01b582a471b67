"""Tensors that are bound to a loaded program are values: they are looked at once, and held."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from c_programs import Both, weighted  # noqa: E402

from polyblocks.errors import InputError  # noqa: E402
from polyblocks.runtime.bound_weights import bind_weights  # noqa: E402
from polyblocks_tf.launch.arrays import TfArrays  # noqa: E402
from polyblocks_tf.specs import TF_DTYPES  # noqa: E402

pytestmark = pytest.mark.cpu


class Counting(TfArrays):
    """Counts the arrays that Python looks at."""

    described = 0
    located = 0

    def describe(self, array: Any) -> Any:
        self.described += 1
        return super().describe(array)

    def pointer(self, array: Any) -> int:
        type(self).located += 1
        return super().pointer(array)


def product(x: Any, w: Any, v: Any, out: Any, updated: Any = None) -> None:
    out[...] = x * w + v


def bound(weights: list[Any]) -> Both:
    program = weighted(product)
    held = bind_weights(program.manifest, {}, weights, lambda array: Counting())
    return Both(program, Counting(), [tf.ones((2, 3))], weights=held)


def full(value: float) -> Any:
    return tf.fill((2, 3), float(value))


def test_calls_do_not_look_at_them():
    weights = [full(2), full(3)]
    made = bound(weights)
    assert made.is_native
    assert made.is_fast(full(5))
    Counting.located = 0
    assert (made.fast(full(5)).numpy() == 13).all()
    assert Counting.located == 0
    with pytest.raises(InputError, match=r"argument 1 \('x'\) of f: expected float32\[2, 3\]"):
        made.fast(tf.ones(3))


@pytest.mark.parametrize("dtype", TF_DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_memory_is_that_of_the_tensor(dtype, shape):
    interface = TfArrays()
    tensor = tf.cast(tf.fill(shape, 1), TF_DTYPES[dtype])
    held = interface.memory(tensor)
    if not interface.is_constant(tensor):
        assert (dtype, shape, held is tensor) == ("bfloat16", (), True)
        return
    assert isinstance(held, np.ndarray)
    assert interface.pointer(held) == interface.pointer(tensor)
    assert interface.describe(held) == interface.describe(tensor)
    del tensor
    gc.collect()
    junk = [tf.cast(tf.fill(shape, 0), TF_DTYPES[dtype]) for _ in range(50)]
    assert np.all(np.asarray(held) == 1)
    del junk


@pytest.mark.parametrize("how", ["variables", "tensors"])
def test_their_values_stay(how):
    """A variable that is assigned gets other memory: what was read is not its own any more."""
    variables = [tf.Variable(full(2)), tf.Variable(full(3))]
    weights = [v.read_value() if how == "variables" else tf.identity(v) for v in variables]
    made = bound(weights)
    for turn in range(6):
        assert (made.fast(full(5)).numpy() == 13).all(), turn
        for each in variables:
            each.assign_add(full(turn))
            each.assign(full(turn))
    del weights, variables
    gc.collect()
    junk = [full(-1) for _ in range(100)]
    assert (made.fast(full(5)).numpy() == 13).all()
    del junk


def test_beside_arrays_that_may_change_all_are_looked_at():
    w = np.full((2, 3), 2, np.float32)
    made = bound([w, full(3)])
    for turn in range(6):
        w += 1
        assert (made.fast(full(5)).numpy() == 5 * (3 + turn) + 3).all()


def test_updated_weights_are_no_constants():
    rows = weighted(product, updated=True)
    with pytest.raises(InputError, match="weight 'w' of f: it is updated in place, but cannot be"):
        bind_weights(rows.manifest, {}, [full(2), full(3)], lambda array: TfArrays())
