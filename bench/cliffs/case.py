"""An operation and its operands."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

#: Elements of the larger operands: some that stay in caches, and some that do not.
SIZES = {"small": 1 << 17, "large": 1 << 22}


@dataclass(frozen=True)
class Case:
    """One operation.

    Attributes:
        name: what people call it, with its parameters.
        function: of the framework's tensors.
        operands: makes them for about so many elements.
        gradient: whether those of all floating operands are asked for as well.
        choosing: whether results but the first are places, where any of equal elements may be.
        factorization: whether it is one, or uses one, and may be compiled for longer.
    """

    name: str
    function: Callable[..., Any]
    operands: Callable[[Draw, int], tuple[Array, ...]]
    gradient: bool = False
    choosing: bool = False
    factorization: bool = False

    def draw(self, size: str) -> tuple[Array, ...]:
        """The operands of a size of :data:`SIZES`, the same ones in every process."""
        return self.operands(Draw(zlib.crc32(f"{self.name} {size}".encode())), SIZES[size])


def factorizations(*cases: Case) -> tuple[Case, ...]:
    """The cases, known as factorizations."""
    return tuple(replace(case, factorization=True) for case in cases)


class Draw:
    """Random operands."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def normal(self, *shape: int) -> Array:
        """Normal numbers, float32."""
        return self._random.standard_normal(shape, np.float32)

    def uniform(self, low: float, high: float, *shape: int) -> Array:
        """Uniform numbers, float32."""
        return (low + (high - low) * self._random.random(shape, np.float32)).astype(np.float32)

    def integers(self, low: int, high: int, *shape: int, dtype: Any = np.int64) -> Array:
        """Integers from ``low`` to below ``high``."""
        return self._random.integers(low, high, shape, dtype)

    def flags(self, *shape: int) -> Array:
        """Booleans, half of them true."""
        return self._random.random(shape, np.float32) < 0.5

    def complex(self, *shape: int) -> Array:
        """Complex normal numbers, complex64."""
        return (self.normal(*shape) + 1j * self.normal(*shape)).astype(np.complex64)

    def permutation(self, count: int) -> Array:
        """The numbers below ``count`` in any order, int64."""
        return self._random.permutation(count)

    def positive_definite(self, *shape: int) -> Array:
        """Symmetric matrices whose eigenvalues are between about 1 and 5, float32."""
        factor = self.normal(*shape)
        product = factor @ factor.swapaxes(-1, -2) / shape[-1]
        return (product + np.eye(shape[-1], dtype=np.float32)).astype(np.float32)


def rows(n: int, width: int) -> tuple[int, int]:
    """Shape of rows of a width that have ``n`` elements together, one row at least."""
    return max(1, n // width), width


def side(n: int, power: int = 2, count: int = 1) -> int:
    """Extent of each of ``power`` equal dimensions, of which ``count`` arrays have ``n`` elements.

    A multiple of 8, 8 at least.
    """
    return max(8, round((n / count) ** (1 / power)) // 8 * 8)
