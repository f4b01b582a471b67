"""Runs an assembler or a linker: one file in, one file out."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from polyblocks.errors import MachineError, UnsupportedError

#: Seconds after which a tool that does not end is given up.
PATIENCE = 300
#: Characters of what a tool says that an error repeats.
_SAID = 2000


def identity(path: str | Path | None) -> str:
    """Text that changes when a program of the machine is installed, replaced or removed."""
    try:
        status = os.stat(path) if path is not None else None
    except OSError:
        status = None
    return f"{path} {status.st_size} {status.st_mtime_ns}" if status is not None else "none"


def run_tool(
    what: str,
    command: Callable[[str, str], Sequence[str]],
    data: bytes,
    suffix: str,
    cache_variables: Sequence[str] = (),
) -> tuple[bytes, str]:
    """Run a tool on a file.

    Args:
        what: the tool's role, for messages (``assembler``).
        command: the command line, given the paths of the input and of the output.
        data: the contents of the input.
        suffix: ending of the input's name, with the dot.
        cache_variables: environment variables that name a folder which the tool may write to; it
            is a temporary one.

    Returns:
        The contents of the output, and what the tool said.

    Raises:
        MachineError: the tool does not run, or is stopped from outside.
        UnsupportedError: it fails; holds what it says, and how to repeat it with the input, which
            is kept then.
    """
    with tempfile.TemporaryDirectory(prefix="polyblocks-") as folder:
        source, target = Path(folder, f"kernels{suffix}"), Path(folder, "kernels.out")
        source.write_bytes(data)
        try:
            done = subprocess.run(
                command(str(source), str(target)),
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
                env={**os.environ, **dict.fromkeys(cache_variables, folder)},
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise MachineError(f"the {what} does not run: {error}") from error
        if done.returncode == 0 and target.is_file():
            return target.read_bytes(), done.stdout + done.stderr
        if -done.returncode in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            name = signal.Signals(-done.returncode).name
            raise MachineError(f"the {what} was stopped by {name}, perhaps out of memory")
    kept = Path(tempfile.gettempdir(), f"polyblocks-{os.getpid()}-rejected{suffix}")
    kept.write_bytes(data)
    said = " ".join((done.stderr or done.stdout).split())[:_SAID]
    raise UnsupportedError(
        f"internal error: the {what} rejects the generated code: {said}; repeat with: "
        f"{' '.join(command(str(kept), f'{kept}.out'))}"
    )
