"""What the CPU target says about chips, by name and from a machine's own files."""

from __future__ import annotations

import dataclasses
import json
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from polyblocks.errors import TargetError
from polyblocks.options import CompileOptions
from polyblocks.target import Issue
from polyblocks_cpu.archs import ARCHS, ARM, lookup
from polyblocks_cpu.describe import describe
from polyblocks_cpu.host import (
    ARM_FEATURES,
    CacheLevel,
    Host,
    host,
    identify,
    power_of_two,
    read_caches,
)
from polyblocks_cpu.instructions.dots import available

V4 = "avx512f avx512bw avx512cd avx512dq avx512vl"
V3 = "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3 avx avx2 bmi1 bmi2 f16c fma abm movbe"


def cpuinfo(vendor: str, family: int, model: int, flags: str) -> str:
    block = f"vendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\nflags\t\t: {flags}"
    return f"processor\t: 0\n{block}\n\nprocessor\t: 1\n{block}\n\n"


@pytest.mark.parametrize(
    ("vendor", "family", "model", "flags", "name"),
    [
        ("AuthenticAMD", 25, 17, f"{V3} {V4}", "znver4"),
        ("AuthenticAMD", 25, 1, V3, "znver3"),
        ("AuthenticAMD", 26, 2, f"{V3} {V4}", "znver5"),
        ("AuthenticAMD", 23, 49, V3, "znver2"),
        ("GenuineIntel", 6, 0x8F, f"{V3} {V4}", "sapphirerapids"),
        ("GenuineIntel", 6, 0x55, f"{V3} {V4}", "skylake-avx512"),
        ("GenuineIntel", 6, 0x55, f"{V3} {V4} avx512_vnni", "cascadelake"),
        ("GenuineIntel", 6, 0x9E, V3, "skylake"),
        # A virtual machine that hides AVX-512, and one that hides more.
        ("AuthenticAMD", 25, 17, V3, "x86-64-v3"),
        ("GenuineIntel", 6, 0x9E, "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3", "x86-64-v2"),
        ("SomebodyElse", 1, 1, V3, "x86-64-v3"),
        ("SomebodyElse", 1, 1, "sse2", "x86-64"),
    ],
)
def test_x86_is_identified(vendor: str, family: int, model: int, flags: str, name: str) -> None:
    arch, features = identify(cpuinfo(vendor, family, model, flags))
    assert arch.name == name
    assert ("+avx512f" in features) == ("avx512f" in flags)
    assert ("-avx512f" in features) == ("avx512f" not in flags)


def test_what_a_core_starts_beside_multiply_adds_is_described() -> None:
    zen4, zen3, other = (
        describe(CompileOptions(arch=name)) for name in ("znver4", "znver3", "x86-64-v3")
    )
    # Half vectors take half the time where whole ones take both halves of a unit.
    assert (zen4.issue.narrow, zen3.issue.narrow) == (0.5, 1.0)
    assert zen4.issue.sums_apart
    assert zen3.issue.sums_apart
    assert not other.issue.sums_apart
    assert {level.writes for level in zen4.memory} == {0.5}
    assert {level.writes for level in other.memory} == {0.0}
    assert zen4.fingerprint() != dataclasses.replace(zen4, issue=Issue()).fingerprint()


def test_arm_is_identified() -> None:
    text = "processor\t: 0\nFeatures\t: fp asimd asimdhp sve bf16\nCPU implementer\t: 0x41\n"
    arch, features = identify(text + "CPU part\t: 0xd40\n\n")
    assert arch.name == "neoverse-v1"
    assert features == (
        *("+bf16", "+fullfp16", "+sve"),
        *("-dotprod", "-fp16fml", "-i8mm", "-lse", "-sve2"),
    )
    assert identify(text + "CPU part\t: 0x123\n\n")[0].name == "armv8-a"


def test_a_chip_without_features_is_known_to_have_none() -> None:
    text = "processor\t: 0\nFeatures\t: fp asimd evtstrm crc32 cpuid\nCPU implementer\t: 0x41\n"
    arch, features = identify(text + "CPU part\t: 0xd08\n\n")
    assert arch.name == "cortex-a72"
    assert features == tuple(sorted(f"-{name}" for name in ARM_FEATURES.values()))
    assert identify("processor\t: 0\nCPU implementer\t: 0x41\n")[1] == ()


@pytest.mark.parametrize("name", sorted(ARCHS))
def test_every_arch_is_described(name: str) -> None:
    target = describe(CompileOptions(arch=name))
    assert (target.name, target.arch) == ("cpu", name)
    assert target.vector_bits in (128, 256, 512)
    assert target.vector_registers in (16, 32)
    assert [level.name for level in target.parallel] == ["team", "simd"]
    assert target.parallel[1].size == target.vector_bits // 32
    sizes = [level.size for level in target.memory[:2]]
    assert sizes == sorted(sizes)
    assert target.memory[-1].name == "main"
    assert target.flops["float32"] > 1e9
    assert target.properties["family"] in ("x86_64", ARM)


@pytest.mark.parametrize("name", sorted(ARCHS))
def test_rates_fall_from_level_to_level(name: str) -> None:
    """One core gets no more from a level than from the one before it, and less from memory."""
    arch = lookup(name)
    assert list(arch.rates) == sorted(arch.rates, reverse=True)
    assert arch.core_bandwidth < arch.rates[2] * arch.ghz * 1e9
    assert arch.core_bandwidth <= arch.bandwidth


def machine(threads: int, l1_shared: int = 1) -> Host:
    caches = {
        1: CacheLevel(32 << 10, 64, 8, l1_shared),
        2: CacheLevel(1 << 20, 64, 8, l1_shared),
        3: CacheLevel(32 << 20, 64, 16, 8),
    }
    return Host(lookup("znver4"), (), caches, threads)


def test_rates_of_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def rates(threads: int, l1_shared: int = 1) -> tuple[list[float], float]:
        monkeypatch.setattr(
            "polyblocks_cpu.describe.host", lambda: machine(threads, l1_shared=l1_shared)
        )
        target = describe(CompileOptions())
        return [level.bandwidth / 1e9 for level in target.memory], target.flops["float32"] / 1e9

    # Two cores: their shared cache gives both its rate; the memory's limit is the cores'.
    assert rates(2) == ([224.0, 112.0, 196.0, 60.0], 224.0)
    assert rates(1) == ([224.0, 112.0, 98.0, 32.0], 112.0)
    # Two threads of one core do not compute faster than one.
    assert rates(2, l1_shared=2) == ([224.0, 112.0, 98.0, 60.0], 112.0)
    # A part of 64 threads has more memory channels than the table's of 16.
    assert rates(64)[0] == [224.0, 112.0, 784.0, 240.0]


def test_description_of_this_machine_is_stable_and_resolved() -> None:
    first = describe(CompileOptions())
    assert first.arch in ARCHS
    host.cache_clear()
    again = describe(CompileOptions(arch="native"))
    assert first.fingerprint() == again.fingerprint()
    assert json.loads(first.to_json())["properties"]["features"] == first.properties["features"]


def test_machine_of_another_family(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    host.cache_clear()
    with pytest.raises(TargetError, match="this machine is 'riscv64'; name another chip"):
        describe(CompileOptions())
    assert describe(CompileOptions(arch="znver4")).arch == "znver4"


def test_description_agrees_with_llvm() -> None:
    """LLVM, asked for this machine, knows no feature as missing that we think is there."""
    from llvmlite import binding

    known = binding.get_host_cpu_features()
    claimed = [f[1:] for f in describe(CompileOptions()).properties["features"] if f[0] == "+"]
    assert [f for f in claimed if f in known and not known[f]] == []


@pytest.mark.parametrize(
    ("requested", "hint"),
    [("zenver4", "did you mean 'znver4'"), ("quantum", "known are native, x86-64, x86-64-v2")],
)
def test_unknown_arch_names_the_nearest(requested: str, hint: str) -> None:
    with pytest.raises(TargetError, match=f"unknown arch '{requested}' for target 'cpu'; {hint}"):
        lookup(requested)


def test_what_old_chips_lack() -> None:
    def has(name: str) -> tuple[Any, ...]:
        properties = describe(CompileOptions(arch=name)).properties
        return tuple(properties[key] for key in ("fma", "half", "rounding", "ldexp"))

    assert has("x86-64") == (False, False, False, False)
    assert has("x86-64-v2") == (False, False, True, False)
    assert has("ivybridge") == (False, True, True, False)
    assert has("x86-64-v3") == has("neoverse-n1") == (True, True, True, False)
    assert has("x86-64-v4") == has("znver4") == (True, True, True, True)


def test_caches_are_read(tmp_path: Path) -> None:
    def cache(index: int, **facts: str) -> None:
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        for name, value in facts.items():
            (folder / name).write_text(value + "\n")

    cache(0, level="1", type="Data", size="48K", coherency_line_size="64",
          ways_of_associativity="12", shared_cpu_list="0,32")  # fmt: skip
    cache(1, level="1", type="Instruction", size="32K", coherency_line_size="64")
    cache(2, level="3", type="Unified", size="36M", coherency_line_size="64",
          ways_of_associativity="16", shared_cpu_list="0-11")  # fmt: skip
    cache(3, level="4", type="Unified", size="much", coherency_line_size="64")
    caches = read_caches(tmp_path)
    assert sorted(caches) == [1, 3]
    assert (caches[1].size, caches[1].ways, caches[1].shared_by) == (48 << 10, 12, 2)
    assert (caches[3].size, caches[3].shared_by) == (36 << 20, 8)


def test_power_of_two() -> None:
    assert [power_of_two(n) for n in (0, 1, 2, 3, 24, 64)] == [1, 1, 2, 2, 16, 64]


def test_describing_loads_neither_llvm_nor_mlir(run_python: Callable[..., Any]) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("elsewhere LLVM is asked for the name of the CPU")
    done = run_python(
        """
        import sys
        from polyblocks.options import CompileOptions
        from polyblocks_cpu import plugin
        plugin.describe_target(options=CompileOptions())
        print([m for m in ("llvmlite", "torch_mlir", "torch", "numpy") if m in sys.modules])
        """
    )
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize(
    ("arch", "units"),
    [
        ("x86-64-v4", []),
        ("znver4", ["vdpbf16ps", "vpdpbusd"]),
        ("cascadelake", ["vpdpbusd"]),
        ("neoverse-n1", ["sdot", "udot"]),
        ("neoverse-v1", ["bfdot", "sdot", "udot", "usdot"]),
    ],
)
def test_dot_products_are_matrix_units(arch: str, units: list[str]) -> None:
    target = describe(CompileOptions(arch=arch))
    assert [unit.name for unit in target.matrix_units] == units
    for unit in target.matrix_units:
        rows, lanes, steps = unit.shape
        assert rows == 1
        assert lanes * 32 <= target.vector_bits
        # As many are begun as multiply-adds of float32.
        assert unit.flops == pytest.approx(
            target.flops["float32"] * steps * lanes * 32 / target.vector_bits
        )
        assert unit.in_flight >= 3


def test_dot_products_of_a_machine_are_those_of_its_features() -> None:
    known = {"vdpbf16ps": 0.5, "vpdpbusd": 1.0}
    assert available(known, ["+avx512vnni", "-avx512bf16"]) == {"vpdpbusd": 1.0}
    assert available({}, ["+avxvnni", "+avxvnniint8"]) == {
        "vpdpbssd": 1.0,
        "vpdpbuud": 1.0,
        "vpdpbusd": 1.0,
    }
    assert available(known, ["+avx512bf16"]) == {"vdpbf16ps": 0.5}


@pytest.mark.parametrize(
    ("arch", "expected"),
    [("znver4", True), ("icelake-server", True), ("x86-64-v4", False), ("znver3", False)],
)
def test_permutations_of_bytes_came_after_avx512(arch: str, expected: bool) -> None:
    assert describe(CompileOptions(arch=arch)).properties["byte_permutes"] == expected
