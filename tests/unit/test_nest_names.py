"""Names and sources of nests: before `classify-nests`, and of what several become together."""

from __future__ import annotations

from tests.support.nests import Context, buffer, weighted

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.mlir.source import is_constant_fill, merged_sources
from polyblocks.affine.model import Buffer, For, Nest, Op, Sequence, Store, Value
from polyblocks.affine.naming.names import name_nests, own_name
from polyblocks.explanation.decisions import follow


def test_an_early_name_can_be_followed() -> None:
    """Two nests do not share a name; what they are called later is reported."""
    a, b, out = buffer(8, kind="input"), buffer(8), buffer(8, kind="output")
    nests = [weighted(b, (0,), (8,), (a, (0,), 1.0)), weighted(out, (0,), (8,), (b, (0,), 1.0))]
    sequence = Sequence(nests, [a, b, out])
    early = [own_name(nest, sequence) for nest in reversed(nests)]
    assert early == [own_name(nest, sequence) for nest in reversed(nests)]
    assert early == ["pointwise", "pointwise_2"]

    context = Context()
    name_nests("classify-nests", sequence, context)
    (renamed,) = context.decisions
    assert renamed[0] == "renamed"
    assert [nest.name for nest in nests] == ["pointwise", "pointwise_2"]
    made = [
        {"what": "split", "nest": early[0]},
        {"what": "raised", "nest": early[1]},
        {"what": renamed[0], **renamed[1]},
    ]
    kernels = {"pointwise": "first", "pointwise_2": "second"}
    assert follow(made, kernels)[:2] == [["second"], ["first"]]


def fill(target: Buffer) -> Nest:
    """A nest that stores a constant everywhere."""
    i, value = Var(target.shape[0]), Value("f32")
    constant = Op("arith.constant", [], {}, [value])
    return Nest([For(i, [constant, Store(value, target, (Expr.of(i),))])], [])


def test_a_constant_fill_has_no_sources_beside_others() -> None:
    """Its line is that of the first equal constant in the program."""
    a, b, out = buffer(8, kind="input"), buffer(8), buffer(8, kind="output")
    zeros, other, last = fill(b), fill(out), weighted(out, (0,), (8,), (a, (0,), 1.0))
    zeros.sources, other.sources = ["full m.py:1"], ["full m.py:3"]
    assert [is_constant_fill(n) for n in (zeros, other, last)] == [True, True, False]
    # Nothing else is known of the two.
    assert merged_sources([zeros, last]) == ["full m.py:1"]
    assert merged_sources([zeros, other]) == ["full m.py:1", "full m.py:3"]
    last.sources = ["sum m.py:7", "sum m.py:7"]
    assert merged_sources([zeros, last]) == ["sum m.py:7"]
