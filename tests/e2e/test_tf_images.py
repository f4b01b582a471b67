"""TensorFlow: operations on images that its bridge to XLA does not know."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sweeps import sweep

tf = pytest.importorskip("tensorflow")

from tf_compare import assert_same, check, floats  # noqa: E402

from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf  # noqa: E402


def transform(images, transforms, size, interpolation, mode, fill=0.0):
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=images,
        transforms=transforms,
        output_shape=size,
        fill_value=fill,
        interpolation=interpolation,
        fill_mode=mode,
    )


def rotation(angle, height, width):
    c, s = math.cos(angle), math.sin(angle)
    x = ((width - 1) - (c * (width - 1) - s * (height - 1))) / 2
    y = ((height - 1) - (s * (width - 1) + c * (height - 1))) / 2
    return [c, -s, x, s, c, y, 0.0, 0.0]


MOVES = {
    "identity": [1.0, 0, 0, 0, 1, 0, 0, 0],
    "translation": [1.0, 0, -3, 0, 1, 2, 0, 0],
    "half": [1.0, 0, 0.5, 0, 1, -0.25, 0, 0],
    "far": [1.0, 0, 60, 0, 1, -75, 0, 0],
    "rotation": rotation(0.6, 11, 14),
    "scale": [2.5, 0, -9, 0, 3.25, -11, 0, 0],
    "projection": [1.0, 0.1, 0, 0, 1, 0, 0.02, -0.03],
    "horizon": [1.0, 0.0, 0, 0, 1, 0, -0.25, 0.0],
}


@pytest.mark.parametrize(
    "mode",
    sweep(
        ["CONSTANT", "REFLECT", "WRAP", "NEAREST"],
        "REFLECT",
        extended=["CONSTANT", "WRAP", "NEAREST"],
    ),
)
@pytest.mark.parametrize("interpolation", sweep(["NEAREST", "BILINEAR"], "BILINEAR"))
def test_projective_transforms(interpolation, mode):
    images = floats(len(MOVES), 11, 14, 3)
    moves = tf.constant(list(MOVES.values()))
    check(
        lambda images, moves: transform(images, moves, [9, 17], interpolation, mode, 0.7),
        images,
        moves,
    )


@pytest.mark.each_choice("extended")
@pytest.mark.parametrize(
    "interpolation", sweep(["NEAREST", "BILINEAR"], "BILINEAR", extended=["NEAREST"])
)
@pytest.mark.parametrize(
    "dtype", sweep(["uint8", "int32", "float16", "float64"], "uint8", extended=["float16"])
)
def test_dtypes_of_images(dtype, interpolation):
    images = tf.cast(floats(2, 7, 8, 1, low=0, high=200), dtype)
    moves = tf.constant([rotation(0.3, 7, 8), MOVES["half"]])
    check(
        lambda i, m: transform(i, m, [7, 8], interpolation, "REFLECT", 3.0),
        images,
        moves,
        atol=0.2 if dtype == "float16" else 1e-5,
    )


@pytest.mark.extended
def test_one_transform_for_all_images():
    check(
        lambda i: transform(i, tf.constant([MOVES["rotation"]]), [11, 14], "BILINEAR", "WRAP"),
        floats(4, 11, 14, 2),
    )


@pytest.mark.parametrize("extent", sweep([1, 2], 1, extended=[2]))
def test_tiny_images(extent):
    def function(images):
        move = tf.constant([MOVES["translation"]])
        modes = ("CONSTANT", "REFLECT", "WRAP", "NEAREST")
        return [transform(images, move, [3, 3], "NEAREST", mode) for mode in modes]

    check(function, floats(1, extent, extent, 1))


def test_gradient_of_a_rotation():
    def f(images):
        with tf.GradientTape() as tape:
            tape.watch(images)
            moved = transform(
                images, tf.constant([MOVES["rotation"]]), [11, 14], "BILINEAR", "CONSTANT"
            )
            loss = tf.reduce_sum(moved * moved)
        return tape.gradient(loss, images)

    check(f, floats(2, 11, 14, 3))


@pytest.mark.extended
def test_in_a_loop():
    def f(images):
        def body(i, images):
            return i + 1, transform(
                images, tf.constant([MOVES["half"]]), [11, 14], "BILINEAR", "REFLECT"
            )

        return tf.while_loop(lambda i, _: i < 3, body, [0, images])[1]

    check(f, floats(1, 11, 14, 1))


@pytest.mark.extended
@pytest.mark.parametrize(
    "name",
    sweep(
        ["RandomRotation", "RandomTranslation"], "RandomRotation", extended=["RandomTranslation"]
    ),
)
def test_keras_layers(name):
    import keras

    images = floats(2, 12, 12, 3, low=0.0)
    if name == "RandomTranslation":
        layer = keras.layers.RandomTranslation(0.2, 0.3, seed=1)
    else:
        layer = keras.layers.RandomRotation(0.2, seed=2, fill_mode="constant")
    layer.build(images.shape)
    state = [v.numpy() for v in layer.variables]
    expected = tf.function(lambda i: layer(i, training=True))(images)
    for variable, value in zip(layer.variables, state, strict=True):
        variable.assign(value)
    compiled = polyblocks_jit_tf(lambda i: layer(i, training=True))
    assert_same(compiled(images), expected)
    assert compiled.polyblocks_report().whole, str(compiled.polyblocks_report())


@pytest.mark.each_choice
@pytest.mark.parametrize("size", [[5, 7], [1, 1]], ids=str)
@pytest.mark.parametrize("method", ["bilinear", "nearest"])
def test_crop_and_resize(method, size):
    # No pixel is half-way between two, where the last bit of a product decides for one of them.
    boxes = tf.constant([[0.1, 0.2, 0.8, 0.9], [0.9, 0.85, 0.1, 0.1], [-0.3, 0, 1.4, 1.0]])
    check(
        lambda i, b: tf.image.crop_and_resize(i, b, [0, 1, 0], size, method, 0.25),
        floats(2, 9, 10, 3),
        boxes,
    )


@pytest.mark.extended
def test_small_inverses():
    def function(*matrices):
        return [(tf.linalg.inv(m), tf.linalg.inv(m, adjoint=True)) for m in matrices]

    check(function, *(floats(5, n, n) + 2 * tf.eye(n) for n in (1, 2, 3)), rtol=1e-3)


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
def test_resize(method):
    check(lambda i: tf.image.resize(i, [9, 5], method), floats(2, 6, 7, 3))


def test_color_spaces():
    images = floats(5, 6, 3, low=0.0)
    check(lambda i: (tf.image.rgb_to_hsv(i), tf.image.rgb_to_grayscale(i)), images)
    check(lambda i: (tf.image.adjust_hue(i, 0.2), tf.image.adjust_contrast(i, 1.5)), images)
    assert np.isfinite(images).all()


def test_non_max_suppression_of_a_static_size():
    def kept(boxes, scores):
        return tf.image.non_max_suppression_padded(
            boxes, scores, 7, 0.4, pad_to_max_output_size=True, tile_size=16
        )

    corners = np.sort(floats(20, 2, 2, low=0.0).numpy(), axis=1)
    check(kept, tf.constant(corners.reshape(20, 4)), floats(20, low=0.0), strict_target=True)
