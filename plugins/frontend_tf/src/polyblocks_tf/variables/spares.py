"""Memory for new values of variables: what a variable's buffer is exchanged with when assigned.

A compiled program writes the new value to the spare buffer, while others may still read the old
one. After the exchange the old buffer is the spare one of the next call, so that an assignment
costs neither an allocation nor a copy. A buffer with another owner, as of a tensor that was
read before, or that is not TensorFlow's own, as that of an array of NumPy, is replaced instead.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from polyblocks.isolation import forks
from polyblocks.program import ArraySpec
from polyblocks_tf.specs import TF_DTYPES
from polyblocks_tf.variables.layout import Layout, Place, new_variable


class Spare:
    """The spare buffer of one variable, for all programs that assign it.

    Attributes:
        place: where the tensor with the buffer is.
        dtype: of the variable.
        type: of the buffers that TensorFlow allocates for such a tensor.
        busy: 1 while a call or a renewal uses it.
    """

    def __init__(self, variable: Any, spec: ArraySpec, layout: Layout) -> None:
        self._variable = variable  # as long as this lives, no other has its address
        self._layout = layout
        self.dtype, self._nbytes = TF_DTYPES[spec.dtype], spec.nbytes
        self._shape = tf.constant(spec.shape, tf.int32)
        self._handle = new_variable(self.dtype, spec.shape)
        self._allocate()
        place = layout.locate(self._handle)
        assert place is not None
        self.place = place
        self.type = place.buffer_type
        self.busy = ctypes.c_int32(0)

    def renew(self, claim: Callable[[int], int]) -> None:
        """Replace the buffer if it has another size, as that of a value of another shape has.

        Args:
            claim: sets a flag, and tells whether it was clear; where not, a call is using it.
        """
        if claim(ctypes.addressof(self.busy)):
            try:
                if self._layout.functions.data(self.place.tensor).size != self._nbytes:
                    self._allocate()
                    # Not later, when a call of another thread writes to this memory.
                    context.context().executor.wait()
            finally:
                self.busy.value = 0

    def give_up(self) -> None:
        """Have no buffer, and leave the last one alone, which may be the variable's by now."""
        self._layout.functions.construct(self.place.tensor, int(self.dtype.as_datatype_enum))
        self.busy.value = 0

    def _allocate(self) -> None:
        with _on_cpu():
            value = tf.raw_ops.Empty(shape=self._shape, dtype=self.dtype)
            tf.raw_ops.AssignVariableOp(resource=self._handle, value=value)


def _on_cpu() -> AbstractContextManager[Any]:
    # To enter the scope takes as long as the two operations.
    return tf.device("CPU:0") if _has_devices() else nullcontext()


@functools.cache
def _has_devices() -> bool:
    return any(device.device_type != "CPU" for device in tf.config.list_logical_devices())


_lock = forks.lock()
#: The address of the variable's tensor -> its spare buffer.
_spares: weakref.WeakValueDictionary[int, Spare] = weakref.WeakValueDictionary()


def spare_of(variable: Any, spec: ArraySpec, layout: Layout, place: Place) -> Spare:
    """The spare buffer of a variable.

    Args:
        variable: its handle.
        spec: of its value.
        layout: of variables.
        place: where it is.
    """
    with _lock:
        known = _spares.get(place.tensor)
        if known is None:
            known = _spares[place.tensor] = Spare(variable, spec, layout)
        return known


@forks.in_child
def _give_up() -> None:
    """The calls of other threads are not here to go on, and may have stopped amid an exchange."""
    for spare in list(_spares.values()):
        if spare.busy.value:
            spare.give_up()
