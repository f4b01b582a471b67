"""Producers seen inside of what reads them: a whole short chain, the end of a long one."""

from __future__ import annotations

import itertools

import pytest
from tests.support.nests import buffer, weighted

from polyblocks.affine.model import Load, Sequence, walk
from polyblocks.affine.rewrites.inlining import LARGE_BODY, with_producers
from polyblocks.affine.users import Users


@pytest.mark.parametrize("steps", [1, 2, 10, 300])
def test_a_chain_of_steps_is_seen_through_as_far_as_its_code_is_small(steps: int) -> None:
    buffers = [buffer(16, kind="input"), *(buffer(16) for _ in range(steps))]
    nests = [
        weighted(new, (0,), (16,), (old, (0,), 0.5)) for old, new in itertools.pairwise(buffers)
    ]
    body = with_producers(nests[-1], Users(Sequence(list(nests), list(buffers))))
    nodes = list(walk(body))
    (load,) = [node for node in nodes if isinstance(node, Load)]
    if steps <= 10:
        assert load.buffer is buffers[0]
    else:
        assert load.buffer in buffers[1:-1]
        step = len(list(walk(nests[0].body)))
        assert LARGE_BODY < len(nodes) <= LARGE_BODY + step
