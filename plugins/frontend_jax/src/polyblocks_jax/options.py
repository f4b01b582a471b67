"""Compile options as JAX programs may give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyblocks.options import CompileOptions
from polyblocks.registry.registry import get_registry


def checked_options(given: Mapping[str, Any] | None) -> CompileOptions:
    """Check a user's options and that their target is there.

    Raises:
        OptionError: unknown name or wrong value.
        TargetError: the target is unknown or not installed; says what to install.
    """
    options = CompileOptions.from_dict(given)
    get_registry().target(options.target)
    return options
