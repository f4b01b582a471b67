"""Processes of tests that begin with a framework imported: forked from one that imported it.

To import PyTorch or TensorFlow takes seconds; what a test does in a process of its own, less. The
first test that wants a framework starts a server, which imports it, and has no thread but its own;
for each test it forks. It imports nothing of ours, which knows a forked process from others. It
serves all tests that name the same folder, so all parts of a run, and ends when the folder is gone.

``python preloaded.py torch FOLDER PIPE`` is the server.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

#: Framework -> what is imported; for tests of the servers themselves nothing.
MODULES: dict[str, tuple[str, ...]] = {
    "python": (),
    "torch": ("torch", "torch._functorch.aot_autograd", "torch._inductor.decomposition"),
    "tf": ("tensorflow",),
    "jax": ("jax",),
}
#: Environment variable with the folder that the parts of a run share.
FOLDER = "TEST_SHARED_FOLDER"
#: Seconds within which a server has imported its framework.
START_S = 200.0
#: Seconds without a request after which a server ends, should its folder stay.
IDLE_S = 1200.0

_SIZE = struct.Struct("<Q")


@dataclass(frozen=True)
class Run:
    """A program that has ended.

    Attributes:
        status: of its exit, less than 0 for a signal.
        output, errors: what it printed.
        seconds: of CPU time.
    """

    status: int
    output: str
    errors: str
    seconds: float


def run(
    framework: str,
    folder: Path,
    code: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    limit: float,
) -> Run:
    """Run a program where a framework is imported.

    Args:
        framework: one of :data:`MODULES`.
        folder: of the server, for sockets and logs.
        code: of the program.
        arguments: its ``sys.argv[1:]``.
        environment: all of it. What is read where a module is imported comes too late.
        limit: seconds after which it is killed.

    Raises:
        subprocess.TimeoutExpired: it took more than ``limit`` seconds.
        RuntimeError: no server can be started.
    """
    request = {
        "code": code,
        "arguments": list(arguments),
        "environment": dict(environment),
        "folder": os.getcwd(),
    }
    body = json.dumps(request).encode()
    with (
        _connected(framework, folder) as connection,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        socket.send_fds(connection, [_SIZE.pack(len(body))], [out.fileno(), err.fileno()])
        connection.sendall(body)
        pid = _received(connection)["pid"]
        connection.settimeout(limit)
        try:
            end = _received(connection)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            if isinstance(error, TimeoutError):
                raise subprocess.TimeoutExpired(code, limit) from None
            raise
        texts = [os.pread(file.fileno(), 1 << 24, 0).decode() for file in (out, err)]
    return Run(end["status"], texts[0], texts[1], end["seconds"])


def freeze() -> None:
    """Take what there is out of collections until the end of the process."""
    gc.freeze()
    atexit.register(_thaw)


def _thaw() -> None:
    # Triton's bindings report objects that are not freed at exit, as frozen ones are not.
    if "triton" in sys.modules:
        gc.unfreeze()


def _connected(framework: str, folder: Path) -> socket.socket:
    """A connection with the folder's server, which is started if there is none."""
    address = folder / f"{framework}.socket"
    with open(folder / f"{framework}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (connection := _tried(address)) is not None:
            return connection
        starting, ready = os.pipe()
        try:
            with open(folder / f"{framework}.log", "w+") as log:
                # Returns at once: a server is no child of the process that happens to start it.
                subprocess.run(
                    [sys.executable, __file__, framework, str(folder), str(ready)],
                    # One thread: what is forked has no other.
                    env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    pass_fds=[ready],
                    check=True,
                )
                os.close(ready)
                # The server closes it as well, or has died.
                select.select([starting], [], [], START_S)
                if (connection := _tried(address)) is not None:
                    return connection
                log.seek(0)
                raise RuntimeError(f"no process with {framework} can be started: {log.read()}")
        finally:
            os.close(starting)


def _tried(address: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(address))
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    return connection


def _received(connection: socket.socket) -> dict[str, Any]:
    """The next message, behind its size."""
    return _body(connection, *_SIZE.unpack(_exactly(connection, _SIZE.size)))


def _body(connection: socket.socket, size: int) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(_exactly(connection, size))
    return message


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError("the server has closed the connection")
        data += more
    return data


def _send(connection: socket.socket, **message: Any) -> None:
    body = json.dumps(message).encode()
    connection.sendall(_SIZE.pack(len(body)) + body)


# --- the server --------------------------------------------------------------------------------


def _serve(framework: str, folder: Path, ready: int) -> dict[str, Any]:
    """Fork for each request; returns in the process that is to run one, with the request.

    Args:
        framework: what is imported.
        folder: for the socket.
        ready: file descriptor that is closed when requests are heard.
    """
    if os.fork():
        os._exit(0)
    gc.set_threshold(0)
    for name in MODULES[framework]:
        importlib.import_module(name)
    gc.set_threshold(700, 10, 10)
    # It stays: a full collection of PyTorch's objects takes as long as two functions to compile.
    freeze()
    threads = os.listdir("/proc/self/task")
    if len(threads) != 1:
        raise RuntimeError(f"expected one thread, got {len(threads)}: what is forked lacks them")
    address = folder / f"{framework}.socket"
    address.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(address))
    listener.listen()
    os.close(ready)
    listener.settimeout(1)
    last = time.monotonic()
    while address.exists() and time.monotonic() - last < IDLE_S:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        last = time.monotonic()
        # Several parts may ask at once; each request has a process that waits for its program's.
        if os.fork() == 0:
            listener.close()
            return _take(connection)
        connection.close()
    os._exit(0)


def _take(connection: socket.socket) -> dict[str, Any]:
    """Read a request; returns it in a new process, and tells of its end from this one."""
    head, files, _, _ = socket.recv_fds(connection, _SIZE.size, 2)
    request = _body(connection, *_SIZE.unpack(head))
    pid = os.fork()
    if pid == 0:
        connection.close()
        os.setsid()
        for file, number in zip(files, (1, 2), strict=True):
            os.dup2(file, number)
            os.close(file)
        return request
    _tell_of_its_end(connection, pid)


def _tell_of_its_end(connection: socket.socket, pid: int) -> NoReturn:
    try:
        _send(connection, pid=pid)
        if connection in select.select([connection, os.pidfd_open(pid)], [], [])[0]:
            # The process that asked has died.
            os.killpg(pid, signal.SIGKILL)
        _, status, usage = os.wait4(pid, 0)
        seconds = usage.ru_utime + usage.ru_stime
        _send(connection, status=os.waitstatus_to_exitcode(status), seconds=seconds)
    finally:
        os._exit(0)


def _run(request: dict[str, Any]) -> None:
    """Run a program as ``python -c`` does."""
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv = ["-c", *request["arguments"]]
    sys.path[0] = ""
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(request["code"], "<string>", "exec"), main.__dict__)


if __name__ == "__main__":
    _run(_serve(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
