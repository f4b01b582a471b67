"""The AMD GPU of this machine, as the kernel's driver describes it.

The files that ROCm's runtime reads as well (KFD's topology in sysfs) say all that is needed, so
that describing loads no library and starts no runtime.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

TOPOLOGY = Path("/sys/class/kfd/kfd/topology/nodes")
DRIVER = Path("/dev/kfd")


@dataclass(frozen=True)
class Device:
    """One device; what the driver does not say is 0.

    Attributes:
        index: among the devices that this process may see.
        arch: e.g. ``gfx1100``.
        units: compute units.
        clock_mhz: the highest clock.
        l2, l3: bytes of these caches.
    """

    index: int
    arch: str
    units: int
    clock_mhz: int = 0
    l2: int = 0
    l3: int = 0


class NoDeviceError(Exception):
    """There is no device, or no driver; the message says which."""


def present() -> Device:
    """The first device that this process may see.

    Raises:
        NoDeviceError: no device is present.
    """
    if not DRIVER.exists():
        raise NoDeviceError(f"no driver is installed ({DRIVER} is not there)")
    devices = read_topology(TOPOLOGY, os.environ)
    if not devices:
        raise NoDeviceError("the driver finds no device that this process may see")
    return devices[0]


def read_topology(nodes: Path, environment: Mapping[str, str]) -> list[Device]:
    """The GPUs below ``nodes``, those that the variables for visible devices leave.

    Args:
        nodes: a folder with a folder for each processor, named by number.
        environment: ``ROCR_VISIBLE_DEVICES`` chooses first (numbers or unique names), then
            ``HIP_VISIBLE_DEVICES`` or ``CUDA_VISIBLE_DEVICES`` (numbers among those).
    """
    found = []
    for folder in sorted(nodes.glob("[0-9]*"), key=lambda path: int(path.name)):
        facts = _properties(folder / "properties")
        # A node without SIMDs is a CPU.
        if facts.get("simd_count") and facts.get("gfx_target_version"):
            found.append((folder, facts))
    names = [f"GPU-{facts.get('unique_id', 0):016x}" for _, facts in found]
    order = _visible(list(range(len(found))), environment.get("ROCR_VISIBLE_DEVICES"), names)
    choice = environment.get("HIP_VISIBLE_DEVICES", environment.get("CUDA_VISIBLE_DEVICES"))
    order = _visible(order, choice, [names[number] for number in order])
    return [_device(index, *found[number]) for index, number in enumerate(order)]


def _visible(order: list[int], choice: str | None, names: list[str]) -> list[int]:
    """Devices of a comma-separated list; as in ROCm, the first missing one ends it."""
    if choice is None:
        return order
    left: list[int] = []
    for entry in choice.split(","):
        entry = entry.strip()
        if entry.isdigit() and int(entry) < len(order):
            left.append(order[int(entry)])
        elif entry in names:
            left.append(order[names.index(entry)])
        else:
            break
    return left


def _device(index: int, folder: Path, facts: dict[str, int]) -> Device:
    caches: dict[int, int] = {}
    for path in folder.glob("caches/[0-9]*/properties"):
        cache = _properties(path)
        level = cache.get("level", 0)
        caches[level] = max(caches.get(level, 0), cache.get("size", 0) * 1024)
    return Device(
        index=index,
        arch=_arch(facts["gfx_target_version"]),
        units=facts["simd_count"] // max(facts.get("simd_per_cu", 2), 1),
        clock_mhz=facts.get("max_engine_clk_fcompute", 0),
        l2=caches.get(2, 0),
        l3=caches.get(3, 0),
    )


def _arch(version: int) -> str:
    """110000 -> gfx1100, 90010 -> gfx90a."""
    major, rest = divmod(version, 10000)
    minor, stepping = divmod(rest, 100)
    return f"gfx{major}{minor:x}{stepping:x}"


def _properties(path: Path) -> dict[str, int]:
    """Lines of a name and a number; none where the file cannot be read."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.split() for line in lines)
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
