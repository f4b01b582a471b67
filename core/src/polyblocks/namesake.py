"""The distribution ``polyblocks``: another project's, with a package of the same name as ours."""

from __future__ import annotations

import importlib.metadata
import sys

OURS = "polyblocks-compiler"
NAMESAKE = "polyblocks"

_REMEDY = f"pip uninstall {NAMESAKE}, then install {OURS} with --force-reinstall --no-deps"


def conflict() -> str:
    """The conflict of this installation with another project's package, and its fix, or "".

    pip lets both be installed. The one that came last has overwritten ``__init__.py``, and
    whichever is uninstalled takes that file along.
    """
    package = sys.modules["polyblocks"]
    if getattr(package, "__distribution__", "") != OURS:
        return f"{package.__file__ or list(package.__path__)} is not part of {OURS}; {_REMEDY}"
    try:
        other = importlib.metadata.distribution(NAMESAKE)
    except importlib.metadata.PackageNotFoundError:
        return ""
    return (
        f"the distribution {NAMESAKE} {other.version} in {other.locate_file('')} has a package of "
        f"the same name as {OURS}; {_REMEDY}"
    )
