"""Samples of public functions and of Keras layers, which reach the other raw operations."""

# Defaults are the samples' arguments; NumPy arrays, which nobody changes.
# ruff: noqa: B008

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from arrays import array
from check import Sample
from forked_sweep import Entry

X = array(4, 6)
POSITIVE = array(4, 6, low=0.1, high=3)
MATRIX = array(5, 5) + 3 * array(5, 5, low=0, high=1)
IMAGES = array(2, 12, 10, 3, low=0, high=1)
SIGNAL = array(2, 32)
INDICES = array(5, dtype="int32", low=0, high=4)
LABELS = array(4, dtype="int32", low=0, high=6)
VOLUME = array(1, 5, 6, 7, 2)
SEQUENCE = array(2, 6, 4)
SPECTRUM = array(2, 16, dtype="complex64")

#: Entry -> functions (arrays come as defaults, so that a sample is one line).
FUNCTIONS: dict[str, list[Callable[..., Any]]] = {}


def sample(name: str, *functions: Callable[..., Any]) -> None:
    """Add samples to an entry; each function's defaults are its arguments."""
    FUNCTIONS.setdefault(name, []).extend(functions)


# --- reductions, scans, segments
for _reduce in ("sum", "mean", "max", "min", "prod", "logsumexp", "variance", "std"):
    _f = getattr(tf.math, f"reduce_{_reduce}", None) or getattr(tf, f"reduce_{_reduce}")
    sample(
        f"math.reduce_{_reduce}",
        lambda x=X, f=_f: f(tf.identity(x)),
        lambda x=X, f=_f: f(tf.identity(x), 0),
        lambda x=X, f=_f: f(tf.identity(x), [1], keepdims=True),
        lambda x=array(2, 3, 4, dtype="float64"), f=_f: f(tf.identity(x), [0, 2]),
        lambda x=array(0, 3), f=_f: f(tf.identity(x), 1),
    )
sample(
    "math.reduce_any", lambda x=array(3, 4, dtype="bool"): (tf.reduce_any(x, 1), tf.reduce_all(x))
)
sample("math.reduce_all", lambda x=array(3, 4, dtype="bool"): tf.reduce_all(x, 0))
sample("math.reduce_euclidean_norm", lambda x=X: tf.math.reduce_euclidean_norm(x, 1))
sample("math.argmax", lambda x=X: (tf.argmax(x, 0), tf.argmin(x, 1, tf.int32)))
sample("math.argmin", lambda x=array(4, 5, dtype="int32"): tf.argmin(x, 1))
sample("math.count_nonzero", lambda x=array(4, 5, dtype="int32"): tf.math.count_nonzero(x, 1))
sample(
    "math.cumsum",
    lambda x=X: tf.cumsum(x, 1),
    lambda x=X: tf.cumsum(x, 0, exclusive=True),
    lambda x=X: tf.cumsum(x, 1, reverse=True),
    lambda x=array(300): tf.cumsum(x),
)
sample("math.cumprod", lambda x=POSITIVE: tf.math.cumprod(x, 1, exclusive=True, reverse=True))
sample("math.cumulative_logsumexp", lambda x=X: tf.math.cumulative_logsumexp(x, 1))
for _kind in ("sum", "max", "min", "mean", "prod"):
    _sorted = getattr(tf.math, f"segment_{_kind}")
    _any = getattr(tf.math, f"unsorted_segment_{_kind}")
    sample(
        f"math.segment_{_kind}",
        lambda x=array(5, 3), f=_sorted: f(tf.identity(x), tf.constant([0, 0, 1, 2, 2])),
    )
    sample(
        f"math.unsorted_segment_{_kind}",
        lambda x=array(5, 3), i=INDICES, f=_any: f(tf.identity(x), i, 4),
    )
sample(
    "math.unsorted_segment_sqrt_n",
    lambda x=array(5, 3), i=INDICES: tf.math.unsorted_segment_sqrt_n(x, i, 4),
)
sample(
    "math.bincount",
    lambda i=INDICES: tf.math.bincount(i, minlength=6, maxlength=6),
    lambda i=INDICES: tf.math.bincount(i, weights=tf.ones(5), minlength=4, maxlength=4),
)
sample("math.confusion_matrix", lambda i=INDICES: tf.math.confusion_matrix(i, i[::-1], 5))
sample("math.accumulate_n", lambda x=X: tf.math.accumulate_n([x, x, x]))
sample("math.add_n", lambda x=X: tf.add_n([x, x + 1, x * 2]))
sample("math.top_k", lambda x=X: tf.math.top_k(x, 3), lambda x=X: tf.math.top_k(x, 1, sorted=False))
sample("math.in_top_k", lambda x=X, y=LABELS: tf.math.in_top_k(y, x, 2))
sample("math.approx_max_k", lambda x=array(2, 40): tf.math.approx_max_k(x, 3)[0])
sample("math.polyval", lambda x=X: tf.math.polyval([1.0, 2.0, x], x))
sample("math.lbeta", lambda x=POSITIVE: tf.math.lbeta(x))
sample(
    "math.betainc",
    lambda x=array(5, low=0.5, high=3), y=array(5, low=0.1, high=0.9): tf.math.betainc(
        x, x + 0.5, y
    ),
)
sample("math.zero_fraction", lambda x=array(9, dtype="int32"): tf.math.zero_fraction(x))
sample("math.l2_normalize", lambda x=X: tf.math.l2_normalize(x, 1))
sample("math.special", lambda x=POSITIVE: (tf.math.special.dawsn(x), tf.math.special.expint(x)))
sample(
    "math.special.bessel",
    lambda x=POSITIVE: (
        tf.math.special.bessel_j0(x),
        tf.math.special.bessel_i0(x),
        tf.math.special.bessel_i1(x),
    ),
)
sample("math.igamma", lambda x=POSITIVE: (tf.math.igamma(x, x + 1), tf.math.igammac(x, x)))
sample("math.softmax", lambda x=X: (tf.nn.softmax(x), tf.nn.log_softmax(x, 0)))
sample("math.cross", lambda x=array(4, 3), y=array(4, 3, seed=1): tf.linalg.cross(x, y))
sample("math.erfcinv", lambda x=array(5, low=0.2, high=1.8): tf.math.erfcinv(x))
sample("math.lerp", lambda x=X: tf.where(x > 0, x, -x), lambda x=X: tf.clip_by_value(x, -1, 1))

# --- shapes and data movement
sample(
    "reshape",
    lambda x=X: tf.reshape(x, [3, -1]),
    lambda x=X: x[None, :, None],
    lambda x=X: tf.squeeze(x[:1]),
    lambda x=X: tf.expand_dims(x, 1),
)
sample("transpose", lambda x=X: tf.transpose(x), lambda x=VOLUME: tf.transpose(x, [3, 1, 0, 2, 4]))
sample("strided_slice", lambda x=X: x[1:3, ::2], lambda x=X: x[::-1, -3:], lambda x=X: x[..., 1])
sample("slice", lambda x=X: tf.slice(x, [1, 2], [2, -1]))
sample(
    "concat",
    lambda x=X: tf.concat([x, x * 2], 1),
    lambda x=X: tf.stack([x, x], 1),
    lambda x=X: tf.unstack(x),
    lambda x=X: tf.split(x, [2, 4], 1),
    lambda x=X: tf.split(x, 3, 1),
)
sample(
    "pad",
    lambda x=X: tf.pad(x, [[1, 2], [0, 1]]),
    lambda x=X: tf.pad(x, [[1, 2], [3, 1]], "REFLECT"),
    lambda x=X: tf.pad(x, [[1, 2], [3, 1]], "SYMMETRIC"),
    lambda x=X: tf.pad(x, [[1, 0], [0, 0]], constant_values=3.0),
)
sample(
    "tile",
    lambda x=X: tf.tile(x, [2, 3]),
    lambda x=X: tf.repeat(x, 2, 1),
    lambda x=X: tf.broadcast_to(x, [3, 4, 6]),
)
sample(
    "gather",
    lambda x=X, i=INDICES: tf.gather(x, i % 4),
    lambda x=X: tf.gather(x, [[0, 2], [1, 1]], axis=1),
    lambda x=X: tf.gather_nd(x, [[0, 1], [3, 2]]),
    lambda x=SEQUENCE: tf.gather(x, [[0, 1], [2, 3]], batch_dims=1),
)
sample("scatter_nd", lambda x=array(3, 2): tf.scatter_nd([[1], [3], [1]], x, [5, 2]))
for _update in ("add", "sub", "max", "min", "update"):
    _g = getattr(tf, f"tensor_scatter_nd_{_update}")
    sample(
        f"tensor_scatter_nd_{_update}",
        lambda x=X, y=array(3, 6, seed=2), g=_g: g(tf.identity(x), [[1], [0], [2]], y),
    )
sample(
    "reverse",
    lambda x=X: tf.reverse(x, [1]),
    lambda x=X: tf.roll(x, [1, -2], [0, 1]),
    lambda x=SEQUENCE: tf.reverse_sequence(x, [2, 5], 1, 0),
)
sample(
    "one_hot", lambda i=INDICES: tf.one_hot(i, 5), lambda i=INDICES: tf.one_hot(i, 4, 2.0, -1.0, 0)
)
sample(
    "range",
    lambda x=X: x + tf.range(6.0),
    lambda x=X: tf.linspace(0.0, 1.0, 7) + x[0, 0],
    lambda x=X: tf.fill([2, 3], x[0, 0]),
    lambda x=X: tf.eye(4) + x[:, :4],
)
sample("meshgrid", lambda x=array(3), y=array(4): tf.meshgrid(x, y))
sample(
    "sort",
    lambda x=X: tf.sort(x),
    lambda x=X: tf.sort(x, 0, "DESCENDING"),
    lambda x=X: tf.argsort(x, stable=True),
    lambda x=array(3, 9, dtype="int32", low=-9, high=9): tf.sort(x),
)
sample(
    "searchsorted",
    lambda x=X: tf.searchsorted([-1.0, 0.0, 1.0], x[0]),
    lambda x=X: tf.searchsorted([-1.0, 0.0, 1.0], x[0], "right"),
)
sample("sequence_mask", lambda i=INDICES: tf.sequence_mask(i, 5))
sample(
    "space_to_depth",
    lambda x=IMAGES: tf.nn.space_to_depth(x, 2),
    lambda x=array(1, 3, 4, 8): tf.nn.depth_to_space(x, 2),
    lambda x=array(4, 3, 2, 1): tf.batch_to_space(x, [2, 2], [[0, 1], [0, 0]]),
    lambda x=IMAGES: tf.space_to_batch(x, [2, 2], [[0, 0], [1, 1]]),
)
sample("bitcast", lambda x=X: tf.bitcast(x, tf.int32), lambda x=X: tf.bitcast(x, tf.uint8))
sample(
    "quantization",
    lambda x=X: tf.quantization.fake_quant_with_min_max_args(x),
    lambda x=X: tf.quantization.fake_quant_with_min_max_vars(x, -1.0, 1.5),
    lambda x=X: tf.quantization.quantize_and_dequantize_v2(x, -1.0, 1.0, range_given=True),
)
sample("unique", lambda i=INDICES: tf.unique(i)[1])
sample("where", lambda x=X: tf.where(x > 0))
sample("list_diff", lambda x=X: tf.math.invert_permutation([2, 0, 1]))
sample("dynamic_stitch", lambda x=X: tf.dynamic_stitch([[0, 2], [1, 3]], [x[:2], x[2:]]))
sample("stop_gradient", lambda x=X: tf.stop_gradient(x) + tf.grad_pass_through(tf.floor)(x))
sample(
    "einsum",
    lambda x=X, y=array(6, 5): tf.einsum("ij,jk->ki", x, y),
    lambda x=SEQUENCE: tf.einsum("bij,bkj->bik", x, x),
    lambda x=X: tf.einsum("ij->j", x),
)
sample("tensordot", lambda x=SEQUENCE, y=array(4, 3): tf.tensordot(x, y, 1))
sample(
    "matmul",
    lambda x=X, y=array(6, 3): x @ y,
    lambda x=SEQUENCE: tf.matmul(x, x, transpose_b=True),
    lambda x=array(3, 3, dtype="complex64"): tf.matmul(x, x, adjoint_a=True),
    lambda x=array(3, 4, dtype="int32"): tf.matmul(x, x, transpose_a=True),
)

# --- control flow
sample(
    "while_loop",
    lambda x=X: tf.while_loop(lambda i, x: i < 7, lambda i, x: (i + 1, x * 0.9 + 1), [0, x]),
)
sample("cond", lambda x=X: tf.cond(x[0, 0] > 0, lambda: x + 1, lambda: x - 1))
sample(
    "switch_case",
    lambda i=INDICES: tf.switch_case(i[0] % 3, [lambda: 1.0, lambda: 2.0, lambda: 3.0]),
)
sample(
    "scan",
    lambda x=X: tf.scan(lambda a, b: a * 0.5 + b, x),
    lambda x=X: tf.map_fn(tf.reduce_sum, x),
    lambda x=X: tf.foldl(lambda a, b: a + b, x),
    lambda x=X: tf.vectorized_map(lambda r: r * tf.reduce_max(r), x),
)


def _tensor_array(x: Any = X) -> Any:
    made = tf.TensorArray(tf.float32, 4)
    for i in range(4):
        made = made.write(i, x[i] * i)
    return made.stack(), made.read(2), made.gather([1, 3])


sample("TensorArray", _tensor_array)

# --- tf.nn
for _name in (
    "elu",
    "gelu",
    "leaky_relu",
    "relu",
    "relu6",
    "selu",
    "silu",
    "crelu",
    "softplus",
    "softsign",
):
    sample(f"nn.{_name}", lambda x=X, f=getattr(tf.nn, _name): f(tf.identity(x)))
sample("nn.conv1d", lambda x=SEQUENCE, k=array(3, 4, 5): tf.nn.conv1d(x, k, 1, "SAME"))
for _padding in ("SAME", "VALID"):
    sample(
        "nn.conv2d",
        lambda x=IMAGES, k=array(3, 3, 3, 4), p=_padding: tf.nn.conv2d(x, k, 1, p),
        lambda x=IMAGES, k=array(3, 2, 3, 4), p=_padding: tf.nn.conv2d(x, k, [2, 3], p),
        lambda x=IMAGES, k=array(3, 3, 3, 4), p=_padding: tf.nn.conv2d(x, k, 1, p, dilations=2),
    )
    sample(
        "nn.depthwise_conv2d",
        lambda x=IMAGES, k=array(3, 3, 3, 2), p=_padding: tf.nn.depthwise_conv2d(
            x, k, [1, 2, 2, 1], p
        ),
    )
    sample(
        "nn.conv3d",
        lambda x=VOLUME, k=array(2, 3, 2, 2, 3), p=_padding: tf.nn.conv3d(x, k, [1, 1, 2, 1, 1], p),
    )
    sample(
        "nn.max_pool",
        lambda x=IMAGES, p=_padding: tf.nn.max_pool2d(x, 3, 2, p),
        lambda x=VOLUME, p=_padding: tf.nn.max_pool3d(x, 2, 2, p),
    )
    sample(
        "nn.avg_pool",
        lambda x=IMAGES, p=_padding: tf.nn.avg_pool2d(x, 3, 2, p),
        lambda x=VOLUME, p=_padding: tf.nn.avg_pool3d(x, 2, 2, p),
    )
    sample(
        "nn.dilation2d",
        lambda x=IMAGES, k=array(3, 3, 3), p=_padding: tf.nn.dilation2d(
            x, k, [1, 1, 1, 1], p, "NHWC", [1, 1, 1, 1]
        ),
    )
sample(
    "nn.conv2d_transpose",
    lambda x=IMAGES, k=array(3, 3, 4, 3): tf.nn.conv2d_transpose(x, k, [2, 24, 20, 4], 2),
)
sample(
    "nn.conv3d_transpose",
    lambda x=VOLUME, k=array(2, 2, 2, 3, 2): tf.nn.conv3d_transpose(x, k, [1, 10, 12, 14, 3], 2),
)
sample(
    "nn.separable_conv2d",
    lambda x=IMAGES, d=array(3, 3, 3, 1), p=array(1, 1, 3, 5): tf.nn.separable_conv2d(
        x, d, p, [1, 1, 1, 1], "SAME"
    ),
)
sample("nn.bias_add", lambda x=IMAGES, b=array(3): tf.nn.bias_add(x, b))
sample(
    "nn.batch_normalization",
    lambda x=X: tf.nn.batch_normalization(
        x, tf.reduce_mean(x, 0), tf.math.reduce_variance(x, 0), 0.1, 1.2, 1e-3
    ),
)
sample(
    "nn.moments",
    lambda x=X: tf.nn.moments(x, [0]),
    lambda x=X: tf.nn.sufficient_statistics(x, [1])[1:3],
)
sample(
    "nn.fused_batch_norm",
    lambda x=IMAGES: tf.compat.v1.nn.fused_batch_norm(x, tf.ones(3), tf.zeros(3))[0],
    lambda x=IMAGES: tf.compat.v1.nn.fused_batch_norm(
        x, tf.ones(3), tf.zeros(3), tf.zeros(3), tf.ones(3), is_training=False
    )[0],
)
sample("nn.lrn", lambda x=IMAGES: tf.nn.local_response_normalization(x))
sample(
    "nn.softmax_cross_entropy_with_logits",
    lambda x=X, y=POSITIVE: tf.nn.softmax_cross_entropy_with_logits(y / 18, x),
    lambda x=X, y=LABELS: tf.nn.sparse_softmax_cross_entropy_with_logits(y, x),
    lambda x=X, y=array(4, 6, low=0, high=1): tf.nn.sigmoid_cross_entropy_with_logits(y, x),
    lambda x=X, y=array(4, 6, low=0, high=1): tf.nn.weighted_cross_entropy_with_logits(y, x, 2.0),
)
sample("nn.l2_loss", lambda x=X: tf.nn.l2_loss(x), lambda x=X: tf.nn.log_poisson_loss(x, x))
sample("nn.embedding_lookup", lambda x=X, i=INDICES: tf.nn.embedding_lookup(x, i % 4))
sample(
    "nn.ctc_loss",
    lambda x=array(5, 2, 4): tf.nn.ctc_loss(
        tf.constant([[1, 2], [2, 1]]), x, tf.constant([2, 2]), tf.constant([5, 5]), blank_index=0
    ),
)
sample("nn.max_pool_with_argmax", lambda x=IMAGES: tf.nn.max_pool_with_argmax(x, 2, 2, "VALID"))
sample("nn.stateless_dropout", lambda x=X: tf.nn.experimental.stateless_dropout(x, 0.4, [1, 2]))

# --- tf.image
sample(
    "image.resize",
    *[
        lambda x=IMAGES, m=m, a=a: tf.image.resize(x, [7, 15], m, antialias=a)
        for m in ("bilinear", "nearest", "bicubic", "area", "lanczos3")
        for a in (False, True)
    ],
)
sample(
    "image.flip",
    lambda x=IMAGES: tf.image.flip_left_right(x),
    lambda x=IMAGES: tf.image.flip_up_down(x),
    lambda x=IMAGES: tf.image.rot90(x),
    lambda x=IMAGES: tf.image.transpose(x),
)
sample(
    "image.adjust",
    lambda x=IMAGES: tf.image.adjust_brightness(x, 0.2),
    lambda x=IMAGES: tf.image.adjust_contrast(x, 1.5),
    lambda x=IMAGES: tf.image.adjust_gamma(x, 1.3),
    lambda x=IMAGES: tf.image.adjust_hue(x, 0.1),
    lambda x=IMAGES: tf.image.adjust_saturation(x, 1.6),
    lambda x=IMAGES: tf.image.per_image_standardization(x),
)
for _name in (
    "rgb_to_hsv",
    "rgb_to_grayscale",
    "rgb_to_yiq",
    "rgb_to_yuv",
    "hsv_to_rgb",
    "yiq_to_rgb",
    "yuv_to_rgb",
):
    sample(f"image.{_name}", lambda x=IMAGES, f=getattr(tf.image, _name): f(tf.identity(x)))
sample(
    "image.crop",
    lambda x=IMAGES: tf.image.central_crop(x, 0.5),
    lambda x=IMAGES: tf.image.crop_to_bounding_box(x, 1, 2, 6, 5),
    lambda x=IMAGES: tf.image.pad_to_bounding_box(x, 1, 2, 16, 15),
    lambda x=IMAGES: tf.image.resize_with_crop_or_pad(x, 8, 14),
    lambda x=IMAGES: tf.image.resize_with_pad(x, 8, 14),
    lambda x=IMAGES: tf.image.extract_glimpse(x, [4, 4], tf.zeros((2, 2))),
    lambda x=IMAGES: tf.image.crop_and_resize(x, [[0.1, 0.2, 0.8, 0.7]], [1], [5, 6]),
)
sample(
    "image.extract_patches",
    lambda x=IMAGES: tf.image.extract_patches(x, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"),
)
sample(
    "image.measures",
    lambda x=IMAGES: tf.image.psnr(x, x * 0.9, 1.0),
    lambda x=IMAGES: tf.image.total_variation(x),
    lambda x=IMAGES: tf.image.ssim(x, x * 0.9, 1.0, filter_size=5),
    lambda x=IMAGES: tf.image.sobel_edges(x),
    lambda x=IMAGES: tf.image.image_gradients(x),
)
sample(
    "image.convert_image_dtype",
    lambda x=IMAGES: tf.image.convert_image_dtype(x, tf.uint8),
    lambda x=array(3, 3, 3, dtype="uint8", low=0, high=255): tf.image.convert_image_dtype(
        x, tf.float32
    ),
)
sample(
    "image.transform",
    lambda x=IMAGES: tf.raw_ops.ImageProjectiveTransformV3(
        images=x,
        transforms=[[0.8, -0.6, 3, 0.6, 0.8, -1, 0, 0]],
        output_shape=[12, 10],
        fill_value=0.0,
        interpolation="BILINEAR",
    ),
)
sample(
    "image.non_max_suppression",
    lambda x=array(6, 4, low=0, high=1): tf.image.non_max_suppression_padded(
        x, x[:, 0], 3, pad_to_max_output_size=True
    )[0],
)
for _name in ("brightness", "contrast", "hue", "saturation"):
    _limits = {"brightness": (0.3,), "hue": (0.2,)}.get(_name, (0.5, 1.5))
    sample(
        f"image.stateless_random_{_name}",
        lambda x=IMAGES, f=getattr(tf.image, f"stateless_random_{_name}"), a=_limits: f(
            tf.identity(x), *a, seed=[1, 2]
        ),
    )
sample(
    "image.stateless_random_flip",
    lambda x=IMAGES: tf.image.stateless_random_flip_left_right(x, [3, 4]),
    lambda x=IMAGES: tf.image.stateless_random_flip_up_down(x, [3, 4]),
    lambda x=IMAGES: tf.image.stateless_random_crop(x, [2, 5, 5, 3], [1, 2]),
)

# --- tf.linalg


def _of_eigen(a: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Eigenvalues, and the matrix that they and their vectors make: any vector's sign is right."""
    values, vectors = tf.linalg.eigh(a)
    return values, tf.matmul(vectors * values[..., None, :], vectors, transpose_b=True)


def _of_singular(a: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Singular values, and the matrix that they and their vectors make."""
    values, left, right = tf.linalg.svd(a)
    return values, tf.matmul(left * values[..., None, :], right, transpose_b=True)


for _name in (
    "adjoint",
    "diag_part",
    "logdet",
    "det",
    "inv",
    "cholesky",
    "trace",
    "matrix_transpose",
    "qr",
    "slogdet",
    "sqrtm",
    "expm",
    "lu",
    "pinv",
    "eigvalsh",
):
    sample(
        f"linalg.{_name}",
        lambda m=MATRIX, f=getattr(tf.linalg, _name): f(
            tf.matmul(m, m, transpose_b=True) + 3 * tf.eye(5)
        ),
    )
sample("linalg.eigh", lambda m=MATRIX: _of_eigen(tf.matmul(m, m, transpose_b=True) + tf.eye(5)))
sample("linalg.svd", lambda m=MATRIX: _of_singular(m), lambda x=X: _of_singular(x))
sample("linalg.inv small", lambda m=array(4, 3, 3): tf.linalg.inv(m + 3 * tf.eye(3)))
sample(
    "linalg.solve",
    lambda m=MATRIX, b=array(5, 2): tf.linalg.solve(m + 3 * tf.eye(5), b),
    lambda m=MATRIX, b=array(5, 2): tf.linalg.triangular_solve(m + 3 * tf.eye(5), b),
    lambda m=MATRIX, b=array(5, 2): tf.linalg.lstsq(m + 3 * tf.eye(5), b),
    lambda m=array(3, 5, low=1, high=2), b=array(5, 2): tf.linalg.tridiagonal_solve(
        m + tf.constant([[0.0], [5.0], [0.0]]), b, "compact"
    ),
)
sample(
    "linalg.diag",
    lambda x=X: tf.linalg.diag(x),
    lambda x=X: tf.linalg.diag(x, k=1),
    lambda m=MATRIX, x=array(5): tf.linalg.set_diag(m, x),
    lambda x=array(4): tf.linalg.tensor_diag(x),
    lambda m=MATRIX: tf.linalg.tensor_diag_part(m),
    lambda m=MATRIX: tf.linalg.band_part(m, 1, 2),
    lambda m=MATRIX: tf.linalg.diag_part(m, k=(-1, 1)),
)
sample(
    "linalg.norm",
    lambda x=X: tf.norm(x),
    lambda x=X: tf.norm(x, 1, axis=1),
    lambda x=X: tf.linalg.global_norm([x, x]),
    lambda x=X: tf.linalg.normalize(x, axis=1),
    lambda x=X: tf.clip_by_global_norm([x], 1.0),
)
sample(
    "linalg.matvec",
    lambda m=MATRIX, v=array(5): tf.linalg.matvec(m, v),
    lambda m=array(3, 5), v=array(5, 2): tf.linalg.tridiagonal_matmul(
        [m[0], m[1], m[2]], v, "sequence"
    ),
)
sample("linalg.matrix_rank", lambda m=MATRIX: tf.linalg.matrix_rank(m))

# --- tf.signal
for _name in ("fft", "ifft", "fft2d", "ifft2d"):
    sample(f"signal.{_name}", lambda x=SPECTRUM, f=getattr(tf.signal, _name): f(tf.identity(x)))
sample(
    "signal.rfft",
    lambda x=SIGNAL: tf.signal.rfft(x),
    lambda x=SIGNAL: tf.signal.irfft(tf.signal.rfft(x)),
)
sample("signal.dct", lambda x=SIGNAL: tf.signal.dct(x), lambda x=SIGNAL: tf.signal.idct(x))
sample(
    "signal.stft", lambda x=SIGNAL: tf.signal.stft(x, 8, 4), lambda x=SIGNAL: tf.signal.mdct(x, 8)
)
sample(
    "signal.frame",
    lambda x=SIGNAL: tf.signal.frame(x, 8, 3),
    lambda x=SIGNAL: tf.signal.frame(x, 8, 5, True),
    lambda x=SEQUENCE: tf.signal.overlap_and_add(x, 2),
)
sample(
    "signal.windows",
    lambda x=SIGNAL: x * tf.signal.hann_window(32),
    lambda x=SIGNAL: x * tf.signal.hamming_window(32),
    lambda x=SIGNAL: x * tf.signal.kaiser_window(32),
    lambda x=SIGNAL: x * tf.signal.vorbis_window(32),
)
sample(
    "signal.mel",
    lambda x=SIGNAL: tf.signal.linear_to_mel_weight_matrix(8, 17, 8000) + x[0, 0],
    lambda x=POSITIVE: tf.signal.mfccs_from_log_mel_spectrograms(tf.math.log(x)),
)
sample(
    "signal.fftshift",
    lambda x=SIGNAL: tf.signal.fftshift(x),
    lambda x=SIGNAL: tf.signal.ifftshift(x, 1),
)

# --- stateless random numbers
sample(
    "random.stateless_uniform",
    lambda x=X: tf.random.stateless_uniform((9,), [1, 2]),
    lambda x=X: tf.random.stateless_uniform((9,), [1, 2], 3, 99, tf.int32),
    lambda x=X: tf.random.stateless_uniform((9,), [1, 2], None, None, tf.int64),
)
sample("random.stateless_normal", lambda x=X: tf.random.stateless_normal((9,), [1, 2]))
sample(
    "random.split",
    lambda i=array(2, dtype="int32", low=0, high=9): (tf.random.split(i), tf.random.fold_in(i, 3)),
)


# --- gradients and Keras layers
def gradient_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient of the sum of a function's (first) result."""

    def gradient(*inputs: Any) -> Any:
        floating = [x for x in inputs if x.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(floating)
            result = function(*inputs)
            result = result[0] if isinstance(result, (list, tuple)) else result
            loss = tf.reduce_sum(result * result)
        return [g for g in tape.gradient(loss, floating) if g is not None]

    return gradient


#: Entries whose gradients are samples, too.
DIFFERENTIATED = (
    "math.reduce_sum math.reduce_max math.reduce_prod math.cumsum math.segment_sum "
    "math.unsorted_segment_sum math.top_k math.softmax transpose strided_slice concat pad tile "
    "gather scatter_nd reverse einsum matmul while_loop cond scan TensorArray nn.gelu nn.conv1d "
    "nn.conv2d nn.depthwise_conv2d nn.conv3d nn.max_pool nn.avg_pool nn.conv2d_transpose "
    "nn.fused_batch_norm nn.moments nn.softmax_cross_entropy_with_logits nn.embedding_lookup "
    "image.resize image.rgb_to_hsv image.transform image.crop linalg.diag linalg.inv linalg.norm "
    "math.cumprod math.betainc math.l2_normalize space_to_depth sort nn.elu nn.selu nn.silu "
    "nn.softplus nn.relu6 nn.leaky_relu"
).split()


def layers() -> Iterator[tuple[str, Callable[[], Any], Any]]:
    """Name, constructor and input of Keras layers."""
    import keras

    k = keras.layers
    tokens = array(2, 7, dtype="int32", low=0, high=9)
    yield from [
        ("Dense", lambda: k.Dense(5, "relu"), X),
        ("EinsumDense", lambda: k.EinsumDense("abc,cd->abd", (None, 5)), SEQUENCE),
        ("Embedding", lambda: k.Embedding(9, 4), tokens),
        ("Conv1D", lambda: k.Conv1D(3, 3), SEQUENCE),
        ("Conv2D", lambda: k.Conv2D(4, 3, 2, "same"), IMAGES),
        ("Conv3D", lambda: k.Conv3D(2, 2), VOLUME),
        ("Conv1DTranspose", lambda: k.Conv1DTranspose(3, 3, 2), SEQUENCE),
        ("Conv2DTranspose", lambda: k.Conv2DTranspose(4, 3, 2), IMAGES),
        ("Conv3DTranspose", lambda: k.Conv3DTranspose(2, 2), VOLUME),
        ("SeparableConv1D", lambda: k.SeparableConv1D(3, 3), SEQUENCE),
        ("SeparableConv2D", lambda: k.SeparableConv2D(4, 3), IMAGES),
        ("DepthwiseConv1D", lambda: k.DepthwiseConv1D(3), SEQUENCE),
        ("DepthwiseConv2D", lambda: k.DepthwiseConv2D(3), IMAGES),
        ("MaxPooling1D", lambda: k.MaxPooling1D(2), SEQUENCE),
        ("MaxPooling2D", lambda: k.MaxPooling2D(2), IMAGES),
        ("MaxPooling3D", lambda: k.MaxPooling3D(2), VOLUME),
        ("AveragePooling1D", lambda: k.AveragePooling1D(2), SEQUENCE),
        ("AveragePooling2D", lambda: k.AveragePooling2D(2, padding="same"), IMAGES),
        ("AveragePooling3D", lambda: k.AveragePooling3D(2), VOLUME),
        ("GlobalAveragePooling2D", lambda: k.GlobalAveragePooling2D(), IMAGES),
        ("GlobalMaxPooling1D", lambda: k.GlobalMaxPooling1D(), SEQUENCE),
        ("GlobalMaxPooling3D", lambda: k.GlobalMaxPooling3D(), VOLUME),
        ("LSTM", lambda: k.LSTM(4, return_sequences=True), SEQUENCE),
        ("GRU", lambda: k.GRU(4), SEQUENCE),
        ("SimpleRNN", lambda: k.SimpleRNN(4), SEQUENCE),
        ("Bidirectional", lambda: k.Bidirectional(k.GRU(3)), SEQUENCE),
        ("TimeDistributed", lambda: k.TimeDistributed(k.Dense(3)), SEQUENCE),
        ("ConvLSTM1D", lambda: k.ConvLSTM1D(2, 3), array(2, 4, 5, 3)),
        ("ConvLSTM2D", lambda: k.ConvLSTM2D(2, 3), array(1, 3, 5, 5, 2)),
        ("BatchNormalization", lambda: k.BatchNormalization(), IMAGES),
        ("LayerNormalization", lambda: k.LayerNormalization(), SEQUENCE),
        ("GroupNormalization", lambda: k.GroupNormalization(3), IMAGES),
        ("UnitNormalization", lambda: k.UnitNormalization(), X),
        ("SpectralNormalization", lambda: k.SpectralNormalization(k.Dense(3)), X),
        ("RMSNormalization", lambda: k.RMSNormalization(), X),
        ("MultiHeadAttention", lambda: _SelfAttention(k.MultiHeadAttention(2, 3)), SEQUENCE),
        ("GroupQueryAttention", lambda: _SelfAttention(k.GroupQueryAttention(3, 4, 2)), SEQUENCE),
        ("Attention", lambda: _Listed(k.Attention()), SEQUENCE),
        ("AdditiveAttention", lambda: _Listed(k.AdditiveAttention()), SEQUENCE),
        ("Dropout", lambda: k.Dropout(0.3, seed=1), X),
        ("SpatialDropout2D", lambda: k.SpatialDropout2D(0.3, seed=1), IMAGES),
        ("GaussianNoise", lambda: k.GaussianNoise(0.3, seed=1), X),
        ("AlphaDropout", lambda: k.AlphaDropout(0.3, seed=1), X),
        ("Softmax", lambda: k.Softmax(), X),
        ("PReLU", lambda: k.PReLU(), X),
        ("ELU", lambda: k.ELU(), X),
        ("Flatten", lambda: k.Flatten(), SEQUENCE),
        ("Permute", lambda: k.Permute((2, 1)), SEQUENCE),
        ("RepeatVector", lambda: k.RepeatVector(3), X),
        ("Cropping2D", lambda: k.Cropping2D(1), IMAGES),
        ("ZeroPadding2D", lambda: k.ZeroPadding2D(2), IMAGES),
        ("UpSampling2D", lambda: k.UpSampling2D(2, interpolation="bilinear"), IMAGES),
        ("UpSampling3D", lambda: k.UpSampling3D(2), VOLUME),
        ("CenterCrop", lambda: k.CenterCrop(6, 5), IMAGES),
        ("Resizing", lambda: k.Resizing(7, 9), IMAGES),
        ("Rescaling", lambda: k.Rescaling(0.5, 1), IMAGES),
        ("RandomFlip", lambda: k.RandomFlip(seed=1), IMAGES),
        ("RandomRotation", lambda: k.RandomRotation(0.2, seed=1), IMAGES),
        ("RandomTranslation", lambda: k.RandomTranslation(0.2, 0.2, seed=1), IMAGES),
        ("RandomZoom", lambda: k.RandomZoom(0.2, seed=1), IMAGES),
        ("RandomContrast", lambda: k.RandomContrast(0.2, seed=1), IMAGES),
        ("RandomBrightness", lambda: k.RandomBrightness(0.2, (0, 1), seed=1), IMAGES),
        ("RandomCrop", lambda: k.RandomCrop(6, 6, seed=1), IMAGES),
        ("Discretization", lambda: k.Discretization([-1.0, 0.0, 1.0]), X),
        ("CategoryEncoding", lambda: k.CategoryEncoding(9), tokens),
        ("Normalization", lambda: k.Normalization(mean=0.5, variance=2.0), X),
    ]


class _SelfAttention:
    def __init__(self, layer: Any) -> None:
        self.layer = layer

    def __call__(self, x: Any, **kwargs: Any) -> Any:
        return self.layer(x, x, **kwargs)


class _Listed:
    def __init__(self, layer: Any) -> None:
        self.layer = layer

    def __call__(self, x: Any, **kwargs: Any) -> Any:
        return self.layer([x, x * 0.5], **kwargs)


class _Layer:
    """A Keras layer that is built when it is first called, with the same weights each time.

    What it keeps (seeds, averages) is put back before each trace runs: the three ways to run a
    sample must see the same.
    """

    def __init__(self, make: Callable[[], Any], training: bool) -> None:
        self._make, self._training = make, training
        self._layer: Any = None

    def __call__(self, x: Any) -> Any:
        if self._layer is None:
            import keras

            with tf.init_scope():
                keras.utils.set_random_seed(0)
                self._layer = self._make()
                self._layer(tf.zeros(x.shape, x.dtype))
        inner = getattr(self._layer, "layer", self._layer)
        takes = "training" in inspect.signature(inner.call).parameters
        state = [v.value for v in getattr(inner, "variables", ())]
        with tf.init_scope():
            start = [tf.constant(v.numpy()) for v in state]
        result = self._layer(x, training=True) if takes and self._training else self._layer(x)
        for variable, value in zip(state, start, strict=True):
            if not any(variable is v.value for v in inner.trainable_variables):
                variable.assign(value)
        return result


def entries() -> Iterator[Entry]:
    """All functions, gradients and layers."""
    for name, functions in FUNCTIONS.items():
        samples = [_of(str(i), f) for i, f in enumerate(functions)]
        if name in DIFFERENTIATED:
            samples += [
                (f"gradient {i}", Sample(gradient_of(s.function), s.arguments)) for i, s in samples
            ]
        yield Entry(name, samples)
    for name, make, x in layers():
        samples = [
            ("call", Sample(_Layer(make, False), (x,))),
            ("training", Sample(_Layer(make, True), (x,))),
        ]
        if x.dtype.kind == "f":
            samples.append(("gradient", Sample(gradient_of(_Layer(make, False)), (x,))))
        yield Entry(f"keras.layers.{name}", samples)


def _of(label: str, function: Callable[..., Any]) -> tuple[str, Sample]:
    """Defaults that are arrays become arguments; others stay what they are."""
    parameters = inspect.signature(function).parameters.values()
    arrays = [p for p in parameters if hasattr(p.default, "dtype")]
    fixed = {p.name: p.default for p in parameters if not hasattr(p.default, "dtype")}

    def call(*tensors: Any) -> Any:
        return function(**dict(zip((p.name for p in arrays), tensors, strict=True)), **fixed)

    return label, Sample(call, tuple(p.default for p in arrays))


def uncovered(entries_: list[Entry]) -> list[str]:
    """Public functions of the modules whose raw operations no sample holds, by name."""
    known = {op.lower() for e in entries_ for _, o in e.outcomes for op in o.ops}
    known |= {e.name.rpartition(".")[2].lower() for e in entries_}
    text = inspect.getsource(inspect.getmodule(uncovered))  # type: ignore[arg-type]
    found = []
    for name in ("math", "nn", "image", "linalg", "signal"):
        module = getattr(tf, name)
        for attribute in dir(module):
            value = getattr(module, attribute)
            if attribute.startswith("_") or not inspect.isfunction(value):
                continue
            if attribute not in text and attribute.replace("_", "") not in known:
                found.append(f"{name}.{attribute}")
    return found
