"""The C compiler of a library for CPUs: for their family, and with an OpenMP runtime."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from polyblocks.c_library import c_compiler
from polyblocks.c_library.c_compiler import CCompiler
from polyblocks.errors import TargetError
from polyblocks_cpu import openmp
from polyblocks_cpu.archs import ARM, X86

#: Compilers' names of the families.
NAMES = {"x86_64": X86, "amd64": X86, "aarch64": ARM, "arm64": ARM}


def find(family: str) -> CCompiler:
    """A compiler for a family of chips, with what links the OpenMP runtime.

    Args:
        family: ``x86_64`` or ``aarch64``.

    Raises:
        TargetError: no compiler, or one that makes code for another family; says what to install.
    """
    compiler = c_compiler.find(family, NAMES, "a C compiler with OpenMP")
    own = replace(compiler, flags=("-fopenmp",))
    if not compiler.is_zig and _links(own):
        return own
    # It brings no OpenMP runtime. One for other chips is not here to be linked with.
    ours = openmp.library_file() if _family_of_machine() == family else None
    if ours is None:
        if not compiler.is_zig:
            return own  # says what it lacks
        return replace(compiler, flags=("-Wl,-z,undefs",))
    # Found here where it lies, elsewhere by its name.
    return replace(compiler, flags=(str(ours), f"-Wl,-rpath,{ours.parent}"))


def _links(compiler: CCompiler) -> bool:
    """Whether it has an OpenMP runtime: clang often comes without."""
    with tempfile.TemporaryDirectory(prefix="polyblocks-openmp-") as work:
        place = Path(work)
        (place / "empty.c").write_text("")
        try:
            compiler.run(["-shared", "-fPIC", "empty.c", "-o", "empty.so"], place)
        except TargetError:
            return False
    return True


def _family_of_machine() -> str | None:
    from polyblocks_cpu.host import family

    try:
        return family()
    except TargetError:
        return None
