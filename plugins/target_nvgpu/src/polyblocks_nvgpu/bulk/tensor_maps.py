"""Tensor maps: how the CUDA driver describes arrays whose boxes, or pixels, kernels copy.

Source: CUDA Driver API, ``cuTensorMapEncodeTiled`` and ``cuTensorMapEncodeIm2col``. The corners of
the latter are in the order of dimensions, the innermost one first: filters that are not square
tell, on an H200.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from polyblocks.errors import ExecutionError
from polyblocks.runtime.device.plan import MAP_WORDS
from polyblocks.runtime.device.tensor_map import IM2COL, TILED, TensorMap

#: Functions of the driver, by the kind of copies.
FUNCTIONS = {TILED: "cuTensorMapEncodeTiled", IM2COL: "cuTensorMapEncodeIm2col"}
#: Bytes of an element -> ``CUtensorMapDataType`` of numbers without a sign: bits are copied.
_TYPES = {1: 0, 2: 1, 4: 2}
#: No interleaving, a swizzle of 128 bytes, L2 loads 256 bytes at once, zeros outside of the array.
_FORM = (0, 3, 3, 0)
#: Alignment of a tensor map.
_ALIGNMENT = 64


def encode(
    library: Any, described: TensorMap, address: int, failure: Callable[[str, int], Exception]
) -> list[int]:
    """The words of a tensor map.

    Args:
        library: the driver's; None without.
        described: the array.
        address: of its first element.
        failure: the error for a status of a function.

    Raises:
        ExecutionError: the driver is too old, or refuses the array.
    """
    name = FUNCTIONS[described.kind]
    function = getattr(library, name, None)
    if function is None:
        raise ExecutionError(f"the driver has no function {name}; install one of CUDA 12 or later")
    rank, u64, u32 = len(described.extents), ctypes.c_uint64, ctypes.c_uint32
    held = ctypes.create_string_buffer(8 * MAP_WORDS + _ALIGNMENT)
    place = -(-ctypes.addressof(held) // _ALIGNMENT) * _ALIGNMENT
    status = function(
        *(ctypes.c_void_p(place), _TYPES[described.element_bytes], u32(rank)),
        ctypes.c_void_p(address),
        (u64 * rank)(*described.extents),
        (u64 * max(rank - 1, 1))(*described.strides),
        *_copied(described),
        *_FORM,
    )
    if status:
        raise failure(name, status)
    return list((u64 * MAP_WORDS).from_address(place))


def _copied(described: TensorMap) -> tuple[Any, ...]:
    """Extents of a copy, and steps along the dimensions."""
    rank, i32, u32 = len(described.extents), ctypes.c_int32, ctypes.c_uint32
    if described.kind == TILED:
        return (u32 * rank)(*described.box), (u32 * rank)(*[1] * rank)
    corners = ((i32 * (rank - 2))(*each) for each in (described.lower, described.upper))
    return (*corners, *map(u32, described.box), (u32 * rank)(1, *described.steps, 1))


def words_of_any(
    library: Any,
    described: TensorMap,
    addresses: tuple[int, int],
    failure: Callable[[str, int], Exception],
) -> list[int]:
    """The words of a tensor map whose first one is the address, which is in no other.

    The assembler writes addresses there (``tensormap.replace``); two tensor maps show it.

    Args:
        library: see :func:`encode`.
        described: the array.
        addresses: two, at which an array could be.
        failure: see :func:`encode`.

    Raises:
        ExecutionError: see :func:`encode`; or the driver's tensor maps have another form.
    """
    one, other = (encode(library, described, address, failure) for address in addresses)
    if (one[0], other[0]) != addresses or one[1:] != other[1:]:
        raise ExecutionError(
            f"{FUNCTIONS[described.kind]} makes tensor maps of another form: expected the "
            f"addresses {addresses} as first words and all others alike, got {one} and {other}"
        )
    return one
