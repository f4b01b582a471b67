"""Loading native libraries next to others that hold the same code in another version."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def own_symbols_first() -> Iterator[None]:
    """Extension modules that are imported inside prefer their own symbols to those of others.

    Some frameworks load their libraries with all symbols global, an LLVM of another version among
    them. A library that is loaded afterwards would call into that one, and die.
    """
    flag = getattr(os, "RTLD_DEEPBIND", 0)
    if not flag or not hasattr(sys, "setdlopenflags"):
        yield
        return
    before = sys.getdlopenflags()
    sys.setdlopenflags(before | flag)
    try:
        yield
    finally:
        sys.setdlopenflags(before)
