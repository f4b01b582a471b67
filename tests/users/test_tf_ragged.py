"""TensorFlow: ragged tensors as arguments and results, and to_tensor."""

from __future__ import annotations

import pytest

tf = pytest.importorskip("tensorflow")

from tf_compare import assert_same, floats  # noqa: E402

from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf  # noqa: E402

strict = polyblocks_jit_tf(compile_options={"strict_target": True})

RAGGED = tf.ragged.constant([[1.0, 2.0], [], [3.0, 4.0, 5.0]])
NESTED = tf.ragged.constant([[[1.0, 2.0], []], [], [[3.0], [4.0, 5.0], [6.0]]])
VALUES = floats(5)


def same(function, *arguments):
    compiled = strict(function)
    ours, theirs = compiled(*arguments), function(*arguments)
    assert type(ours) is type(theirs)
    parts = [tf.nest.flatten(result, expand_composites=True) for result in (ours, theirs)]
    assert_same(*parts)
    assert compiled.polyblocks_report().whole


@pytest.mark.parametrize(
    "function",
    [
        lambda r: r.to_tensor(shape=[None, 2]) * 2,
        lambda r: (r.to_tensor(shape=[5, 4], default_value=7.0), r.row_lengths()),
        lambda r: r * 2 + 1,
    ],
)
def test_a_ragged_argument(function):
    same(function, RAGGED)


@pytest.mark.slow
def test_a_nested_ragged_argument():
    same(lambda r: r.to_tensor(shape=[4, 2, 3]), NESTED)


@pytest.mark.slow
def test_ragged_arguments_of_other_lengths():
    compiled = strict(lambda r: r.to_tensor(shape=[None, 3], default_value=-1.0))
    for rows in ([[1.0]], [[], [2.0, 3.0, 4.0, 5.0]], [[], []]):
        given = tf.ragged.constant(rows, dtype=tf.float32)
        expected = given.to_tensor(shape=[None, 3], default_value=-1.0)
        assert_same(compiled(given), expected)


def test_ragged_constant_to_tensor():
    # The longest of rows that are known is.
    same(lambda v: tf.ragged.constant([[1.0, 2.0], [3.0]]).to_tensor() + v[0], VALUES)


def test_from_row_lengths_to_tensor():
    def of_constants(v):
        ragged = tf.RaggedTensor.from_row_lengths(v, [2, 0, 3])
        return ragged.to_tensor(), ragged.to_tensor(shape=[3, 4])

    def of_arguments(v, lengths):
        ragged = tf.RaggedTensor.from_row_lengths(v, lengths, validate=False)
        return ragged.to_tensor(shape=[3, 4], default_value=-1.0)

    same(of_constants, VALUES)
    same(of_arguments, VALUES, tf.constant([2, 0, 3]))


@pytest.mark.slow
def test_from_value_rowids_to_tensor():
    def f(v):
        ragged = tf.RaggedTensor.from_value_rowids(v, [0, 0, 2, 2, 2], nrows=4)
        return ragged.to_tensor(shape=[None, 3])

    same(f, VALUES)


@pytest.mark.slow
def test_rows_of_vectors_to_tensor():
    def f(v):
        ragged = tf.RaggedTensor.from_row_lengths(tf.reshape(v[:4], (2, 2)), [2, 0])
        return ragged.to_tensor(shape=[3, 2, 2])

    same(f, VALUES)


@pytest.mark.slow
def test_a_length_that_depends_on_values_is_left_to_tensorflow():
    compiled = polyblocks_jit_tf(lambda r: r.to_tensor() + 1)
    assert_same(compiled(RAGGED), RAGGED.to_tensor() + 1)
    assert "RaggedTensorToTensor" in {row.op for row in compiled.polyblocks_report().fallbacks}


@pytest.mark.slow
def test_a_sparse_argument_is_an_argument():
    compiled = polyblocks_jit_tf(lambda s: tf.sparse.to_dense(s) * 2)
    for value in (1.0, 3.0):
        dense = tf.constant([[value, 0.0], [0.0, 2.0]])
        assert_same(compiled(tf.sparse.from_dense(dense)), dense * 2)
    assert len(compiled.polyblocks_report().variants) == 1


@pytest.mark.slow
def test_a_data_set_is_a_constant():
    data = tf.data.Dataset.range(3)
    compiled = polyblocks_jit_tf(lambda d, x: x + d.reduce(tf.constant(0, tf.int64), tf.add))
    assert compiled(data, tf.constant(4, tf.int64)).numpy() == 7
