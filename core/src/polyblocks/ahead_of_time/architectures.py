"""One program for several architectures: the options of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyblocks.errors import OptionError
from polyblocks.options import CompileOptions


def options_by_arch(options: Mapping[str, Any] | None) -> list[CompileOptions]:
    """The options once for each architecture.

    Args:
        options: ``arch`` may be a list, or several names with commas between.

    Raises:
        OptionError: see :class:`CompileOptions`; or the list is empty.
    """
    given = dict(options or {})
    archs = given.pop("arch", None)
    if isinstance(archs, str):
        archs = [arch.strip() for arch in archs.split(",")]
    if archs is not None and not archs:
        raise OptionError("compile option 'arch' is an empty list; name at least one architecture")
    return [CompileOptions.from_dict({**given, "arch": arch}) for arch in archs or [None]]
