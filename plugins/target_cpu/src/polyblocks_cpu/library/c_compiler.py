"""The C compiler that links a library: the machine's, else the one in the ``ziglang`` wheel."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from polyblocks.errors import TargetError
from polyblocks_cpu import openmp
from polyblocks_cpu.archs import ARM, X86

#: Seconds after which a compiler that does not end is given up.
PATIENCE = 600


@dataclass(frozen=True)
class CCompiler:
    """A C compiler.

    Attributes:
        command: how it is called.
        openmp: what links the OpenMP runtime.
    """

    command: tuple[str, ...]
    openmp: tuple[str, ...]

    def run(self, arguments: list[str], folder: Path) -> None:
        """Run it in a folder.

        Raises:
            TargetError: it does not run or fails; says what it said and how to repeat it.
        """
        command = [*self.command, *arguments, *self.openmp]
        caches = ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")
        environment = {**os.environ, **dict.fromkeys(caches, str(folder))}
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise TargetError(f"the C compiler {self.command[0]} does not run: {error}") from error
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).split())[:2000]
            raise TargetError(
                f"the C compiler cannot link the library: {said}; the command was: "
                f"{shlex.join(command)}; it needs a C compiler with OpenMP, named by CC"
            )


def find(family: str) -> CCompiler:
    """A compiler for a family of chips: ``CC``, else ``cc``, ``gcc``, ``clang``, or Zig's.

    Args:
        family: ``x86_64`` or ``aarch64``.

    Raises:
        TargetError: there is none, or it makes code for another family; says what to install.
    """
    named = os.environ.get("CC")
    if named:
        command = shlex.split(named)
        made = _family_of(command)
        if made != family:
            raise TargetError(
                f"the C compiler CC={named} makes code for {made or 'an unknown chip'}, and the "
                f"program is for {family}; name one for that"
            )
        return CCompiler(tuple(command), ("-fopenmp",))
    for name in ("cc", "gcc", "clang", f"{family}-linux-gnu-gcc"):
        path = shutil.which(name)
        if path and _family_of([path]) == family:
            return CCompiler((path,), ("-fopenmp",))
    if importlib.util.find_spec("ziglang") is not None:
        zig = (sys.executable, "-m", "ziglang", "cc", "-target", f"{family}-linux-gnu")
        # It brings no OpenMP runtime. One for other chips is not here to be linked with.
        ours = openmp.library_file() if _family_of_machine() == family else None
        if ours is None:
            return CCompiler(zig, ("-Wl,-z,undefs",))
        # Found here where it lies, elsewhere by its name.
        return CCompiler(zig, (str(ours), f"-Wl,-rpath,{ours.parent}"))
    raise TargetError(
        f"a library is linked by a C compiler for {family}, and there is none: install one with "
        f"OpenMP (gcc: apt install gcc), name one with CC, or pip install ziglang"
    )


def _family_of(command: list[str]) -> str | None:
    """The family of chips that a compiler makes code for; None if it does not say."""
    try:
        done = subprocess.run(
            [*command, "-dumpmachine"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    first = done.stdout.strip().partition("-")[0]
    return {"x86_64": X86, "amd64": X86, "aarch64": ARM, "arm64": ARM}.get(first)


def _family_of_machine() -> str | None:
    from polyblocks_cpu.host import family

    try:
        return family()
    except TargetError:
        return None
