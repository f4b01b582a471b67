"""The folder that is built on one machine and run on another.

- ``bundle.json``: ``schema``, ``target``, ``archs``, ``simulated``, ``versions``, and ``cases``, by
  the file name of a case: ``large`` (its name, null if only the small one was built), ``small``,
  ``seconds`` of compiling, and ``simulation``: by architecture ``kernels`` (``sectors``,
  ``floor_bytes`` and ``launches`` of each) and ``findings`` of the small one
- ``large/NAME.zip``, ``small/NAME.zip``: the programs
- ``small/NAME.npz``: ``input0`` … and ``expected``, the result in float64
- ``python/``: see :mod:`bench.gpu.kit`
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.gpu import attention, hopper
from bench.gpu.cases import EVERYTHING, Pair
from bench.gpu.pipelines import PIPELINES

Json = dict[str, Any]

#: Version of the folder; raised when something changes its meaning or goes away.
SCHEMA = 1
#: What results say for a GPU where there is none.
SIMULATOR = "simulator"
FOLDER = Path("out") / "gpu"


@dataclass(frozen=True)
class Bundle:
    """What was built.

    Attributes:
        folder: where it is.
        facts: of ``bundle.json``.
    """

    folder: Path
    facts: Json

    @classmethod
    def read(cls, folder: Path) -> Bundle:
        """The bundle of a folder.

        Raises:
            ValueError: there is none, or one of another version.
        """
        file = folder / "bundle.json"
        if not file.exists():
            raise ValueError(f"there is no {file}; make it with `python -m bench.gpu build`")
        facts = json.loads(file.read_text())
        if facts.get("schema") != SCHEMA:
            raise ValueError(
                f"{file} has schema {facts.get('schema')}, and this program reads {SCHEMA}; "
                "build it again"
            )
        return cls(folder, facts)

    @property
    def simulated(self) -> bool:
        """Whether the programs are for the simulator."""
        return bool(self.facts["simulated"])

    def pairs(self, size: str) -> list[Pair]:
        """The cases that were built at a size, ``large`` or ``small``, in the table's order."""
        everything = (*PIPELINES, *attention.PAIRS, *hopper.PAIRS, *EVERYTHING)
        return [p for p in everything if self.facts["cases"].get(p.slug, {}).get(size)]

    def program(self, pair: Pair, size: str) -> Path:
        """The file of a program."""
        return self.folder / size / f"{pair.slug}.zip"

    def data(self, pair: Pair) -> Path:
        """The file with inputs and result of a small case."""
        return self.folder / "small" / f"{pair.slug}.npz"
