"""Arrays that begin where it matters for the time of reading them."""

from __future__ import annotations

from typing import Any

import numpy as np


def empty_at(nbytes: int, boundary: int) -> np.ndarray[Any, Any]:
    """So many bytes, not written yet, at an address that is a multiple of ``boundary``."""
    room = np.empty(nbytes + boundary, np.uint8)
    begin = -room.ctypes.data % boundary
    return room[begin : begin + nbytes]
