"""Stores into complex tensors at indices and masks, and their gradients, are compiled whole."""

from __future__ import annotations

import pytest
from sweeps import sweep

torch = pytest.importorskip("torch")

from polyblocks_torch import polyblocks_jit_torch  # noqa: E402

INDEX, TWICE = torch.tensor([3, -4, 1]), torch.tensor([0, -1, 2, 0, -1])
FRONT = torch.tensor([0, 3, 2, 0, 3])
PLACES = torch.tensor([[0, 1, 2], [3, 0, 1]])
MASK = torch.tensor([[True, False, True], [False] * 3, [True] * 3, [False, True, False]])
NUMBER = torch.tensor(2 - 1j)


#: Stores whose gradients are not slow to check: rows, masks, sums, permutations, real parts.
DIFFERENTIATED = (
    *("rows", "where a mask is", "sums of real ones", "put sums"),
    *("masked_scatter", "as_strided_scatter", "real ones into a slice", "real parts"),
)


def stored(x, place, value):
    x = x.clone()
    x[place] = value
    return x


def added(x, place, value):
    return x.index_put((place,), value, accumulate=True)


STORES = {
    "rows": lambda x, v, r: stored(x, INDEX, v[:3]),
    "columns": lambda x, v, r: stored(x, (slice(None), torch.tensor([2, -3])), v[:4, :2]),
    "elements": lambda x, v, r: stored(x, (INDEX, torch.tensor([2, 0, -1])), v[0]),
    "a real number": lambda x, v, r: stored(x, INDEX, 2.5),
    "a complex number": lambda x, v, r: stored(x, INDEX, 2.5 - 1j),
    "one of a tensor": lambda x, v, r: stored(x, INDEX, NUMBER.to(x.dtype)),
    "where a mask is": lambda x, v, r: stored(x, MASK, 1j),
    "rows where a mask is": lambda x, v, r: stored(x, MASK[:, 0], v[:1].detach()),
    "sums": lambda x, v, r: added(x, TWICE, v),
    "sums of real ones": lambda x, v, r: added(x, TWICE, r.to(x.dtype)),
    "put": lambda x, v, r: x.put(torch.tensor([5, -1, 0]), v[0]),
    "put sums": lambda x, v, r: x.put(torch.tensor([5, -1, -7]), v[0], accumulate=True),
    "index_fill": lambda x, v, r: x.index_fill(0, INDEX, 3),
    "index_fill with a complex number": lambda x, v, r: x.index_fill(1, INDEX[2:], 3 - 2j),
    "index_fill with a tensor": lambda x, v, r: x.index_fill(1, INDEX[2:], NUMBER.to(x.dtype)),
    "masked_fill": lambda x, v, r: x.masked_fill(MASK, 2.5),
    "masked_fill with a complex number": lambda x, v, r: x.masked_fill(MASK[:, :1], 2.5j),
    "masked_fill with a tensor": lambda x, v, r: x.masked_fill(MASK, NUMBER.to(x.dtype)),
    "masked_scatter": lambda x, v, r: x.masked_scatter(MASK, v),
    "masked_scatter where a row is": lambda x, v, r: x.masked_scatter(MASK[:, :1], v[1:]),
    "scatter": lambda x, v, r: x.scatter(0, PLACES, v[:2]),
    "scatter of a number": lambda x, v, r: x.scatter(0, PLACES, 2),
    "scatter of a complex number": lambda x, v, r: x.scatter(0, PLACES, 2 - 1j),
    "scatter_add": lambda x, v, r: x.scatter_add(0, PLACES % 2, v[:2]),
    "index_add": lambda x, v, r: x.index_add(0, FRONT, v),
    "index_add of multiples": lambda x, v, r: x.index_add(0, FRONT, v, alpha=2 - 1j),
    "index_copy": lambda x, v, r: x.index_copy(0, torch.tensor([3, 1, 0]), v[:3]),
    "diagonal_scatter": lambda x, v, r: x.diagonal_scatter(v[:3, 0]),
    "as_strided_scatter": lambda x, v, r: x.as_strided_scatter(v[:3, 0], (3,), (4,)),
    "real ones into a slice": lambda x, v, r: stored(x, slice(1, 4), r[:3]),
    "real parts": lambda x, v, r: x.clone().real.copy_(r[:4]),
}


def operands(dtype):
    torch.manual_seed(1)
    x, v = torch.randn(4, 3, dtype=dtype), torch.randn(5, 3, dtype=dtype)
    return x, v, torch.randn(5, 3, dtype=x.real.dtype)


@pytest.mark.parametrize(
    "dtype", sweep([torch.complex64, torch.complex128], torch.complex64), ids=str
)
def test_stores(dtype):
    """All of them in one program; what differs is named by its key."""

    def function(x, v, r):
        return {name: store(x, v, r) for name, store in STORES.items()}

    ours = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    given = operands(dtype)
    torch.testing.assert_close(ours(*given), function(*given))


@pytest.mark.parametrize("name", sweep(STORES, *DIFFERENTIATED[::2], extended=DIFFERENTIATED[1::2]))
def test_gradients_of_stores(name):
    function = STORES[name]
    ours = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    given = operands(torch.complex64 if len(name) % 2 else torch.complex128)

    def run(call):
        arguments = [t.clone().requires_grad_() for t in given]
        result = call(*arguments)
        torch.manual_seed(2)
        cotangent = torch.randn(result.shape, dtype=result.dtype)
        return result, torch.autograd.grad(result, arguments, cotangent, allow_unused=True)

    torch.testing.assert_close(run(ours), run(function))


def test_gradients_of_real_masked_scatters():
    function = lambda x, v: (x.masked_scatter(MASK, v) * x).sum()  # noqa: E731
    ours = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    x, v = torch.randn(4, 3, requires_grad=True), torch.randn(7, requires_grad=True)
    gradients = [torch.autograd.grad(call(x, v), (x, v)) for call in (ours, function)]
    torch.testing.assert_close(*gradients)


def test_scatters_that_reduce():
    x, v = torch.randn(4, 3, dtype=torch.complex64), torch.randn(2, 3, dtype=torch.complex64)
    ours = polyblocks_jit_torch(lambda x, v: x.scatter(0, PLACES % 2, v, reduce="add"))
    torch.testing.assert_close(ours(x, v), x.scatter(0, PLACES % 2, v, reduce="add"))
    assert ours.polyblocks_report().whole
    ours = polyblocks_jit_torch(lambda x, v: x.scatter(0, PLACES % 2, v, reduce="multiply"))
    torch.testing.assert_close(ours(x, v), x.scatter(0, PLACES % 2, v, reduce="multiply"))
    (row,) = ours.polyblocks_report().fallbacks
    assert row.reason == "no rule for 'prod' of complex numbers"


def test_an_index_out_of_range_raises():
    ours = polyblocks_jit_torch(lambda x, i, v: x.index_put((i,), v))
    x = torch.randn(4, 3, dtype=torch.complex64)
    with pytest.raises(Exception, match="index"):
        ours(x, torch.tensor([4]), x[:1])
