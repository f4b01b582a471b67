"""Numbers for people: bytes, seconds, rates, shapes; three digits and a unit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def nbytes(size: float) -> str:
    """``50233344`` -> ``47.9 MiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1000 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{three(size)} {unit}"


def seconds(time: float) -> str:
    """``0.00182`` -> ``1.82 ms``."""
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if abs(time) * factor >= 0.9995:
            return f"{three(time * factor)} {unit}"
    return f"{time * 1e9:.0f} ns" if time else "0"


def rate(per_second: float, unit: str) -> str:
    """``2.2e11`` -> ``220 GFLOP/s``."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if per_second >= factor:
            return f"{three(per_second / factor)} {prefix}{unit}/s"
    return f"{three(per_second)} {unit}/s"


def count(number: float) -> str:
    """``255590400`` -> ``256 M``."""
    for factor, suffix in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e4, " k")):
        if abs(number) >= factor:
            return three(number / (1e3 if factor == 1e4 else factor)) + suffix
    return f"{number:g}"


def percent(share: float) -> str:
    """``0.0186`` -> ``1.9 %``."""
    value = share * 100
    return f"{value:.0f} %" if value >= 9.95 or value == 0 else f"{value:.1f} %"


def shape(extents: Sequence[int]) -> str:
    """``[3, 2048]`` -> ``3x2048``."""
    return "x".join(str(extent) for extent in extents) or "scalar"


def place(location: str) -> str:
    """``/…/site-packages/pkg/model.py:12`` -> ``pkg/model.py:12``; below the folder: from there."""
    location = location.replace("\\", "/")
    for root in (Path.cwd().as_posix() + "/", "site-packages/"):
        before, found, inside = location.partition(root)
        if found and (root[0] != "/" or not before):
            return inside
    return location


def several(number: int, noun: str) -> str:
    """``1 kernel``, ``2 kernels``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def three(number: float) -> str:
    """Three digits, without an exponent."""
    if abs(number) >= 100:
        return f"{number:.0f}"
    return f"{number:.3g}" if abs(number) >= 0.001 or number == 0 else f"{number:.2g}"
