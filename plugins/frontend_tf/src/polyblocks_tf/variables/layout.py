"""Where a variable of TensorFlow keeps its value: offsets in its C++ objects, found by trying.

``tensorflow/core/framework/resource_var.h`` has them, in the inline functions that C++ kernels are
compiled from: ``bool is_initialized; std::atomic<bool> copy_on_read_mode; mutex mu_; Tensor
tensor_``. The offsets found on variables made for this purpose must behave like that: it follows
assignments, the flags change when they should, and operations wait for the mutex. A version of
TensorFlow where anything is otherwise has no layout here, and operations are run.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from polyblocks.isolation import forks
from polyblocks.runtime.native.memory_probe import MemoryProbe
from polyblocks_tf.variables.library import Library, library

#: Bytes of a ``Tensor``: shape and dtype, number of elements, buffer.
TENSOR_BYTES = 32
#: Offset of the pointer to its buffer.
BUFFER = 24
#: Offset of the address of the data in the buffer, behind its virtual table and its count.
_DATA = 16
#: Before the tensor in a variable: its mutex, and the two flags.
_MUTEX, _FLAGS = 8, 16
#: Bytes of a variable that are looked at.
_VARIABLE_BYTES = 256
#: How long an operation may take that waits for nothing, in seconds.
_PATIENCE = 10.0

_lock = forks.lock()


@dataclass(frozen=True)
class Layout:
    """The offsets.

    Attributes:
        functions: of TensorFlow's libraries.
        resource: of the pointer to the variable in a resource handle.
        tensor: of the tensor in the variable.
    """

    functions: Library
    resource: int
    tensor: int

    def locate(self, handle: Any) -> Place | None:
        """Where the variable is; None if it is not on the CPU, or not owned by its handle."""
        if "CPU" not in handle.backing_device.upper():
            return None
        memory, size = self.functions.memory_of(handle)
        # Nothing is here of a variable of another process.
        variable = _word(memory + self.resource) if size >= self.resource + 8 else 0
        if not variable or _type_of(variable) != self.functions.addresses["type"]:
            return None
        return Place(variable + self.tensor)


@dataclass(frozen=True)
class Place:
    """A variable's addresses.

    Attributes:
        tensor: its ``Tensor``.
    """

    tensor: int

    @property
    def mutex(self) -> int:
        """Its ``mutex``."""
        return self.tensor - _MUTEX

    def unlock(self) -> None:
        """Free its ``mutex``, which no thread holds that there is."""
        ctypes.c_uint64.from_address(self.mutex).value = 0

    @property
    def flags(self) -> int:
        """Two bytes: whether it is initialized, and whether reads copy it."""
        return self.tensor - _FLAGS

    @property
    def buffer_type(self) -> int:
        """The address of the virtual table of its buffer; 0 without a buffer."""
        buffer = _word(self.tensor + BUFFER)
        return _word(buffer) if buffer else 0


def new_variable(dtype: tf.DType, shape: Iterable[int]) -> Any:
    """The handle of an uninitialized variable on the CPU that lives as long as the handle."""
    with tf.device("CPU:0"):
        return tf.raw_ops.VarHandleOp(
            dtype=dtype, shape=list(shape), shared_name=context.anonymous_name()
        )


def layout() -> Layout | None:
    """The layout of this version of TensorFlow; None if it is unknown."""
    if context.context().is_async():
        return None  # what is not yet done could not be seen
    with _lock:
        return _known()


@functools.cache
def _known() -> Layout | None:
    functions = library()
    if functions is None:
        return None
    with tf.init_scope(), tf.device("CPU:0"):
        found = _find(functions)
        return found if found is not None and _behaves(found) else None


def _find(functions: Library) -> Layout | None:
    if not _is_tensor(functions):
        return None
    offsets: set[tuple[int, int]] = set()
    with MemoryProbe() as memory:
        for shape in ((5,), (2, 3, 4, 7, 1), ()):
            handle = new_variable(tf.float32, shape)
            tf.raw_ops.AssignVariableOp(resource=handle, value=tf.ones(shape))
            value = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
            pairs = _pairs(functions, memory, handle, functions.memory_of(value)[0])
            offsets = pairs if not offsets else offsets & pairs
    if len(offsets) != 1:
        return None
    ((resource, tensor),) = offsets
    return Layout(functions, resource, tensor)


def _is_tensor(functions: Library) -> bool:
    """Whether a ``Tensor`` has the size, and ends with the pointer to its buffer."""
    memory = (ctypes.c_uint8 * 128)(*[0xAB] * 128)
    functions.construct(ctypes.addressof(memory), int(tf.float32.as_datatype_enum))
    written = [i for i, byte in enumerate(memory) if byte != 0xAB]
    return written[-1] == TENSOR_BYTES - 1 and not any(memory[BUFFER:TENSOR_BYTES])


def _pairs(functions: Library, memory: MemoryProbe, handle: Any, data: int) -> set[tuple[int, int]]:
    """Possible offsets of the variable in its handle, and of its tensor in the variable."""
    found = set()
    for resource, variable in memory.words(*functions.memory_of(handle)):
        table = memory.word(variable)
        if table is None or memory.word(table - 8) != functions.addresses["type"]:
            continue
        for offset, buffer in memory.words(variable, _VARIABLE_BYTES):
            if offset >= BUFFER + _FLAGS and memory.word(buffer + _DATA) == data:
                found.add((resource, offset - BUFFER))
    return found


def _behaves(found: Layout) -> bool:
    functions = found.functions
    for dtype, shape in ((tf.float32, (3,)), (tf.int8, (5, 1, 70000)), (tf.bool, ())):
        handle = new_variable(dtype, shape)
        place = found.locate(handle)
        if place is None or _flags(place) != (0, 0):
            return False
        for number in range(3):
            value = tf.fill(shape, tf.cast(number, dtype))
            tf.raw_ops.AssignVariableOp(resource=handle, value=value)
            del value
            if not functions.is_unshared(place.tensor) or _flags(place) != (1, 0):
                return False
            value = tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)
            view = functions.data(place.tensor)
            if (view.data, view.size) != functions.memory_of(value):
                return False
            if functions.is_unshared(place.tensor):
                return False
            for other in (shape, (*shape, 1), (1, *shape), (2, *shape[1:])):
                told = functions.is_same_shape(place.tensor, functions.shape(other))
                if told != (shape == other):
                    return False
    if not _is_mutex(found):
        return False
    handle = new_variable(tf.float32, (3,))
    tf.raw_ops.AssignVariableOp(resource=handle, value=[1.0, 2.0, 3.0])
    tf.raw_ops.ResourceScatterAdd(resource=handle, indices=[0], updates=[1.0])
    place = found.locate(handle)
    return place is not None and _flags(place) == (1, 1)


def _is_mutex(found: Layout) -> bool:
    """Whether an assignment waits for it."""
    handle = new_variable(tf.float32, ())
    place = found.locate(handle)
    if place is None or _word(place.mutex) != 0:
        return False
    started, done = threading.Event(), threading.Event()

    def assign() -> None:
        started.set()
        tf.raw_ops.AssignVariableOp(resource=handle, value=1.0)
        done.set()

    tf.raw_ops.AssignVariableOp(resource=handle, value=0.0)  # its kernel is made
    thread = threading.Thread(target=assign, daemon=True)
    found.functions.lock(place.mutex)
    try:
        if _word(place.mutex) == 0:
            return False
        thread.start()
        started.wait(_PATIENCE)
        waits = not done.wait(0.02)
    finally:
        found.functions.unlock(place.mutex)
    return done.wait(_PATIENCE) and waits and _word(place.mutex) == 0


def _flags(place: Place) -> tuple[int, int]:
    first, second = ctypes.string_at(place.flags, 2)
    return first, second


def _type_of(variable: int) -> int:
    """The type information of an object with virtual functions."""
    return _word(_word(variable) - 8)


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value
