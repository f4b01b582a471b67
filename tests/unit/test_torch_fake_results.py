"""Results of plain operations on fake tensors are those that the fake tensor mode gives."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from polyblocks_torch.recording.fake_results import result_of
from polyblocks_torch.recording.recorder import Recorder
from polyblocks_torch.specs import storage_key

aten = torch.ops.aten

FLOAT, HALF, INT, BOOL = torch.float32, torch.float16, torch.int64, torch.bool


def fake(mode: FakeTensorMode, *shape: int, dtype: torch.dtype = FLOAT) -> torch.Tensor:
    with mode:
        return torch.empty(shape, dtype=dtype)


def described(value: Any) -> Any:
    return (
        *(value.shape, value.stride(), value.storage_offset()),
        *(value.dtype, value.device, value.requires_grad),
    )


def operands(mode: FakeTensorMode) -> list[torch.Tensor]:
    """Plain ones, and such as are empty, without dimensions, views, or of channels last."""
    with mode:
        whole = torch.empty(4, 6, 8)
        return [
            *(whole, whole[1:3, ::2], whole.transpose(0, 2), whole[:, :1].expand(4, 6, 8)),
            *(torch.empty(()), torch.empty(0, 3), torch.empty(7), torch.empty(6, 1)),
            *(torch.empty(2, 3, 1, 1), torch.empty(1, 1, 4, 4), torch.empty(2, 1, 3, 3)[:1]),
            torch.empty(2, 3, 4, 5).to(memory_format=torch.channels_last),
            *(torch.empty(5, dtype=dtype) for dtype in (HALF, INT, BOOL, torch.complex64)),
            *(torch.empty(5, 1, dtype=dtype) for dtype in (torch.int32, torch.uint8)),
        ]


def calls(mode: FakeTensorMode) -> list[tuple[Any, tuple[Any, ...]]]:
    given = operands(mode)
    found: list[tuple[Any, tuple[Any, ...]]] = []
    for x in given:
        last = x.dim() - 1
        found += [(op, (x,)) for op in (aten.alias.default, aten.exp.default, aten.abs.default)]
        found += [(op, (x,)) for op in (aten.isnan.default, aten.logical_not.default)]
        found += [(aten.unsqueeze.default, (x, -1)), (aten.view.default, (x, [-1]))]
        found += [(aten.clamp.default, (x, *limits)) for limits in ((0, 1), (None, 0.5), (1,))]
        found += [(aten.cat.default, ([x, x], dim)) for dim in (0, last, -1, 9)]
        for number in (2, 0.5, True):
            found += [
                (op, (x, number)) for op in (aten.add.Tensor, aten.div.Tensor, aten.lt.Scalar)
            ]
        if last >= 0:
            found += [(aten.slice.Tensor, (x, last, 1, 2)), (aten.slice.Tensor, (x, 0, -2, 99, 2))]
            found += [(aten.select.int, (x, 0, -1)), (aten.squeeze.dim, (x, last))]
            found += [(aten.transpose.int, (x, 0, last)), (aten.expand.default, (x, [3, *x.shape]))]
        for y in given:
            found += [
                (op, (x, y)) for op in (aten.add.Tensor, aten.div.Tensor, aten.maximum.default)
            ]
            found += [(op, (x, y)) for op in (aten.eq.Tensor, aten.bitwise_and.Tensor)]
            found += [(aten.cat.default, ([x, y],)), (aten.where.self, (x == 0, x, y))]
    return found


def attempt(function: Any, *args: Any) -> Any:
    """What it gives; None if operands do not fit."""
    try:
        return function(*args)
    except (RuntimeError, IndexError, ValueError, TypeError):
        return None


@pytest.mark.extended
def test_they_are_those_of_the_mode() -> None:
    mode = FakeTensorMode()
    known = 0
    with torch.no_grad(), mode:
        everything = calls(mode)
    for func, args in everything:
        with torch.no_grad(), mode:
            expected = attempt(func, *args)
            found = attempt(result_of, mode, func, args, {})
        if found is None:
            continue
        assert expected is not None, (func, args)
        known += 1
        assert described(found) == described(expected), (func, args)
        assert type(found) is FakeTensor
        assert found.fake_mode is mode
        of_first = isinstance(args[0], FakeTensor) and storage_key(found) == storage_key(args[0])
        assert of_first == func.is_view, func
    assert known > 500


def test_conversions_are_known_too() -> None:
    mode = FakeTensorMode()
    for x in operands(mode):
        with torch.no_grad(), mode:
            found = result_of(mode, aten._to_copy.default, (x,), {"dtype": HALF})
            expected = aten._to_copy.default(x, dtype=HALF)
        assert found is None or described(found) == described(expected)


def test_the_mode_is_asked_about_others() -> None:
    mode, other = FakeTensorMode(), FakeTensorMode()
    x = fake(mode, 3)
    assert result_of(mode, aten.add.Tensor, (x, x), {"alpha": 2}) is None
    assert result_of(mode, aten.add.Tensor, (x, fake(other, 3)), {}) is None
    assert result_of(mode, aten.add.Tensor, (x, torch.ones(3)), {}) is None
    assert result_of(mode, aten.sum.default, (x,), {}) is None
    # The mode computes with numbers that it knows.
    number = torch.ones(1)
    with mode:
        constant = aten.lift_fresh.default(number)
    assert constant.constant is not None
    assert result_of(mode, aten.neg.default, (constant,), {}) is None


def recorded(function: Any, dtype: torch.dtype = FLOAT, **options: Any) -> list[str]:
    mode, graph = FakeTensorMode(), fx.Graph()
    recorder = Recorder(graph, mode, {}, {}, **options)
    x = fake(mode, 3, dtype=dtype)
    node = graph.placeholder("x")
    node.meta["val"] = x
    recorder.track(x, node)
    with torch.no_grad(), mode, recorder:
        function(x)
    return [n.target.overloadpacket.__name__ for n in graph.nodes if n.op == "call_function"]


def test_an_operation_is_recorded_once() -> None:
    assert recorded(lambda x: (x + 1, x + 1)) == ["add"]
    assert recorded(lambda x: (x.exp() * x.exp(), x.exp())) == ["exp", "mul"]
    # Numbers that are equal, but not the same.
    assert recorded(lambda x: (x * 0.0, x * -0.0, x * 0, x * False)) == ["mul"] * 4
    assert recorded(lambda x: (x[1:], x[1:])) == ["slice", "slice"]
    # Each draws numbers of its own.
    assert recorded(lambda x: (torch.rand_like(x), torch.rand_like(x))) == ["rand_like"] * 2


def test_what_rounds_is_recorded_each_time() -> None:
    # Whether a rounding may be left out depends on what it is part of.
    assert recorded(lambda x: (x + 1, x + 1), HALF) == ["add", "add"]
    assert recorded(lambda x: (x.half(), x.half())) == ["_to_copy", "_to_copy"]


def test_what_may_be_changed_is_recorded_each_time() -> None:
    assert recorded(lambda x: ((x + 1).mul_(2), x + 1), functionalize=True) == ["add", "mul", "add"]
