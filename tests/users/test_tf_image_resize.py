"""TensorFlow: tf.image.resize with all methods, with and without antialiasing; gradients."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep

tf = pytest.importorskip("tensorflow")

from tf_compare import assert_same, check, floats  # noqa: E402

from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf  # noqa: E402
from polyblocks_tf.operations import resampling  # noqa: E402

KERNELS = "lanczos1 lanczos3 lanczos5 gaussian box triangle keyscubic mitchellcubic".split()


@pytest.mark.parametrize(
    ("method", "antialias"),
    [
        ("bicubic", False),
        ("area", False),
        pytest.param("lanczos5", True, marks=pytest.mark.slow),
        *(
            pytest.param(method, antialias, marks=pytest.mark.slow)
            for method in ("bicubic", "bilinear", "nearest", "gaussian", "mitchellcubic")
            for antialias in (False, True)
        ),
        pytest.param("lanczos3", False, marks=pytest.mark.slow),
    ],
)
def test_image_resize(method, antialias):
    def f(image):
        up = tf.image.resize(image, (13, 11), method=method, antialias=antialias)
        down = tf.image.resize(image, (3, 4), method=method, antialias=antialias)
        return up, down

    check(f, floats(2, 7, 9, 3), rtol=1e-5, atol=1e-5, strict_target=True)


@pytest.mark.parametrize("size", sweep([(24, 24), (5, 9)], (5, 9)))
@pytest.mark.parametrize(
    "method",
    [
        "bicubic",
        "bilinear",
        *(
            pytest.param(method, marks=pytest.mark.slow)
            for method in ("area", "nearest", "lanczos3", "lanczos5", "gaussian", "mitchellcubic")
        ),
    ],
)
def test_a_nan_or_infinity_in_one_pixel_goes_where_it_goes_in_tensorflow(method, size):
    def f(image):
        return [tf.image.resize(image, size, method, antialias=blur) for blur in (False, True)]

    compiled = polyblocks_jit_tf(f)
    for bad in (np.nan, np.inf):
        for row, column in ((3, 3), (0, 0), (15, 15), (8, 14)):
            image = floats(1, 16, 16, 2).numpy()
            image[0, row, column, 0] = bad
            assert_same(compiled(image), f(tf.constant(image)), 1e-5, 1e-5)
    assert compiled.polyblocks_report().whole


def test_a_nan_in_a_gradient_stays_near_its_pixel():
    @polyblocks_jit_tf
    def gradient(image, upstream):
        with tf.GradientTape() as tape:
            tape.watch(image)
            small = tf.image.resize(image, (5, 5), "bicubic")
        return tape.gradient(small, image, upstream)

    upstream = np.ones((1, 5, 5, 1), np.float32)
    upstream[0, 0, 0] = np.nan
    found = gradient(floats(1, 40, 40, 1), upstream).numpy()[0, :, :, 0]
    assert np.isnan(found[:4, :4]).any()
    assert not np.isnan(found[8:]).any()
    assert not np.isnan(found[:, 8:]).any()


@pytest.mark.parametrize("aligned", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_gradient_through_the_nearest_pixels(aligned):
    def f(image, upstream):
        with tf.GradientTape() as tape:
            tape.watch(image)
            found = tf.raw_ops.ResizeNearestNeighbor(
                images=image, size=(5, 19), align_corners=aligned, half_pixel_centers=not aligned
            )
        return tape.gradient(found, image, upstream)

    upstream = floats(2, 5, 19, 3).numpy()
    upstream[0, 0, 0, 0] = np.nan
    check(f, floats(2, 7, 9, 3), tf.constant(upstream), rtol=1e-6, strict_target=True)


@pytest.mark.slow
def test_image_resize_of_bytes():
    image = tf.constant(np.random.default_rng(0).integers(0, 256, (9, 7, 3)), tf.uint8)
    f = lambda x: tf.image.resize(x, (5, 12), method="bicubic")  # noqa: E731
    check(f, image, rtol=1e-5, atol=1e-3, strict_target=True)


@pytest.mark.slow
def test_a_gradient_through_image_resize():
    def f(image):
        with tf.GradientTape() as tape:
            tape.watch(image)
            loss = tf.reduce_sum(tf.image.resize(image, (12, 5), method="bicubic") ** 2)
            loss += tf.reduce_sum(tf.image.resize(image, (3, 5), "lanczos3", antialias=True) ** 2)
            loss += tf.reduce_sum(tf.image.resize(image, (3, 19), "nearest") ** 2)
        return tape.gradient(loss, image)

    check(f, floats(1, 6, 8, 2), rtol=1e-4, atol=1e-5, strict_target=True)


SIZES = [(7, 14), (16, 5), (8, 8), (1, 3), (5, 1), (33, 50), (64, 3)]


def along_rows(matrix, image):
    return tf.einsum("or,brwc->bowc", tf.constant(matrix), image)


@pytest.mark.parametrize(("extent", "size"), SIZES)
def test_weights_are_those_of_the_kernels(extent, size):
    image = floats(1, extent, 4, 2)
    target = tf.constant([size, 4])
    for align, half in ((False, False), (True, False), (False, True)):
        theirs = tf.raw_ops.ResizeBicubic(
            images=image, size=target, align_corners=align, half_pixel_centers=half
        )
        taps = resampling.bicubic(extent, size, align, half)
        assert_same(along_rows(taps.matrix, image), theirs, 1e-6, 1e-6)
    for align in (False, True):
        taps = resampling.area(extent, size, align)
        if taps is None:
            assert extent == 1
            assert align
            continue
        theirs = tf.raw_ops.ResizeArea(images=image, size=target, align_corners=align)
        assert_same(along_rows(taps.matrix, image), theirs, 1e-6, 1e-6)
    for kernel in KERNELS:
        for antialias, shift in ((False, 0.0), (True, 0.0), (True, 1.5), (False, -2.25)):
            scale = size / extent
            theirs = tf.raw_ops.ScaleAndTranslate(
                images=image,
                size=target,
                scale=[scale, 1.0],
                translation=[shift, 0.0],
                kernel_type=kernel,
                antialias=antialias,
            )
            taps = resampling.scaled(extent, size, scale, shift, kernel, antialias)
            # The other axis is resampled by the same kernel, which some do not leave as it is.
            other = resampling.scaled(4, 4, 1.0, 0.0, kernel, antialias)
            ours = tf.einsum("or,ws,brsc->bowc", taps.matrix, other.matrix, image)
            assert_same(ours, theirs, 1e-5, 1e-6)


@pytest.mark.slow
def test_a_kernel_that_is_not_known_is_left_to_tensorflow():
    assert resampling.scaled(4, 4, 1.0, 0.0, "sharpest", False) is None
    assert resampling.scaled(4, 4, 0.0, 0.0, "box", False) is None
    f = polyblocks_jit_tf(lambda x: tf.compat.v1.image.resize_area(x, (3, 4), align_corners=True))
    f(floats(1, 1, 4, 1))  # an extent of 1 has no corners to align
    assert {row.op for row in f.polyblocks_report().fallbacks} == {"ResizeArea"}


@pytest.mark.parametrize("loop", [False, True])
def test_a_substitution_beside_a_large_constant_in_a_branch_or_loop(loop):
    large = np.random.default_rng(0).random((512, 513), np.float32)

    def resized(x):
        size = [4, 4]
        return tf.image.resize(tf.reshape(x, [1, 2, 2, 1]), size, method="area")[0, 0, 0, 0]

    def f(x, steps):
        start = tf.zeros(large.shape)
        if loop:
            step = lambda i, y: (i + 1, y + tf.constant(large) * resized(x))  # noqa: E731
            return tf.while_loop(lambda i, _: i < steps, step, (0, start))[1]
        return tf.cond(steps > 0, lambda: resized(x) + tf.constant(large), lambda: start)

    x, steps = tf.ones((2, 2)), tf.constant(3)
    np.testing.assert_allclose(polyblocks_jit_tf(f)(x, steps), f(x, steps), rtol=1e-6)
