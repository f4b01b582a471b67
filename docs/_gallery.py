"""Make the pictures of gallery.md: run every program of examples/gallery, write docs/images.

``python docs/_gallery.py``, or with names of programs for these alone. Small WebP files.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "examples/gallery"
IMAGES = ROOT / "docs/images"
#: No picture of the documentation is larger, in bytes.
LIMIT = 60_000


def picture(program: Path) -> Path:
    """The picture of a program."""
    return IMAGES / f"gallery-{program.stem}.webp"


def main(names: list[str]) -> None:
    """Run the programs with these names, or all.

    Raises:
        SystemExit: a name is no program's, a program failed, or a picture is too large.
    """
    programs = {p.stem: p for p in sorted(PROGRAMS.glob("*.py"))}
    if unknown := set(names) - set(programs):
        raise SystemExit(f"no program: {', '.join(sorted(unknown))}; {', '.join(programs)} are")
    for name in names or programs:
        path = picture(programs[name])
        subprocess.run([sys.executable, programs[name], "--out", path], check=True)
        if (size := path.stat().st_size) > LIMIT:
            raise SystemExit(f"{path}: {size} bytes; {LIMIT} are allowed")


if __name__ == "__main__":
    main(sys.argv[1:])
