"""Fusion of nests through every buffer between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyblocks.affine.cleanup.dead_nests import drop_dead_nests
from polyblocks.affine.fusion.candidates import candidate_buffers, distinct_reads
from polyblocks.affine.fusion.epilogues import EpilogueFusion
from polyblocks.affine.fusion.producer_inlining import ProducerInlining
from polyblocks.affine.fusion.weighing import Weigh
from polyblocks.affine.model import (
    Buffer,
    Load,
    Nest,
    Sequence,
)
from polyblocks.affine.naming.names import name_nests
from polyblocks.affine.rewrites.inlining import Candidate
from polyblocks.affine.subnests import perfect_loops
from polyblocks.affine.users import Users

#: A way to fuse: returns the nest that is needed no more.
_Form = Callable[[Sequence, Users, Candidate, Any], "Nest | None"]


def fuse_through_buffers(
    sequence: Sequence, owner: str, weigh: Weigh, max_nodes: int, context: Any
) -> None:
    """Fuse through every buffer, in the order in which they are produced.

    Args:
        sequence: changed in place; its nests get the kinds and names of what they are then.
        owner: name of the pass, for decisions.
        weigh: whether it costs less to compute elements anew.
        max_nodes: nodes in one straight-line body.
        context: the target, and what takes decisions.
    """
    users = Users(sequence)
    inlining = ProducerInlining(owner, weigh, max_nodes)
    epilogues = EpilogueFusion(owner, max_nodes)

    def inline(sequence: Sequence, users: Users, candidate: Candidate, context: Any) -> Nest | None:
        del sequence
        return inlining.inline(users, candidate, context)

    if context.target.launches_nests:
        _offer_all(sequence, users, epilogues.fuse_of_contraction, context)
    # Slices first: what can be computed inside its consumers leaves nothing for an epilogue.
    _offer_all(sequence, users, inline, context, inlines=True)
    _offer_all(sequence, users, epilogues.fuse, context)
    drop_dead_nests(sequence)
    name_nests(owner, sequence, context)


def _offer_all(
    sequence: Sequence, users: Users, form: _Form, context: Any, inlines: bool = False
) -> None:
    """Offer every buffer to a form; again to one that inlines, where consumers are fewer."""
    asked: dict[Buffer, list[Nest]] = {}
    again, copies = True, not inlines
    while again:
        again = False
        for buffer in candidate_buffers(sequence):
            candidate = Candidate.of(users, buffer, gathered=inlines)
            if candidate is None or asked.get(buffer) == candidate.consumers:
                continue
            if not copies and _copies_again(candidate):
                continue
            asked[buffer] = candidate.consumers
            gone = form(sequence, users, candidate, context)
            if gone is not None:
                sequence.items.remove(gone)
                users.drop(gone)
                again = inlines
        if not again and not copies:
            again = copies = True


def _copies_again(candidate: Candidate) -> bool:
    """Whether a copy of what the program computes is read several times.

    Its producer can run where it is packed, once for all readers.
    """
    _, body = perfect_loops(candidate.producer.body)
    if len(body) != 2 or not isinstance(body[0], Load) or body[0].buffer.kind != "alloc":
        return False
    times = sum(distinct_reads(c.body, candidate.buffer, 1) for c in candidate.consumers)
    return times > candidate.buffer.numel
