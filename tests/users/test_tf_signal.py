"""TensorFlow: tf.signal.stft, its inverse, and Fourier transforms of fixed sizes."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tf_compare import check, floats  # noqa: E402

from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf  # noqa: E402

strict = polyblocks_jit_tf(compile_options={"strict_target": True})


def test_stft():
    check(lambda x: tf.signal.stft(x, 64, 16), floats(2, 300), strict_target=True)


@pytest.mark.slow
def test_stft_padded_and_inverse_stft():
    def f(x):
        padded = tf.abs(tf.signal.stft(x, 100, 50, fft_length=128, pad_end=True))
        window = tf.signal.inverse_stft_window_fn(64)
        return padded, tf.signal.inverse_stft(tf.signal.stft(x, 128, 64), 128, 64, None, window)

    check(f, floats(2, 800), atol=1e-4, strict_target=True)


@pytest.mark.slow
def test_a_gradient_through_stft():
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.abs(tf.signal.stft(x, 32, 16)) ** 2)
        return tape.gradient(loss, x)

    check(f, floats(1, 128), atol=1e-4, strict_target=True)


@pytest.mark.slow
@pytest.mark.parametrize("length", [1, 30, 64, pytest.param(1024, marks=pytest.mark.slow)])
def test_rounding_is_that_of_tensorflow(length):
    x = np.random.default_rng(0).standard_normal((50, length)).astype(np.float32)
    exact = np.fft.rfft(x.astype(np.float64))

    def error(f):
        return np.sqrt(np.mean(np.abs(f(tf.constant(x)).numpy() - exact) ** 2))

    assert error(strict(tf.signal.rfft)) <= 2 * error(tf.signal.rfft)


@pytest.mark.slow
def test_complex_transforms():
    def f(z):
        return tf.signal.fft(z), tf.signal.ifft(z)

    z = tf.complex(floats(3, 12), floats(3, 12, seed=1))
    check(f, z, strict_target=True)
    check(f, tf.cast(z, tf.complex128), rtol=1e-12, atol=1e-13, strict_target=True)


@pytest.mark.slow
def test_real_transforms_of_other_lengths():
    def f(x, z):
        real = [tf.signal.rfft(x, [n]) for n in (11, 36, 40)]
        return real, tf.signal.irfft(z), tf.signal.irfft(z, [9]), tf.signal.irfft(z, [10])

    check(f, floats(2, 36), tf.complex(floats(2, 19), floats(2, 19, seed=1)), strict_target=True)


@pytest.mark.slow
def test_transforms_of_several_dimensions():
    def f(z):
        x = tf.math.real(z)
        two = tf.signal.fft2d(z), tf.signal.ifft2d(z), tf.signal.rfft2d(x)
        back = tf.signal.irfft2d(z, [6, 5]), tf.signal.irfft2d(z, [7, 10])
        return two, back, tf.signal.fft3d(z), tf.signal.rfft3d(x), tf.signal.irfft3d(z, [2, 6, 7])

    check(f, tf.complex(floats(2, 6, 6), floats(2, 6, 6, seed=1)), strict_target=True)


@pytest.mark.slow
def test_a_length_with_a_large_prime():
    check(tf.signal.rfft, floats(2, 67), atol=1e-5, strict_target=True)
