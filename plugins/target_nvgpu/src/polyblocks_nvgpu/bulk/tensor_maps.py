"""Tensor maps: how the CUDA driver describes arrays whose boxes kernels copy.

Source: CUDA Driver API, ``cuTensorMapEncodeTiled``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from polyblocks.errors import ExecutionError
from polyblocks.runtime.device.plan import MAP_WORDS, TensorMap

FUNCTION = "cuTensorMapEncodeTiled"
#: Bytes of an element -> ``CUtensorMapDataType`` of numbers without a sign: bits are copied.
_TYPES = {1: 0, 2: 1, 4: 2}
#: No interleaving, a swizzle of 128 bytes, L2 loads 256 bytes at once, zeros outside of the array.
_FORM = (0, 3, 3, 0)
#: Alignment of a tensor map.
_ALIGNMENT = 64


def encode(
    function: Any, described: TensorMap, address: int, failure: Callable[[str, int], Exception]
) -> list[int]:
    """The words of a tensor map.

    Args:
        function: of the driver's library; None if it has none.
        described: the array.
        address: of its first element.
        failure: the error for a status of a function.

    Raises:
        ExecutionError: the driver is too old, or refuses the array.
    """
    if function is None:
        raise ExecutionError(
            f"the driver has no function {FUNCTION}; install one of CUDA 12 or later"
        )
    rank, u64, u32 = len(described.extents), ctypes.c_uint64, ctypes.c_uint32
    held = ctypes.create_string_buffer(8 * MAP_WORDS + _ALIGNMENT)
    place = -(-ctypes.addressof(held) // _ALIGNMENT) * _ALIGNMENT
    status = function(
        *(ctypes.c_void_p(place), _TYPES[described.element_bytes], u32(rank)),
        ctypes.c_void_p(address),
        (u64 * rank)(*described.extents),
        (u64 * max(rank - 1, 1))(*described.strides),
        (u32 * rank)(*described.box),
        (u32 * rank)(*[1] * rank),
        *_FORM,
    )
    if status:
        raise failure(FUNCTION, status)
    return list((u64 * MAP_WORDS).from_address(place))


def words_of_any(
    function: Any,
    described: TensorMap,
    addresses: tuple[int, int],
    failure: Callable[[str, int], Exception],
) -> list[int]:
    """The words of a tensor map whose first one is the address, which is in no other.

    The assembler writes addresses there (``tensormap.replace``); two tensor maps show it.

    Args:
        function: see :func:`encode`.
        described: the array.
        addresses: two, at which an array could be.
        failure: see :func:`encode`.

    Raises:
        ExecutionError: see :func:`encode`; or the driver's tensor maps have another form.
    """
    one, other = (encode(function, described, address, failure) for address in addresses)
    if (one[0], other[0]) != addresses or one[1:] != other[1:]:
        raise ExecutionError(
            f"{FUNCTION} makes tensor maps of another form: expected the addresses "
            f"{addresses} as first words and all others alike, got {one} and {other}"
        )
    return one
