"""Reads eager tensors in machine code, through TensorFlow's C API for eager execution.

``EagerTensor_Handle`` gives the handle of that API for a tensor of Python
(``tensorflow/python/eager/pywrap_tensor.h``). Whether its value has been computed, which that API
only waits for, ``TensorHandle::IsReady`` tells, of the class behind the handles of tensors that are
on no custom device (``tensorflow/core/common_runtime/eager/tensor_handle.h``). All else is of
``tensorflow/c/eager/c_api.h``.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import tensorflow as tf
from tensorflow.python.framework.ops import EagerTensor

from polyblocks.codegen.array_layout import ArrayLayout, Word
from polyblocks.runtime.native.memory_probe import MemoryProbe
from polyblocks.runtime.native.reader import NativeReader
from polyblocks_tf.launch.threads import thread_setting
from polyblocks_tf.specs import TF_DTYPES
from polyblocks_tf.variables.library import find_functions

#: Arrays of more dimensions are read by Python.
_MAX_RANK = 16

_FUNCTIONS = {
    "handle_of": ("_Z18EagerTensor_HandlePK7_object",),
    "handle_type": ("_ZTVN10tensorflow12TensorHandleE",),
    "is_ready": ("_ZNK10tensorflow12TensorHandle7IsReadyEv",),
    "dtype_of": ("TFE_TensorHandleDataType",),
    "rank_of": ("TFE_TensorHandleNumDims",),
    "extent_of": ("TFE_TensorHandleDim",),
    "data_of": ("TFE_TensorHandleDevicePointer",),
    "code_of": ("TF_GetCode",),
    "new_status": ("TF_NewStatus",),
}
#: Fields of the reader's state: the type, a status that all calls use under Python's lock, the
#: number of threads that TensorFlow is set to, functions and a virtual table.
_STATE = ("tensor", "status", "threads", *_FUNCTIONS)

#: Of an object of Python: where its class is, its head, and what is looked at.
_CLASS, _HEAD, _OBJECT_BYTES = 8, 16, 192

#: Where in its virtual table an object of C++ points to: behind two words.
_METHODS = 16

_TEXT = """
define internal i1 @allowed(ptr %state) #0 {
  ret i1 true
}

define internal i64 @threads(ptr %state) #0 {
  LOAD TF.threads i64 %state -> %threads
  ret i64 %threads
}

define internal i1 @unmoved(ptr %state, ptr %array, ptr %row, ptr %address) #0 {
  %word = alloca ptr
  %good = call i1 @read(ptr %state, ptr %array, ptr %row, ptr %word)
  %data = load ptr, ptr %word
  %same = icmp eq ptr %data, %address
  %both = and i1 %good, %same
  ret i1 %both
}

define internal i1 @read(ptr %state, ptr %array, ptr %row, ptr %into) #0 {
start:
  %shape = alloca [MAX_RANK x i64]
  %strides = alloca [MAX_RANK x i64]
  LOAD TF.status ptr %state -> %status
  %type.at = getelementptr i8, ptr %array, i64 8
  %type = load ptr, ptr %type.at
  LOAD TF.tensor ptr %state -> %tensor.type
  %known = icmp eq ptr %type, %tensor.type
  br i1 %known, label %check.handle, label %no
check.handle:
  LOAD TF.handle_of ptr %state -> %handle.of
  %handle = call ptr %handle.of(ptr %array)
  %missing = icmp eq ptr %handle, null
  br i1 %missing, label %no, label %check.class
check.class:
  %class = load ptr, ptr %handle
  LOAD TF.handle_type ptr %state -> %table
  %methods = getelementptr i8, ptr %table, i64 METHODS
  %known.class = icmp eq ptr %class, %methods
  br i1 %known.class, label %check.ready, label %no
; To wait here would be to wait with Python's lock, which an operation in the queue may need.
check.ready:
  LOAD TF.is_ready ptr %state -> %is.ready
  %ready.byte = call i8 %is.ready(ptr %handle)
  %ready = trunc i8 %ready.byte to i1
  br i1 %ready, label %check.dtype, label %no
check.dtype:
  LOAD TF.dtype_of ptr %state -> %dtype.of
  LOAD ROW.dtype i64 %row -> %expected.dtype
  %dtype = call i32 %dtype.of(ptr %handle)
  %dtype.wide = sext i32 %dtype to i64
  %same.dtype = icmp eq i64 %dtype.wide, %expected.dtype
  br i1 %same.dtype, label %check.rank, label %no
check.rank:
  LOAD TF.rank_of ptr %state -> %rank.of
  %rank.short = call i32 %rank.of(ptr %handle, ptr %status)
  %rank = sext i32 %rank.short to i64
  %countable = icmp ule i64 %rank, MAX_RANK
  br i1 %countable, label %begin, label %no
begin:
  LOAD TF.extent_of ptr %state -> %extent.of
  br label %dimension
dimension:
  %left = phi i64 [ %rank, %begin ], [ %i, %describe ]
  %stride = phi i64 [ 1, %begin ], [ %stride.next, %describe ]
  %done = icmp eq i64 %left, 0
  br i1 %done, label %locate, label %describe
describe:
  %i = sub i64 %left, 1
  %i.short = trunc i64 %i to i32
  %extent = call i64 %extent.of(ptr %handle, i32 %i.short, ptr %status)
  %extent.at = getelementptr i64, ptr %shape, i64 %i
  store i64 %extent, ptr %extent.at
  %stride.at = getelementptr i64, ptr %strides, i64 %i
  store i64 %stride, ptr %stride.at
  %stride.next = mul i64 %stride, %extent
  br label %dimension
locate:
  LOAD TF.data_of ptr %state -> %data.of
  LOAD TF.code_of ptr %state -> %code.of
  %data = call ptr %data.of(ptr %handle, ptr %status)
  %code = call i32 %code.of(ptr %status)
  %good = icmp eq i32 %code, 0
  br i1 %good, label %compare, label %no
compare:
  store ptr %data, ptr %into
  %fits = call i1 @fits(ptr %row, i64 %rank, ptr %shape, ptr %strides, ptr %data)
  ret i1 %fits
no:
  ret i1 false
}
""".replace("MAX_RANK", str(_MAX_RANK)).replace("METHODS", str(_METHODS))


@functools.cache
def reader() -> NativeReader | None:
    """The reader; None where tensors may be on devices, or TensorFlow lacks a function."""
    if any(device.device_type != "CPU" for device in tf.config.list_logical_devices()):
        return None
    try:
        found = find_functions(_FUNCTIONS)
    except (LookupError, OSError):
        return None
    status = ctypes.CFUNCTYPE(ctypes.c_void_p)(found["new_status"])()
    if not all(_agrees(found, status, tf.zeros(shape)) for shape in ((2, 3, 5), (), (0, 4))):
        return None
    values = (id(EagerTensor), status, thread_setting() or 0, *found.values())
    return NativeReader(
        text=_TEXT,
        types=(EagerTensor,),
        dtype=_dtype,
        structs={"TF": _STATE},
        state=(ctypes.c_void_p * len(values))(*values),
        layout=lambda: _layout(found["handle_of"]),
    )


def _dtype(name: str) -> int | None:
    known = TF_DTYPES.get(name)
    return None if known is None else int(known.as_datatype_enum)


def _layout(handle_of: int) -> ArrayLayout | None:
    """The word of an eager tensor that is its handle, which is immutable."""
    handle: Any = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(handle_of)
    places = set(range(_HEAD, _OBJECT_BYTES, 8))
    with tf.init_scope(), tf.device("CPU:0"), MemoryProbe() as memory:
        for number in range(5):
            tensor = tf.fill([number], number)
            places &= {
                at for at, word in memory.words(id(tensor), _OBJECT_BYTES) if word == handle(tensor)
            }
    if len(places) != 1:
        return None
    own = (Word(0, places.pop()),)
    return ArrayLayout((), own, (Word(0, _CLASS),), ((),) * (_MAX_RANK + 1))


def _agrees(found: dict[str, int], status: int, tensor: tf.Tensor) -> bool:
    """Whether the functions say what Python says."""
    pointer, number = ctypes.c_void_p, ctypes.c_int32
    handle = ctypes.PYFUNCTYPE(pointer, ctypes.py_object)(found["handle_of"])(tensor)
    if not handle:
        return False
    rank = ctypes.CFUNCTYPE(number, pointer, pointer)(found["rank_of"])(handle, status)
    extent: Any = ctypes.CFUNCTYPE(ctypes.c_int64, pointer, number, pointer)(found["extent_of"])
    data = ctypes.CFUNCTYPE(pointer, pointer, pointer)(found["data_of"])(handle, status)
    dtype = ctypes.CFUNCTYPE(number, pointer)(found["dtype_of"])(handle)
    shape = tuple(extent(handle, i, status) for i in range(rank))
    if shape != tuple(tensor.shape) or dtype != tensor.dtype.as_datatype_enum:
        return False
    if ctypes.c_uint64.from_address(handle).value != found["handle_type"] + _METHODS:
        return False
    if not ctypes.CFUNCTYPE(ctypes.c_bool, pointer)(found["is_ready"])(handle):
        return False
    # NumPy gets a scalar as a value without memory.
    return not shape or not all(shape) or data == tensor._numpy().ctypes.data
