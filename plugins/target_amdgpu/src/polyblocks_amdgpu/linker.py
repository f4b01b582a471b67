"""The linker that makes a loadable code object: where it is, and what it links."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from polyblocks.codegen.gpu.external_tool import identity, run_tool
from polyblocks.errors import TargetError

#: Advice where no linker is found.
_MISSING = (
    "target 'amdgpu' needs a linker for code objects and finds none: no ld.lld below ROCM_PATH or "
    "/opt/rocm or on the PATH, and no package 'ziglang'; pip install ziglang"
)


def find() -> list[str]:
    """The command: of ROCm, on the ``PATH``, or of the ``ziglang`` wheel.

    Raises:
        TargetError: no linker is found; says what to install.
    """
    program = _program()
    if program is not None:
        return [str(program)]
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "ld.lld"]
    raise TargetError(_MISSING)


def identity_of_found() -> str:
    """Text that changes when :func:`find` finds another linker, or no linker."""
    wheel = importlib.util.find_spec("ziglang")
    return identity(_program() or (wheel.origin if wheel is not None else None))


def _program() -> Path | None:
    return next((path for path in _candidates() if path.is_file()), None)


def _candidates() -> Iterator[Path]:
    for root in (os.environ.get("ROCM_PATH"), "/opt/rocm"):
        if root:
            yield Path(root) / "llvm" / "bin" / "ld.lld"
    # Debian's are called after LLVM's version where none is the default.
    for name in ("ld.lld", *(f"ld.lld-{version}" for version in range(30, 15, -1))):
        on_path = shutil.which(name)
        if on_path:
            yield Path(on_path)


def link(command: list[str], data: bytes) -> bytes:
    """The code object (HSACO) of one object file.

    Args:
        command: the linker, of :func:`find`.
        data: the relocatable object file.

    Raises:
        UnsupportedError: the linker fails; holds what it says and how to repeat it.
    """

    def link_command(source: str, output: str) -> list[str]:
        return [*command, "-shared", "--no-undefined", "-o", output, source]

    # The wheel's driver keeps a cache, at home by default.
    caches = ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")
    return run_tool("linker", link_command, data, ".o", caches)[0]
