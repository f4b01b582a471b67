"""Compile options as TensorFlow programs may give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyblocks.errors import OptionError
from polyblocks.options import CompileOptions
from polyblocks.registry.registry import get_registry


def checked_options(given: Mapping[str, Any] | None) -> CompileOptions:
    """Check a user's options and that their target is there.

    Raises:
        OptionError: unknown name, wrong value, or an option of another framework.
        TargetError: the target is unknown or not installed; says what to install.
    """
    options = CompileOptions.from_dict(given)
    if options.static_argnums:
        raise OptionError(
            "static_argnums is for JAX; in TensorFlow, Python numbers, strings and None are "
            "constants already"
        )
    get_registry().target(options.target)
    return options
