"""The peers' processes: started once, asked one at a time, replaced when they die."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bench.engines import FACES, OURS, VARIANTS

ROOT = Path(__file__).resolve().parents[1]

#: The environment of the peers that the project itself does not need; ``make bench`` fills it.
PEERS_PYTHON = ROOT / ".venv-bench" / "bin" / "python"

#: Peers that run in the project's own environment.
HOME = (OURS, *VARIANTS, "eager", "inductor", "inductor-max-autotune", *FACES)

#: Seconds after which a peer that does not answer has failed.
PATIENCE_S = 300.0


class Member:
    """One peer's process.

    Attributes:
        name: of the peer.
        threads: that it may use.
    """

    def __init__(
        self,
        name: str,
        threads: int,
        environment: dict[str, str],
        logs: Path,
        command: Sequence[str] | None = None,
    ) -> None:
        """
        Args:
            name: of the peer.
            threads: that it may use; it is also held on so many processors.
            environment: additions to this process's environment.
            logs: folder for what it prints.
            command: what to start; default: :mod:`bench.worker` in the right environment.
        """
        self.name = name
        self.threads = threads
        self._environment = os.environ | environment | thread_variables(threads)
        self._log = logs / f"{name}.log"
        self._command = command or [str(python_for(name)), "-m", "bench.worker", name, str(threads)]
        self._process: subprocess.Popen[str] | None = None

    def ask(self, do: str, patience_s: float = PATIENCE_S, **arguments: Any) -> dict[str, Any]:
        """Give an order and wait for the answer.

        A process that dies or does not answer is ended; the next order starts a new one.

        Returns:
            The answer; ``problem`` says why there is none.
        """
        process = self._alive()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], patience_s)
            line = process.stdout.readline() if ready else None
        except BrokenPipeError:
            line = ""
        if line:
            return dict(json.loads(line))
        self.close(kill=True)
        if line is None:
            return {"problem": f"no answer after {patience_s:.0f} s"}
        return {"problem": f"the process {_end_of(process.returncode)}; {self._last_words()}"}

    def close(self, *, kill: bool = False) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        if kill and process.poll() is None:
            # One that is dying by itself is given the time to say how.
            try:
                process.wait(1.0)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
        with suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(20.0)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        process.stdout.close()

    def _alive(self) -> subprocess.Popen[str]:
        if self._process is None:
            with self._log.open("a") as log:
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    cwd=ROOT,
                    env=self._environment,
                    start_new_session=True,
                    preexec_fn=lambda: hold(self.threads),
                )
        return self._process

    def _last_words(self) -> str:
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line]
        return f"its last words: {lines[-1][:200]}" if lines else "it said nothing"


def python_for(name: str) -> Path:
    """The interpreter of a peer's environment."""
    return Path(sys.executable) if name in HOME else PEERS_PYTHON


def thread_variables(threads: int) -> dict[str, str]:
    """Environment variables that tell libraries how many threads they may have."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return dict.fromkeys(names, str(threads))


def hold(threads: int) -> None:
    """Keep this process on so many of its processors: some peers take all that they see."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


@contextmanager
def crew(
    names: Sequence[str], threads: int, environment: dict[str, str], logs: Path
) -> Iterator[list[Member]]:
    """One process per peer; they are ended when the block is left."""
    members = [Member(name, threads, environment, logs) for name in names]
    try:
        yield members
    finally:
        for member in members:
            member.close()


def _end_of(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with status {code}"
