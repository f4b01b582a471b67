"""The call of a loaded program as Python that is generated for it, where there is no machine code.

All that is expected of the arrays is spelled out, without loops and without objects that describe
them. It takes only what is exactly as expected; everything else goes to the call that says what is
wrong.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from polyblocks.program import ArraySpec
from polyblocks.runtime import buffers, threads
from polyblocks.runtime.arrays import ArrayInterface
from polyblocks.runtime.executable import Executable
from polyblocks.runtime.slots import Signature, check_overlaps
from polyblocks.runtime.source import Source

if TYPE_CHECKING:
    from polyblocks.runtime.bound_weights import BoundWeights


def generated_call(
    executable: Executable,
    interface: ArrayInterface,
    signature: Signature,
    slow: Callable[..., Any],
    failed: Callable[[int], Any],
    *,
    num_threads: int | None,
    num_iters: int,
    fixed: Mapping[tuple[str, int], int],
    weights: BoundWeights | None,
) -> Callable[..., Any] | None:
    """Generate the function, with the arguments of :func:`polyblocks.runtime.native.call.native`.

    Returns:
        None if the interface spells out nothing, or what is passed must be prepared.
    """
    writer = _Writer(executable, interface, signature, slow, fixed, weights)
    made = writer.arguments() and writer.updates_and_results()
    pointers = writer.pointers() if made else None
    if pointers is None:
        return None
    writer.run(pointers, failed, num_threads, num_iters)
    writer.results()
    call = writer.source.build(slow.__name__)
    call.__name__ = call.__qualname__ = slow.__name__
    return call


class _Writer:
    """Writes the function, in the order of its lines; see :func:`generated_call`."""

    def __init__(
        self,
        executable: Executable,
        interface: ArrayInterface,
        signature: Signature,
        slow: Callable[..., Any],
        fixed: Mapping[tuple[str, int], int],
        weights: BoundWeights | None,
    ) -> None:
        self._executable, self._interface, self._signature = executable, interface, signature
        self._fixed, self._weights = fixed, weights
        self.source = Source("*args")
        self._slow = self.source.name("slow", slow)
        self._passed = len(signature.inputs)
        self._inputs = (*signature.inputs, *signature.weights)
        self._names = [f"a{k}" for k in range(self._passed)]
        self._addresses = [f"x{k}" for k in range(len(self._inputs))]
        self._made: list[str] = []
        self._released: list[str] = []

    def arguments(self) -> bool:
        """Check the arguments and take their addresses; whether the interface spells this out."""
        source, interface, signature = self.source, self._interface, self._signature
        source.add(f"if len(args) != {self._passed}:")
        source.add(f"return {self._slow}(*args)", 2)
        if self._names:
            source.add(f"{', '.join(self._names)}, = args")
        conditions = list(interface.guard_expressions(source))
        places = []
        for k, slot in enumerate(signature.inputs):
            assert slot.spec is not None
            written = k in signature.written
            checked = interface.check_expressions(source, self._names[k], slot.spec, written)
            if checked is None:
                return False
            conditions += checked[0]
            places.append(checked[1])
        self._require(conditions)
        for k, place in enumerate(places):
            source.add(f"x{k} = {place}")
        self._require(
            f"x{k} and not x{k} & {slot.alignment - 1}" if slot.alignment > 1 else f"x{k}"
            for k, slot in enumerate(signature.inputs)
            if slot.spec is not None and slot.spec.numel
        )
        bound = self._addresses[self._passed :]
        if self._weights is not None and bound:
            # The reading keeps their memory alive until the function returns.
            source.add(f"reading = {source.name('weights', self._weights)}.read()")
            source.add(f"{', '.join(bound)}, = reading.values")
        return True

    def _require(self, conditions: Iterable[str]) -> None:
        """Leave the call to the one that says what is wrong, unless all conditions hold."""
        joined = " and ".join(conditions)
        if joined:
            self.source.add(f"if not ({joined}):")
            self.source.add(f"return {self._slow}(*args)", 2)

    def updates_and_results(self) -> bool:
        """Say what is updated, and make the results; whether the interface spells this out."""
        source, signature = self.source, self._signature
        if signature.written:
            check = source.name("check_overlaps", check_overlaps)
            described = source.name("inputs", self._inputs)
            written = source.name("written", signature.written)
            every = f"({', '.join(self._addresses)},)"
            name = self._executable.manifest.get("name", "main")
            source.add(f"{check}({name!r}, {described}, {every}, {written})")
            updated = ", ".join(self._argument(k) for k in signature.written)
            source.add(f"{source.name('updating', self._interface.updating)}({updated})")
        for k, slot in enumerate(signature.fresh):
            assert slot.spec is not None
            made = _make(source, self._interface, slot.spec, f"r{k}")
            if made is None:
                return False
            self._made.append(made)
        return True

    def _argument(self, k: int) -> str:
        """The name of an argument, or of a weight that is bound."""
        if k < self._passed:
            return self._names[k]
        assert self._weights is not None
        return self.source.name("bound", self._weights.arrays[k - self._passed])

    def pointers(self) -> list[str] | None:
        """The pointer for each of the slots of the program; None if one must be prepared."""
        source, found = self.source, []
        slots = zip(self._signature.slots, self._signature.sources, strict=True)
        for number, (slot, (kind, k)) in enumerate(slots):
            if (kind, k) in self._fixed:
                found.append(str(self._fixed[kind, k]))
            elif kind == "input":
                found.append(self._addresses[k])
            elif kind == "fresh":
                found.append(self._made[k])
            elif kind == "workspace":
                pool = source.name("workspaces", buffers.workspaces)
                source.add(f"w{number} = {pool}.acquire({slot.workspace})")
                found.append(f"w{number}.address")
                self._released.append(f"w{number}.release()")
            elif kind == "status":
                spec = ArraySpec.contiguous((1,), "int32")
                status = _make(source, self._interface, spec, "s")
                if status is None:
                    return None
                found.append(status)
            else:
                return None
        return found

    def run(
        self,
        pointers: list[str],
        failed: Callable[[int], Any],
        num_threads: int | None,
        num_iters: int,
    ) -> None:
        """Run the program, and report that a check has failed."""
        source = self.source
        pack = source.name("pack", struct.Struct(f"{len(pointers)}Q").pack)
        source.add(f"packed = {pack}({', '.join(pointers)})")
        resolve = source.name("resolve", threads.resolve)
        asked = source.name("num_threads", self._interface.num_threads)
        source.add(f"threads = {num_threads or f'{resolve}(None, {asked}())'}")
        entry = source.name("entry", self._executable.entry)
        source.add(f"code = {entry}(packed, threads)")
        for _ in range(1, num_iters):
            source.add(f"code = code or {entry}(packed, threads)")
        for line in self._released:
            source.add(line)
        source.add("if code:")
        source.add(f"{source.name('failed', failed)}(code)", 2)

    def results(self) -> None:
        """Return the results."""
        found = [
            f"r{k}" if kind == "fresh" else self._argument(k) for kind, k in self._signature.results
        ]
        whole = f"({', '.join(found)},)" if len(found) > 1 else (*found, "None")[0]
        self.source.add(f"return {whole}")


def _make(source: Source, interface: ArrayInterface, spec: ArraySpec, name: str) -> str | None:
    """Write the lines that make an array; returns the name of its address."""
    function, arguments = interface.allocation(spec)
    given = ", ".join(source.name("given", each) for each in arguments)
    source.add(f"{name} = {source.name('make', function)}({given})")
    checked = interface.check_expressions(source, name, spec, False)
    if checked is None:
        return None
    source.add(f"y_{name} = {checked[1]}")
    return f"y_{name}"
