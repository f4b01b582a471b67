"""What factorizations and systems of equations have to compute, and in what order.

Operations are those of elimination, a multiply-add as two, without the terms of lower powers (Golub
and Van Loan, Matrix Computations, 2013): n³/3 for Cholesky, 2n³/3 for LU, 2n³ for an inverse, n²
for a right-hand side and a triangle. QR by reflections takes 2mn² - 2n³/3, and as much again for
Q. Eigenvalues and singular values need a matrix of two diagonals, or three, first: 4n³/3, and
4mn² - 4n³/3.

A column waits for the one before it, whatever computes it: for the instructions of a short
iteration at least. Of a matrix with more rows than a warp has threads a number goes from a thread
to others, too, by a shuffle; where threads choose a pivot together, or sum up a norm, by a chain of
these.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log2, prod
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from polyblocks.target import TargetDescription

aten = torch.ops.aten
Shape = tuple[int, ...]


def _cholesky(a: Shape, *_: Any, **__: Any) -> int:
    return prod(a[:-2]) * a[-1] ** 3 // 3


def _lu(a: Shape, *_: Any, **__: Any) -> int:
    m, n = max(a[-2:]), min(a[-2:])
    return prod(a[:-2]) * (m * n * n - n**3 // 3)


def _inverse(a: Shape, *_: Any, **__: Any) -> int:
    return prod(a[:-2]) * 2 * a[-1] ** 3


def _columns(right: Shape, rows: int) -> int:
    """Of a right-hand side, which can be one vector for each matrix."""
    return prod(right) // rows


def _solve(a: Shape, right: Shape, *_: Any, **__: Any) -> int:
    return _lu(a) + 2 * a[-1] ** 2 * _columns(right, a[-1])


def _triangle(a: Shape, right: Shape, *_: Any, **__: Any) -> int:
    return a[-1] ** 2 * _columns(right, a[-1])


def _two_triangles(right: Shape, a: Shape, *_: Any, **__: Any) -> int:
    return 2 * _triangle(a, right)


def _qr(a: Shape, mode: str = "reduced", *_: Any, **__: Any) -> int:
    m, n = max(a[-2:]), min(a[-2:])
    r = prod(a[:-2]) * (2 * m * n * n - 2 * n**3 // 3)
    return r if mode == "r" else 2 * r


def _eigenvalues(a: Shape, *_: Any, **__: Any) -> int:
    return prod(a[:-2]) * 4 * a[-1] ** 3 // 3


def _singular_values(a: Shape, *_: Any, **__: Any) -> int:
    m, n = max(a[-2:]), min(a[-2:])
    return prod(a[:-2]) * (4 * m * n * n - 4 * n**3 // 3)


#: Of each operation: its operations, the number of its argument that is a matrix, how often its
#: columns are gone through one after the other, and whether columns are of a number of all rows.
ELIMINATIONS: dict[Any, tuple[Callable[..., int], int, int, bool]] = {
    aten.linalg_cholesky_ex: (_cholesky, 0, 1, False),
    aten.linalg_lu_factor_ex: (_lu, 0, 1, True),
    aten._linalg_det: (_lu, 0, 1, True),
    aten._linalg_slogdet: (_lu, 0, 1, True),
    aten.linalg_inv_ex: (_inverse, 0, 1, True),
    aten._linalg_solve_ex: (_solve, 0, 2, True),
    aten.linalg_solve_triangular: (_triangle, 0, 1, False),
    aten.cholesky_solve: (_two_triangles, 1, 2, False),
    aten.linalg_qr: (_qr, 0, 1, True),
    aten._linalg_eigh: (_eigenvalues, 0, 1, True),
    aten._linalg_svd: (_singular_values, 0, 1, True),
}


class Chain(TorchDispatchMode):  # type: ignore[misc]
    """Counts the seconds in which columns wait for those before them.

    Attributes:
        seconds: of all operations that were called inside.
    """

    def __init__(self, target: TargetDescription) -> None:
        super().__init__()
        assert target.multiprocessor is not None
        self._chip = target.multiprocessor
        self.seconds = 0.0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        del types
        if (known := ELIMINATIONS.get(func.overloadpacket)) is not None:
            _, number, times, of_all = known
            m, n = args[number].shape[-2:]
            wait = self._chip.latencies.issue
            if m > self._chip.warp:
                reduced = self._chip.latencies.warp_reduce
                wait += reduced if of_all else reduced / log2(self._chip.warp)
            self.seconds += times * min(m, n) * wait
        return func(*args, **(kwargs or {}))
