"""Whether the framework that is installed is one of those that a frontend was tested with.

pip asks for the range of a frontend when that is installed, and lets the framework be upgraded
later. Differences may fail at import, or where a function is compiled: an earlier warning names the
cause.
"""

from __future__ import annotations

import importlib.metadata
import re
import warnings
from collections.abc import Sequence
from itertools import zip_longest

#: The bounds that requirements of ours have: ``>=2.13``, ``<2.16``.
_BOUND = re.compile(r"(>=|<)\s*(\d+(?:\.\d+)*)")
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*([^;]*)")


class FrameworkVersionWarning(UserWarning):
    """The installed framework is outside of the releases that a frontend was tested with."""


def check_framework(frontend: str, framework: str, builds: Sequence[str] = ()) -> None:
    """Warn if the framework that is installed lies outside of the range that a frontend asks for.

    Reads what is known of the distributions, and loads none. Says nothing where the range or the
    installed version is unknown, as for a framework that was built from its source.

    Args:
        frontend: the distribution of the frontend.
        framework: the distribution that it asks for.
        builds: other distributions that bring the same modules.
    """
    wanted = required_range(frontend, framework)
    installed = _first_installed((framework, *builds))
    if not wanted or installed is None or is_within(installed[1], wanted):
        return
    name, version = installed
    warnings.warn(
        f"{frontend} is tested with {framework}{wanted}, and {name} {version} is installed: it may "
        f"not work, or compute something else; pip install '{name}{wanted}', or a release of "
        f"{frontend} that names {version}",
        FrameworkVersionWarning,
        stacklevel=2,
    )


def required_range(distribution: str, framework: str) -> str:
    """The versions of a framework that a distribution asks for: ``>=2.13,<2.16``.

    Empty where the distribution is not installed or does not say.
    """
    try:
        requirements = importlib.metadata.requires(distribution) or ()
    except importlib.metadata.PackageNotFoundError:
        return ""
    for text in requirements:
        found = _REQUIREMENT.match(text)
        if found is not None and _canonical(found[1]) == _canonical(framework):
            bounds = _BOUND.findall(found[2])
            return ",".join(sorted((f"{sign}{number}" for sign, number in bounds), reverse=True))
    return ""


def is_within(version: str, wanted: str) -> bool:
    """Whether a version lies within bounds.

    Args:
        version: of a distribution, as ``2.13.0+cpu``. A pre-release counts as its release: with
            ``<2.16`` that was not tried either.
        wanted: ``>=2.13,<2.16``.
    """
    own = _numbers(version)
    return all(
        (_compare(own, _numbers(number)) >= 0) == (sign == ">=")
        for sign, number in _BOUND.findall(wanted)
    )


def _first_installed(names: Sequence[str]) -> tuple[str, str] | None:
    for name in names:
        try:
            return name, importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _numbers(version: str) -> list[int]:
    found = re.match(r"\d+(?:\.\d+)*", version)
    return [] if found is None else [int(part) for part in found[0].split(".")]


def _compare(left: list[int], right: list[int]) -> int:
    for one, other in zip_longest(left, right, fillvalue=0):
        if one != other:
            return 1 if one > other else -1
    return 0
