"""Stores into operands that overlap themselves, and their gradients, are those of eager mode."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

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
    "every other row": lambda x, s: x.slice_scatter(s[None, :1].expand(2, 4), 0, 0, 4, 2),
    "used again": lambda x, s: x.diagonal_scatter(s) * x + x.diagonal_scatter(s * 2),
}


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("name", OPERANDS)
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
