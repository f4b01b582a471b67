"""What Hopper's units are measured by: products, ResNet-50's convolutions, attention. NumPy only.

Sizes are those whose times by cuBLAS, cuDNN and PyTorch's attention on an H200 are known, and on
which whole models spend their time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bench.gpu import attention
from bench.gpu.cases import Extents, Pair, Shape, product
from bench.gpu_static.resnet_50 import Layer, layers
from bench.table import Arrays, Case, elements, halves

#: The group's name, which its pairs have.
GROUP = "hopper"
#: Images of a batch.
BATCHES = (8, 32)
#: Of a layer that is checked and simulated: channels and rows of an image at most.
SMALL_CHANNELS, SMALL_IMAGE = 72, 9
#: What PyTorch itself calls is the library to beat; Inductor calls the same ones.
LIBRARY = ("eager",)


def _bytes(*shapes: Shape) -> Callable[[], Arrays]:
    """Inputs of whole numbers from -128 to 127 in int8."""

    def make() -> Arrays:
        random = np.random.default_rng(0)
        return tuple(random.integers(-128, 128, shape, dtype=np.int8) for shape in shapes)

    return make


def _product_of_bytes(large: Extents, small: Extents) -> Pair:
    """The product of each row of one matrix of bytes with each row of another one, in int32."""

    def shapes(extents: Extents) -> tuple[Shape, Shape]:
        m, n, k = extents
        return (m, k), (n, k)

    def case(extents: Extents) -> Case:
        arguments = shapes(extents)
        nbytes = elements(*arguments) // 4 + elements(extents[:2])
        return Case(
            f"a @ b.T int8 {'x'.join(map(str, extents))}",
            "integer_product_of_rows",
            _bytes(*arguments),
            nbytes,
            tolerance=0.0,
            flops=2 * math.prod(extents),
            operands="int8",
        )

    sizes = {"large": shapes(large), "small": shapes(small)}
    return Pair(case(large), case(small), sizes, "int8", GROUP, LIBRARY)


def _convolution(layer: Layer, batch: int) -> Pair:
    """A layer, channels last, at a batch's size; the small one has few channels and pixels."""
    few = replace(
        layer,
        inputs=min(layer.inputs, SMALL_CHANNELS),
        outputs=min(layer.outputs, SMALL_CHANNELS),
        image=min(layer.image, SMALL_IMAGE),
    )

    def shapes(layer: Layer, batch: int) -> tuple[Shape, Shape]:
        image = (batch, layer.image, layer.image, layer.inputs)
        return image, (layer.outputs, layer.window, layer.window, layer.inputs)

    def case(layer: Layer, batch: int) -> Case:
        arguments, result = shapes(layer, batch), (batch, layer.result, layer.result, layer.outputs)
        return Case(
            f"convolution {layer.window}x{layer.window} /{layer.stride} float16 "
            f"{layer.inputs}->{layer.outputs} {batch}x{layer.image}x{layer.image}",
            "convolution" if layer.stride == 1 else "convolution_of_every_second",
            halves(*arguments),
            elements(*arguments, result) // 2,
            tolerance=1e-3,
            flops=2 * math.prod(result) * layer.inputs * layer.window**2,
            operands="float16",
        )

    sizes = {"large": shapes(layer, batch), "small": shapes(few, 1)}
    return Pair(case(layer, batch), case(few, 1), sizes, "float16", GROUP, LIBRARY)


def _attention(
    program: str, large: tuple[Shape, Shape], small: tuple[Shape, Shape], peers: tuple[str, ...]
) -> Pair:
    return replace(attention.pair(program, large, small), group=GROUP, peers=peers)


def _same(*shape: int) -> tuple[Shape, Shape]:
    return shape, shape


#: PyTorch's own choice, and each of the ways that it may be.
_FUSED = ("eager", "flash", "cudnn")

PAIRS: tuple[Pair, ...] = (
    *(
        replace(product("product", large, small), group=GROUP, peers=LIBRARY)
        for large, small in (
            ((8192, 8192, 8192), (70, 72, 83)),
            ((4096, 4096, 4096), (64, 128, 96)),
            ((4096, 4096, 1024), (130, 136, 264)),
            ((1000, 1000, 1000), (33, 40, 40)),
            ((512, 4096, 4096), (128, 256, 128)),
            ((1024, 3072, 768), (256, 128, 192)),
        )
    ),
    _product_of_bytes((8192, 8192, 8192), (65, 40, 96)),
    *(
        _attention(program, _same(4, 16, 4096, size), _same(1, 2, rows, size), _FUSED)
        for size in (128, 64)
        for program, rows in (("attention", 70), ("causal_attention", 133))
    ),
    _attention(
        "decode", ((8, 32, 1, 128), (8, 32, 4096, 128)), ((2, 2, 1, 128), (2, 2, 203, 128)), _FUSED
    ),
    _attention("attention_gradients", _same(4, 16, 4096, 128), _same(1, 2, 70, 128), _FUSED),
    _attention(
        "windowed_attention",
        *(_same(1, 16, 8192, 128), _same(1, 2, 600, 64)),
        ("eager", "flex_attention"),
    ),
    *(_convolution(layer, batch) for batch in BATCHES for layer in dict.fromkeys(layers())),
)
