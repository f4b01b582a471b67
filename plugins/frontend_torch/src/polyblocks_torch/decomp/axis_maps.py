"""Linear maps along one axis, given by tables, and their transposes.

Pools, resizes and paddings combine a few elements along each axis::

    y[i] = sum over t of weights[i, t] * x[places[i, t]]

Their gradients are the transposed maps: each element sums up what it was read for. Where that lies
follows from the table, so it is gathered and not scattered, and no two sums share memory::

    dx[k] = sum over t of transposed_weights[k, t] * dy[transposed_places[k, t]]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

aten = torch.ops.aten

#: Sums of up to this many terms are written out; more of them are a reduction.
_WRITTEN_OUT = 4


@dataclass(frozen=True)
class AxisMap:
    """A linear map along one axis.

    Attributes:
        places: int64 ``[outputs, terms]``, the elements that each output reads.
        weights: float64 ``[outputs, terms]``; None where all are 1.
        present: bool ``[outputs, terms]``, the terms that count; None where all do.
    """

    places: NDArray[np.int64]
    weights: NDArray[np.float64] | None = None
    present: NDArray[np.bool_] | None = None

    def transposed(self, extent: int) -> AxisMap:
        """The map of gradients.

        Args:
            extent: how many elements there are to read.
        """
        outputs, terms = self.places.shape
        reads = np.ones(self.places.shape, bool) if self.present is None else self.present
        elements = self.places[reads]
        readers = np.broadcast_to(np.arange(outputs)[:, None], (outputs, terms))[reads]
        order = np.argsort(elements, kind="stable")
        counts = np.bincount(elements, minlength=extent)
        width = max(int(counts.max(initial=0)), 1)
        present = np.arange(width) < counts[:, None]
        places = np.zeros((extent, width), np.int64)
        places[present] = readers[order]
        # Terms that are absent read on behind those that are there: more of the table is affine.
        last = np.where(counts > 0, places[np.arange(extent), np.maximum(counts - 1, 0)], 0)
        last = np.maximum.accumulate(last)
        beyond = last[:, None] + np.arange(width) - np.maximum(counts - 1, 0)[:, None]
        places = np.where(present, places, np.minimum(beyond, max(outputs - 1, 0)))
        weights = None
        if self.weights is not None:
            weights = np.zeros((extent, width))
            weights[present] = self.weights[reads][order]
        return AxisMap(places, weights, None if present.all() else present)

    def apply(self, x: Tensor, dim: int) -> Tensor:
        """The map of all rows along a dimension: [..., extent, ...] -> [..., outputs, ...]."""
        outputs, terms = self.places.shape
        if terms <= _WRITTEN_OUT:
            total = self._term(x, dim, 0)
            for k in range(1, terms):
                total = total + self._term(x, dim, k)
            return total
        index = torch.tensor(self.places, device=x.device)
        found = aten._unsafe_index.Tensor(x, [None] * dim + [index])
        behind = [1] * (x.dim() - dim - 1)
        if self.weights is not None:
            weights = torch.tensor(self.weights, dtype=x.dtype, device=x.device)
            found = found * weights.reshape(outputs, terms, *behind)
        if self.present is not None:
            present = torch.tensor(self.present, device=x.device)
            found = torch.where(present.reshape(outputs, terms, *behind), found, 0)
        return found.sum(dim + 1, dtype=x.dtype)

    def _term(self, x: Tensor, dim: int, k: int) -> Tensor:
        """One term of every output."""
        found = taken(x, dim, self.places[:, k].tolist())
        shape = [-1] + [1] * (x.dim() - dim - 1)
        if self.weights is not None:
            weights = torch.tensor(self.weights[:, k], dtype=x.dtype, device=x.device)
            found = found * weights.reshape(shape)
        if self.present is not None and not self.present[:, k].all():
            present = torch.tensor(self.present[:, k], device=x.device)
            found = torch.where(present.reshape(shape), found, 0)
        return found


def taken(x: Tensor, dim: int, places: Sequence[int]) -> Tensor:
    """Elements along a dimension: a slice or a repetition where they lie like one.

    Args:
        x: ``[..., extent, ...]``.
        dim: the dimension.
        places: of the elements, from 0 on.

    Returns:
        ``[..., len(places), ...]``, perhaps a view.
    """
    extent, count = x.shape[dim], len(places)
    places = list(places)
    if places == list(range(extent)):
        return x
    if count and places == list(range(places[0], places[0] + count)):
        return aten.slice.Tensor(x, dim, places[0], places[0] + count)
    step, rest = divmod(count, extent)
    if step and not rest and places == [i // step for i in range(count)]:
        shape = [*x.shape[: dim + 1], step, *x.shape[dim + 1 :]]
        return x.unsqueeze(dim + 1).expand(shape).flatten(dim, dim + 1)
    index = torch.tensor(places, device=x.device)
    return aten._unsafe_index.Tensor(x, [None] * dim + [index])
