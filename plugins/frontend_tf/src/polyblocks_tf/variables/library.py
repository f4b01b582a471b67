"""Functions of TensorFlow's shared libraries that reach the memory of variables.

TensorFlow's C API has none that tells where a variable's value is, so these are of its C++ API, by
their mangled names. A version that lacks one has no such library here, and operations are run.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

#: Where the functions may be, relative to the package.
_FILES = (
    "libtensorflow_framework.so.2",
    "libtensorflow_cc.so.2",
    "python/lib_pywrap_tensorflow_common.so",
    "python/_pywrap_tensorflow_internal.so",
)

#: Functions of C++: what they are called here -> their possible mangled names. ``A`` is Abseil's
#: namespace.
_MANGLED = {
    "copy": ("_ZN10tensorflow6TensorC1ERKS0_", "_ZN10tensorflow6TensorC2ERKS0_"),
    "destroy": ("_ZN10tensorflow6TensorD1Ev", "_ZN10tensorflow6TensorD2Ev"),
    "data": ("_ZNK10tensorflow6Tensor11tensor_dataEv",),
    "new_shape": ("_ZN10tensorflow15TensorShapeBaseINS_11TensorShapeEEC1Ev",),
    "add_dimension": ("_ZN10tensorflow15TensorShapeBaseINS_11TensorShapeEE6AddDimEl",),
    "is_same_shape": ("_ZNK10tensorflow11TensorShape10IsSameSizeERKS0_",),
    "is_unshared": ("_ZNK10tensorflow6Tensor13RefCountIsOneEv",),
    "allocate": ("_ZN10tensorflow6TensorC1ENS_8DataTypeERKNS_11TensorShapeE",),
    "construct": ("_ZN10tensorflow6TensorC1ENS_8DataTypeE",),
    "lock": ("{A}5Mutex4lockEv", "{A}5Mutex4LockEv"),
    "unlock": ("{A}5Mutex6unlockEv", "{A}5Mutex6UnlockEv"),
    "lock_shared": ("{A}5Mutex11lock_sharedEv", "{A}5Mutex10ReaderLockEv"),
    "unlock_shared": ("{A}5Mutex13unlock_sharedEv", "{A}5Mutex12ReaderUnlockEv"),
    "type": ("_ZTIN10tensorflow3VarE",),
    "handle_of": ("_Z18EagerTensor_HandlePK7_object",),
    "resolve": ("TFE_TensorHandleResolve",),
    "tensor_data": ("TF_TensorData",),
    "tensor_bytes": ("TF_TensorByteSize",),
    "delete_tensor": ("TF_DeleteTensor",),
    "executor_of": ("TFE_ContextGetExecutorForThread",),
    "is_async": ("TFE_ExecutorIsAsync",),
    "wait": ("TFE_ExecutorWaitForAllPendingNodes",),
    "delete_executor": ("TFE_DeleteExecutor",),
    "new_status": ("TF_NewStatus",),
    "code_of": ("TF_GetCode",),
    "delete_status": ("TF_DeleteStatus",),
}


#: At least the bytes of a ``TensorShape``.
_SHAPE_BYTES = 64


class View(ctypes.Structure):
    """``std::string_view``."""

    _fields_ = (("size", ctypes.c_size_t), ("data", ctypes.c_void_p))


class Library:
    """Functions of TensorFlow.

    Attributes:
        addresses: of each function in :data:`_MANGLED`.

    Raises:
        LookupError: this version of TensorFlow does not have all of them.
    """

    def __init__(self) -> None:
        space = _absl_namespace()
        self.addresses = find_functions(
            {
                name: [text.replace("{A}", space) for text in names]
                for name, names in _MANGLED.items()
            }
        )
        pointer, at = ctypes.c_void_p, self.addresses
        self.data = ctypes.CFUNCTYPE(View, pointer)(at["data"])
        self.is_unshared = ctypes.CFUNCTYPE(ctypes.c_bool, pointer)(at["is_unshared"])
        self.is_same_shape = ctypes.CFUNCTYPE(ctypes.c_bool, pointer, pointer)(at["is_same_shape"])
        self._new_shape = ctypes.CFUNCTYPE(None, pointer)(at["new_shape"])
        add_dimension = ctypes.CFUNCTYPE(None, pointer, ctypes.c_int64)(at["add_dimension"])
        self._add_dimension = add_dimension
        self._shapes: dict[tuple[int, ...], Any] = {}
        self.construct = ctypes.CFUNCTYPE(None, pointer, ctypes.c_int)(at["construct"])
        self.lock = ctypes.CFUNCTYPE(None, pointer)(at["lock"])
        self.unlock = ctypes.CFUNCTYPE(None, pointer)(at["unlock"])
        # Called with the GIL held, since it reads an object of Python.
        self._handle_of = ctypes.PYFUNCTYPE(pointer, ctypes.py_object)(at["handle_of"])
        self._resolve = ctypes.CFUNCTYPE(pointer, pointer, pointer)(at["resolve"])
        self._tensor_data = ctypes.CFUNCTYPE(pointer, pointer)(at["tensor_data"])
        self._tensor_bytes = ctypes.CFUNCTYPE(ctypes.c_size_t, pointer)(at["tensor_bytes"])
        self._delete_tensor = ctypes.CFUNCTYPE(None, pointer)(at["delete_tensor"])
        self._new_status = ctypes.CFUNCTYPE(pointer)(at["new_status"])
        self._delete_status = ctypes.CFUNCTYPE(None, pointer)(at["delete_status"])

    def shape(self, extents: Sequence[int]) -> int:
        """The address of a ``TensorShape``, which stays as long as this."""
        key = tuple(extents)
        if key not in self._shapes:
            made = (ctypes.c_uint64 * (_SHAPE_BYTES // 8))()
            self._new_shape(ctypes.addressof(made))
            for extent in key:
                self._add_dimension(ctypes.addressof(made), extent)
            # Where another thread has made the same one, that has the address.
            self._shapes.setdefault(key, made)
        return ctypes.addressof(self._shapes[key])

    def memory_of(self, tensor: Any) -> tuple[int, int]:
        """Address and size in bytes of the memory of an eager tensor on the CPU.

        That of a tensor of resources holds objects of C++.
        """
        status = self._new_status()
        resolved = self._resolve(self._handle_of(tensor), status)
        self._delete_status(status)
        if not resolved:
            return 0, 0
        found = int(self._tensor_data(resolved) or 0), int(self._tensor_bytes(resolved))
        self._delete_tensor(resolved)
        return found


@functools.cache
def library() -> Library | None:
    """The functions; None where TensorFlow lacks one."""
    try:
        return Library()
    except (LookupError, OSError):
        return None


def context_address() -> int:
    """``TFE_Context*`` of the process."""
    eager = context.context()
    eager.ensure_initialized()
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    return int(get(eager._handle, None) or 0)


def find_functions(names: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Addresses of functions of TensorFlow's libraries.

    Args:
        names: what they are called here -> their possible names there.

    Raises:
        LookupError: TensorFlow does not have all of them.
        OSError: a library cannot be loaded.
    """
    root = Path(tf.__file__).parent
    libraries = [ctypes.CDLL(str(root / file)) for file in _FILES if (root / file).exists()]
    return {name: _address_of(libraries, texts) for name, texts in names.items()}


def _address_of(libraries: Sequence[ctypes.CDLL], names: Sequence[str]) -> int:
    for each in libraries:
        for name in names:
            if hasattr(each, name):
                return ctypes.cast(getattr(each, name), ctypes.c_void_p).value or 0
    raise LookupError(names[0])


def _absl_namespace() -> str:
    """The beginning of the mangled names of Abseil, whose namespace has a version."""
    options = Path(tf.__file__).parent / "include" / "absl" / "base" / "options.h"
    match = re.search(r"#define ABSL_OPTION_INLINE_NAMESPACE_NAME (\w+)", options.read_text())
    if match is None:
        raise LookupError("absl")
    return f"_ZN4absl{len(match[1])}{match[1]}"
