"""Makes small eager tensors on the host in machine code, through TensorFlow's C API.

``EagerTensorFromHandle`` (``tensorflow/python/eager/pywrap_tensor.h``) makes the tensor of Python;
all else is of ``tensorflow/c/c_api.h`` and ``tensorflow/c/eager/c_api.h``.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.framework.ops import EagerTensor

from polyblocks.codegen.ir_text import expand
from polyblocks.codegen.native_call import SELF_OFFSET
from polyblocks.program import ArraySpec
from polyblocks.runtime.native import native_code
from polyblocks.runtime.native.builtin import builtin
from polyblocks.runtime.native.call import is_sound, python_functions
from polyblocks.runtime.native.tables import words
from polyblocks_tf.specs import DTYPE_NAMES, TF_DTYPES
from polyblocks_tf.variables.library import find_functions

#: The function, of Python's protocol ``METH_FASTCALL | METH_KEYWORDS``.
MAKE = "polyblocks_make_tensor"

_FUNCTIONS = {
    "allocate": ("TF_AllocateTensor",),
    "data_of": ("TF_TensorData",),
    "new_handle": ("TFE_NewTensorHandle",),
    "delete_tensor": ("TF_DeleteTensor",),
    "from_handle": ("_Z21EagerTensorFromHandleP16TFE_TensorHandleb",),
}
#: Fields of the table, 8 bytes each.
_FIELDS = (
    "dtype",
    "rank",
    "shape",
    "nbytes",
    "status",  # for all tensors, under Python's lock
    "slow",  # PyObject*, is called without arguments where TensorFlow makes none
    "PyObject_Vectorcall",
    *_FUNCTIONS,
)

_TEXT = """
define ptr @MAKE(ptr %self, ptr %arguments, i64 %count, ptr %names) #0 {
start:
  %table.at = getelementptr i8, ptr %self, i64 SELF_OFFSET
  %table = load ptr, ptr %table.at
  LOAD TABLE.dtype i32 %table -> %dtype
  LOAD TABLE.rank i32 %table -> %rank
  LOAD TABLE.shape ptr %table -> %shape
  LOAD TABLE.nbytes i64 %table -> %nbytes
  LOAD TABLE.allocate ptr %table -> %allocate
  %tensor = call ptr %allocate(i32 %dtype, ptr %shape, i32 %rank, i64 %nbytes)
  %no.tensor = icmp eq ptr %tensor, null
  br i1 %no.tensor, label %slow, label %look
look:
  LOAD TABLE.delete_tensor ptr %table -> %delete.tensor
  LOAD TABLE.data_of ptr %table -> %data.of
  %data = call ptr %data.of(ptr %tensor)
  %nowhere = icmp eq ptr %data, null
  %some = icmp ne i64 %nbytes, 0
  %no.memory = and i1 %nowhere, %some
  br i1 %no.memory, label %drop, label %wrap
drop:
  call void %delete.tensor(ptr %tensor)
  br label %slow
wrap:
  LOAD TABLE.status ptr %table -> %status
  LOAD TABLE.new_handle ptr %table -> %new.handle
  %handle = call ptr %new.handle(ptr %tensor, ptr %status)
  call void %delete.tensor(ptr %tensor)
  %no.handle = icmp eq ptr %handle, null
  br i1 %no.handle, label %slow, label %show
show:
  LOAD TABLE.from_handle ptr %table -> %from.handle
  %object = call ptr %from.handle(ptr %handle, i1 zeroext false)
  ret ptr %object
slow:
  LOAD TABLE.slow ptr %table -> %fallback
  LOAD TABLE.PyObject_Vectorcall ptr %table -> %vectorcall
  %made = call ptr %vectorcall(ptr %fallback, ptr %arguments, i64 %count, ptr %names)
  ret ptr %made
}

attributes #0 = { nounwind "no-jump-tables"="true" "no-builtins" }
"""

_Table: Any = words("Table", _FIELDS)


def maker(spec: ArraySpec, slow: Callable[[], Any]) -> Callable[[], Any] | None:
    """A function that makes a dense tensor with any content on memory of TensorFlow.

    Args:
        spec: of the tensor.
        slow: makes it where TensorFlow's functions do not, and raises.

    Returns:
        None where there is no machine code, or TensorFlow lacks a function.
    """
    found = _functions()
    return None if found is None else _maker(found, spec, slow)


@functools.cache
def _functions() -> dict[str, int] | None:
    """Values of a table that all tensors share, and the address of :data:`MAKE`."""
    try:
        found = find_functions(_FUNCTIONS | {"new_status": ("TF_NewStatus",)})
    except (LookupError, OSError):
        return None
    text = expand(_TEXT, {"MAKE": MAKE, "SELF_OFFSET": SELF_OFFSET}, {"TABLE": _FIELDS})
    placed = native_code.place(text, MAKE)
    if placed is None:
        return None
    found["status"] = ctypes.CFUNCTYPE(ctypes.c_void_p)(found.pop("new_status"))()
    found |= placed
    samples = [ArraySpec.contiguous(shape, "float32") for shape in ((2, 3), (), (0, 4))]
    with tf.init_scope(), tf.device("CPU:0"):  # also where a function is being traced
        return found if all(_agrees(found, spec) for spec in samples) else None


def _agrees(found: dict[str, int], spec: ArraySpec) -> bool:
    """Whether what is made looks as it should."""
    make = _maker(found, spec, lambda: None)
    made: Any = None if make is None else make()
    if type(made) is not EagerTensor:
        return False
    described = DTYPE_NAMES[made.dtype], tuple(made.shape), made.device
    return bool(described == (spec.dtype, spec.shape, tf.zeros(spec.shape).device))


def _maker(
    found: dict[str, int], spec: ArraySpec, slow: Callable[[], Any]
) -> Callable[[], Any] | None:
    table = _Table()
    shape = (ctypes.c_int64 * max(len(spec.shape), 1))(*spec.shape)
    for name in _FIELDS:
        if name in found:
            setattr(table, name, found[name])
    table.dtype = int(TF_DTYPES[spec.dtype].as_datatype_enum)
    table.rank, table.shape = len(spec.shape), ctypes.addressof(shape)
    table.nbytes, table.slow = spec.nbytes, id(slow)
    table.PyObject_Vectorcall = python_functions()["PyObject_Vectorcall"]
    table.kept = shape, slow
    return builtin("make", found[MAKE], table) if is_sound(table) else None
