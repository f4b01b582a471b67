"""Compile the kernels of one program in several processes at once.

llvmlite holds one lock around all of LLVM, so threads gain nothing. Processes are forked only from
a child that :mod:`polyblocks.isolation` made: it has one thread, and whatever happens in it does
not touch the user's program.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Collection, Sequence

from polyblocks.isolation import is_isolated_child, native_lock

#: Characters of LLVM IR that are worth a process: a fork costs 10 to 20 ms, this text 150.
WORTH = 40_000
MAX_PARTS = 8

_NAME = re.compile(r'@([\w.$-]+|"[^"]+")\(')
_PARAMETER = re.compile(r" %[\w.]+(?=[,)])")


def parts_for(text: str) -> int:
    """How many processes to use for a module of this text; 1 where forking is not safe."""
    if not is_isolated_child() or not hasattr(os, "fork"):
        return 1
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    return max(1, min(cores, MAX_PARTS, len(text) // WORTH))


def split_module(text: str, movable: Collection[str], parts: int) -> list[str]:
    """Distribute function definitions over modules of about the same size.

    Args:
        text: LLVM IR, one definition after another as MLIR prints it. Its globals must be
            constants, since every part gets a copy.
        movable: names of functions that may go to another module; they become visible there
            and call nothing but each other's module's functions.
        parts: how many modules; fewer come back when there is less to move.

    Returns:
        IR texts; the first one holds all that is not movable.
    """
    rest: list[str] = []
    definitions: list[tuple[str, str]] = []
    lines = iter(text.splitlines())
    for line in lines:
        if not line.startswith("define "):
            rest.append(line)
            continue
        body = [line]
        while body[-1] != "}":
            body.append(next(lines))
        match = _NAME.search(line)
        definitions.append((match[1].strip('"') if match else "", "\n".join(body)))

    fixed = [d for d in definitions if d[0] not in movable]
    loads = [sum(len(body) for _, body in fixed)] + [0] * (parts - 1)
    homes: list[list[tuple[str, str]]] = [fixed, *([] for _ in range(parts - 1))]
    moved = sorted((d for d in definitions if d[0] in movable), key=lambda d: -len(d[1]))
    for definition in moved:
        lightest = loads.index(min(loads))
        loads[lightest] += len(definition[1])
        homes[lightest].append(definition)

    shared = "\n".join(rest)
    modules = []
    for index, home in enumerate(homes):
        here = {name for name, _ in home}
        bodies = [_visible(body) if name in movable else body for name, body in home]
        declared = [_declaration(b) for n, b in moved if n not in here] if index == 0 else []
        if bodies:
            modules.append("\n\n".join([shared, *declared, *bodies]) + "\n")
    return modules


def _visible(body: str) -> str:
    return body.replace("define internal ", "define ", 1)


def _declaration(body: str) -> str:
    head = _visible(body.partition("\n")[0]).replace("define ", "declare ", 1)
    return _PARAMETER.sub("", re.sub(r"\)[^)]*\{$", ")", head))


def run_parts(jobs: Sequence[Callable[[], bytes]]) -> list[bytes]:
    """Run each job in a process of its own, the first one here; their results in order.

    A job whose process fails in any way is run here again, where its error can be seen.
    """
    with native_lock:
        children = [_start(job) for job in jobs[1:]]
    try:
        results = [jobs[0]()]
        for child, job in zip(children, jobs[1:], strict=True):
            data = _collect(child) if child is not None else None
            results.append(job() if data is None else data)
    finally:
        for child in children:
            _discard(child)
    return results


class _Child:
    def __init__(self, pid: int, pipe: int) -> None:
        self.pid = pid
        self.pipe = pipe
        self.open = True


def _start(job: Callable[[], bytes]) -> _Child | None:
    try:
        reader, writer = os.pipe()
    except OSError:
        return None
    try:
        pid = os.fork()
    except OSError:
        os.close(reader)
        os.close(writer)
        return None
    if pid == 0:
        status = 1
        try:
            os.close(reader)
            view = memoryview(job())
            while view:
                view = view[os.write(writer, view) :]
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    return _Child(pid, reader)


def _collect(child: _Child) -> bytes | None:
    chunks = []
    while chunk := os.read(child.pipe, 1 << 20):
        chunks.append(chunk)
    os.close(child.pipe)
    child.open = False
    _, status = os.waitpid(child.pid, 0)
    return b"".join(chunks) if status == 0 else None


def _discard(child: _Child | None) -> None:
    """End a process whose result nobody wants any more."""
    if child is None or not child.open:
        return
    child.open = False
    os.close(child.pipe)
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(child.pid, 9)
        os.waitpid(child.pid, 0)
