"""Compile the kernels of one program in several processes at once.

llvmlite holds one lock around all of LLVM, so threads gain nothing. Processes are forked only from
a child that :mod:`polyblocks.isolation.isolation` made: it has one thread, and whatever happens in
it does not touch the user's program.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from polyblocks.codegen.llvm import has_long_loops
from polyblocks.codegen.loop_hints import SCALAR_LOOPS
from polyblocks.isolation.forks import fork_lock
from polyblocks.isolation.isolation import is_isolated_child

#: Characters of LLVM IR that are worth a process: a fork costs 10 to 20 ms, this text 150.
WORTH = 40_000
#: How many times as fast LLVM is with functions that are vector code already.
VECTORS_FASTER = 3
MAX_PARTS = 8

_NAME = re.compile(r'@([\w.$-]+|"[^"]+")\(')
_SYMBOL = re.compile(r'@([\w.$-]+|"[^"]+")')
_GLOBAL = re.compile(r'@([\w.$-]+|"[^"]+") = ')
_PARAMETER = re.compile(r" %[\w.]+(?=[,)])")


def parts_for(text: str) -> int:
    """How many processes to use for a module of this text; 1 where forking is not safe."""
    if not is_isolated_child() or not hasattr(os, "fork"):
        return 1
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    return max(1, min(cores, MAX_PARTS, _work(text) // WORTH))


def _work(text: str) -> int:
    """How long LLVM takes for a module, in characters of functions with scalar loops."""
    total = 0
    for definition in text.split("\ndefine "):
        head, _, _ = definition.partition("\n")
        total += len(definition) // (1 if SCALAR_LOOPS in head else VECTORS_FASTER)
    return total


def split_module(text: str, movable: Collection[str], parts: int) -> list[str]:
    """Distribute function definitions over modules of about the same size.

    Functions with scalar loops are kept apart from the others, which LLVM is through with sooner.
    Each kind gets its share of the modules rounded up, which may be one more than ``parts`` in all:
    one process too many costs less than a core that waits for another.

    A long function of scalar loops is a module of its own, since it is optimized in another way.

    Args:
        text: LLVM IR, one definition after another as MLIR prints it. Its globals must be
            constants, since every part gets a copy of those that it uses.
        movable: names of functions that may go to another module; they become visible there
            and call nothing but each other's module's functions.
        parts: how many modules there should be; fewer come back when there is less to move, one
            more when that is what the shares of both kinds of functions need, and one for each of
            those long functions.

    Returns:
        IR texts; the first one holds all that is not movable.
    """
    rest: list[str] = []
    definitions: list[_Definition] = []
    lines = iter(text.splitlines())
    for line in lines:
        if not line.startswith("define "):
            rest.append(line)
            continue
        body = [line]
        while body[-1] != "}":
            body.append(next(lines))
        match = _NAME.search(line)
        name = match[1].strip('"') if match else ""
        definitions.append(_Definition(name, "\n".join(body), SCALAR_LOOPS in line))

    fixed = [d for d in definitions if d.name not in movable]
    moved = sorted((d for d in definitions if d.name in movable), key=lambda d: -len(d.text))
    alone = [d for d in moved if d.scalar_loops and has_long_loops(d.text)]
    shared = [d for d in moved if d not in alone]
    homes = _homes(fixed, shared, parts)
    for definition in shared:
        alike = [home for home in homes if home.scalar_loops == definition.scalar_loops]
        min(alike, key=lambda home: home.load).add(definition)
    homes += [_Home(True, [definition]) for definition in alone]

    modules = []
    for index, home in enumerate(homes):
        here = {d.name for d in home.definitions}
        bodies = [_visible(d.text) if d.name in movable else d.text for d in home.definitions]
        away = [d for d in moved if index == 0 and d.name not in here]
        if bodies:
            declared = [_declaration(d.text) for d in away]
            head = "\n".join(_without_unused(rest, bodies))
            modules.append("\n\n".join([head, *declared, *bodies]) + "\n")
    return modules


@dataclass(frozen=True)
class _Definition:
    name: str
    text: str
    scalar_loops: bool


@dataclass
class _Home:
    """A module to be."""

    scalar_loops: bool
    definitions: list[_Definition] = field(default_factory=list)
    load: int = 0

    def add(self, definition: _Definition) -> None:
        self.definitions.append(definition)
        self.load += len(definition.text)


def _homes(fixed: Sequence[_Definition], moved: Sequence[_Definition], parts: int) -> list[_Home]:
    """Modules for both kinds of functions, as many of each as there is work; the fixed are in one.

    Fixed functions without loops join the other ones without loops.
    """
    first = _Home(any(d.scalar_loops for d in fixed))
    for definition in fixed:
        first.add(definition)
    work = {True: 0, False: 0}
    for definition in moved:
        work[definition.scalar_loops] += len(definition.text)
    if not any(work.values()):
        return [first]
    if not work[first.scalar_loops]:
        # Nothing else is of its kind. A module for it alone would cost more than it is worth.
        first.scalar_loops = True
    work[first.scalar_loops] += first.load
    work[True] *= VECTORS_FASTER
    total = sum(work.values())
    # Rounded up: a share of less than half a module is one, but at nothing's expense.
    own = -(-parts * work[first.scalar_loops] // total)
    others = -(-parts * work[not first.scalar_loops] // total)
    return [
        first,
        *(_Home(first.scalar_loops) for _ in range(own - 1)),
        *(_Home(not first.scalar_loops) for _ in range(others)),
    ]


def _without_unused(lines: Sequence[str], bodies: Sequence[str]) -> list[str]:
    """The text around definitions, without globals that nothing references.

    Every process would read their elements, and write them into its object.
    """
    used = {name for text in bodies for name in _SYMBOL.findall(text)}
    for line in lines:
        _, _, value = line.partition(" = ")
        used.update(_SYMBOL.findall(value))
    found = ((_GLOBAL.match(line), line) for line in lines)
    return [line for match, line in found if match is None or match[1] in used]


def _visible(body: str) -> str:
    return body.replace("define internal ", "define ", 1)


def _declaration(body: str) -> str:
    head = _visible(body.partition("\n")[0]).replace("define ", "declare ", 1)
    return _PARAMETER.sub("", re.sub(r"\)[^)]*\{$", ")", head))


def run_parts(jobs: Sequence[Callable[[], bytes]]) -> list[bytes]:
    """Run each job in a process of its own, the first one here; their results in order.

    A job whose process fails in any way is run here again, where its error can be seen.
    """
    with fork_lock:
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
    """End a process whose result nothing wants any more."""
    if child is None or not child.open:
        return
    child.open = False
    os.close(child.pipe)
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(child.pid, 9)
        os.waitpid(child.pid, 0)
