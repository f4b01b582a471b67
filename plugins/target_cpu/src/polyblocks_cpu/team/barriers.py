"""Where the threads of a team have to wait for each other."""

from __future__ import annotations

from typing import Any

from polyblocks_cpu.team.accesses import EVERY, FIRST, Access, Accesses
from polyblocks_cpu.team.kernels import has_shared

#: Accesses of threads since their last barrier, in program order.
Pending = dict[Access, None]


class Barriers:
    """Finds the operations before which a barrier has to stand.

    Threads run the same operations, each at its own pace. An access since the last
    barrier, on any path, is pending; an operation that collides with something pending gets a
    barrier, and nothing is pending any more. A loop is followed until nothing new is pending at
    its begin, since a thread may be in the next iteration when another one is still in this.

    Attributes:
        before: operations that need one, in the order in which they were found.

    Args:
        accesses: of the function.
        guards: operations (``scf.if``) whose inside only the first thread runs.
        closed: calls behind which there is a barrier in any case.
    """

    def __init__(self, accesses: Accesses, guards: set[Any], closed: bool) -> None:
        self.before: dict[Any, None] = {}
        self._accesses = accesses
        self._guards = guards
        self._closed = closed
        self._seen: dict[Any, list[Access]] = {}

    def function(self, body: Any) -> None:
        """Follow the blocks of a function."""
        blocks = list(body.blocks)
        at_begin: list[Pending] = [{} for _ in blocks]
        changed = True
        while changed:
            changed = False
            for number, block in enumerate(blocks):
                pending = self._block(block, at_begin[number])
                for successor in block.operations[len(block.operations) - 1].operation.successors:
                    into = at_begin[blocks.index(successor)]
                    if not pending.keys() <= into.keys():
                        into.update(pending)
                        changed = True

    def _block(self, block: Any, pending: Pending) -> Pending:
        """The pending accesses at the end of a block."""
        pending = dict(pending)
        for op in block.operations:
            op = op.operation
            if len(op.regions) and op not in self._guards and has_shared(op):
                pending = self._control(op, pending)
                continue
            accesses = self._of(op)
            if op in self.before:
                pending = {}
            elif self._accesses.collide(pending, accesses):
                self.before[op] = None
                pending = {}
            pending.update(dict.fromkeys(accesses))
            if self._closed and op.name == "func.call":
                pending = {}
        return pending

    def _control(self, op: Any, pending: Pending) -> Pending:
        """Through a loop or branch that all threads run."""
        if op.name == "scf.while":
            begin = dict(pending)
            while True:
                checked = self._block(op.regions[0].blocks[0], begin)
                after = self._block(op.regions[1].blocks[0], checked)
                if after.keys() <= begin.keys():
                    return checked
                begin.update(after)
        if op.name in ("scf.for", "affine.for"):
            begin = dict(pending)
            while True:
                after = self._block(op.regions[0].blocks[0], begin)
                if after.keys() <= begin.keys():
                    # There may be no iteration.
                    return begin
                begin.update(after)
        # A branch; one of its regions may be empty.
        end = {} if all(len(region.blocks) for region in op.regions) else dict(pending)
        for region in op.regions:
            for inner in region.blocks:
                end.update(self._block(inner, pending))
        return end

    def _of(self, op: Any) -> list[Access]:
        if op not in self._seen:
            who = FIRST if op in self._guards else EVERY
            self._seen[op] = list(self._accesses.of(op, who))
        return self._seen[op]
