"""Loaded programs as functions of JAX arrays: the generic way first, then called by XLA.

XLA's part is imported and compiled at the second call: a process that calls a program once does
without.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax

from polyblocks.runtime.binding import Binding


def loaded(binding: Binding) -> Callable[..., Any]:
    """A function that calls a program; see :meth:`ArrayInterface.own_call`."""
    plain = binding.plain
    own: Callable[..., Any] | None = None
    called = False

    @functools.wraps(plain)
    def call(*arrays: Any) -> Any:
        nonlocal own, called
        # The generic way puts results on one device.
        needed = called or jax.device_count() > 1
        if own is None and (needed or any(isinstance(a, jax.core.Tracer) for a in arrays)):
            from polyblocks_jax.launch.loaded_call import loaded_call

            own = loaded_call(binding) or plain
        result = (own or plain)(*arrays)
        called = True
        return result

    # Their functions go on to a better one than this.
    def native_call(slow: Callable[..., Any]) -> Any:
        del slow
        return _call_if_present("native_call", own or plain)

    def generated_call(slow: Callable[..., Any]) -> Any:
        del slow
        return _call_if_present("generated_call", plain) if own in (None, plain) else own

    call.native_call = native_call  # type: ignore[attr-defined]
    call.generated_call = generated_call  # type: ignore[attr-defined]
    return call


def _call_if_present(name: str, function: Callable[..., Any]) -> Any:
    make = getattr(function, name, None)
    return None if make is None else make(function)
