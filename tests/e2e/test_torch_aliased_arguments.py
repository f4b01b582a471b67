"""Arguments that overlap, some of which are updated: each way to lie has its own program."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from polyblocks.errors import FallbackError  # noqa: E402
from polyblocks_torch import polyblocks_jit_torch  # noqa: E402

LENGTH = 300


def two_of(size, first, second):
    def make():
        memory = torch.arange(float(size * LENGTH))
        return memory[first : first + LENGTH], memory[second : second + LENGTH]

    return make


def _same():
    x = torch.arange(float(LENGTH))
    return x, x


def _view():
    x = torch.arange(float(LENGTH))
    return x, x.view(LENGTH)


WAYS = {
    "separate": lambda: (torch.arange(float(LENGTH)), torch.arange(float(LENGTH)) + 1),
    "apart": two_of(3, 0, LENGTH),
    "by two": two_of(2, 0, 2),
    "by three": two_of(2, 0, 3),
    "backwards": two_of(2, 2, 0),
    "further on": two_of(2, 4, 6),
    "in a larger one": two_of(4, 4, 6),
    "the same": _same,
    "a view": _view,
}


def update(x, y, *more):
    x.mul_(2)
    for other in more:
        y = y + other
    return y + 1


def reverse(x, y, *more):
    x.copy_(y.flip(0))
    return x + y


@pytest.mark.parametrize(
    ("function", "more"),
    [pytest.param(update, 0, marks=pytest.mark.extended), (reverse, 0), (update, 8)],
)
def test_each_way_to_overlap(function, more):
    others = [torch.ones(LENGTH) for _ in range(more)]
    for first in ("separate", "by two"):
        torch._dynamo.reset()
        call = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
        for way in (first, *WAYS, first):
            ours, eager = WAYS[way](), WAYS[way]()
            expected = function(*eager, *others)
            assert torch.equal(call(*ours, *others), expected), (first, way)
            for a, b in zip(ours, eager, strict=True):
                assert torch.equal(a, b), (first, way)


def test_more_ways_than_are_compiled(monkeypatch):
    monkeypatch.setattr("polyblocks_torch.arguments.aliased_arguments.VARIANTS", 2)
    call = polyblocks_jit_torch(update)
    for way in WAYS.values():
        ours, eager = way(), way()
        assert torch.equal(call(*ours), update(*eager))
        assert torch.equal(ours[0], eager[0])
    assert "overlap others in more than" in str(call.polyblocks_report())


MIXED = {
    "conjugate": lambda z: (z, z.conj()),
    "imaginary part": lambda z: (z.imag, z),
    "negated part": lambda z: (z.conj().imag, z),
    "as real": lambda z: (torch.view_as_real(z)[:, 0], z),
    "array": lambda z: tuple(map(torch.from_numpy, [z.abs().numpy()] * 2)),
    "integers": lambda z: (lambda x: (x, x.view(torch.int32)))(z.abs()),
}


@pytest.mark.parametrize("name", MIXED)
def test_arguments_that_say_different_things_of_one_memory(name):
    def make():
        return MIXED[name](torch.complex(torch.arange(8.0), torch.arange(8.0) + 1))

    call = polyblocks_jit_torch(update)
    for _ in range(2):
        ours, eager = make(), make()
        expected = update(*eager)
        assert torch.equal(call(*ours).resolve_conj(), expected.resolve_conj())
        assert torch.equal(ours[0].resolve_neg(), eager[0].resolve_neg())
    torch._dynamo.reset()
    strict = polyblocks_jit_torch(compile_options={"strict_target": True})(update)
    with pytest.raises(FallbackError, match="of another dtype, storage, sign or conjugation"):
        strict(*make())


@pytest.mark.parametrize(
    "view", [torch.t, lambda x: x.view(-1), lambda x: x[1:], lambda x: x[:, ::2]]
)
def test_views_of_arguments_that_overlap_are_those_of_eager_mode(view):
    """AOTAutograd would take the row from ``x`` and not from its transpose."""

    def function(x, y):
        top = torch.ge(x, x[0])
        y.unbind(0)[0].mul_(2)
        return y.unsqueeze(1), x[0], top

    def results(call):
        x = torch.arange(25).reshape(5, 5)
        made = call(x, view(x))
        return [(t.clone(), t.stride(), t.storage_offset()) for t in made], x

    call = polyblocks_jit_torch(function)
    ours, x = results(call)
    eager, y = results(function)
    assert torch.equal(x, y)
    for (a, *layout), (b, *expected) in zip(ours, eager, strict=True):
        assert torch.equal(a, b)
        assert layout == expected
    strict = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    with pytest.raises(FallbackError, match="updated that overlap others, and views of arguments"):
        results(strict)
