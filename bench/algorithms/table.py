"""The algorithms: their names, arguments, and what bounds them. NumPy only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.table import Arrays, normal, picture, uniform


@dataclass(frozen=True)
class Algorithm:
    """One function of each of the modules beside this one.

    Attributes:
        name: of the function.
        inputs: makes its arguments, float32 unless they count something; those of the benchmark.
        small: makes arguments of odd sizes, for tests.
        contraction: a matrix product or convolution takes most of the time.
        tolerance: largest error of a right result, as :func:`bench.errors.max_error` has it.
    """

    name: str
    inputs: Callable[[], Arrays]
    small: Callable[[], Arrays]
    contraction: bool = False
    tolerance: float = 1e-5


def bodies(count: int) -> Callable[[], Arrays]:
    """Places, velocities and masses."""

    def make() -> Arrays:
        random = np.random.default_rng(1)
        place, speed = random.standard_normal((2, count, 3), dtype=np.float32)
        return place, speed, random.random(count, dtype=np.float32) + 0.5

    return make


def distances(count: int) -> Callable[[], Arrays]:
    """Points in a plane, and the distances that they are to have from each other."""

    def make() -> Arrays:
        random = np.random.default_rng(2)
        begin, end = random.standard_normal((2, count, 2)).astype(np.float32)
        apart = end[:, None] - end[None, :]
        return begin, np.sqrt((apart * apart).sum(-1)).astype(np.float32)

    return make


def options(count: int) -> Callable[[], Arrays]:
    """Prices, strikes and years."""

    def make() -> Arrays:
        random = np.random.default_rng(3)
        price, strike = random.uniform(20, 100, (2, count)).astype(np.float32)
        return price, strike, random.uniform(0.2, 2, count).astype(np.float32)

    return make


def plane(height: int, width: int) -> Callable[[], Arrays]:
    """Real and imaginary parts of a part of the plane of complex numbers."""

    def make() -> Arrays:
        y, x = np.meshgrid(
            np.linspace(-1.2, 1.2, height), np.linspace(-2, 0.8, width), indexing="ij"
        )
        return x.astype(np.float32), y.astype(np.float32)

    return make


def cells(height: int, width: int) -> Callable[[], Arrays]:
    """A random generation: 0 and 1."""
    return lambda: (np.random.default_rng(4).integers(0, 2, (height, width), dtype=np.int32),)


def moments(count: int) -> Callable[[], Arrays]:
    """Weights, gradients and their moments, of which the second is not negative."""

    def make() -> Arrays:
        random = np.random.default_rng(5)
        weight, gradient, mean, square = random.standard_normal((4, count), dtype=np.float32)
        return weight, gradient, mean, square * square

    return make


def labelled(count: int, width: int) -> Callable[[], Arrays]:
    """A weight, rows of features, and their labels 0 and 1."""

    def make() -> Arrays:
        random = np.random.default_rng(6)
        labels = random.integers(0, 2, count).astype(np.float32)
        weight = random.standard_normal(width, dtype=np.float32)
        return weight, random.standard_normal((count, width), dtype=np.float32), labels

    return make


ALGORITHMS: tuple[Algorithm, ...] = (
    Algorithm("blur_x_blur_y", uniform((3, 2048, 2048)), uniform((3, 37, 61))),
    Algorithm("adaptive_sharpen", picture(2048, 2048), picture(45, 67), tolerance=1e-4),
    Algorithm("heat", uniform((2048, 2048)), uniform((29, 43))),
    Algorithm("softmax", normal((4096, 1024)), normal((31, 77))),
    Algorithm("layer_norm", normal((4096, 1024), (1024,), (1024,)), normal((31, 77), (77,), (77,))),
    Algorithm("rms_norm", normal((4096, 1024), (1024,)), normal((31, 77), (77,))),
    Algorithm(
        "group_norm", normal((8, 64, 56, 56), (64,), (64,)), normal((3, 16, 7, 5), (16,), (16,))
    ),
    Algorithm("n_body", bodies(2048), bodies(53), tolerance=1e-4),
    Algorithm("scaling", distances(1024), distances(37), tolerance=1e-4),
    Algorithm("k_means", uniform((100_000, 8), (16, 8)), uniform((211, 5), (7, 5)), tolerance=1e-4),
    Algorithm("fir_bank", normal((1 << 20,), (8, 15)), normal((257,), (3, 7))),
    Algorithm("color_conversion", uniform((3, 2048, 2048)), uniform((3, 37, 61))),
    Algorithm("histogram_equalization", picture(2048, 2048), picture(37, 61)),
    Algorithm("black_scholes", options(1 << 22), options(1001), tolerance=1e-4),
    Algorithm("escape_times", plane(1024, 1024), plane(33, 47)),
    Algorithm("sobel", picture(2048, 2048), picture(37, 61)),
    Algorithm("upsample", picture(1024, 1024), picture(37, 61)),
    Algorithm("life", cells(2048, 2048), cells(37, 61)),
    Algorithm("gray_scott", uniform((1024, 1024), (1024, 1024)), uniform((37, 61), (37, 61))),
    Algorithm("wave", uniform((1024, 1024), (1024, 1024)), uniform((37, 61), (37, 61))),
    Algorithm("adam", moments(1 << 22), moments(1001), tolerance=1e-4),
    Algorithm("max_pool", normal((8, 112, 112, 64)), normal((2, 17, 13, 5))),
    Algorithm("variogram", normal((2048, 2048)), normal((37, 61))),
    Algorithm("logistic_regression", labelled(100_000, 64), labelled(211, 13), contraction=True),
    Algorithm(
        "conv_bias_relu",
        normal((4, 56, 56, 64), (3, 3, 64, 64), (64,)),
        normal((2, 9, 7, 5), (3, 3, 5, 3), (3,)),
        contraction=True,
        tolerance=1e-4,
    ),
    Algorithm(
        "attention",
        normal((8, 512, 64), (8, 512, 64), (8, 512, 64)),
        normal((2, 19, 7), (2, 23, 7), (2, 23, 7)),
        contraction=True,
    ),
    Algorithm(
        "mlp",
        normal((256, 512), (512, 1024), (1024,), (1024, 512), (512,)),
        normal((11, 13), (13, 17), (17,), (17, 5), (5,)),
        contraction=True,
        tolerance=1e-4,
    ),
)
