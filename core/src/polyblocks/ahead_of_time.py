"""Ahead of time: a function of any framework as one file, for several architectures of a target.

The function is compiled as it always is, by calling it, but what is compiled is not run: programs
that do nothing stand in for those that were compiled, and see which arrays they are given.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from polyblocks import driver
from polyblocks.artifact import Artifact
from polyblocks.artifact_variants import join
from polyblocks.errors import InputError, OptionError
from polyblocks.options import CompileOptions
from polyblocks.program import ArraySpec
from polyblocks.runtime.arrays import HOST, ArrayInterface
from polyblocks.runtime.device.call import ON_DEVICE
from polyblocks.runtime.native_entry import NativeEntry

#: What may become of arrays that a function holds.
WEIGHTS = ("stored", "arguments")


class Seen:
    """Stands in for a loaded program: keeps what it is called with, and computes nothing.

    Attributes:
        artifact: the program.
        manifest: its manifest.
        addresses: of its arguments in the first call; None before.
        contents: for each input the bytes that it had then.
    """

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self.manifest = artifact.manifest
        self.addresses: tuple[int, ...] | None = None
        self.contents: dict[int, bytes] = {}
        arguments = len(self.manifest["arguments"])
        self.native_entry = NativeEntry(self.entry, arguments, len(self.manifest.get("checks", ())))

    def entry(self, pointers: bytes, num_threads: int) -> int:
        """Look at the arrays, leave the results as they are."""
        del num_threads
        if self.addresses is None:
            rows = self.manifest["arguments"]
            self.addresses = struct.unpack(f"{len(rows)}Q", pointers)
            for index, (row, address) in enumerate(zip(rows, self.addresses, strict=True)):
                if row["role"] == "input":
                    size = _spec(row).nbytes
                    self.contents[index] = ctypes.string_at(address, size) if size else b""
        return 0

    def close(self) -> None:
        """There is nothing to unload."""


def aot(
    function: Callable[..., Any],
    example_inputs: Sequence[Any],
    options: Mapping[str, Any] | None = None,
    *,
    frontend: str | None = None,
    weights: str = "stored",
) -> Artifact:
    """Compile a function ahead of time, also for chips that are not present.

    Args:
        function: a function or module of a framework, not compiled yet; it becomes one program.
        example_inputs: its arguments, as for a call; arrays on the host.
        options: see :class:`polyblocks.CompileOptions`; here ``arch`` may be a list.
        frontend: which framework it is written in; default: as for :func:`polyblocks.compile`.
        weights: arrays that the function holds are ``stored`` in the artifact, or become
            ``arguments`` behind the function's own.

    Returns:
        The artifact; ``artifact.write(path)`` makes a file for :func:`polyblocks.load`. What it
        takes are the arrays of ``example_inputs`` (those in containers one after another), and
        it returns the arrays of the result in order.

    Raises:
        InputError: the function does not become one program, or returns what none computes.
        OptionError: an unknown option or a wrong value; or ``on_gpu_tensors`` for a target without
            devices, or without an array among the arguments that would say which device is meant.
        FallbackError: an operation cannot be compiled.
        TargetError, PluginError: the target cannot be used.

    Example::

        polyblocks.aot(f, [x], {"target": "toy", "arch": ["v1", "v2"]}).write("f.zip")
        polyblocks.load("f.zip")(x)
    """
    from polyblocks.api import compile
    from polyblocks.frontend_choice import chosen_frontend
    from polyblocks.registry import get_registry

    if weights not in WEIGHTS:
        raise OptionError(f"weights must be one of {', '.join(WEIGHTS)}, not {weights!r}")
    name = frontend or chosen_frontend(function)
    arrays: ArrayInterface = get_registry().frontend(name).hook.array_interface()
    made = []
    for checked in options_by_arch(options):
        if checked.on_gpu_tensors:
            _check_devices(checked, any(map(arrays.is_array, _leaves(example_inputs))))
        strict = replace(checked, strict_target=True, debug=False)
        # The frontends check a dictionary.
        given = {key: value for key, value in vars(strict).items() if value is not None}
        compiled = compile(function, frontend=name, compile_options=given)
        with _looking() as seen:
            result = compiled(*example_inputs)
        artifact = _artifact(seen, arrays, example_inputs, result, weights)
        if checked.on_gpu_tensors:
            artifact.manifest[ON_DEVICE] = True
        made.append(artifact)
    return join(made)


def _check_devices(options: CompileOptions, has_arrays: bool) -> None:
    from polyblocks.registry import get_registry

    target = get_registry().target(options.target).implementation
    if options.simulate or not getattr(target, "DEVICE_KINDS", ()):
        where = "the simulator" if options.simulate else f"target '{options.target}'"
        raise OptionError(
            f"option 'on_gpu_tensors' is for programs that run on a device, and {where} has none; "
            "leave it out"
        )
    if not has_arrays:
        raise OptionError(
            "option 'on_gpu_tensors' needs an array among the arguments, whose device is meant; "
            "leave it out"
        )


def options_by_arch(options: Mapping[str, Any] | None) -> list[CompileOptions]:
    """The options once for each architecture.

    Args:
        options: ``arch`` may be a list, or several names with commas between.

    Raises:
        OptionError: see :class:`CompileOptions`; or the list is empty.
    """
    given = dict(options or {})
    archs = given.pop("arch", None)
    if isinstance(archs, str):
        archs = [arch.strip() for arch in archs.split(",")]
    if archs is not None and not archs:
        raise OptionError("compile option 'arch' is an empty list; name at least one architecture")
    return [CompileOptions.from_dict({**given, "arch": arch}) for arch in archs or [None]]


@contextmanager
def _looking() -> Iterator[list[Seen]]:
    """What is loaded inside is looked at, and not run."""
    seen: list[Seen] = []

    def load(artifact: Artifact) -> Seen:
        seen.append(Seen(artifact))
        return seen[-1]

    with driver.loading_with(load):
        yield seen


def _artifact(
    seen: list[Seen], arrays: ArrayInterface, inputs: Sequence[Any], result: Any, weights: str
) -> Artifact:
    ran = [each for each in seen if each.addresses is not None]
    if len(ran) != 1:
        raise InputError(
            f"the function became {len(ran)} programs, and a file holds one; take the parts that "
            "break it (prints, data-dependent Python, gradients) out of the function"
        )
    (only,) = ran
    manifest = {**only.manifest, "arguments": [dict(row) for row in only.manifest["arguments"]]}
    blobs = dict(only.artifact.blobs)
    leaves = [leaf for leaf in _leaves(inputs) if arrays.is_array(leaf)]
    found = _sources(only, arrays, leaves)
    order = [row for leaf in range(len(leaves)) for row, source in found.items() if source == leaf]
    _check_inputs(manifest, leaves, found)
    held = [row for row, source in found.items() if source is None]
    if weights == "stored":
        for row in held:
            blob = f"weight-{row}.bin"
            blobs[blob] = only.contents[row]
            manifest["arguments"][row]["stored"] = blob
    else:
        order += held
    manifest["call"] = order
    _check_results(manifest, arrays, result)
    return Artifact(manifest, blobs)


def _sources(seen: Seen, arrays: ArrayInterface, leaves: list[Any]) -> dict[int, int | None]:
    """For each input of a program the number of the array that it is; None: the function's own."""
    assert seen.addresses is not None
    places = {arrays.pointer(leaf): k for k, leaf in reversed(list(enumerate(leaves)))}
    found: dict[int, int | None] = {}
    for row in seen.contents:
        found[row] = places.get(seen.addresses[row])
    # Frameworks may pass a copy, in another layout for example.
    free = [k for k in range(len(leaves)) if k not in found.values()]
    for row, source in found.items():
        if source is None:
            spec = _spec(seen.manifest["arguments"][row])
            same = [k for k in free if _is_copy(arrays, leaves[k], spec, seen.contents[row])]
            if same:
                found[row] = same[0]
                free.remove(same[0])
    return found


def _is_copy(arrays: ArrayInterface, leaf: Any, spec: ArraySpec, contents: bytes) -> bool:
    own = arrays.describe(leaf)
    if (own.shape, own.dtype) != (spec.shape, spec.dtype) or arrays.device(leaf) != HOST:
        return False
    if own.strides != spec.strides:
        return not (own.is_contiguous and spec.is_contiguous) and own.numel == spec.numel
    return ctypes.string_at(arrays.pointer(leaf), own.nbytes) == contents


def _check_inputs(
    manifest: dict[str, Any], leaves: list[Any], found: dict[int, int | None]
) -> None:
    unused = [k for k in range(len(leaves)) if k not in found.values()]
    if unused:
        raise InputError(
            f"{manifest['name']} does not use its array number {unused[0] + 1}; leave it out of "
            "the function's arguments"
        )


def _check_results(manifest: dict[str, Any], arrays: ArrayInterface, result: Any) -> None:
    rows = [r for r in manifest["arguments"] if r["role"] == "output" and r["updates"] is None]
    given = [leaf for leaf in _leaves(result) if leaf is not None]
    expected = [(_spec(row).shape, _spec(row).dtype) for row in rows]
    got = []
    for leaf in given:
        spec = arrays.describe(leaf) if arrays.is_array(leaf) else None
        got.append((spec.shape, spec.dtype) if spec else (type(leaf).__name__, ""))
    if got != expected:
        raise InputError(
            f"{manifest['name']} returns {_told(got)}, but its program computes {_told(expected)}; "
            "return new arrays only, no arguments, constants or views, with gradients switched off"
        )


def _told(specs: Sequence[tuple[Any, str]]) -> str:
    return (
        ", ".join(f"{dtype}{list(shape) if dtype else shape}" for shape, dtype in specs)
        or "nothing"
    )


def _leaves(value: Any) -> Iterator[Any]:
    """What containers hold, in order; dictionaries by their keys."""
    if isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from _leaves(value[key])
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _spec(row: Mapping[str, Any]) -> ArraySpec:
    return ArraySpec(tuple(row["shape"]), row["dtype"], tuple(row["strides"]))
