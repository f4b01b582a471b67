"""Wheels that are made up, and folders of them as package indexes."""

from __future__ import annotations

import base64
import hashlib
import re
import tomllib
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from packaging.requirements import Requirement

#: Another project's distribution, as far as it is like the one in the Python package index.
NAMESAKE = {
    "polyblocks/__init__.py": "from polyblocks.tree import Tree\n",
    "polyblocks/tree.py": "class Tree:\n    pass\n",
    "polyblocks/utils.py": "",
}


def make_wheel(
    folder: Path, name: str, version: str, files: Mapping[str, str] | None = None
) -> Path:
    """A wheel of these files, which depends on nothing."""
    stem = f"{re.sub(r'[-_.]+', '_', name)}-{version}"
    contents = dict(files or {})
    info = f"{stem}.dist-info"
    contents[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    contents[f"{info}/WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    rows = [f"{path},sha256={_digest(text)},{len(text)}" for path, text in contents.items()]
    contents[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""])
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for member, text in contents.items():
            wheel.writestr(member, text)
    return path


def make_stand_ins(folder: Path, projects: Iterable[Path]) -> None:
    """Empty wheels of all third parties that projects depend on, in a version that they accept."""
    for project in projects:
        data = tomllib.loads((project / "pyproject.toml").read_text())["project"]
        extras = data.get("optional-dependencies", {}).values()
        for text in [*data["dependencies"], *(line for lines in extras for line in lines)]:
            needed = Requirement(text)
            if not needed.name.startswith("polyblocks"):
                versions = sorted(s.version for s in needed.specifier if s.operator in ("==", ">="))
                make_wheel(folder, needed.name, versions[0] if versions else "1.0")


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
