"""``tf.math.bincount`` of a known size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from polyblocks.errors import ExecutionError
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf

ROW = np.array([0, 1, 1, 5, 9, 3], np.int32)
ROWS = np.array([[0, 1, 1, 5], [3, 3, 3, 3]], np.int64)
CASES: dict[str, tuple[np.ndarray, dict[str, Any]]] = {
    "a row": (ROW, {"minlength": 6}),
    "weights": (ROW, {"minlength": 6, "weights": np.arange(6, dtype=np.float32)}),
    "rows": (ROWS, {"minlength": 4, "axis": -1}),
    "truth values": (ROWS, {"minlength": 4, "axis": -1, "binary_output": True}),
    "floats": (ROWS, {"minlength": 4, "dtype": tf.float32}),
    "a smaller limit": (ROW, {"minlength": 6, "maxlength": 3}),
}


@pytest.mark.parametrize("name", CASES)
def test_counts(name: str) -> None:
    values, options = CASES[name]
    options = {"maxlength": options["minlength"], **options}

    def counted(x: tf.Tensor) -> tf.Tensor:
        return tf.math.bincount(x, **options)

    compiled = polyblocks_jit_tf(counted, compile_options={"target": "cpu", "strict_target": True})
    found, expected = compiled(tf.constant(values)), counted(tf.constant(values))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_negative_numbers_are_not_counted() -> None:
    compiled = polyblocks_jit_tf(lambda x: tf.math.bincount(x, minlength=4, maxlength=4))
    with pytest.raises(ExecutionError, match="Input arr must be non-negative"):
        compiled(tf.constant([1, -1]))


def test_unknown_sizes_are_left_to_the_framework() -> None:
    compiled = polyblocks_jit_tf(lambda x: tf.math.bincount(x, maxlength=4) + 1)
    np.testing.assert_array_equal(compiled(tf.constant([1, 2])), [1, 2, 2])
    assert "DenseBincount" in {row.op for row in compiled.polyblocks_report().fallbacks}
