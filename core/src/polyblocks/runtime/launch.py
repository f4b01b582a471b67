"""The generic launch path: an Executable and an ArrayInterface become a checked function.

Frontends generate launch code of their own that assumes what their guards have checked; this one
checks everything at each call. It is for artifacts that are loaded from a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from polyblocks.runtime.arrays import ArrayInterface
from polyblocks.runtime.binding import Binding
from polyblocks.runtime.bound_weights import BoundWeights
from polyblocks.runtime.executable import Executable
from polyblocks.runtime.host_call import bind_host
from polyblocks.runtime.slots import signature_of


def bind(
    executable: Executable,
    interface: ArrayInterface,
    *,
    num_threads: int | None = None,
    num_iters: int = 1,
    blobs: Mapping[str, bytes] | None = None,
    weights: BoundWeights | None = None,
) -> Callable[..., Any]:
    """Make a Python function of a loaded program.

    A program for devices takes arrays of one device and leaves its results there, on the stream
    that is current to the framework and without waiting; or it takes arrays of the host, which
    are copied, and its results come back to the host.

    Args:
        executable: the loaded program.
        interface: of the framework whose arrays come and go.
        num_threads: threads of each call; None: see :mod:`polyblocks.runtime.threads`.
        num_iters: run the program this many times per call, for timing.
        blobs: of the artifact, which may hold inputs.
        weights: arrays for the last inputs, which are then no parameters of the function.

    Returns:
        ``call(*arrays)``, which takes the inputs in order and returns the result, a tuple of them
        if there are several, None if all are in-place updates. It raises
        InputError for arguments that do not fit, ExecutionError for failed run-time checks.
        For programs of the host, its attributes ``native_call`` and ``generated_call``, called with
        the function itself, make the same in machine code, and in Python that is generated for the
        program; or None, where that cannot be. See :mod:`polyblocks.runtime.native.call` and
        :mod:`polyblocks.runtime.generated_call`.
    """
    signature = signature_of(executable.manifest, blobs or {})
    if weights is not None:
        signature = signature.with_weights(len(weights.slots))
    plain = bind_host(executable, interface, signature, num_threads, num_iters, weights)
    if executable.takes_device_arrays:
        from polyblocks.runtime.device.calls.device_call import bind_device

        plain = bind_device(executable, interface, signature, plain, num_iters, weights)
    own = interface.own_call(
        Binding(executable, signature, plain, num_threads, num_iters, blobs or {}, weights)
    )
    return plain if own is None else own
