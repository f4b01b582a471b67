"""Reads tensors in machine code, through functions of PyTorch's libraries.

A tensor of Python holds an ``at::Tensor`` right behind the object's head (``THPVariable`` of
``torch/csrc/autograd/python_variable.h``), and the address of that is what the C interface for
compiled models (``torch/csrc/inductor/aoti_torch/c/shim.h``) takes as a handle. Whether that is so
is checked once per process, with tensors of known contents. A tensor takes a tenth of what DLPack's
C interface takes, which also does not say whether a tensor is a lazy conjugate or negation.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Any

import torch

from polyblocks.runtime.native.reader import NativeReader
from polyblocks_torch.launch import tensor_layout
from polyblocks_torch.launch.memory_of import LARGEST_ELEMENT
from polyblocks_torch.specs import TORCH_DTYPES

#: Bytes of an object's head, behind which the tensor lies.
_HEAD = 16

#: Fields of the reader's state: types, what a tensor's layout and device are, then functions.
_VALUES = ("tensor", "parameter", "layout", "device", "index", "transforms")
_FUNCTIONS = {
    "get_layout": ("torch_cpu", "aoti_torch_get_layout"),
    "get_device": ("torch_cpu", "aoti_torch_get_device_type"),
    "get_index": ("torch_cpu", "aoti_torch_get_device_index"),
    "get_dtype": ("torch_cpu", "aoti_torch_get_dtype"),
    "get_rank": ("torch_cpu", "aoti_torch_get_dim"),
    "get_shape": ("torch_cpu", "aoti_torch_get_sizes"),
    "get_strides": ("torch_cpu", "aoti_torch_get_strides"),
    "get_data": ("torch_cpu", "aoti_torch_get_data_ptr"),
    "get_offset": ("torch_cpu", "aoti_torch_get_storage_offset"),
    "grad_mode": ("torch_cpu", "aoti_torch_grad_mode_is_enabled"),
    # at::native::is_neg(const at::Tensor &) and is_conj
    "is_neg": ("torch_cpu", "_ZN2at6native6is_negERKNS_6TensorE"),
    "is_conj": ("torch_cpu", "_ZN2at6native7is_conjERKNS_6TensorE"),
    # at::get_num_threads()
    "get_threads": ("torch_cpu", "_ZN2at15get_num_threadsEv"),
    # c10::TensorImpl::requires_grad() const
    "requires_grad": ("c10", "_ZNK3c1010TensorImpl13requires_gradEv"),
    # c10::impl::TorchDispatchModeTLS::any_modes_set(bool)
    "any_modes": ("c10", "_ZN3c104impl20TorchDispatchModeTLS13any_modes_setEb"),
    # c10::impl::tls_is_dispatch_key_included(c10::DispatchKey)
    "has_key": ("c10", "_ZN3c104impl28tls_is_dispatch_key_includedENS_11DispatchKeyE"),
}
STATE = (*_VALUES, *_FUNCTIONS)

_TEXT = """
; No mode sees operations, and no transform of torch.func is at work.
define internal i1 @allowed(ptr %state) #0 {
start:
  LOAD TORCH.any_modes ptr %state -> %any.modes
  LOAD TORCH.has_key ptr %state -> %has.key
  LOAD TORCH.transforms i64 %state -> %key
  %modes.byte = call i8 %any.modes(i1 zeroext false)
  %modes = trunc i8 %modes.byte to i1
  br i1 %modes, label %no, label %ask
ask:
  %key.short = trunc i64 %key to i16
  %transformed.byte = call i8 %has.key(i16 zeroext %key.short)
  %transformed = trunc i8 %transformed.byte to i1
  %plain = xor i1 %transformed, true
  ret i1 %plain
no:
  ret i1 false
}

define internal i64 @threads(ptr %state) #0 {
  LOAD TORCH.get_threads ptr %state -> %get.threads
  %count = call i32 %get.threads()
  %wide = sext i32 %count to i64
  ret i64 %wide
}

define internal i1 @unmoved(ptr %state, ptr %array, ptr %row, ptr %address) #0 {
  %word = alloca ptr
  %good = call i1 @read(ptr %state, ptr %array, ptr %row, ptr %word)
  %data = load ptr, ptr %word
  %same = icmp eq ptr %data, %address
  %both = and i1 %good, %same
  ret i1 %both
}

; Whether a tensor's shape and strides, and its address, are as its row says.
define internal i1 @lies(ptr %state, ptr %tensor, ptr %row, ptr %data) #0 {
  %word = alloca i64
  LOAD TORCH.get_rank ptr %state -> %get.rank
  LOAD TORCH.get_shape ptr %state -> %get.shape
  LOAD TORCH.get_strides ptr %state -> %get.strides
  %rank.error = call i32 %get.rank(ptr %tensor, ptr %word)
  %rank = load i64, ptr %word
  %shape.error = call i32 %get.shape(ptr %tensor, ptr %word)
  %shape = load ptr, ptr %word
  %strides.error = call i32 %get.strides(ptr %tensor, ptr %word)
  %strides = load ptr, ptr %word
  %two.errors = or i32 %rank.error, %shape.error
  %errors = or i32 %two.errors, %strides.error
  %described = icmp eq i32 %errors, 0
  br i1 %described, label %compare, label %no
compare:
  %fits = call i1 @fits(ptr %row, i64 %rank, ptr %shape, ptr %strides, ptr %data)
  ret i1 %fits
no:
  ret i1 false
}

define internal i1 @read(ptr %state, ptr %array, ptr %row, ptr %into) #0 {
start:
  %word = alloca i64
  %type.at = getelementptr i8, ptr %array, i64 8
  %type = load ptr, ptr %type.at
  LOAD TORCH.tensor ptr %state -> %tensor.type
  LOAD TORCH.parameter ptr %state -> %parameter.type
  %is.tensor = icmp eq ptr %type, %tensor.type
  %is.parameter = icmp eq ptr %type, %parameter.type
  %known = or i1 %is.tensor, %is.parameter
  br i1 %known, label %check.layout, label %no
check.layout:
  %tensor = getelementptr i8, ptr %array, i64 HEAD
  LOAD TORCH.get_layout ptr %state -> %get.layout
  LOAD TORCH.layout i64 %state -> %strided
  %layout = call i64 @number(ptr %get.layout, ptr %tensor, ptr %word)
  %is.strided = icmp eq i64 %layout, %strided
  br i1 %is.strided, label %check.device, label %no
check.device:
  LOAD TORCH.get_device ptr %state -> %get.device
  LOAD TORCH.device i64 %state -> %expected.device
  %device = call i64 @number(ptr %get.device, ptr %tensor, ptr %word)
  %same.device = icmp eq i64 %device, %expected.device
  br i1 %same.device, label %check.index, label %no
check.index:
  LOAD TORCH.get_index ptr %state -> %get.index
  LOAD TORCH.index i64 %state -> %expected.index
  %index = call i64 @number(ptr %get.index, ptr %tensor, ptr %word)
  %same.index = icmp eq i64 %index, %expected.index
  br i1 %same.index, label %check.dtype, label %no
check.dtype:
  LOAD TORCH.get_dtype ptr %state -> %get.dtype
  LOAD ROW.dtype i64 %row -> %expected.dtype
  %dtype = call i64 @number(ptr %get.dtype, ptr %tensor, ptr %word)
  %same.dtype = icmp eq i64 %dtype, %expected.dtype
  br i1 %same.dtype, label %bits, label %no

; Lazy negations and conjugates: their memory holds something else.
bits:
  LOAD TORCH.is_neg ptr %state -> %is.neg
  LOAD ROW.flags i64 %row -> %flags
  %negated.byte = call i8 %is.neg(ptr %tensor)
  %negated = trunc i8 %negated.byte to i1
  br i1 %negated, label %no, label %conjugate
conjugate:
  %complex.bit = and i64 %flags, COMPLEX
  %complex = icmp ne i64 %complex.bit, 0
  br i1 %complex, label %ask.conjugate, label %update
ask.conjugate:
  LOAD TORCH.is_conj ptr %state -> %is.conj
  %conjugated.byte = call i8 %is.conj(ptr %tensor)
  %conjugated = trunc i8 %conjugated.byte to i1
  br i1 %conjugated, label %no, label %update

; What is updated must not be recorded by autograd.
update:
  %written.bit = and i64 %flags, WRITTEN
  %written = icmp ne i64 %written.bit, 0
  br i1 %written, label %mode, label %check.data
mode:
  LOAD TORCH.grad_mode ptr %state -> %grad.mode
  %recording.byte = call i8 %grad.mode()
  %recording = trunc i8 %recording.byte to i1
  br i1 %recording, label %record, label %check.data
record:
  LOAD TORCH.requires_grad ptr %state -> %requires.grad
  %implementation = load ptr, ptr %tensor
  %required.byte = call i8 %requires.grad(ptr %implementation)
  %required = trunc i8 %required.byte to i1
  br i1 %required, label %no, label %check.data

check.data:
  LOAD TORCH.get_data ptr %state -> %get.data
  LOAD TORCH.get_offset ptr %state -> %get.offset
  %data.error = call i32 %get.data(ptr %tensor, ptr %into)
  %offset.error = call i32 %get.offset(ptr %tensor, ptr %word)
  %place.error = or i32 %data.error, %offset.error
  %placed = icmp eq i32 %place.error, 0
  br i1 %placed, label %check.memory, label %no

; A view of what has no memory has its offset for an address.
check.memory:
  %data = load ptr, ptr %into
  %number = ptrtoint ptr %data to i64
  %offset = load i64, ptr %word
  %reach = mul i64 %offset, LARGEST
  %beyond = icmp ugt i64 %number, %reach
  %empty.bit = and i64 %flags, EMPTY
  %empty = icmp ne i64 %empty.bit, 0
  %usable = or i1 %beyond, %empty
  br i1 %usable, label %compare, label %no
compare:
  %fits = call i1 @lies(ptr %state, ptr %tensor, ptr %row, ptr %data)
  ret i1 %fits
no:
  ret i1 false
}

; A 32-bit number that a function stores; -1 if it fails.
define internal i64 @number(ptr %function, ptr %tensor, ptr %word) #0 {
  %error = call i32 %function(ptr %tensor, ptr %word)
  %value = load i32, ptr %word
  %wide = sext i32 %value to i64
  %good = icmp eq i32 %error, 0
  %found = select i1 %good, i64 %wide, i64 -1
  ret i64 %found
}
""".replace("HEAD", str(_HEAD)).replace("LARGEST", str(LARGEST_ELEMENT))


@functools.cache
def reader(device: torch.device | None = None) -> NativeReader | None:
    """The reader for tensors on a device; None if this PyTorch is not as it takes for granted.

    Args:
        device: with its number; None: the host.
    """
    try:
        functions = _functions()
    except (AttributeError, OSError):
        return None
    # On the host, wherever PyTorch is set to make tensors.
    probe = torch.empty(2, 3, device="cpu").t()
    if not _agrees(functions, probe) or not _agrees(functions, torch.nn.Parameter(probe)):
        return None
    transforms = torch._C.DispatchKey.FuncTorchDynamicLayerFrontMode
    values = (
        id(torch.Tensor),
        id(torch.nn.Parameter),
        _number(functions["get_layout"], probe),
        *_place(functions, probe, device),
        int(transforms),  # type: ignore[call-overload]
        *(ctypes.cast(each, ctypes.c_void_p).value for each in functions.values()),
    )

    def dtype(name: str) -> int | None:
        known = TORCH_DTYPES.get(name)
        if known is None:
            return None
        return _number(functions["get_dtype"], torch.empty(0, dtype=known, device="cpu"))

    return NativeReader(
        text=_TEXT,
        types=(torch.Tensor, torch.nn.Parameter),
        dtype=dtype,
        structs={"TORCH": STATE},
        state=(ctypes.c_void_p * len(values))(*values),
        layout=tensor_layout.layout,
    )


def _place(
    functions: dict[str, Any], probe: torch.Tensor, device: torch.device | None
) -> tuple[int, int]:
    """Type and number of a device, as the functions tell them of its tensors.

    Args:
        functions: of PyTorch's libraries.
        probe: a tensor of the host.
        device: see :func:`reader`.
    """
    if device is None:
        return _number(functions["get_device"], probe), _number(functions["get_index"], probe)
    kinds = torch._C._autograd.DeviceType
    return int(getattr(kinds, device.type.upper())), device.index or 0


def _functions() -> dict[str, Any]:
    """Functions of PyTorch's libraries.

    Raises:
        OSError, AttributeError: a library or a function is not there.
    """
    folder = Path(torch.__file__).parent / "lib"
    libraries = {
        name: ctypes.CDLL(str(folder / f"lib{name}.so"))
        for name in {library for library, _ in _FUNCTIONS.values()}
    }
    return {
        field: getattr(libraries[library], name) for field, (library, name) in _FUNCTIONS.items()
    }


def _number(function: Any, tensor: torch.Tensor) -> int:
    value = ctypes.c_int32(-1)
    function(ctypes.c_void_p(id(tensor) + _HEAD), ctypes.byref(value))
    return value.value


def _agrees(functions: dict[str, Any], tensor: torch.Tensor) -> bool:
    """Whether a tensor lies behind the object's head, and the functions say what Python says."""
    place = id(tensor) + _HEAD
    if ctypes.c_void_p.from_address(place).value != tensor._cdata:
        return False

    def word_of(field: str) -> int:
        word = ctypes.c_int64(-1)
        error = functions[field](ctypes.c_void_p(place), ctypes.byref(word))
        return -1 if error else word.value

    rank = tensor.dim()
    if word_of("get_rank") != rank or word_of("get_data") != tensor.data_ptr():
        return False
    extents = ctypes.c_int64 * rank
    shape = tuple(extents.from_address(word_of("get_shape")))
    strides = tuple(extents.from_address(word_of("get_strides")))
    return (shape, strides) == (tuple(tensor.shape), tensor.stride())
