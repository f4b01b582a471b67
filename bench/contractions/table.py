"""The rows of matrix products, convolutions and models of images. NumPy only."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from bench import arrays
from bench.table import Arrays, Case

#: Largest error of a right result, by type of the operands: sums of thousands of products, whose
#: order is free. A peer may also sum in bfloat16, in parts: IREE's products of 1024 terms are off
#: by 2.3e-2 of the largest one, where sums in float32 are by 3e-3, and one chain of additions in
#: bfloat16 by 9e-2. Ours is held to eager's error besides.
TOLERANCES = {"float32": 1e-4, "bfloat16": 5e-2, "int8": 0.0}

#: The same of models, where the errors of a layer meet those of the next ones.
MODEL_TOLERANCE = 1e-3

#: Bytes of an operand and of a result.
_SIZES = {"float32": (4, 4), "bfloat16": (2, 2), "int8": (1, 4)}


def random(*shapes: tuple[int, ...], dtype: str = "float32") -> Callable[[], Arrays]:
    """Normally distributed numbers; of int8, all that there are, equally often."""

    def make() -> Arrays:
        generator = np.random.default_rng(0)
        if dtype == "int8":
            return tuple(generator.integers(-128, 128, shape, np.int8) for shape in shapes)
        made = tuple(generator.standard_normal(shape, np.float32) for shape in shapes)
        if dtype == "bfloat16":
            return tuple(array.astype(arrays.bfloat16()) for array in made)
        return made

    return make


def clustered(count: int, centres: int, width: int) -> Callable[[], Arrays]:
    """Points near one of the centres each, so that rounding cannot say which one is nearest."""

    def make() -> Arrays:
        generator = np.random.default_rng(0)
        middle = generator.standard_normal((centres, width), np.float32)
        off = generator.standard_normal((count, width), np.float32)
        return middle[generator.integers(0, centres, count)] + 0.25 * off, middle

    return make


def products(
    m: int, k: int, n: int, batch: int | None = None, bar: float = 1.0, bar_floor: float = 0.8,
    dtype: str = "float32",
) -> Case:  # fmt: skip
    """Products of M x K and K x N matrices."""
    front = () if batch is None else (batch,)
    count = batch or 1
    title = f"matmul {m}x{k}x{n}" if batch is None else f"batched matmul {batch}x({m}x{k}x{n})"
    operand, result = _SIZES[dtype]
    return Case(
        title if dtype == "float32" else f"{dtype} {title}",
        "contractions.matmul_int8" if dtype == "int8" else "contractions.matmul",
        random((*front, m, k), (*front, k, n), dtype=dtype),
        count * (operand * (m * k + k * n) + result * m * n),
        bar=bar,
        bar_floor=bar_floor,
        tolerance=TOLERANCES[dtype],
        flops=2 * count * m * k * n,
        operands=dtype,
    )


def convolution(
    kernel: int, inputs: int, outputs: int, extent: int, stride: int = 1, batch: int = 1,
    nhwc: bool = False,
) -> Case:  # fmt: skip
    """A square convolution of a square image, with bias and ReLU."""
    result = -(-extent // stride)
    image, weight = (batch, inputs, extent, extent), (outputs, inputs, kernel, kernel)
    if nhwc:
        image, weight = (batch, extent, extent, inputs), (outputs, kernel, kernel, inputs)
    taps = inputs * kernel * kernel
    size = f"{kernel}x{kernel}{f'/{stride}' if stride > 1 else ''}"
    program = f"{'strided_' if stride > 1 else ''}conv_bias_relu{'_nhwc' if nhwc else ''}"
    return Case(
        f"conv {'NHWC ' if nhwc else ''}{size} {inputs}->{outputs} {extent}x{extent} b{batch}",
        f"contractions.{program}",
        random(image, weight, (outputs,)),
        4 * (math.prod(image) + math.prod(weight) + outputs + batch * outputs * result**2),
        bar_floor=0.75 if nhwc else 0.8,
        tolerance=TOLERANCES["float32"],
        flops=2 * batch * outputs * result**2 * taps,
    )


def model(name: str, numbers: int, flops: int) -> Case:
    """A model of images, of ``numbers`` weights and statistics."""
    image = (1, 3, 224, 224)
    return Case(
        f"{name} b1",
        f"models.{name}",
        random(image),
        4 * (numbers + math.prod(image) + 1000),
        bar_floor=0.8,
        tolerance=MODEL_TOLERANCE,
        flops=flops,
    )


def _convolutions(nhwc: bool) -> tuple[Case, ...]:
    return (
        convolution(3, 64, 64, 56, nhwc=nhwc),
        convolution(3, 256, 256, 14, batch=8, nhwc=nhwc),
        convolution(7, 3, 64, 224, stride=2, nhwc=nhwc),
        convolution(1, 256, 1024, 14, nhwc=nhwc),
    )


_F32 = TOLERANCES["float32"]

#: The row that a goal of the whole run is about.
SQUARE = products(1024, 1024, 1024, bar_floor=0.85)

CASES: tuple[Case, ...] = (
    SQUARE,
    Case(
        "matmul 2048x2048x2048 w.T",
        "contractions.matmul_transposed",
        random((2048, 2048), (2048, 2048)),
        3 * 4 * 2048**2,
        bar_floor=0.85,
        tolerance=_F32,
        flops=2 * 2048**3,
    ),
    products(4096, 4096, 4096, bar_floor=0.85),
    products(127, 769, 3073),
    products(8, 4096, 4096),
    products(1, 4096, 4096),
    products(64, 512, 512),
    products(512, 64, 512, batch=12),
    products(16, 16, 16, batch=4096, bar=1.2),
    Case(
        "MLP 128x768x3072x768",
        "contractions.mlp",
        random((128, 768), (3072, 768), (3072,), (768, 3072), (768,)),
        4 * (2 * 128 * 768 + 2 * 768 * 3072 + 3072 + 768),
        bar=1.05,
        bar_floor=0.85,
        tolerance=_F32,
        flops=2 * 2 * 128 * 768 * 3072,
    ),
    Case(
        "matmul 128x3072x768 + residual + layer norm",
        "contractions.linear_residual_norm",
        random((128, 3072), (768, 3072), (768,), (128, 768), (768,), (768,)),
        4 * (128 * 3072 + 768 * 3072 + 3 * 768 + 2 * 128 * 768),
        bar=1.1,
        bar_floor=0.9,
        tolerance=_F32,
        flops=2 * 128 * 3072 * 768,
    ),
    Case(
        "nearest of 1024 centres 65536x64",
        "contractions.nearest",
        clustered(65536, 1024, 64),
        4 * (65536 + 1024) * 64 + 8 * 65536,
        bar=1.5,
        bar_floor=1.0,
        tolerance=0.0,
        flops=2 * 65536 * 1024 * 64,
    ),
    *_convolutions(nhwc=False),
    convolution(3, 128, 256, 28, stride=2),
    *_convolutions(nhwc=True),
    Case(
        "depthwise 3x3 192 56x56 b1",
        "contractions.depthwise",
        random((1, 192, 56, 56), (192, 1, 3, 3)),
        4 * (2 * 192 * 56**2 + 192 * 9),
        bar=1.2,
        bar_floor=0.9,
        tolerance=_F32,
        flops=2 * 192 * 56**2 * 9,
    ),
    products(1024, 1024, 1024, bar_floor=0.7, dtype="bfloat16"),
    products(1024, 1024, 1024, bar_floor=0.7, dtype="int8"),
    model("ResNet-18", 11_699_112, 3_628_146_688),
    model("ResNet-50", 25_610_152, 8_178_368_512),
    model("MobileNetV2", 3_538_984, 601_548_544),
    model("ConvNeXt-T", 28_589_128, 8_911_062_528),
)
