"""Elements at places that tensors without dimensions say: ``x[k]`` and ``x[k] = y``."""

from __future__ import annotations

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from polyblocks_torch import polyblocks_jit_torch

STRICT = {"strict_target": True}


def table():
    return torch.randn(8, 5, 6, generator=torch.manual_seed(1))


def run(function, arguments):
    given = [a.clone() for a in arguments]
    return function(*given), given


def same(function, *arguments, whole):
    compiled = polyblocks_jit_torch(function, compile_options=STRICT if whole else {})
    ours, theirs = run(compiled, arguments), run(function, arguments)
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)
    assert compiled.polyblocks_report().whole == whole
    return ours[0], theirs[0]


READS = {
    "first": lambda x, k: x[k] * 2,
    "with number": lambda x, k: x[k, 1] * 2,
    "second": lambda x, k: x[:, k] * 2,
    "last": lambda x, k: x[..., k] * 2,
    "two": lambda x, k: x[k, ..., k, None] * 2,
    "in a part": lambda x, k: x[1:, k, ::2] * 2,
    "computed": lambda x, k: x[k + 1] * x[x.sum((1, 2)).argmax()],
    "one number": lambda x, k: x[k, k, k] + 1,
    "returned": lambda x, k: (x * 2)[k],
    "of a view": lambda x, k: x.permute(2, 1, 0)[:, k] * 2,
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("k", [3, 0, -2])
def test_reads(name, k):
    ours, theirs = same(READS[name], table(), torch.tensor(k), whole=True)
    assert ours.stride() == theirs.stride()


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32])
def test_types_of_places(dtype):
    same(READS["first"], table(), torch.tensor(-3, dtype=dtype), whole=True)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8])
def test_masks_are_no_places(dtype):
    same(READS["first"], table(), torch.tensor(1, dtype=dtype), whole=False)


@pytest.mark.parametrize("name", ["first", "second", "two", "computed"])
def test_gradients(name):
    ours, theirs = (table().requires_grad_() for _ in "12")
    k = torch.tensor(3)
    polyblocks_jit_torch(READS[name], compile_options=STRICT)(ours, k).sum().backward()
    READS[name](theirs, k).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)


def test_look_ups_in_a_loop():
    def f(books, codes):
        return sum(books[i][codes[i]] for i in range(len(codes)))

    same(f, table(), torch.tensor([4, -1, 0]), whole=True)


def test_places_out_of_range():
    compiled = polyblocks_jit_torch(READS["second"], compile_options=STRICT)
    for k in (5, -6):
        with pytest.raises(IndexError, match="index out of range"):
            compiled(table(), torch.tensor(k))
    assert torch.equal(compiled(table(), torch.tensor(-5)), table()[:, 0] * 2)


def test_stores():
    def number(x, k):
        x[k] = 1.0
        return x * 2

    def broadcast(x, k):
        x[1:4, k, ::2] = torch.arange(3)
        return x * 2

    def of_others(x, k):
        x[:, k] = x[:, k] * 2 + x[0, k + 1]
        return x.sum(0)

    for f in (number, broadcast, of_others):
        for k in (3, -2):
            same(f, table(), torch.tensor(k), whole=True)


def test_stores_out_of_range_change_nothing():
    def f(x, k):
        x[k] = 1.0
        return x * 2

    x = table()
    with pytest.raises(IndexError, match="index out of range"):
        polyblocks_jit_torch(f, compile_options=STRICT)(x, torch.tensor(8))
    assert torch.equal(x, table())


def test_sums_in_place():
    def counted(counts, places):
        for i in range(len(places)):
            counts[places[i]] += 1
        return counts * 2

    same(counted, torch.zeros(8), torch.tensor([1, 2, -7, 1]), whole=True)


def update_of_source(x, k):
    part = x[k]
    x.add_(1)
    return part * 2


def update_of_element(x, k):
    x[k].view(-1)[2:].mul_(3)
    return x * 2


def update_of_data(x, k):
    part = x[k]
    x.data.add_(1)
    return part * 2


def swapped(x, k):
    part = x[k]
    x[k] = 0
    return part + 1


def read_between(x, k):
    part = x[k]
    part += 1
    total = x.sum()
    x[k] = part
    return x * total


def updated_after_it_was_stored(x, k):
    part = x[k]
    part += 1
    x[k] = part
    part += 1
    return x * 2


@pytest.mark.parametrize(
    "function",
    [
        *(update_of_source, update_of_element, update_of_data, swapped),
        *(read_between, updated_after_it_was_stored),
    ],
)
def test_views_that_are_seen(function):
    for k in (3, -2):
        same(function, table(), torch.tensor(k), whole=False)


def test_statistics_are_updated():
    def f(mean, y, k):
        part = mean[k]
        y = torch.nn.functional.batch_norm(y, mean, torch.ones(5), training=True)
        return part * 2 + y

    same(f, torch.zeros(5), table(), torch.tensor(2), whole=False)


def test_results_are_views():
    def of_argument(x, k):
        return x[k]

    def beside(x, k):
        y = x * 2
        return y[k], y

    x = table()
    compiled = polyblocks_jit_torch(of_argument)
    compiled(x, torch.tensor(3)).zero_()
    assert not x[3].any()
    assert x[2].any()
    part, whole = polyblocks_jit_torch(beside)(x, torch.tensor(2))
    part.zero_()
    assert not whole[2].any()


def test_arguments_that_overlap():
    def f(x, y, k):
        part = x[k]
        y.add_(1)
        return part * 2

    compiled = polyblocks_jit_torch(f)
    for start in (0, 4):
        ours, theirs = torch.arange(16.0), torch.arange(16.0)
        k = torch.tensor(5)
        made = compiled(ours[:12], ours[start : start + 8], k)
        assert torch.equal(made, f(theirs[:12], theirs[start : start + 8], k))
        assert torch.equal(ours, theirs)


def test_elements_in_graphs_inside():
    def body(x, k):
        part = x[k]
        x.add_(1)
        return part * x

    def kept(x, k):
        return checkpoint(body, x * 1, k, use_reentrant=False).sum(0)

    def chosen(x, k):
        return torch.cond(x.sum() > 0, lambda x, k: x[k] * 2, lambda x, k: x[k - 1] + 1, (x, k))

    x, k = table(), torch.tensor(2)
    torch.testing.assert_close(polyblocks_jit_torch(kept)(x, k), kept(x, k))
    expected = x[2] * 2 if x.sum() > 0 else x[1] + 1
    ours = polyblocks_jit_torch(chosen, compile_options=STRICT)(x, k)
    torch.testing.assert_close(ours, expected)


def test_constants_stay_views():
    x = table()
    compiled = polyblocks_jit_torch(lambda x: x[torch.tensor(2)], compile_options=STRICT)
    compiled(x).zero_()
    assert not x[2].any()
