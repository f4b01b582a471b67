"""Addresses of arrays as one array of JAX, which keeps them alive as long as XLA may read them."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from polyblocks_jax.launch.arrays import JaxArrays

if TYPE_CHECKING:
    from polyblocks.runtime.native.watcher import Reading

#: XLA copies memory that is aligned less.
_ALIGNMENT = 64


def address_list(reading: Reading) -> Any:
    """An array of bytes on the CPU: the number of a reading, and its addresses, 8 bytes each.

    See :mod:`polyblocks.codegen.xla_handler`.

    Its memory is an object of Python that holds the arrays', and XLA holds that for each call that
    has not run yet.

    Args:
        reading: the addresses, and what keeps the memory there alive.

    Returns:
        None where XLA copies the list.
    """
    nbytes = 8 * (1 + len(reading.values))
    # A class of its own has attributes.
    kind: Any = type("Addresses", (ctypes.c_uint8 * (nbytes + _ALIGNMENT),), {})
    memory = kind()
    memory.held = reading.memory
    start = -ctypes.addressof(memory) % _ALIGNMENT
    listed = np.frombuffer(memory, np.uint8, nbytes, start)
    listed.view(np.uint64)[:] = [reading.number, *reading.values]
    with jax.ensure_compile_time_eval():  # also where a function is being traced
        made = jax.device_put(listed, may_alias=True)
    return made if JaxArrays().pointer(made) == listed.ctypes.data else None
