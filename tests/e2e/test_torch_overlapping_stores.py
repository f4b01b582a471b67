"""Stores into operands that overlap themselves, and their gradients, are those of eager mode."""

from __future__ import annotations

import pytest
from sweeps import sweep

torch = pytest.importorskip("torch")

from polyblocks.errors import FallbackError  # noqa: E402
from polyblocks_torch import polyblocks_jit_torch  # noqa: E402

#: The size of a base, and the view of it that something is stored into.
OPERANDS = {
    "repeated": (4, lambda base: base.expand(4, 4)),
    "repeated columns": (4, lambda base: base[:, None].expand(4, 4)),
    "windows": (7, lambda base: base.unfold(0, 4, 1)),
    "strided": (9, lambda base: base.as_strided((4, 4), (1, 1), 1)),
    "partly": (10, lambda base: base.as_strided((4, 4), (2, 1))),
}
STORES = {
    "diagonal": lambda x, s: x.diagonal_scatter(s),
    "another diagonal": lambda x, s: x.diagonal_scatter(s[1:], -1),
    "diagonal of doubles": lambda x, s: x.diagonal_scatter(s.double()),
    "row": lambda x, s: x.select_scatter(s, 0, 1),
    "column": lambda x, s: x.select_scatter(s, 1, -1),
    "part of one row": lambda x, s: x.slice_scatter(s[None], 0, 2, 3),
    "used again": lambda x, s: x.diagonal_scatter(s) * x + x.diagonal_scatter(s * 2),
}


#: Several elements are stored in one place, and PyTorch's kernel decides which of them stays.
CLASHES = {
    "rows of windows": lambda x, s: x.unfold(0, 4, 1).slice_scatter(s.view(2, 4), 0, 1, 3),
    "every other column": lambda x, s: x.unfold(0, 4, 1).slice_scatter(s.view(4, 2), 1, 0, 4, 2),
    "memory": lambda x, s: x.as_strided_scatter(s.view(4, 2), (4, 2), (1, 1), 2),
}


@pytest.mark.parametrize(
    "name", sweep(CLASHES, "memory", extended=["rows of windows", "every other column"])
)
def test_several_elements_stored_in_one_place(name):
    ours = polyblocks_jit_torch()(CLASHES[name])
    found = []
    for call in (ours, CLASHES[name]):
        torch.manual_seed(0)
        x, s = torch.randn(7, requires_grad=True), torch.randn(8, requires_grad=True)
        made = call(x, s)
        gradients = torch.autograd.grad(made.abs().sum(), (x, s))
        found.append((made, made.stride(), *gradients))
    torch.testing.assert_close(*found, rtol=0, atol=0)
    assert "stores overlapping elements" in str(ours.polyblocks_report())


def of_a_row(x):
    windows = x.unfold(0, 3, 1)
    windows[1].mul_(2)
    return windows * 1


def of_each_window(x):
    x.as_strided((3, 3), (2, 1), 1).mul_(2)
    return x * 1


def with_an_operator(x):
    windows = x.unfold(0, 3, 2)
    windows += 1
    return x * 1


def by_a_mask(x):
    windows = x.unfold(0, 3, 2)
    windows[windows > 0] = 5
    return x * 1


def by_the_argument_out(x):
    torch.full((3,), 7.0, out=x.unfold(0, 3, 1)[2])
    return x * 1


def by_a_function(x):
    torch.nn.functional.relu(x.unfold(0, 3, 1), inplace=True)
    return x * 1


UPDATES = [
    of_a_row,
    of_each_window,
    with_an_operator,
    by_a_mask,
    by_the_argument_out,
    by_a_function,
]


@pytest.mark.parametrize(
    "function", sweep(UPDATES, *UPDATES[::3], extended=[*UPDATES[1:3], *UPDATES[4:]])
)
def test_updates_of_windows(function):
    ours = polyblocks_jit_torch()(function)
    found = []
    for call in (ours, function):
        torch.manual_seed(0)
        x = torch.randn(9)
        found.append((call(x), x))
    torch.testing.assert_close(*found, rtol=0, atol=0)
    assert "elements overlap in memory" in str(ours.polyblocks_report())


@pytest.mark.each_choice
@pytest.mark.parametrize(
    "overlapping",
    [lambda base: base.unfold(0, 4, 1), lambda base: base[:1].expand(4, 4)],
    ids=["windows", "expanded"],
)
@pytest.mark.parametrize("at", [1, (slice(None), 2), (slice(1, 2), slice(1, 3))], ids=str)
def test_updates_of_an_argument_that_overlaps_itself(overlapping, at):
    def function(x):
        x[at].mul_(2)
        return x * 3

    ours = polyblocks_jit_torch()(function)
    found = []
    for call in (ours, function):
        base = torch.arange(1.0, 8.0)
        try:
            found.append((call(overlapping(base)), base))
        except RuntimeError as error:
            found.append(str(error))
    assert type(found[0]) is type(found[1])
    if isinstance(found[0], tuple):
        torch.testing.assert_close(*found, rtol=0, atol=0)
    assert "elements overlap in memory" in str(ours.polyblocks_report())


def test_reads_of_windows_beside_an_update_are_compiled():
    @polyblocks_jit_torch(compile_options={"strict_target": True})
    def function(x):
        x.add_(1)
        return x.unfold(0, 3, 1).sum(1)

    assert torch.equal(function(torch.arange(5.0)), torch.tensor([6.0, 9.0, 12.0]))


def test_an_update_of_windows_names_its_line_where_nothing_may_fall_back():
    ours = polyblocks_jit_torch(compile_options={"strict_target": True})(of_a_row)
    with pytest.raises(FallbackError, match=r"elements overlap in memory.*\.clone\(\)"):
        ours(torch.ones(9))


@pytest.mark.each_choice
@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("name", sweep(OPERANDS, "repeated", "windows", "partly"))
def test_stores(name, inside):
    size, overlapping = OPERANDS[name]

    def function(x, s):
        x = overlapping(x) if inside else x
        return [store(x, s) for store in STORES.values()]

    ours = polyblocks_jit_torch(compile_options={"strict_target": True})(function)

    def run(call):
        torch.manual_seed(0)
        base, s = torch.randn(size, requires_grad=True), torch.randn(4, requires_grad=True)
        made = call(base if inside else overlapping(base), s)
        with torch.no_grad():
            plain = call(base if inside else overlapping(base), s)
        cotangents = [torch.randn(4, 4) for _ in made]
        return made, plain, torch.autograd.grad(made, (base, s), cotangents)

    got, expected = run(ours), run(function)
    torch.testing.assert_close(got, expected)
    assert [m.stride() for m in got[0]] == [m.stride() for m in expected[0]]


def test_zeros_over_a_copy():
    """Zeros in a column of what earlier stores updated are no margin around it."""

    def function(x):
        x[::2].mul_(2)
        x[:, 1:5].add_(1)
        x.T[3].zero_()
        return x.sum(), x.clone()

    x = torch.randn(6, 8)
    theirs = x.clone()
    found = polyblocks_jit_torch(compile_options={"strict_target": True})(function)(x)
    torch.testing.assert_close(found, function(theirs))
    torch.testing.assert_close(x, theirs)
