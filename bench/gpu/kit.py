"""What a machine with a GPU needs of Python to load programs, as a folder to put on the path.

Such machines often have Python, NumPy, PyTorch and the vendor's bindings, and nothing can be
installed there. Everything in the kit is plain Python.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from bench.crew import ROOT

#: Distributions and their packages. The last three are what loading imports of others.
PACKAGES = {
    "polyblocks-compiler": "polyblocks",
    "polyblocks-torch": "polyblocks_torch",
    "polyblocks-nvgpu": "polyblocks_nvgpu",
    "polyblocks-amdgpu": "polyblocks_amdgpu",
    "pluggy": "pluggy",
    "stevedore": "stevedore",
    "platformdirs": "platformdirs",
}
_SKIPPED = shutil.ignore_patterns("__pycache__", "tests", "results", "*.so")


def write(folder: Path, packages: Sequence[str] = tuple(PACKAGES)) -> None:
    """Copy the packages, the entry points of their distributions, and these benchmarks.

    Args:
        folder: made anew.
        packages: distributions.

    Raises:
        PackageNotFoundError: one is not installed.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in packages:
        distribution = metadata.distribution(name)
        shutil.copytree(_place(PACKAGES[name]), folder / PACKAGES[name], ignore=_SKIPPED)
        # What the entry points are found by; an editable installation's other files are its own.
        info = folder / f"{name.replace('-', '_')}-{distribution.version}.dist-info"
        info.mkdir()
        for file in ("METADATA", "entry_points.txt"):
            text = distribution.read_text(file)
            if text is not None:
                (info / file).write_text(text)
    shutil.copytree(ROOT / "bench", folder / "bench", ignore=_SKIPPED)


def _place(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise metadata.PackageNotFoundError(package)
    return Path(spec.origin).parent
