"""Which releases of other projects the distributions accept, and which of them are tried."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

LOW, HIGH = "low", "high"


@dataclass(frozen=True)
class Range:
    """Releases of a distribution: from one on, and below another one.

    Attributes:
        name: of the distribution.
        low: the lowest release.
        below: the first that is not among them; None where there is no such bound.
    """

    name: str
    low: Version
    below: Version | None

    def requirement(self, end: str, name: str = "") -> str:
        """What to ask pip for.

        Args:
            end: ``low``: the lowest release itself. ``high``: the range, of which pip takes the
                newest.
            name: of another distribution with the same releases.
        """
        name = name or self.name
        if end == LOW:
            return f"{name}=={self.low}"
        return f"{name}>={self.low}" + (f",<{self.below}" if self.below else "")

    def holds(self, version: str, end: str = HIGH) -> bool:
        """Whether a release is what is asked for; ``2.13.0+cpu`` is 2.13.0."""
        release = Version(Version(version).public)
        if end == LOW:
            return release == self.low
        return release >= self.low and (self.below is None or release < self.below)


def range_of(pyproject: Path, name: str) -> Range:
    """The range that a project asks for.

    Args:
        pyproject: path of the project's file.
        name: of the distribution that it depends on.

    Raises:
        ValueError: it depends on none of that name, or not from one release on.
    """
    wanted = canonicalize_name(name)
    for text in tomllib.loads(pyproject.read_text())["project"]["dependencies"]:
        needed = Requirement(text)
        if canonicalize_name(needed.name) == wanted:
            return _range(needed, pyproject)
    raise ValueError(f"{pyproject} depends on no {name}: add it to its dependencies")


def _range(needed: Requirement, pyproject: Path) -> Range:
    bounds = {s.operator: Version(s.version) for s in needed.specifier}
    if not bounds.keys() <= {">=", "<"} or ">=" not in bounds or len(needed.specifier) > 2:
        raise ValueError(
            f"{pyproject}: expected {needed.name}>=LOW or {needed.name}>=LOW,<BELOW, not {needed}"
        )
    return Range(needed.name, bounds[">="], bounds.get("<"))


def without(constraints: str, names: Iterable[str]) -> str:
    """The lines of a file of constraints, without those for some distributions."""
    left_out = {canonicalize_name(name) for name in names}
    lines = [line for line in constraints.splitlines() if line.strip() and line[0] != "#"]
    kept = [line for line in lines if canonicalize_name(Requirement(line).name) not in left_out]
    return "".join(f"{line}\n" for line in kept)


def changed(report: Mapping[str, list[Mapping[str, Mapping[str, str]]]]) -> list[str]:
    """What pip would install, ``NAME==VERSION`` each.

    Args:
        report: of ``pip install --dry-run --report``.
    """
    return sorted(
        f"{each['metadata']['name']}=={each['metadata']['version']}" for each in report["install"]
    )
