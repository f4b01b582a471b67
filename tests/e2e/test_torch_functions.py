"""Functions through the decorator against eager PyTorch: layouts, updates, outputs, dtypes."""

from __future__ import annotations

import pytest
from sweeps import sweep

torch = pytest.importorskip("torch")
F = torch.nn.functional


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.t(),
        lambda x: x[::2, 1:5],
        lambda x: x[:1].expand(5, 8),
        lambda x: x.reshape(2, 2, 4, 3).contiguous(memory_format=torch.channels_last),
        lambda x: x.unfold(1, 3, 1),
        lambda x: x[0, 0],
    ],
    ids=["transposed", "sliced", "expanded", "channels-last", "overlapping", "scalar"],
)
def test_inputs_of_any_stride(check, make):
    check(lambda x: torch.relu(x - 0.5), make(torch.rand(6, 8)))


def test_input_in_the_middle_of_its_storage_moves(check):
    from polyblocks_torch import polyblocks_jit_torch

    compiled = polyblocks_jit_torch(lambda x: (x + 1, x.t()))
    base = torch.rand(10, 4)
    for start in (0, 3, 5):
        total, view = compiled(base[start : start + 4])
        assert torch.equal(total, base[start : start + 4] + 1)
        assert torch.equal(view, base[start : start + 4].t())
    assert len(compiled.polyblocks_report().variants) == 1


def test_updates_of_arguments(check):
    def update(x, y):
        x.mul_(2)
        total = x.sum()
        x[0] = y
        return total, x.view(-1)

    check(update, torch.rand(4, 5), torch.rand(5))


def test_update_of_a_strided_argument(check):
    check(lambda x: x.add_(1), torch.rand(8, 8)[:, ::2])


def test_update_with_conversion_and_broadcast(check):
    check(lambda x, y: x.copy_(y), torch.rand(3, 4), torch.arange(4))


def test_arguments_trade_places(check):
    def swap(x, y):
        kept = x.clone()
        x.copy_(y)
        y.copy_(kept)

    check(swap, torch.rand(5), torch.rand(5))


def test_view_of_an_argument_from_before_its_update(check):
    def f(x):
        old = x.clone().view(-1)
        x.add_(1)
        return old, x

    check(f, torch.rand(3, 4))


def test_several_outputs_of_all_kinds(check):
    check(lambda x: (x + 1, [x * 2, None], 3, 2.5, x.amax()), torch.rand(3, 3))


def test_views_and_aliases_among_outputs(check):
    def f(x):
        y = x.exp()
        return y, y.t(), y.view(-1), y[1], x.t(), x

    report = check(f, torch.rand(3, 4))
    assert report.variants[0].kernels == 1


def test_aliases_share_memory_as_in_eager():
    from polyblocks_torch import polyblocks_jit_torch

    x = torch.rand(3, 4)
    y, turned, same = polyblocks_jit_torch(lambda x: (lambda y: (y, y.t(), y))(x + 1))(x)
    assert y.data_ptr() == turned.data_ptr()
    assert same is y
    view, again = polyblocks_jit_torch(lambda x: (x.view(-1), x))(x)
    assert view.data_ptr() == x.data_ptr()
    assert again is x


def test_views_of_what_is_no_output_share_memory():
    from polyblocks_torch import polyblocks_jit_torch

    def f(x):
        y = x.exp()
        return y[:, ::2], y.view(-1)[1:7]

    x = torch.rand(3, 4)
    columns, middle = polyblocks_jit_torch(f)(x)
    torch.testing.assert_close((columns, middle), f(x))
    columns.fill_(5)
    assert middle.tolist()[1::2] == [5.0] * 3


def test_view_with_gaps_that_reaches_as_far_as_its_base():
    from polyblocks_torch import polyblocks_jit_torch

    def f(x):
        y = torch.stack([x, x])
        return y[:, ::2], y

    columns, whole = polyblocks_jit_torch(f)(torch.rand(3))
    columns.fill_(5)
    assert whole[:, ::2].tolist() == [[5.0, 5.0]] * 2


def test_expanded_output(check):
    check(lambda x: x.amax(1, keepdim=True).expand(3, 7), torch.rand(3, 4))


def test_output_with_gaps_and_transposed(check):
    check(lambda x: ((x + 1).t(), (x * 2)[:, :2]), torch.rand(4, 6))


def test_constants_small_and_large(check):
    table = torch.rand(3000)

    def f(x):
        small = torch.tensor([1.0, 2.0, 3.0])
        return small, x[:3] * small, x + table

    check(f, torch.rand(3000))


@pytest.mark.each_choice
@pytest.mark.simulated
@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "bfloat16"])
def test_constants_of_any_type(check, dtype):
    mixed, same = [1, 0, 200, 1, 1, 0, 3, 1, 0, 250], [0] * 10

    def f(x):
        kind = getattr(torch, dtype)
        return [x.to(kind) * torch.tensor(c, dtype=kind) for c in (mixed, same)]

    check(f, torch.tensor([0, 0, 1, 1, 2, 2, 3, 1, 0, 1]))


def test_a_returned_constant_is_the_callers_own():
    from polyblocks_torch import polyblocks_jit_torch

    compiled = polyblocks_jit_torch(lambda x: (torch.tensor([1.0, 2.0]), x + 1))
    first, _ = compiled(torch.ones(2))
    first.zero_()
    second, _ = compiled(torch.ones(2))
    assert second.tolist() == [1.0, 2.0]


def test_none_int_bool_and_float_arguments(check):
    def f(x, n, flag, scale, nothing):
        assert nothing is None
        return (x * n + scale).sum(0) if flag else x

    check(f, torch.rand(3, 2), 5, True, 0.25, None)


def test_padding_that_cuts_off(check):
    check(
        lambda x: (F.pad(x, (-1, 2)), F.pad(x, (0, -1, -1, 0)), F.pad(x, (1, 1))), torch.rand(3, 4)
    )


def test_nothing_to_compute(check):
    check(lambda x: (x, x.view(-1), None), torch.rand(2, 2))


def test_arrays_without_elements(check):
    check(lambda x: (x[:0] * 2, x + 1), torch.rand(3, 3))
    check(lambda x: x * 2, torch.rand(0, 3))


@pytest.mark.parametrize(
    "dtype",
    sweep(
        ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8"],
        "float64",
        "float32",
        "bfloat16",
        "int64",
        "int8",
        "uint8",
    ),
)
def test_dtypes(check, dtype):
    x = torch.arange(-6, 6).clamp(min=0 if dtype == "uint8" else -6).to(getattr(torch, dtype))
    check(lambda x: (x * 3 + 1, x > 2, x.to(torch.float32)), x)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_numbers_wrap_around_in_8_bits(check, dtype):
    x = torch.arange(1, 120, 7).to(getattr(torch, dtype))
    check(lambda x: (x * 3, x - 200, x % 5, x * 300, x * 0.5), x)


def test_booleans(check):
    x = torch.tensor([True, False, True])
    check(lambda x: (~x, x & x, x.to(torch.int32), torch.where(x, 1.0, 2.0)), x)


def test_lazy_conjugation_of_an_argument(check):
    x = torch.randn(5, dtype=torch.complex64).conj()
    assert x.is_conj()
    check(lambda x: (x * x, x.real + 1), x, whole=False)


def test_large_outputs_are_no_views(check):
    from polyblocks_torch import polyblocks_jit_torch

    x = torch.rand(600, 1000)
    y = polyblocks_jit_torch(lambda x: (x + 1).t())(x)
    assert torch.equal(y, (x + 1).t())
    z = polyblocks_jit_torch(lambda x: x + 1)(x)
    assert z._base is None
    assert z.data_ptr() % 64 == 0


def test_no_grad_and_inference_mode():
    from polyblocks_torch import polyblocks_jit_torch

    compiled = polyblocks_jit_torch(lambda x: x * 2)
    x = torch.rand(3, requires_grad=True)
    with torch.no_grad():
        assert not compiled(x).requires_grad
    with torch.inference_mode():
        assert compiled(x.detach()).is_inference()
    y = compiled(x)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_num_iters_runs_the_program_again():
    from polyblocks_torch import polyblocks_jit_torch

    @polyblocks_jit_torch(compile_options={"num_iters": 3})
    def step(x):
        x.add_(1)

    x = torch.zeros(4)
    step(x)
    assert x.tolist() == [3.0] * 4


def test_index_out_of_range_is_an_index_error():
    from polyblocks.errors import ExecutionError
    from polyblocks_torch import polyblocks_jit_torch

    compiled = polyblocks_jit_torch(lambda x, i: x[i])
    x = torch.arange(4.0)
    assert compiled(x, torch.tensor([1, -1])).tolist() == [1.0, 3.0]
    with pytest.raises(IndexError, match="index") as caught:
        compiled(x, torch.tensor([1, 4]))
    assert isinstance(caught.value, ExecutionError)
