"""Compiled programs as targets of XLA's foreign function interface."""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from polyblocks import driver
from polyblocks.artifact import PREPARATION, Artifact
from polyblocks.frontends.kernel_label import kernel_label
from polyblocks.options import CompileOptions
from polyblocks.runtime import threads
from polyblocks.runtime.device.xla_device_call import XlaDeviceCall
from polyblocks.runtime.kept.preparer import Preparer
from polyblocks.runtime.xla_call import XlaCall, digest_of


@dataclass(frozen=True)
class Registered:
    """A loaded program that XLA can call.

    Attributes:
        target: the name under which XLA knows it.
        is_long: whether the caller had better not wait for it.
        label: what is in it, for profilers.
    """

    target: str
    is_long: bool
    label: str


_lock = threading.Lock()
#: XLA keeps what it compiled for as long as it likes, so what it may call is never unloaded.
_registered: dict[str, tuple[Registered, XlaCall | XlaDeviceCall]] = {}
_numbers = itertools.count()


#: Seconds from which on a program runs on a thread of XLA's; handing it over takes about half.
LONG_S = 10e-6


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
        constants: values of inputs that are the same at each call, by their numbers. What depends
            on them alone is computed now, and kept as long as the program.
    """
    count = threads.resolve(options.num_threads)
    name = f"polyblocks_{digest_of(artifact)}_{count}_{options.num_iters}"
    if PREPARATION in artifact.manifest:
        name += f"_{_digest_of_values(artifact, constants or {})}"
    if platform != "cpu":
        name += f"_{platform}"
    if options.use_graph:
        name += "_graph"
    if options.profile or options.debug or not driver.loads_really():
        # Who measures or debugs wants the program that was loaded for that.
        name += f"_{next(_numbers)}"
    with _lock:
        known = _registered.get(name)
        if known is None:
            executable = driver.load(artifact, options=options)
            call: XlaCall | XlaDeviceCall
            if platform == "cpu":
                kept = None
                if executable.preparation is not None:
                    preparer = Preparer(executable)
                    values = [(constants or {})[number] for number in preparer.inputs]
                    kept = preparer([value.ctypes.data for value in values], count)
                call = XlaCall(executable, threads=count, iterations=options.num_iters, kept=kept)
            else:
                call = XlaDeviceCall(executable, iterations=options.num_iters)
            handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(call.address)
            capsule = jax.ffi.pycapsule(handler)
            where = "cpu" if platform == "cpu" else platform.upper()
            jax.ffi.register_ffi_target(name, capsule, platform=where, api_version=1)
            # On a GPU no thread waits anyway.
            is_long = platform == "cpu" and (loops or _predicted_s(artifact) > LONG_S)
            made = Registered(name, is_long, kernel_label(artifact.manifest))
            known = _registered[name] = made, call
        return known[0]


def _digest_of_values(artifact: Artifact, constants: Mapping[int, np.ndarray[Any, Any]]) -> str:
    """What tells the constants of a program's preparation from others."""
    digest = hashlib.sha256()
    for source in artifact.manifest[PREPARATION]["sources"]:
        if source in constants:
            digest.update(constants[source].reshape(-1).view(np.uint8).data)
    return digest.hexdigest()[:32]


def _predicted_s(artifact: Artifact) -> float:
    """Seconds that the program is predicted to take; that is too little if something is unknown."""
    kernels = artifact.manifest["kernels"]
    return sum(
        kernel.get("calls", 1) * (kernel.get("estimate") or {}).get("predicted_seconds", LONG_S)
        for kernel in kernels
    )
