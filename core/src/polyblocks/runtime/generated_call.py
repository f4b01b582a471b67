"""The call of a loaded program as Python that is generated for it, where there is no machine code.

All that is expected of the arrays is spelled out, without loops and without objects that describe
them. It takes only what is exactly as expected; everything else goes to the call that says what is
wrong.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
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
    source = Source("*args")
    fallback = source.name("slow", slow)
    inputs = (*signature.inputs, *signature.weights)
    passed = len(signature.inputs)
    names = [f"a{k}" for k in range(passed)]
    source.add(f"if len(args) != {passed}:")
    source.add(f"return {fallback}(*args)", 2)
    if names:
        source.add(f"{', '.join(names)}, = args")
    conditions = list(interface.guard_expressions(source))
    places = []
    for k, slot in enumerate(signature.inputs):
        assert slot.spec is not None
        checked = interface.check_expressions(source, names[k], slot.spec, k in signature.written)
        if checked is None:
            return None
        conditions += checked[0]
        places.append(checked[1])
    if conditions:
        source.add(f"if not ({' and '.join(conditions)}):")
        source.add(f"return {fallback}(*args)", 2)
    addresses = [f"x{k}" for k in range(len(inputs))]
    for k, place in enumerate(places):
        source.add(f"x{k} = {place}")
    usable = [
        f"x{k} and not x{k} & {slot.alignment - 1}" if slot.alignment > 1 else f"x{k}"
        for k, slot in enumerate(signature.inputs)
        if slot.spec is not None and slot.spec.numel
    ]
    if usable:
        source.add(f"if not ({' and '.join(usable)}):")
        source.add(f"return {fallback}(*args)", 2)
    if weights is not None and addresses[passed:]:
        bound = source.name("weights", weights)
        # The reading keeps their memory alive until the function returns.
        source.add(f"reading = {bound}.read()")
        source.add(f"{', '.join(addresses[passed:])}, = reading.values")
    if signature.written:
        check = source.name("check_overlaps", check_overlaps)
        described = source.name("inputs", inputs)
        written = source.name("written", signature.written)
        every = f"({', '.join(addresses)},)"
        name = executable.manifest.get("name", "main")
        source.add(f"{check}({name!r}, {described}, {every}, {written})")
        held = [] if weights is None else weights.arrays
        updated = [
            names[k] if k < passed else source.name("bound", held[k - passed])
            for k in signature.written
        ]
        source.add(f"{source.name('updating', interface.updating)}({', '.join(updated)})")
    made = _allocate(source, interface, signature)
    if made is None:
        return None
    pointers, released = [], []
    for number, (slot, (kind, k)) in enumerate(
        zip(signature.slots, signature.sources, strict=True)
    ):
        if (kind, k) in fixed:
            pointers.append(str(fixed[kind, k]))
        elif kind == "input":
            pointers.append(addresses[k])
        elif kind == "fresh":
            pointers.append(made[k])
        elif kind == "workspace":
            pool = source.name("workspaces", buffers.workspaces)
            source.add(f"w{number} = {pool}.acquire({slot.workspace})")
            pointers.append(f"w{number}.address")
            released.append(f"w{number}.release()")
        elif kind == "status":
            made_status = _make(source, interface, ArraySpec.contiguous((1,), "int32"), "s")
            if made_status is None:
                return None
            pointers.append(made_status)
        else:
            return None
    pack = source.name("pack", struct.Struct(f"{len(pointers)}Q").pack)
    source.add(f"packed = {pack}({', '.join(pointers)})")
    resolve = source.name("resolve", threads.resolve)
    asked = source.name("num_threads", interface.num_threads)
    source.add(f"threads = {num_threads or f'{resolve}(None, {asked}())'}")
    entry = source.name("entry", executable.entry)
    source.add(f"code = {entry}(packed, threads)")
    for _ in range(1, num_iters):
        source.add(f"code = code or {entry}(packed, threads)")
    for line in released:
        source.add(line)
    source.add("if code:")
    source.add(f"{source.name('failed', failed)}(code)", 2)
    results = []
    for kind, k in signature.results:
        if kind == "fresh":
            results.append(f"r{k}")
        elif k < passed:
            results.append(names[k])
        else:
            assert weights is not None
            results.append(source.name("bound", weights.arrays[k - passed]))
    whole = f"({', '.join(results)},)" if len(results) > 1 else (*results, "None")[0]
    source.add(f"return {whole}")
    call = source.build(slow.__name__)
    call.__name__ = call.__qualname__ = slow.__name__
    return call


def _allocate(source: Source, interface: ArrayInterface, signature: Signature) -> list[str] | None:
    """Write the lines that make results; returns names of their addresses."""
    found = []
    for k, slot in enumerate(signature.fresh):
        assert slot.spec is not None
        made = _make(source, interface, slot.spec, f"r{k}")
        if made is None:
            return None
        found.append(made)
    return found


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
