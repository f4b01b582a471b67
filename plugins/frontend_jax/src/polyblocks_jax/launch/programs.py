"""Compiled programs as targets of XLA's foreign function interface."""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from polyblocks import driver
from polyblocks.artifact import Artifact
from polyblocks.frontends.kernel_label import kernel_label
from polyblocks.isolation import forks
from polyblocks.options import DEFAULTS, CompileOptions
from polyblocks.runtime import threads
from polyblocks.runtime.device.calls.xla_device_call import XlaDeviceCall
from polyblocks.runtime.executable import Executable
from polyblocks.runtime.kept.preparer import Preparer
from polyblocks.runtime.xla_call import XlaCall, digest_of
from polyblocks_jax.launch.long_programs import is_long


@dataclass(frozen=True)
class Registered:
    """A loaded program that XLA can call.

    Attributes:
        target: the name under which XLA knows it.
        is_long: whether the caller had better not wait for it.
        label: what is in it, for profilers.
        held: numbers of the inputs that it reads where they are, and XLA does not pass.
    """

    target: str
    is_long: bool
    label: str
    held: frozenset[int] = frozenset()


#: Passed for a constant that only the preparation reads.
_NONE = np.empty(0, np.uint8)

_lock = forks.lock()
#: XLA keeps what it compiled for as long as it likes, so what it may call is never unloaded.
_registered: dict[str, tuple[Registered, XlaCall | XlaDeviceCall]] = {}
_numbers = itertools.count()

#: Bytes of constants that programs may hold. They are held for good, like the programs; what goes
#: beyond is copied into XLA's program, which takes its time, and is freed with that.
MOST_HELD_BYTES = 1 << 30
_held_bytes = 0


def register(
    artifact: Artifact,
    options: CompileOptions,
    *,
    loops: bool,
    platform: str = "cpu",
    constants: Mapping[int, np.ndarray[Any, Any]] | None = None,
) -> Registered:
    """Load a program, if this process has not yet, and make it known to XLA.

    Its name says what it computes and how, so that it means the same in every process: XLA may
    write it into a cache of its own.

    Args:
        artifact: the program.
        options: the checked options.
        loops: whether it holds loops, of whose length the predicted time says nothing.
        platform: XLA's, where it is called: ``cpu``, ``cuda`` or ``rocm``.
        constants: values of inputs that are the same at each call, by their numbers. Arrays that
            depend on them alone are computed now, and kept as long as the program. On the CPU it
            reads the others where they are.
    """
    global _held_bytes
    count = threads.resolve(options.num_threads)
    name = f"polyblocks_{digest_of(artifact)}_{count}_{options.num_iters}"
    constants = constants or {}
    if constants:
        name += f"_{_digest_of_values(constants)}"
    if platform != "cpu":
        name += f"_{platform}"
    if options.use_graph != DEFAULTS["use_graph"]:
        name += f"_graph_{options.use_graph}"
    if options.profile or options.debug or not driver.loads_really():
        # Who measures or debugs wants the program that was loaded for that.
        name += f"_{next(_numbers)}"
    unread = artifact.manifest.get("unread", ())
    read_bytes = sum(v.nbytes for n, v in constants.items() if n not in unread)
    with _lock:
        holding = f"{name}_holding"
        fits = _held_bytes + read_bytes <= MOST_HELD_BYTES
        if constants and platform == "cpu" and (holding in _registered or fits):
            name = holding
        known = _registered.get(name)
        if known is None:
            executable = driver.load(artifact, options=options)
            call: XlaCall | XlaDeviceCall
            if platform == "cpu":
                kept = None
                if executable.preparation is not None:
                    preparer = Preparer(executable)
                    values = [constants[number] for number in preparer.inputs]
                    kept = preparer([value.ctypes.data for value in values], count)
                held = {}
                if name == holding:
                    held = {n: _NONE if n in unread else v for n, v in constants.items()}
                    _held_bytes += read_bytes
                call = XlaCall(
                    executable,
                    threads=count,
                    iterations=options.num_iters,
                    kept=kept,
                    constants=held,
                )
            else:
                call = XlaDeviceCall(executable, iterations=options.num_iters)
            _make_known(name, call, platform)
            # On a GPU no thread waits anyway.
            long = platform == "cpu" and is_long(artifact, loops=loops)
            read = frozenset(constants if name == holding else ())
            made = Registered(name, long, kernel_label(artifact.manifest), read)
            known = _registered[name] = made, call
        return known[0]


def _make_known(name: str, call: XlaCall | XlaDeviceCall, platform: str) -> None:
    handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(call.address)
    where = "cpu" if platform == "cpu" else platform.upper()
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler), platform=where, api_version=1)


def register_loaded(
    executable: Executable,
    blobs: Mapping[str, bytes],
    constants: Mapping[int, np.ndarray[Any, Any]],
    *,
    num_threads: int | None,
    num_iters: int,
    platform: str,
    listed: Sequence[int] = (),
) -> Registered | None:
    """Make a program known to XLA that is loaded already, from a file.

    On the CPU it runs on the caller's thread.

    Args:
        executable: the program, which is kept from now on.
        blobs: of its artifact; they tell it from others.
        constants: values of inputs that the artifact has, by their numbers.
        num_threads: see :mod:`polyblocks.runtime.threads`.
        num_iters: runs of it per call.
        platform: XLA's, where it is called.
        listed: numbers of inputs, the last ones, whose addresses a first argument has, on the CPU.

    Returns:
        None if its constants are more than programs may hold.
    """
    global _held_bytes
    count = threads.resolve(num_threads)
    identity = _identity(executable.manifest, blobs)
    name = f"polyblocks_{identity}_{count}_{num_iters}_loaded_{platform}"
    if listed:
        name += f"_{len(listed)}_listed"
    held_bytes = sum(value.nbytes for value in constants.values())
    with _lock:
        known = _registered.get(name)
        if known is None:
            if _held_bytes + held_bytes > MOST_HELD_BYTES:
                return None
            call: XlaCall | XlaDeviceCall
            if platform == "cpu":
                kept = None
                if executable.preparation is not None:
                    preparer = Preparer(executable)
                    values = [constants[number] for number in _numbers_of(executable, preparer)]
                    kept = preparer([value.ctypes.data for value in values], count)
                call = XlaCall(
                    executable,
                    threads=count,
                    iterations=num_iters,
                    kept=kept,
                    constants=constants,
                    listed=listed,
                )
            else:
                call = XlaDeviceCall(executable, iterations=num_iters, constants=constants)
            _held_bytes += held_bytes
            _make_known(name, call, platform)
            made = Registered(name, False, kernel_label(executable.manifest), frozenset(constants))
            known = _registered[name] = made, call
        return known[0]


def _identity(manifest: Mapping[str, Any], blobs: Mapping[str, bytes]) -> str:
    """The identity of a loaded program, in all processes."""
    if not blobs:  # there is no code to look at
        return uuid.uuid4().hex
    listed = manifest.get("blobs", {})
    if listed.keys() != blobs.keys():
        return digest_of(Artifact(dict(manifest), dict(blobs)))
    # Those of a file, which were compared with its contents when it was read.
    digests = [listed[name]["sha256"] for name in sorted(listed)]
    text = repr((manifest["arguments"], manifest.get("checks"), sorted(listed), digests))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _numbers_of(executable: Executable, preparer: Preparer) -> list[int]:
    """Numbers among the program's inputs of the arguments that its preparation reads."""
    rows = executable.manifest["arguments"]
    inputs = [index for index, row in enumerate(rows) if row["role"] == "input"]
    return [inputs.index(index) for index in preparer.inputs]


def _digest_of_values(constants: Mapping[int, np.ndarray[Any, Any]]) -> str:
    """The identity of a program's constants."""
    digest = hashlib.sha256()
    for number, value in sorted(constants.items()):
        digest.update(f"{number} {value.dtype} {value.shape}".encode())
        digest.update(value.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()[:32]
