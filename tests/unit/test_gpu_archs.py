"""What the two GPU targets say about chips by name; no device and no vendor's software is here."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from polyblocks.errors import TargetError
from polyblocks.options import CompileOptions
from polyblocks.target import MatrixUnit, TargetDescription
from polyblocks.targets.gpu_description import STREAMED
from polyblocks_amdgpu.archs import PRODUCTS as AMD_PRODUCTS
from polyblocks_amdgpu.chips import CHIPS as AMD_CHIPS
from polyblocks_amdgpu.describe import describe as describe_amd
from polyblocks_amdgpu.generations import ARCHS as AMD_ARCHS
from polyblocks_nvgpu.archs import ARCHS as NVIDIA_ARCHS
from polyblocks_nvgpu.archs import PRODUCTS as NVIDIA_PRODUCTS
from polyblocks_nvgpu.archs import best_arch
from polyblocks_nvgpu.capabilities import CAPABILITIES
from polyblocks_nvgpu.chips import CHIPS as NVIDIA_CHIPS
from polyblocks_nvgpu.describe import describe as describe_nvidia

DESCRIBE = {"nvgpu": describe_nvidia, "amdgpu": describe_amd}
NAMES = [
    *(("nvgpu", name) for name in (*NVIDIA_ARCHS, *NVIDIA_PRODUCTS)),
    *(("amdgpu", name) for name in (*AMD_ARCHS, *AMD_PRODUCTS)),
]


def describe(target: str, arch: str | None, **options: Any) -> TargetDescription:
    return DESCRIBE[target](CompileOptions(target=target, arch=arch, **options))


def unit(target: TargetDescription, operands: str, accumulator: str) -> MatrixUnit:
    """The best unit for these types."""
    return next(
        u for u in target.matrix_units if (u.operands, u.accumulator) == (operands, accumulator)
    )


@pytest.mark.parametrize("target, name", NAMES)
def test_every_name_is_described(target: str, name: str) -> None:
    found = describe(target, name)
    archs = NVIDIA_ARCHS if target == "nvgpu" else AMD_ARCHS
    assert found.name == target
    assert found.arch in archs
    assert name not in archs or found.arch == name
    limits = found.multiprocessor
    assert limits is not None
    assert [level.name for level in found.parallel] == ["grid", "block", "warp", "thread"]
    assert [level.size for level in found.parallel[1:]] == [limits.blocks, 32, 32]
    assert found.shared_level is found.parallel[0]
    assert 1e-6 < found.shared_level.overhead < 1e-5
    assert [level.name for level in found.memory if level.name != "L3"] == [
        "registers", "shared", "L2", "main",
    ]  # fmt: skip
    assert found.vector_bits == 0
    assert found.line == limits.sector
    assert limits.warps * limits.warp == limits.threads
    assert limits.shared_per_block <= limits.shared_per_block_optin
    assert limits.shared_per_block_optin + limits.shared_reserved <= limits.shared


@pytest.mark.parametrize("target, name", NAMES)
def test_descriptions_are_frozen_and_the_same_each_time(target: str, name: str) -> None:
    first, second = describe(target, name), describe(target, name)
    assert first == second
    assert first.fingerprint() == second.fingerprint()
    data = json.loads(first.to_json())
    assert data["multiprocessor"]["registers"] == first.multiprocessor.registers
    assert data["parallel"][0]["size"] == first.parallel[0].size
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'arch'"):
        first.arch = "another"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'threads'"):
        first.multiprocessor.threads = 1  # type: ignore[misc, union-attr]


@pytest.mark.parametrize(
    "target, names",
    [
        ("nvgpu", sorted(NVIDIA_CHIPS)),
        ("amdgpu", sorted(AMD_CHIPS)),
    ],
)
def test_chips_differ_in_their_fingerprints(target: str, names: list[str]) -> None:
    assert len({describe(target, name).fingerprint() for name in names}) == len(names)


@pytest.mark.parametrize("target, name", NAMES)
def test_rates_fall_from_level_to_level(target: str, name: str) -> None:
    """All multiprocessors together: registers > shared > L2 > main memory."""
    found = describe(target, name)
    count = found.parallel[0].size
    rates = [
        level.bandwidth * (1 if level.shared_by > 1 else count)
        for level in found.memory
        if level.bandwidth
    ]
    assert rates == sorted(rates, reverse=True)
    assert found.memory[-1].bandwidth > 5e10
    sizes = [level.size for level in found.memory[2:-1]]
    assert sizes == sorted(sizes)


@pytest.mark.parametrize("target, name", NAMES)
def test_peaks_are_units_times_clock_times_two(target: str, name: str) -> None:
    found = describe(target, name)
    chips = NVIDIA_CHIPS if target == "nvgpu" else AMD_CHIPS
    chip = chips[found.properties["chip"]]
    if target == "nvgpu":
        rates = CAPABILITIES[tuple(found.properties["capability"])].rates
    else:
        rates = AMD_ARCHS[found.arch][1].rates
    assert found.flops.keys() == {"float16", "bfloat16", "float32", "float64", "int32"}
    for dtype, flops in found.flops.items():
        assert flops == pytest.approx(2 * rates[dtype] * chip.multiprocessors * chip.ghz * 1e9)
    assert found.flops["float64"] < found.flops["float32"] <= found.flops["float16"]
    # A matrix unit is faster than the vector units at the same product.
    for best in (unit(found, "float16", "float32"), unit(found, "float16", "float16")):
        assert best.flops > found.flops["float16"]
    assert len(set(found.matrix_units)) == len(found.matrix_units)
    for each in found.matrix_units:
        m, n, k = each.shape
        # Volta's four quad pairs multiply 8 x 8 x 4 each.
        name = "8n8k4" if each.shape == (16, 16, 4) else f"{m}n{n}k{k}"
        assert name in each.name or f"{m}x{n}x{k}" in each.name


#: Product -> published peaks in TFLOPS (float32; float16 products added into float32, without
#: sparsity; int8 in TOPS or None), bandwidth in GB/s: the vendors' data sheets and white papers.
PUBLISHED = {
    ("nvgpu", "v100"): (15.7, 125, None, 900),
    ("nvgpu", "t4"): (8.1, 65, 130, 320),
    ("nvgpu", "rtx-2080-ti"): (13.4, 53.8, 215.2, 616),
    ("nvgpu", "a100"): (19.5, 312, 624, 1555),
    ("nvgpu", "a100-80gb"): (19.5, 312, 624, 2039),
    ("nvgpu", "a30"): (10.3, 165, 330, 933),
    ("nvgpu", "a10"): (31.2, 125, 250, 600),
    ("nvgpu", "a40"): (37.4, 149.7, 299.3, 696),
    ("nvgpu", "rtx-3090"): (35.6, 71, 284, 936),
    ("nvgpu", "orin"): (5.3, 42.5, 85, 204.8),
    ("nvgpu", "l4"): (30.3, 121, 242, 300),
    ("nvgpu", "l40s"): (91.6, 362, 733, 864),
    ("nvgpu", "rtx-4090"): (82.6, 165.2, 660.6, 1008),
    ("nvgpu", "h100"): (66.9, 989.4, 1978.9, 3352),
    ("nvgpu", "h100-pcie"): (51.2, 756, 1513, 2039),
    ("nvgpu", "h200"): (66.9, 989.4, 1978.9, 4800),
    ("nvgpu", "b200"): (75, 2250, 4500, 7700),
    ("nvgpu", "b300"): (75, 2250, None, 8000),
    ("nvgpu", "rtx-5090"): (104.8, 209.5, 838, 1792),
    ("nvgpu", "rtx-pro-6000"): (125, 500, 1000, 1792),
    ("amdgpu", "rx-7900-xtx"): (61.4, 122.8, 122.8, 960),
    ("amdgpu", "rx-7900-xt"): (51.6, 103, 103, 800),
    ("amdgpu", "w7900"): (61.3, 122.6, 122.6, 864),
    ("amdgpu", "rx-7800-xt"): (37.3, 74.6, 74.6, 624),
    ("amdgpu", "rx-7600"): (21.7, 43.5, 43.5, 288),
    ("amdgpu", "8060s"): (29.7, 59.4, 59.4, 256),
    ("amdgpu", "rx-9060-xt"): (25.6, 103, 205, 320),
    ("amdgpu", "rx-9070-xt"): (48.7, 195, 389, 640),
    ("amdgpu", "rx-9070"): (36.1, 145, 289, 640),
}


@pytest.mark.parametrize("target, name", PUBLISHED)
def test_published_peaks(target: str, name: str) -> None:
    single, half, integers, bandwidth = PUBLISHED[target, name]
    found = describe(target, name)
    assert found.flops["float32"] / 1e12 == pytest.approx(single, rel=0.01)
    assert unit(found, "float16", "float32").flops / 1e12 == pytest.approx(half, rel=0.01)
    if integers is None:
        assert not [u for u in found.matrix_units[:6] if u.operands == "int8"]
    else:
        assert unit(found, "int8", "int32").flops / 1e12 == pytest.approx(integers, rel=0.015)
    assert found.memory[-1].bandwidth / 1e9 == pytest.approx(STREAMED * bandwidth, rel=1e-12)


@pytest.mark.parametrize(
    "target, spelling, arch, multiprocessors",
    [
        ("nvgpu", "h200", "sm_90a", 132),
        ("nvgpu", "NVIDIA H200", "sm_90a", 132),
        ("nvgpu", "H100 PCIe", "sm_90a", 114),
        ("nvgpu", "NVIDIA H100 80GB HBM3", "sm_90a", 132),
        ("nvgpu", "NVIDIA A100-SXM4-80GB", "sm_80", 108),
        ("nvgpu", "Tesla V100-SXM2-16GB", "sm_70", 80),
        ("nvgpu", "RTX 4090", "sm_89", 128),
        ("nvgpu", "rtx4090", "sm_89", 128),
        ("nvgpu", "NVIDIA GeForce RTX 4090", "sm_89", 128),
        ("nvgpu", "L4", "sm_89", 58),
        ("nvgpu", "b200", "sm_100a", 148),
        ("nvgpu", "SM_90A", "sm_90a", 132),
        ("nvgpu", "sm_90", "sm_90", 132),
        ("nvgpu", "sm_121", "sm_121", 48),
        ("amdgpu", "RX 7900 XTX", "gfx1100", 48),
        ("amdgpu", "AMD Radeon PRO W7900", "gfx1100", 48),
        ("amdgpu", "AMD Radeon 780M Graphics", "gfx1103", 6),
        ("amdgpu", "Strix Halo", "gfx1151", 20),
        ("amdgpu", "navi48", "gfx1201", 32),
        ("amdgpu", "GFX1102", "gfx1102", 16),
    ],
)
def test_names_in_any_spelling(target: str, spelling: str, arch: str, multiprocessors: int) -> None:
    found = describe(target, spelling)
    assert (found.arch, found.parallel[0].size) == (arch, multiprocessors)


@pytest.mark.parametrize(
    "target, requested, hint",
    [
        ("nvgpu", "sm_91", "did you mean 'sm_9"),
        ("nvgpu", "h2oo", "did you mean .*'h200'"),
        ("nvgpu", "quantum", "known are native, sm_70, sm_72, .* and chips such as h200, a100"),
        ("amdgpu", "gfx1110", "did you mean 'gfx11"),
        ("amdgpu", "rx-7900-xxx", "did you mean 'rx-7900-xt"),
        ("amdgpu", "quantum", "known are native, gfx1100, .* and chips such as rx-7900-xtx"),
    ],
)
def test_unknown_arch_names_the_nearest(target: str, requested: str, hint: str) -> None:
    with pytest.raises(
        TargetError, match=f"unknown arch '{requested}' for target '{target}'; {hint}"
    ):
        describe(target, requested)


def test_only_code_for_one_capability_has_the_accelerated_units() -> None:
    def names(arch: str) -> set[str]:
        return {u.name.split(".")[0] for u in describe("nvgpu", arch).matrix_units}

    assert names("sm_90") == names("sm_80") == names("sm_100") == {"mma"}
    assert names("sm_90a") == {"wgmma", "mma"}
    assert names("sm_100a") == {"tcgen05", "mma"}
    assert describe("nvgpu", "sm_90a").matrix_units[0].shape == (64, 256, 16)


def test_what_generations_have() -> None:
    def has(arch: str, operands: str) -> bool:
        return any(u.operands == operands for u in describe("nvgpu", arch).matrix_units)

    assert not describe("nvgpu", "sm_75").multiprocessor.asynchronous_copies
    assert describe("nvgpu", "sm_80").multiprocessor.asynchronous_copies
    assert not describe("amdgpu", "gfx1201").multiprocessor.asynchronous_copies
    assert [has(a, "bfloat16") for a in ("sm_75", "sm_80")] == [False, True]
    assert [has(a, "float8_e4m3") for a in ("sm_86", "sm_89")] == [False, True]
    assert [has(a, "float64") for a in ("sm_86", "sm_80")] == [False, True]


def test_products_into_float32_at_half_rate() -> None:
    for name, ratio in (("rtx-4090", 2), ("l4", 1)):
        found = describe("nvgpu", name)
        whole, half = unit(found, "float16", "float16"), unit(found, "float16", "float32")
        assert whole.flops == ratio * half.flops


@pytest.mark.parametrize(
    "number, arch",
    [((8, 0), "sm_80"), ((9, 0), "sm_90a"), ((10, 3), "sm_103a"), ((12, 0), "sm_120"),
     ((11, 0), "sm_103"), ((8, 8), "sm_87"), ((12, 5), "sm_121"), ((13, 0), "sm_121")],
)  # fmt: skip
def test_the_arch_of_a_device_old_or_new(number: tuple[int, int], arch: str) -> None:
    assert best_arch(number).name == arch


def test_a_device_that_is_too_old() -> None:
    with pytest.raises(TargetError, match="capability 7.0 and later; the device has 6.1"):
        best_arch((6, 1))


@pytest.mark.parametrize("target, arch", [("nvgpu", "sm_80"), ("amdgpu", "gfx1100")])
def test_options(target: str, arch: str) -> None:
    plain = describe(target, arch)
    assert describe(target, arch, mm_conv_precision_mode="fp32") == plain
    assert describe(target, arch, simulate=True) == plain
    without = describe(target, arch, polyblocks_gpu_no_tensor_core=True)
    assert without == dataclasses.replace(plain, matrix_units=())


@pytest.mark.parametrize("arch", sorted(NVIDIA_ARCHS))
def test_the_code_generator_knows_every_nvidia_arch(arch: str) -> None:
    """LLVM takes the name with the table's version of PTX, and needs no later one."""
    from llvmlite import binding

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    text = 'target triple = "nvptx64-nvidia-cuda"\ndefine ptx_kernel void @f() { ret void }'
    found = describe("nvgpu", arch).properties
    target = binding.Target.from_triple("nvptx64-nvidia-cuda")

    def version(features: str) -> int:
        machine = target.create_target_machine(cpu=found["cpu"], features=features)
        printed = machine.emit_assembly(binding.parse_assembly(text))
        match = re.search(r"\.version (\d+)\.(\d+)\n\.target (\w+)\n", printed)
        assert match is not None
        assert match[3] == arch
        return 10 * int(match[1]) + int(match[2])

    assert version("") <= found["ptx"]
    assert version(f"+ptx{found['ptx']}") == found["ptx"]


@pytest.mark.parametrize("target, arch", [("nvgpu", "sm_90a"), ("amdgpu", "gfx1100")])
def test_describing_loads_nothing_of_the_vendor(
    run_python: Callable[..., Any], target: str, arch: str
) -> None:
    done = run_python(
        f"""
        import sys
        from polyblocks.options import CompileOptions
        from polyblocks_{target} import plugin
        found = plugin.describe_target(options=CompileOptions(target="{target}", arch="{arch}"))
        heavy = ("cuda", "hip", "llvmlite", "torch_mlir", "torch", "numpy")
        print(found.arch, [m for m in heavy if m in sys.modules])
        """
    )
    assert done.stdout.split() == [arch, "[]"], done.stderr
