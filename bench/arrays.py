"""Arrays of bfloat16, which NumPy's files and PyTorch's conversion from NumPy do not know."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

Array = np.ndarray[Any, Any]


def load(path: Path) -> Array:
    """An array of a ``.npy`` file, where bfloat16 is two bytes of no type."""
    array: Array = np.load(path)
    return array.view(bfloat16()) if array.dtype == np.dtype("V2") else array


def bfloat16() -> np.dtype[Any]:
    """NumPy's dtype of that name."""
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


def tensor(array: Array) -> torch.Tensor:
    """The same memory as a tensor of PyTorch."""
    import torch

    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
