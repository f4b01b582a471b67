"""The assembler of PTX: where it is, and what it says of kernels."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from polyblocks.codegen.gpu.external_tool import run_tool
from polyblocks.errors import MachineError

if TYPE_CHECKING:
    from polyblocks.codegen.gpu.manifest import Resources

_ARCHITECTURE = re.compile(r"'(sm_\d+[af]?)'")
_KERNEL = re.compile(r"Compiling entry function '([^']+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def find() -> str | None:
    """The assembler: on the ``PATH``, below ``CUDA_HOME``, or of the ``nvidia-cuda-nvcc`` wheel."""
    found = places_of("ptxas", ("cuda_nvcc", "cu13"))
    return next((str(path) for path in found if path.is_file()), None)


def places_of(program: str, components: tuple[str, ...]) -> Iterator[Path]:
    """Where a program of CUDA may be, the first place first.

    Args:
        program: its name.
        components: folders of NVIDIA's wheels: those of CUDA 12 have one for each component, those
            of CUDA 13 one for the version.
    """
    on_path = shutil.which(program)
    if on_path:
        yield Path(on_path)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable]) / "bin" / program
    yield Path("/usr/local/cuda/bin") / program
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        for component in components:
            yield Path(folder) / component / "bin" / program


def architectures(path: str) -> frozenset[str]:
    """Architectures of an assembler; newer ones leave old chips to the driver's own.

    Nothing, if it is no program that runs here.

    Raises:
        MachineError: it does not answer.
    """
    return frozenset(_ARCHITECTURE.findall(_help(path)))


@functools.cache
def _help(path: str) -> str:
    """The help text of an assembler."""
    try:
        done = subprocess.run(
            [path, "--help"], capture_output=True, text=True, timeout=60, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise MachineError(f"the assembler {path} does not answer: {error}") from error
    except OSError:
        return ""
    return done.stdout


def assemble(
    path: str, ptx: str, arch: str, *, sparing: bool = False
) -> tuple[bytes, dict[str, Resources]]:
    """Machine code of PTX text, and what its kernels need.

    All processors work on it, if the assembler is of those that can let them (CUDA 12.1).

    Args:
        path: the assembler.
        ptx: the text.
        arch: e.g. ``sm_90a``.
        sparing: whether nothing is computed ahead that waits in registers.

    Returns:
        The ELF file (cubin), and resources by kernel.

    Raises:
        UnsupportedError: the assembler fails; holds what it says and how to repeat it.
    """

    def command(source: str, output: str) -> list[str]:
        several = ["--split-compile=0"] if "--split-compile" in _help(path) else []
        few = ["--register-usage-level=0"] if sparing else []
        return [path, "-v", f"-arch={arch}", "-O3", *several, *few, "-o", output, source]

    code, said = run_tool("assembler", command, ptx.encode(), ".ptx")
    return code, parse_resources(said)


def parse_resources(said: str) -> dict[str, Resources]:
    """Resources by kernel, from what the assembler says with ``-v``."""
    from polyblocks.codegen.gpu.manifest import Resources

    found: dict[str, Resources] = {}
    name = ""
    for line in said.splitlines():
        if match := _KERNEL.search(line):
            name = match[1]
            found[name] = Resources(0)
        elif name and (match := _STACK.search(line)):
            found[name] = replace(found[name], stack_bytes=int(match[1]), spill_bytes=int(match[2]))
        elif name and (match := _USED.search(line)):
            shared = _SHARED.search(line)
            found[name] = replace(
                found[name],
                registers=int(match[1]),
                shared_bytes=int(shared[1]) if shared else 0,
            )
    return found
