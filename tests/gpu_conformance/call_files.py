"""The file of calls that goes to a GPU, see ``keep_calls`` and ``replay``."""

from __future__ import annotations

import zipfile
from pathlib import Path


def pack(folder: Path, target: Path) -> None:
    """Everything that was called, as one compressed file for the way to a GPU."""
    called = {path.name.partition("-")[0] for path in folder.glob("*.npz")}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(folder.iterdir()):
            if path.suffix == ".npz" or path.stem in called:
                archive.write(path, path.name)
