"""The modules of one compilation, pass by pass, read from a folder of dumps."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from polyblocks.api import stage_of_file
from polyblocks.attributes import RESUME_ATTRIBUTE
from polyblocks.errors import InputError

_NUMBERED = re.compile(r"^(\d+)-S\d+-[\w-]+\.mlir$")
_DONE = re.compile(rf'{re.escape(RESUME_ATTRIBUTE)} = "[^"]*"')


@dataclass(frozen=True)
class Step:
    """A module, and what it went through last.

    Attributes:
        stage: ``S3``; ``S0`` for what the frontend handed over, empty for a file.
        name: the pass; empty for the first module, and for a stage without a dump per pass.
        path: the file.
    """

    stage: str
    name: str
    path: Path

    @property
    def label(self) -> str:
        """``S3:fuse-slices``, as ``--after`` and ``--until`` take it."""
        return f"{self.stage}:{self.name}" if self.name else self.stage

    def module(self) -> bytes:
        """The module's text without the mark of how far it came."""
        return _DONE.sub(f'{RESUME_ATTRIBUTE} = ""', self.path.read_text()).encode()


def read_steps(folder: Path) -> list[Step]:
    """The dumps of a folder in order; one that only repeats the last pass of its stage is left out.

    Raises:
        InputError: the folder holds no dump.
    """
    files = sorted((f for f in folder.iterdir() if _NUMBERED.match(f.name)), key=_number)
    if not files:
        raise InputError(f"there is no dump in {folder}; see: polyblocks bisect --help")
    steps: list[Step] = []
    for path in files:
        stage, _, name = (stage_of_file(path) or "S0").partition(":")
        if not name and steps and steps[-1].stage == stage and steps[-1].name:
            continue
        steps.append(Step(stage, name, path))
    return steps


def has_passes(steps: list[Step]) -> bool:
    """Whether there is a dump after each pass, not only after each stage."""
    return any(step.name for step in steps)


def _number(path: Path) -> int:
    match = _NUMBERED.match(path.name)
    assert match is not None
    return int(match[1])
