"""What others have measured of matrix units, and of kernels that use them. Data only.

Each row was read where its source says. :mod:`bench.gpu_static.against` holds the tables of chips
and the static model against them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """Where a number stands; ``year`` is 0 where the page does not say."""

    title: str
    authors: str
    year: int
    url: str


@dataclass(frozen=True)
class Rate:
    """What a matrix instruction does where nothing else limits it.

    Attributes:
        chip: by the target's name of it.
        operands, accumulator: dtypes, as in descriptions of targets.
        value: the number.
        unit: of it: ``TFLOP/s`` of the chip, ``FLOP/clk`` of a multiprocessor (of AMD: a compute
            unit), or ``clocks`` of one instruction of 16 by 16 by 16.
        source: of it.
        stated: by the vendor, not measured.
    """

    chip: str
    operands: str
    accumulator: str
    value: float
    unit: str
    source: Source
    stated: bool = False


@dataclass(frozen=True)
class Kernel:
    """The time of one kernel, whose machine code is in ``bench/gpu_static/published``.

    Attributes:
        chip: by the target's name of it.
        listing: name of the file.
        extents: rows, columns and steps of the product.
        result_bytes: of an element of the result.
        milliseconds: measured.
        tile: rows and columns of a block.
        threads, registers, shared_bytes: of a block, a thread, a block.
        source: of the number.
        gigahertz: the clock that the measurement names; 0 for that of the chip's description.
        between_launches: the time is from the end of the launch before.
        boxes: bytes of each box of an iteration, which a group of four warps copies.
        leaves: bytes of results that a group of four warps stores in boxes.
        blocks: of the grid, where each computes tile after tile; 0: one for each tile.
        cluster: blocks that get the last of ``boxes`` together.
        tolerance: how far the model may be from the time, relative to it.
    """

    chip: str
    listing: str
    extents: tuple[int, int, int]
    result_bytes: int
    milliseconds: float
    tile: tuple[int, int]
    threads: int
    registers: int
    shared_bytes: int
    source: Source
    gigahertz: float = 0.0
    between_launches: bool = False
    boxes: tuple[int, ...] = ()
    leaves: int = 0
    blocks: int = 0
    cluster: int = 1
    tolerance: float = 0.25

    @property
    def teraflops(self) -> float:
        """A multiply-add is two operations."""
        m, n, k = self.extents
        return 2e-9 * m * n * k / self.milliseconds


@dataclass(frozen=True)
class Library:
    """A product by a vendor's library, whose machine code is not at hand.

    Attributes:
        chip: by the target's name of it.
        name: of the library.
        operands, accumulator: dtypes.
        extents: rows, columns and steps.
        teraflops: measured.
        source: of the number.
    """

    chip: str
    name: str
    operands: str
    accumulator: str
    extents: tuple[int, int, int]
    teraflops: float
    source: Source


@dataclass(frozen=True)
class Attention:
    """Attention of float16 by one kernel, whose machine code is there as well.

    Attributes:
        chip: by the target's name of it.
        listing: name of the file.
        heads: of all of a batch.
        length: rows of a head, and keys and values of each.
        size: of a head.
        teraflops: measured; of a causal one a half of the operations count.
        rows: of a block.
        registers, shared_bytes: of a thread, of a block.
        source: of the number.
        causal: whether a row attends to those up to its own number only.
        threads: of a block.
        gigahertz: the clock that the measurement names; 0 for that of the chip's description.
        boxes: bytes of each box of an iteration, which a group of four warps copies.
    """

    chip: str
    listing: str
    heads: int
    length: int
    size: int
    teraflops: float
    rows: int
    registers: int
    shared_bytes: int
    source: Source
    causal: bool = False
    threads: int = 128
    gigahertz: float = 0.0
    boxes: tuple[int, ...] = ()


_PROBE = Source(
    "Blackwell Tensor Core Kernels: results/mma_rate_probe.csv",
    "Wei Cheng Chiu",
    2026,
    "https://github.com/waynehacking8/blackwell-tensorcore-kernels",
)
_PROFILE = Source(
    "Blackwell Tensor Core Kernels: results/ncu_sm120_mma_warptile_8192.txt",
    "Wei Cheng Chiu",
    2026,
    "https://github.com/waynehacking8/blackwell-tensorcore-kernels",
)
_LADDER = Source(
    "Blackwell Tensor Core Kernels: results/bench.csv",
    "Wei Cheng Chiu",
    2026,
    "https://github.com/waynehacking8/blackwell-tensorcore-kernels",
)
_VKPEAK = Source("vkpeak: README", "nihui", 2026, "https://github.com/nihui/vkpeak")
_VKPEAK_RDNA3 = Source(
    "phoronix-test-suite/test-profiles, issue 284",
    "nihui",
    2023,
    "https://github.com/phoronix-test-suite/test-profiles/issues/284",
)
_RDNA3 = Source(
    "How to accelerate AI applications on RDNA 3 using WMMA",
    "A. Vasishta, AMD GPUOpen",
    0,
    "https://gpuopen.com/learn/wmma_on_rdna3/",
)
_RDNA4 = Source(
    "Using the Matrix Cores of AMD RDNA 4 architecture GPUs",
    "T. Harada, A. Yoshimura, AMD GPUOpen",
    0,
    "https://gpuopen.com/learn/using_matrix_core_amd_rdna4",
)
_A100 = Source(
    "Double precision tensor core performance on A100 (NVIDIA's answer quotes the white paper)",
    "NVIDIA Developer Forums",
    0,
    "https://forums.developer.nvidia.com/t/double-precision-tensor-core-performance-on-a100/259131",
)
_GA102 = Source(
    "Dense vs Sparse Tensor Core Performance (FP16) (quotes table 6 of the GA102 white paper)",
    "NVIDIA Developer Forums",
    2024,
    "https://forums.developer.nvidia.com/t/dense-vs-sparse-tensor-core-performance-fp16/314261",
)
_ADA = Source(
    "Fast Tensor Core matmul on the Ada Architecture",
    "Sam Patterson",
    2024,
    "https://github.com/spatters/mma-matmul",
)
_OURS = Source(
    "bench/results/2026-11-26-nvidia-h100-80gb-hbm3.md",
    "PolyBlocks",
    2026,
    "bench/results/2026-11-26-nvidia-h100-80gb-hbm3.json",
)
_STEPS = Source(
    "Products of float16 on an H200, a technique after the other, at 1635 MHz (2026-11-28)",
    "PolyBlocks",
    2026,
    "bench/gpu_static/published/sm_90a-boxes.txt",
)
_ATTENTION_STEPS = Source(
    "Attention in float16 on an H200, a technique after the other, at 1635 MHz (2026-11-28)",
    "PolyBlocks",
    2026,
    "bench/gpu_static/published/sm_90a-attention-128.txt",
)
_MAMF = Source(
    "Machine Learning Engineering: Maximum Achievable Matmul FLOPS comparison table",
    "Stas Bekman",
    2026,
    "https://github.com/stas00/ml-engineering/tree/master/compute/accelerator",
)
_WMMA_GEMM = Source(
    "rocm_wmma_gemm: docs/gfx1100_square.md, docs/gfx1151_square.md",
    "Adel Johar",
    2026,
    "https://github.com/adelj88/rocm_wmma_gemm",
)

_DAO = Source(
    "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning, section 4",
    "Tri Dao",
    2023,
    "https://arxiv.org/abs/2307.08691",
)
_A5000 = Source(
    "ring-attention, issue 10: benchmark_flash_attention.py on an RTX A5000",
    "Iron-Bound",
    2024,
    "https://github.com/gpu-mode/ring-attention/issues/10",
)
_TILE = Source(
    "TVM: tl_doc/flash_perf.md",
    "Apache TVM",
    2024,
    "https://github.com/apache/tvm/blob/aa7b939ef40286df05b401d2b8e9dbc217d81a30/tl_doc/flash_perf.md",
)
_TRITON = Source(
    "Triton: python/test/regression/test_performance.py",
    "Triton's authors",
    2023,
    "https://github.com/triton-lang/triton",
)

RATES = (
    Rate("rtx-pro-6000", "float16", "float32", 1023.8, "FLOP/clk", _PROBE),
    Rate("rtx-pro-6000", "float16", "float16", 1023.7, "FLOP/clk", _PROBE),
    Rate("rtx-5060-ti", "float16", "float16", 101.48535, "TFLOP/s", _VKPEAK),
    Rate("rtx-5060-ti", "int8", "int32", 202.9478, "TFLOP/s", _VKPEAK),
    Rate("rx-9060-xt", "float16", "float32", 105.33766, "TFLOP/s", _VKPEAK),
    Rate("rx-9060-xt", "bfloat16", "float32", 105.09982, "TFLOP/s", _VKPEAK),
    Rate("rx-9060-xt", "int8", "int32", 194.47641, "TFLOP/s", _VKPEAK),
    Rate("rx-9060-xt", "float8_e4m3", "float32", 205.06172, "TFLOP/s", _VKPEAK),
    Rate("rx-9060-xt", "float8_e5m2", "float32", 208.23402, "TFLOP/s", _VKPEAK),
    # "130Tflops+ measured on my 7900xtx graphic".
    Rate("rx-7900-xtx", "float16", "float32", 130.0, "TFLOP/s", _VKPEAK_RDNA3),
    Rate("rx-7900-xtx", "float16", "float32", 32, "clocks", _RDNA3, stated=True),
    Rate("rx-7900-xtx", "float16", "float32", 512, "FLOP/clk", _RDNA4, stated=True),
    Rate("rx-7900-xtx", "bfloat16", "float32", 512, "FLOP/clk", _RDNA4, stated=True),
    Rate("rx-7900-xtx", "int8", "int32", 512, "FLOP/clk", _RDNA4, stated=True),
    Rate("rx-9070-xt", "float16", "float32", 1024, "FLOP/clk", _RDNA4, stated=True),
    Rate("rx-9070-xt", "bfloat16", "float32", 1024, "FLOP/clk", _RDNA4, stated=True),
    Rate("rx-9070-xt", "int8", "int32", 2048, "FLOP/clk", _RDNA4, stated=True),
    # 256 multiply-adds of each of four tensor cores.
    Rate("a100", "float16", "float32", 2048, "FLOP/clk", _A100, stated=True),
    # 512 multiply-adds of a multiprocessor.
    Rate("a40", "float16", "float32", 1024, "FLOP/clk", _GA102, stated=True),
)


def _ada(listing: str, milliseconds: float, tile: int, *needs: int) -> Kernel:
    """With the clock locked at 2520 MHz."""
    extents = (4096, 4096, 4096)
    return Kernel(
        "rtx-4090", listing, extents, 4, milliseconds, (tile, tile), 256, *needs, _ADA, 2.52
    )


def _ours(listing: str, extents: tuple[int, int, int], ms: float, *needs: int) -> Kernel:
    return Kernel("h100", listing, extents, 2, ms, (256, 128), 256, *needs, _OURS, 0.0, True)


def _boxes(
    listing: str,
    extents: tuple[int, int, int],
    rate: float,
    columns: int,
    shared: int,
    *,
    persistent: bool = True,
) -> Kernel:
    """On an H200 near its limit of power: a group of warps copies boxes, two others multiply.

    Persistent blocks compute tile after tile.
    """
    m, n, k = extents
    tile, boxed = (128, columns), "stores" in listing
    paired = boxed and "narrow" not in listing or "pairs" in listing
    tiles = -(-m // tile[0]) * -(-n // tile[1])
    return Kernel(
        *("h200", listing, extents, 2, 2e-9 * m * n * k / rate, tile, 384, 168, shared, _STEPS),
        between_launches=True,
        # Blocks in pairs share the boxes of columns.
        boxes=(16384, columns * 64 if paired else columns * 128),
        leaves=columns * 128 if boxed else 0,
        blocks=min(tiles, 132) if persistent else 0,
        cluster=2 if paired else 1,
        tolerance=0.15,
    )


def _turns(extents: tuple[int, int, int], rate: float) -> Kernel:
    """The same of blocks that copy a box of each operand, wait and multiply, in turns."""
    m, n, k = extents
    needs, name = (256, 90, 33808), "sm_90a-boxes-in-turns"
    return Kernel(
        *("h200", name, extents, 2, 2e-9 * m * n * k / rate, (128, 128), *needs, _STEPS),
        between_launches=True,
        tolerance=0.15,
    )


#: Kernels whose accesses of shared memory meet hardly any bank conflicts, as the model does not see
#: addresses, and whose clock was measured or locked; but for ours, where the chip's had to do.
KERNELS = (
    # 6 936 768 cycles, at the profiler's clock.
    Kernel(
        "rtx-pro-6000",
        "sm_120-mma-warptile",
        (8192, 8192, 8192),
        4,
        6.75,
        (128, 128),
        128,
        186,
        32768,
        _PROFILE,
        1.02766,
    ),
    _ada("sm_89-kernel-2.0", 1.08, 64, 44, 8192),
    _ada("sm_89-kernel-2.1", 1.03, 64, 54, 8192),
    _ada("sm_89-kernel-3.0", 1.0, 64, 64, 24576),
    _ada("sm_89-kernel-3.1", 0.895, 128, 128, 49152),
    _ours("sm_90a-product", (8192, 8192, 8192), 3.01, 246, 73728),
    _ours("sm_90a-product", (4096, 4096, 4096), 0.420, 246, 73728),
    _ours("sm_90a-product-of-rows", (8192, 8192, 8192), 2.87, 237, 147456),
    _ours("sm_90a-product-of-rows", (4096, 4096, 1024), 0.147, 237, 147456),
    _turns((8192, 8192, 8192), 431),
    _turns((4096, 4096, 4096), 415),
    _turns((4096, 4096, 1024), 370),
    _turns((1000, 1000, 1000), 106),
    _boxes("sm_90a-boxes", (8192, 8192, 8192), 612, 256, 197696, persistent=False),
    _boxes("sm_90a-boxes", (4096, 4096, 4096), 570, 256, 197696, persistent=False),
    _boxes("sm_90a-boxes", (4096, 4096, 1024), 423, 256, 197696, persistent=False),
    _boxes("sm_90a-boxes", (1000, 1000, 1000), 120, 256, 197696, persistent=False),
    _boxes("sm_90a-boxes", (8192, 8192, 8192), 629, 256, 197696),
    _boxes("sm_90a-boxes", (4096, 4096, 4096), 585, 256, 197696),
    _boxes("sm_90a-boxes", (4096, 4096, 1024), 430, 256, 197696),
    _boxes("sm_90a-boxes", (1000, 1000, 1000), 120, 256, 197696),
    _boxes("sm_90a-boxes-pairs", (8192, 8192, 8192), 638, 256, 197696),
    _boxes("sm_90a-boxes-pairs", (4096, 4096, 4096), 586, 256, 197696),
    _boxes("sm_90a-boxes-pairs", (4096, 4096, 1024), 432, 256, 197696),
    _boxes("sm_90a-boxes-pairs", (1000, 1000, 1000), 115, 256, 197696),
    _boxes("sm_90a-boxes-stores", (8192, 8192, 8192), 663, 256, 230464),
    _boxes("sm_90a-boxes-stores", (4096, 4096, 4096), 648, 256, 230464),
    _boxes("sm_90a-boxes-stores", (4096, 4096, 1024), 568, 256, 230464),
    _boxes("sm_90a-boxes-stores", (1000, 1000, 1000), 141, 256, 230464),
    _boxes("sm_90a-boxes-stores-under", (8192, 8192, 8192), 668, 256, 230464),
    _boxes("sm_90a-boxes-stores-under", (4096, 4096, 4096), 653, 256, 230464),
    _boxes("sm_90a-boxes-stores-under", (4096, 4096, 1024), 578, 256, 230464),
    _boxes("sm_90a-boxes-stores-under", (1000, 1000, 1000), 139, 256, 230464),
    _boxes("sm_90a-boxes-stores-small", (4096, 4096, 1024), 567, 128, 230496),
    _boxes("sm_90a-boxes-stores-small", (1000, 1000, 1000), 199, 128, 230496),
    _boxes("sm_90a-boxes-stores-narrow", (4096, 4096, 1024), 424, 64, 230528),
    _boxes("sm_90a-boxes-stores-narrow", (1000, 1000, 1000), 179, 64, 230528),
)

LIBRARIES = (
    Library("a100", "cuBLAS", "bfloat16", "float32", (1024, 10240, 5120), 271.2, _MAMF),
    Library("a100-pcie-80gb", "cuBLAS", "bfloat16", "float32", (2048, 5120, 6144), 252.9, _MAMF),
    Library("h100", "cuBLAS", "bfloat16", "float32", (2048, 2048, 13312), 794.5, _MAMF),
    Library("h100", "cuBLAS", "float16", "float32", (8192, 8192, 8192), 749.89, _LADDER),
    Library("rtx-4090", "cuBLAS", "float16", "float32", (4096, 4096, 4096), 153.6, _ADA),
    Library("rtx-pro-6000", "cuBLAS", "float16", "float32", (8192, 8192, 8192), 225.75, _LADDER),
    Library("rx-7900-gre", "rocBLAS", "float16", "float16", (8192, 8192, 8192), 78.13, _WMMA_GEMM),
    Library("rx-7900-gre", "rocBLAS", "float16", "float16", (4096, 4096, 4096), 75.27, _WMMA_GEMM),
    Library("8060s", "rocBLAS", "float16", "float16", (4096, 4096, 4096), 40.38, _WMMA_GEMM),
)


def _flash(
    chip: str, size: int, length: int, teraflops: float, source: Source, *, causal: bool = False
) -> Attention:
    """FlashAttention-2 on 16,384 rows of 2,048 elements, as its benchmark and its paper have it."""
    narrow = chip != "a100-sxm4-80gb"
    kernels = {
        (64, False): ("64", 128, 255, 48 << 10),
        (64, True): ("64-causal", 128, 255, 48 << 10),
        (128, False): ("128-short", 128, 240, 48 << 10) if narrow else ("128", 128, 255, 64 << 10),
        (128, True): ("128-causal", 64, 184, 48 << 10),
    }
    name, *needs = kernels[size, causal]
    heads, listing = (16384 // length) * (2048 // size), f"sm_80-flash-attention-{name}"
    return Attention(chip, listing, heads, length, size, teraflops, *needs, source, causal)


def _triton(causal: bool, of_peak: float) -> Attention:
    """Stated is the part of the peak of 108 multiprocessors at the clock that it sets."""
    listing = f"sm_80-triton-attention-64{'-causal' if causal else ''}"
    peak, shared = 2048 * 108 * 1.35e-3, 81922
    teraflops = of_peak * peak
    return Attention(
        "a100", listing, 192, 4096, 64, teraflops, 128, 229, shared, _TRITON, causal, 128, 1.35
    )


def _by_groups(name: str, size: int, teraflops: float) -> Attention:
    """On an H200 near its limit of power: a group of warps copies boxes, others multiply.

    Blocks are persistent and compute 64 heads of 4096 rows.
    """
    groups, boxes = (2, 4) if size == 128 else (3, 2)
    stages = 5 if size == 128 else 6
    shared = 1024 + 256 * size * (groups + stages)
    return Attention(
        *("h200", f"sm_90a-attention-{name}", 64, 4096, size, teraflops, 64 * groups),
        *(168 if groups == 2 else 128, shared, _ATTENTION_STEPS, name.endswith("causal")),
        threads=128 * (groups + 1),
        # Panels of 64 columns, of keys and of values.
        boxes=(16384,) * boxes,
    )


#: FlashAttention-2's kernels are those of 2.3.6, Triton's of 2.1.0, the releases of these months.
#: For AMD's chips with such units no such number was found whose kernel is at hand.
ATTENTION = (
    # "Up to": heads of 128 are the fastest of those shown.
    _flash("a100-sxm4-80gb", 128, 4096, 230.0, _DAO),
    _flash("rtx-a5000", 64, 512, 84.08, _A5000),
    _flash("rtx-a5000", 64, 1024, 81.02, _A5000),
    _flash("rtx-a5000", 64, 2048, 81.31, _A5000),
    _flash("rtx-a5000", 64, 4096, 81.69, _A5000),
    _flash("rtx-a5000", 64, 8192, 81.86, _A5000),
    # The size of the batch is not stated: as in FlashAttention's benchmark.
    _flash("rtx-4090", 64, 2048, 168.91, _TILE),
    _flash("rtx-4090", 128, 2048, 169.28, _TILE),
    _flash("rtx-4090", 64, 2048, 142.23, _TILE, causal=True),
    _flash("rtx-4090", 128, 2048, 151.19, _TILE, causal=True),
    # A half of the operations counts there for those that are not causal, too.
    _triton(False, 2 * 0.306),
    _triton(True, 0.542),
    _by_groups("128", 128, 579),
    _by_groups("128-causal", 128, 561),
    _by_groups("128-overlapped", 128, 582),
    _by_groups("64", 64, 450),
    _by_groups("64-overlapped", 64, 482),
)
