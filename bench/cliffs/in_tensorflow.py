"""The operations in TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from bench.cliffs.case import Array, Case, factorizations, rows
from bench.cliffs.operands import definite, flat, image, image_and, of_rows, scattered, squares
from bench.cliffs.table import OURS
from bench.predictions import of_last_call as report
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf

__all__ = ["CASES", "PEERS", "arrays", "call", "exact", "forget", "operands", "report", "start"]

PEERS: dict[str, Callable[[Any], Any]] = {
    "eager": lambda function: function,
    "XLA": lambda function: tf.function(function, jit_compile=True),
    OURS: lambda function: polyblocks_jit_tf(
        function, compile_options={"target": "cpu", "strict_target": True}
    ),
}


def _gradient(function: Any) -> Any:
    def of(*operands: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(operands)
            result = tf.reduce_sum(function(*operands) ** 2)
        return tape.gradient(result, operands)

    return of


def _batch_norm(x: Any) -> Any:
    mean, variance = tf.nn.moments(x, [0, 1, 2])
    return tf.nn.batch_normalization(x, mean, variance, None, None, 1e-5)


CASES = (
    *(
        Case(name, getattr(tf.math, name), flat(0.1, 4))
        for name in "exp log log1p sin tan tanh atan sqrt rsqrt erf lgamma digamma floor".split()
    ),
    *(
        Case(name, getattr(tf.math, name), flat(0.1, 4, 2))
        for name in "multiply divide pow floormod floordiv atan2 squared_difference".split()
    ),
    *(Case(name, getattr(tf.nn, name), flat()) for name in ("gelu", "silu", "softplus", "selu")),
    *(
        Case(f"{name} of rows", partial(getattr(tf.math, name), axis=-1), of_rows(1024))
        for name in ("reduce_sum", "reduce_max", "reduce_std", "reduce_logsumexp", "argmax")
    ),
    *(
        Case(f"{name} of columns", partial(getattr(tf.math, name), axis=0), of_rows(1024))
        for name in ("reduce_sum", "reduce_max")
    ),
    Case("softmax", tf.nn.softmax, of_rows(1024)),
    Case("softmax, gradient", _gradient(tf.nn.softmax), of_rows(1024)),
    Case("cumsum, rows", lambda x: tf.cumsum(x, -1), of_rows(1024)),
    Case("cumulative_logsumexp", lambda x: tf.math.cumulative_logsumexp(x, -1), of_rows(256)),
    Case("sort, rows of 1024", tf.sort, of_rows(1024)),
    Case("argsort, rows of 64", tf.argsort, of_rows(64)),
    Case("top_k 8 of 8192", lambda x: tf.math.top_k(x, 8), of_rows(8192)),
    Case("top_k 50 of 50257", lambda x: tf.math.top_k(x, 50), of_rows(50257)),
    Case(
        "in_top_k", lambda x: tf.math.in_top_k(tf.zeros(x.shape[0], tf.int32), x, 5), of_rows(1000)
    ),
    Case(
        "searchsorted",
        lambda e, x: tf.searchsorted(tf.cumsum(e), x),
        lambda d, n: (d.uniform(0.1, 1, 1 << 12), d.uniform(0, 2000, n)),
    ),
    Case(
        "bincount",
        lambda x: tf.math.bincount(x, minlength=1024, maxlength=1024),
        lambda d, n: (d.integers(0, 1024, n, dtype=np.int32),),
    ),
    Case("transpose", tf.transpose, squares()),
    Case("reverse", lambda x: tf.reverse(x, [0, 1]), squares()),
    Case("roll", lambda x: tf.roll(x, [3, 5], [0, 1]), squares()),
    Case("concat, columns", lambda x, y: tf.concat((x, y), 1), of_rows(512, 2)),
    Case("pad, reflect", lambda x: tf.pad(x, [[2, 2], [2, 2]], "REFLECT"), squares()),
    Case("space_to_depth", lambda x: tf.nn.space_to_depth(x, 2), image()),
    Case("band_part", lambda x: tf.linalg.band_part(x, 3, 5), squares()),
    Case("tile", lambda x: tf.tile(x, [2, 3]), of_rows(256)),
    Case("where", tf.where, lambda d, n: (d.flags(n // 2), d.normal(n // 2), d.normal(n // 2))),
    Case("gather of rows", lambda x, i, _: tf.gather(x, i), scattered),
    Case(
        "unsorted_segment_sum",
        lambda x, i, y: tf.math.unsorted_segment_sum(y, i, x.shape[0]),
        scattered,
    ),
    Case(
        "tensor_scatter_nd_add",
        lambda x, i, y: tf.tensor_scatter_nd_add(x, i[:, None], y),
        scattered,
    ),
    Case(
        "one_hot",
        lambda i: tf.one_hot(i, 64),
        lambda d, n: (d.integers(0, 64, n // 64, dtype=np.int32),),
    ),
    Case("product", tf.matmul, squares(2, 4)),
    Case("product, gradient", _gradient(tf.matmul), squares(2, 4)),
    Case("conv2d 3x3", lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"), image_and(3, 3, 32, 32)),
    Case(
        "conv2d 3x3, gradient",
        _gradient(lambda x, w: tf.nn.conv2d(x, w, 1, "SAME")),
        image_and(3, 3, 32, 32),
    ),
    Case(
        "depthwise 3x3",
        lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"),
        image_and(3, 3, 32, 1),
    ),
    Case("max_pool 2", lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"), image()),
    Case("avg_pool 3/2", lambda x: tf.nn.avg_pool2d(x, 3, 2, "SAME"), image()),
    Case("max_pool, gradient", _gradient(lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID")), image()),
    Case(
        "resize, bilinear",
        lambda x: tf.image.resize(x, (2 * x.shape[1], 2 * x.shape[2])),
        image(8),
    ),
    Case(
        "resize, nearest",
        lambda x: tf.image.resize(x, (2 * x.shape[1], 2 * x.shape[2]), "nearest"),
        image(8),
    ),
    Case("batch normalization", _batch_norm, image()),
    *factorizations(
        Case("cholesky", tf.linalg.cholesky, definite(0)),
        Case("inv of 16x16", tf.linalg.inv, definite(16)),
        Case("solve", tf.linalg.solve, definite(0, 4)),
        Case("triangular_solve", tf.linalg.triangular_solve, definite(0, 4)),
        Case("eigvalsh of 16x16", tf.linalg.eigvalsh, definite(16)),
    ),
    Case("fft of 1024", tf.signal.fft, lambda d, n: (d.complex(*rows(n // 2, 1024)),)),
    Case("rfft of 4096", tf.signal.rfft, of_rows(4096)),
    Case(
        "stft of 512",
        lambda x: tf.abs(tf.signal.stft(x, 512, 128)),
        lambda d, n: (d.normal(4, n // 8),),
    ),
)


def start(threads: int) -> None:
    """Set the threads; compile something small with each peer."""
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    for compiler in PEERS.values():
        compiler(lambda x: x + 1)(tf.ones(4)).numpy()


def operands(arrays: tuple[Array, ...]) -> Any:
    """The arrays as tensors."""
    return [tf.constant(array) for array in arrays]


def call(case: Case, made: Any, operands: Any) -> Callable[[], Any]:
    """What is timed."""
    del case
    return lambda: made(*operands)


def arrays(result: Any) -> list[Array]:
    """The tensors of a result."""
    return [leaf.numpy() for leaf in tf.nest.flatten(result)]


def exact(case: Case, operands: Any) -> list[Array] | None:
    """The same in float64; None where there is no such function."""
    wide = {tf.float32: tf.float64, tf.complex64: tf.complex128}
    try:
        return arrays(case.function(*(tf.cast(x, wide.get(x.dtype, x.dtype)) for x in operands)))
    except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError, TypeError, ValueError):
        return None


def forget() -> None:
    """Nothing is kept that grows."""
