"""Random sorts and selections of PyTorch, which a stable sort of eager mode says the results of."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

DTYPES = [
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
]
#: How elements are distributed.
KINDS = ("any", "few", "one", "ascending", "descending", "special")

Results = tuple[Tensor, ...]


@dataclass(frozen=True)
class Sample:
    """A program that sorts.

    Attributes:
        text: what it is, for people.
        x: its argument.
        function: the program.
        expected: its results.
    """

    text: str
    x: Tensor
    function: Callable[[Tensor], Results]
    expected: Results

    def difference(self, results: Any) -> str:
        """How results differ from those expected; empty if they do not."""
        for number, (ours, theirs) in enumerate(zip(results, self.expected, strict=True)):
            if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
                return f"result {number} is {ours.dtype} {tuple(ours.shape)}"
            if theirs.is_floating_point():
                same = (ours == theirs) & (ours.signbit() == theirs.signbit())
                same |= ours.isnan() & theirs.isnan()
            else:
                same = ours == theirs
            if not bool(same.all()):
                return f"result {number} differs in {int((~same).sum())} of {same.numel()}"
        return ""


def draw(number: int, longest: int) -> Sample:
    """The sample of a number, with rows of up to ``longest`` elements."""
    numbers = random.Random(number)
    generator = torch.Generator().manual_seed(number)
    dtype = numbers.choice(DTYPES)
    kind = numbers.choice(KINDS)
    extent = int(longest ** numbers.uniform(0, 1)) + (numbers.random() < 0.1)
    outer = [numbers.randint(1, 9) for _ in range(numbers.randint(0, 2))]
    dim = numbers.randint(0, len(outer))
    shape = [*outer[:dim], extent, *outer[dim:]]
    x = _elements(kind, dtype, shape, dim, generator)
    if len(shape) > 1 and numbers.random() < 0.3:
        x = x.transpose(0, 1).contiguous().transpose(0, 1)
    elif numbers.random() < 0.2:
        x = torch.stack((x, x), -1).flatten(-2)[..., ::2]
    given = dim if numbers.random() < 0.5 else dim - len(shape)
    descending = numbers.random() < 0.5
    name = numbers.choice(tuple(_PROGRAMS))
    if name == "mode" and dtype.is_floating_point:
        name = "sort"
    k = numbers.randint(1, extent)
    if numbers.random() < 0.5:
        k = min(k, numbers.randint(1, 9))
    function, expected = _PROGRAMS[name](x, given, descending, k)
    text = f"{name} of {dtype} {shape} ({kind}), dim={given}, descending={descending}, k={k}"
    return Sample(text, x, function, expected)


def _elements(
    kind: str, dtype: torch.dtype, shape: list[int], dim: int, generator: torch.Generator
) -> Tensor:
    few = kind in ("few", "special")
    if dtype.is_floating_point:
        x = torch.randn(shape, generator=generator, dtype=torch.float64) * 20
        x = (x / 10).round() if few else x
        if kind == "special":
            for value in (torch.nan, -torch.nan, torch.inf, -torch.inf, -0.0, 0.0, 1e-310):
                x[torch.rand(shape, generator=generator) < 0.06] = value
    else:
        low, high = (0, 1) if dtype is torch.bool else _limits(dtype)
        if few:
            low, high = max(low, -3), min(high, 3)
        x = torch.randint(low, high, shape, generator=generator, dtype=torch.int64)
        x += torch.rand(shape, generator=generator) < 0.5
        if kind == "special":
            for value in (low, high) if dtype is torch.bool else _limits(dtype):
                x[torch.rand(shape, generator=generator) < 0.06] = value
    if kind == "one":
        x = torch.full_like(x, x.flatten()[0].item())
    x = x.to(dtype)
    ordered = kind in ("ascending", "descending")
    return x.sort(dim, descending=kind == "descending").values if ordered else x


def _limits(dtype: torch.dtype) -> tuple[int, int]:
    limits = torch.iinfo(dtype)
    return limits.min, limits.max


def _ordered(x: Tensor, dim: int, descending: bool) -> tuple[Tensor, Tensor]:
    values, order = x.sort(dim=dim, descending=descending, stable=True)
    return values, order


def _sort(x: Tensor, dim: int, descending: bool, k: int) -> Any:
    del k
    return lambda x: _ordered(x, dim, descending), _ordered(x, dim, descending)


def _values(x: Tensor, dim: int, descending: bool, k: int) -> Any:
    del k

    def values(x: Tensor) -> Results:
        return (_ordered(x, dim, descending)[0],)

    return values, values(x)


def _argsort(x: Tensor, dim: int, descending: bool, k: int) -> Any:
    del k

    def argsort(x: Tensor) -> Results:
        return (x.argsort(dim=dim, descending=descending, stable=True),)

    return argsort, argsort(x)


def _top(x: Tensor, dim: int, descending: bool, k: int) -> Any:
    values, order = _ordered(x, dim, descending)
    expected = values.narrow(dim, 0, k), order.narrow(dim, 0, k)
    return lambda x: x.topk(k, dim, largest=descending), expected


def _slice(x: Tensor, dim: int, descending: bool, k: int) -> Any:
    def part(x: Tensor) -> Results:
        begin, end = k // 2, min(k // 2 + 3, x.shape[dim])
        return tuple(y.narrow(dim, begin, end - begin) for y in _ordered(x, dim, descending))

    return part, part(x)


def _at(x: Tensor, dim: int, places: Tensor | int) -> Results:
    """The elements at one place of each sorted row."""
    values, order = _ordered(x, dim, False)
    index = torch.zeros_like(order.narrow(dim, 0, 1)) + places
    return tuple(part.gather(dim, index).squeeze(dim) for part in (values, order))


def _kth(x: Tensor, dim: int, descending: bool, k: int) -> Any:
    del descending
    return lambda x: x.kthvalue(k, dim), _at(x, dim, k - 1)


def _median(x: Tensor, dim: int, descending: bool, k: int) -> Any:
    del k
    extent, nans = x.shape[dim], (x != x).sum(dim, keepdim=True)
    if descending:  # Without NaN.
        expected = _at(x, dim, ((extent - nans - 1) // 2).clamp(min=0))
        return lambda x: x.nanmedian(dim), expected
    places = torch.where(nans > 0, extent - nans, (extent - 1) // 2)
    return lambda x: x.median(dim), _at(x, dim, places)


def _mode(x: Tensor, dim: int, descending: bool, k: int) -> Any:
    del descending, k
    # A position is that of any of the equal elements.
    return lambda x: (x.mode(dim)[0],), (x.mode(dim)[0],)


_PROGRAMS: dict[str, Callable[[Tensor, int, bool, int], Any]] = {
    "sort": _sort,
    "values": _values,
    "argsort": _argsort,
    "topk": _top,
    "slice": _slice,
    "kthvalue": _kth,
    "median": _median,
    "mode": _mode,
}
