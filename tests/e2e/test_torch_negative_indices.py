"""Indices that count from the end, and those that are out of range, as eager execution has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from sweeps import sweep
from torch import Tensor

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

Form = Callable[[Tensor, Tensor, Tensor], Tensor]


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return polyblocks_jit_torch(function, compile_options={"strict_target": True})


def stored(x: Tensor, at: Any, values: Any) -> Tensor:
    result = x.clone()
    result[at] = values
    return result


def added(x: Tensor, at: Any, values: Any) -> Tensor:
    result = x.clone()
    result[at] += values
    return result


#: Of x [5, 4], i [3] and v [3, 4]: forms whose indices may be negative.
WRAPPING: dict[str, Form] = {
    "rows": lambda x, i, v: stored(x, i, v),
    "one number": lambda x, i, v: stored(x, i, 0),
    "added": lambda x, i, v: x.index_put((i,), v, accumulate=True),
    "read and added": lambda x, i, v: added(x, i, v),
    "columns": lambda x, i, v: stored(x.t(), (slice(None), i), v.t()),
    "number in columns": lambda x, i, v: stored(x.t(), (slice(None), i), 3),
    "elements": lambda x, i, v: stored(x, (i, i.clamp(-4, 3)), v[:, 0]),
    "grid": lambda x, i, v: stored(x, (i[:, None], i.clamp(-4, 3)), v[:, :3]),
    "of three dimensions": lambda x, i, v: stored(
        x.reshape(5, 2, 2), (i, slice(None), i.clamp(-2, 1)), v[:, :2]
    ),
    "of zero dimensions": lambda x, i, v: torch.ops.aten.index_put(
        x, (i[1].reshape(()), i.clamp(-4, 3)), v[0, :3]
    ),
    "put": lambda x, i, v: x.put(i, v[:, 0]),
    "put and added": lambda x, i, v: x.put(i, v[:, 1], accumulate=True),
    "index_fill": lambda x, i, v: x.index_fill(0, i, 7),
    "index_fill of columns": lambda x, i, v: x.t().index_fill(-1, i, v[0, 0]),
    "read rows": lambda x, i, v: x[i],
    "read columns": lambda x, i, v: x.t()[:, i],
    "read grid": lambda x, i, v: x[i[:, None], i.clamp(-4, 3)],
    "read a slice": lambda x, i, v: x.reshape(-1)[3:8][i],
    "read a column": lambda x, i, v: x[:, 1][i],
    "take": lambda x, i, v: x.take(i),
    "take one": lambda x, i, v: x.take(i[1].reshape(())),
}

#: Forms that eager execution refuses negative indices in.
REFUSING: dict[str, Form] = {
    "index_copy": lambda x, i, v: x.index_copy(0, i, v),
    "index_copy of columns": lambda x, i, v: x.t().index_copy(-1, i, v.t()),
    "index_add": lambda x, i, v: x.index_add(0, i, v, alpha=2),
    "index_reduce": lambda x, i, v: x.index_reduce(0, i, v, "amax"),
    "index_select": lambda x, i, v: x.index_select(0, i),
    "gather": lambda x, i, v: x.gather(0, i[:, None].expand(3, 4)),
    "scatter": lambda x, i, v: x.scatter(0, i[:, None].expand(3, 4), v),
    "scatter of a number": lambda x, i, v: x.scatter(0, i[:, None].expand(3, 4), 3),
    "scatter_add": lambda x, i, v: x.scatter_add(0, i[:, None].expand(3, 4), v),
    "scatter_reduce": lambda x, i, v: x.scatter_reduce(0, i[:, None].expand(3, 4), v, "amax"),
    "embedding": lambda x, i, v: torch.nn.functional.embedding(i, x),
}

#: These take indices of 64 bits alone.
WIDE = {"put", "put and added", "index_fill", "index_fill of columns", "take", "take one"}

#: These look at one of the indices alone.
SINGLE = {"of zero dimensions", "take one"}

#: These look at several, and one of each way to do so.
CHECKED = [form for form in (*WRAPPING, *REFUSING) if form not in SINGLE]
EACH = (
    "rows",
    "added",
    "put",
    "index_fill",
    "read rows",
    "take",
    "index_copy",
    "gather",
    "scatter",
)

DTYPES = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
DTYPES += (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def operands(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    if dtype == torch.bool:
        return torch.arange(20).reshape(5, 4) % 3 > 0, torch.arange(12).reshape(3, 4) % 2 > 0
    return torch.arange(40, 60).reshape(5, 4).to(dtype), torch.arange(12).reshape(3, 4).to(dtype)


def assert_equal(ours: Any, eager: Any) -> None:
    for name in eager:
        assert ours[name].dtype == eager[name].dtype, name
        assert torch.equal(ours[name], eager[name]), name


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize(
    "source",
    sweep(["argument", "constant", "computed"], "argument", "computed", extended=["constant"]),
)
def test_negative_indices_count_from_the_end(source: str, dtype: torch.dtype) -> None:
    forms = {k: f for k, f in WRAPPING.items() if dtype == torch.int64 or k not in WIDE}
    numbers = [0, -1, -5]

    def f(x: Tensor, i: Tensor, v: Tensor) -> dict[str, Tensor]:
        if source == "constant":
            i = torch.tensor(numbers, dtype=dtype)
        elif source == "computed":
            i = i * 1 - 1
        return {name: form(x, i, v) for name, form in forms.items()}

    x, v = operands()
    i = torch.tensor(numbers, dtype=dtype) + (source == "computed")
    assert_equal(compiled(f)(x, i, v), f(x, i, v))


@pytest.mark.parametrize(
    "form",
    sweep(
        ["rows", "one number", "added", "elements", "put", "index_fill"],
        "added",
        extended=["rows", "put"],
    ),
)
def test_every_dtype(form: str) -> None:
    def f(i: Tensor, *pairs: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
        return {str(x.dtype): WRAPPING[form](x, i, v) for x, v in pairs}

    pairs = [operands(dtype) for dtype in DTYPES]
    if "added" in form:
        pairs[0] = pairs[1]  # of booleans ``+=`` is refused
    i = torch.tensor([-2, 1, -5])
    assert_equal(compiled(f)(i, *pairs), f(i, *pairs))


@pytest.mark.parametrize(
    "form", sweep(CHECKED, *EACH, extended=[form for form in CHECKED if form not in EACH])
)
def test_out_of_range(form: str) -> None:
    function = {**WRAPPING, **REFUSING}[form]
    ours = compiled(function)
    x, v = operands()
    size = 20 if form in ("put", "put and added", "take") else 5
    if form in REFUSING:
        numbers = [[0, size, 1], [0, -1, 1], [0, 1, -size]]
    else:
        numbers = [[0, size, 1], [-1 - size, 0, 1], [0, 1, 2**63 - 1], [1, -(2**63), 1]]
    for bad in numbers:
        with pytest.raises((IndexError, RuntimeError)):
            function(x, torch.tensor(bad), v)
        with pytest.raises(Exception, match="index (out of range|must be)"):
            ours(x, torch.tensor(bad), v)
    right = torch.tensor([4, 0, 2])
    assert torch.equal(ours(x, right, v), function(x, right, v))


def test_gradients_of_reads() -> None:
    reads: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "rows": lambda x, i: x[i],
        "columns": lambda x, i: x.t()[:, i],
        "grid": lambda x, i: x[i[:, None], i.clamp(-4, 3)],
        "elements": lambda x, i: x[i, i.clamp(-4, 3)],
        "of three dimensions": lambda x, i: x.reshape(5, 2, 2)[i, :, i.clamp(-2, 1)],
        "slice": lambda x, i: x.reshape(-1)[3:8][i],
        "column": lambda x, i: x[:, 1][i],
        "take": lambda x, i: x.take(i),
        "stored": lambda x, i: stored(x, i, (x * 2)[:4]),
    }

    def loss(x: Tensor, i: Tensor) -> Tensor:
        total = x.sum()
        for read in reads.values():
            found = read(x, i)
            weights = torch.arange(found.numel(), dtype=x.dtype).reshape(found.shape)
            total = total + (found * weights).sum()
        return total

    gradients = []
    for function in (compiled(loss), loss):
        x = operands()[0].requires_grad_()
        function(x, torch.tensor([-1, 2, -1, -5])).backward()
        gradients.append(x.grad)
    assert torch.equal(*gradients)


@pytest.mark.parametrize("accumulate", [False, True])
def test_masks_choose_places_in_every_dimension(accumulate: bool) -> None:
    def f(x: Tensor, v: Tensor, *masks: Tensor) -> dict[str, Tensor]:
        rows, columns, inner, all_of_it = masks

        def put(indices: list[Tensor | None], values: Tensor) -> Tensor:
            return torch.ops.aten.index_put(x, indices, values, accumulate)

        return {
            "rows": put([rows], v[0]),
            "columns": put([None, columns], v[0, :1]),
            "a value of each row": put([None, columns], v.reshape(3, 1, 2)),
            "columns in the middle": put([None, columns, None], v[0]),
            "last": put([None, None, inner], v[0, :1]),
            "two dimensions": put([None, all_of_it], v[0, 0]),
            # Of one number eager execution takes no bytes.
            "bytes": put([None, columns.to(torch.uint8)], v[0]) if accumulate else x,
        }

    x, v = torch.arange(12.0).reshape(3, 2, 2), torch.arange(6.0).reshape(3, 2) + 50
    masks = [[True, False, True], [False, True], [True, False], [[True, False], [False, True]]]
    inputs = (x, v, *map(torch.tensor, masks))
    assert_equal(compiled(f)(*inputs), f(*inputs))
