"""The C compiler that links a library: the machine's, else the one in the ``ziglang`` wheel."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from polyblocks.errors import TargetError

#: Seconds after which a compiler that does not end is given up.
PATIENCE = 600


@dataclass(frozen=True)
class CCompiler:
    """A C compiler.

    Attributes:
        command: how it is called.
        flags: what stands behind the arguments of each call.
        needs: what it must be, for messages.
        is_zig: whether it is the one in the ``ziglang`` wheel, which has no OpenMP.
    """

    command: tuple[str, ...]
    flags: tuple[str, ...] = ()
    needs: str = "a C compiler"
    is_zig: bool = False

    def run(self, arguments: Sequence[str], folder: Path) -> None:
        """Run it in a folder.

        Raises:
            TargetError: it does not run or fails; says what it said and how to repeat it.
        """
        command = [*self.command, *arguments, *self.flags]
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
                f"{shlex.join(command)}; it needs {self.needs}, named by CC"
            )


def find(family: str, names: Mapping[str, str], needs: str = "a C compiler") -> CCompiler:
    """A compiler for a family of CPUs: ``CC``, else ``cc``, ``gcc``, ``clang``, or Zig's.

    Args:
        family: as compilers call it in their triples.
        names: what compilers say they make code for (``-dumpmachine``) -> family.
        needs: what it must be, for messages.

    Raises:
        TargetError: no compiler, or one that makes code for another family; says what to install.
    """
    named = os.environ.get("CC")
    if named:
        command = _command(named)
        made = names.get(_machine_of(command))
        if made != family:
            raise TargetError(
                f"the C compiler CC={named} makes code for {made or 'an unknown chip'}, and the "
                f"program is for {family}; name one for that"
            )
        return CCompiler(command, needs=needs)
    for name in ("cc", "gcc", "clang", f"{family}-linux-gnu-gcc"):
        path = shutil.which(name)
        if path and names.get(_machine_of([path])) == family:
            return CCompiler((path,), needs=needs)
    zig = _zig("-target", f"{family}-linux-gnu")
    if zig is None:
        raise _missing(f"a C compiler for {family}", needs)
    return CCompiler(zig, needs=needs, is_zig=True)


def find_any() -> CCompiler:
    """The compiler for what it makes code for by itself: ``CC``, else as :func:`find`.

    Raises:
        TargetError: no compiler; says what to install.
    """
    named = os.environ.get("CC")
    if named:
        return CCompiler(_command(named))
    for name in ("cc", "gcc", "clang"):
        path = shutil.which(name)
        if path:
            return CCompiler((path,))
    zig = _zig()
    if zig is None:
        raise _missing("a C compiler", "a C compiler")
    return CCompiler(zig, is_zig=True)


def _command(named: str) -> tuple[str, ...]:
    """``CC`` as a command that runs in any folder."""
    program, *arguments = shlex.split(named)
    found = shutil.which(program)
    return (os.path.abspath(found) if found else program, *arguments)


def _zig(*arguments: str) -> tuple[str, ...] | None:
    if importlib.util.find_spec("ziglang") is None:
        return None
    return (sys.executable, "-m", "ziglang", "cc", *arguments)


def _missing(what: str, needs: str) -> TargetError:
    return TargetError(
        f"linking a library needs {what}, and none was found: install {needs} (gcc: apt install "
        "gcc), name one with CC, or pip install ziglang"
    )


def _machine_of(command: Sequence[str]) -> str:
    """The machine that a compiler reports, or an empty string."""
    try:
        done = subprocess.run(
            [*command, "-dumpmachine"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().partition("-")[0]
