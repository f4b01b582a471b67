"""Names of nests: for decisions that are made before `classify-nests` names them all."""

from __future__ import annotations

from tests.support.nests import Context, buffer, weighted

from polyblocks.affine.model import Sequence
from polyblocks.explanation.decisions import follow
from polyblocks.passes.affine.classify_nests import name_nests, own_name


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
