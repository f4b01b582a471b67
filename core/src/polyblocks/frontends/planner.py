"""Finding out which operations of a program that does not compile whole stay with the framework.

Parts are compiled until all of them do. Of one that fails, the operations that the error names are
tried alone first, and all that are of the same kind as one that fails. Where it names none of them,
the part is halved, and the halves that fail are searched; the operations of a small one are tried
each alone. So an operation that fails is found with a few attempts, however large the program is.
Where both halves compile, the part is cut there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from polyblocks.artifact import Artifact
from polyblocks.errors import MachineError, UnsupportedError
from polyblocks.frontends.partition import (
    BATCH,
    MACHINE,
    RANDOM,
    UNSUPPORTED,
    Operations,
    Why,
    fallback_row,
    left_operations,
    order,
    plan_artifact,
    why,
)
from polyblocks.frontends.units import Unit, nodes_of, ordered_units

#: Rounds of cuts; parts that still fail then fall back whole. Each round
#: halves them, so this bounds a part that is hard to place to 1/64 of the program.
ROUNDS = 8

#: Operations of a part that fails that are tried alone without halving it: they share a process.
FEW = BATCH


def make_plan(operations: Operations, error: UnsupportedError) -> Artifact:
    """Plan a program; the parts that compile are compiled (and cached) on the way.

    Args:
        operations: a program that does not compile whole.
        error: what happened when it was tried.

    Returns:
        An Artifact of kind ``plan``, for :meth:`polyblocks.frontends.partition.Plan.of`; see
        :func:`polyblocks.frontends.partition.plan_artifact`.
    """
    return _Planner(operations, error).plan()


class _Planner:
    def __init__(self, operations: Operations, error: UnsupportedError) -> None:
        self.operations = operations
        self.groups = {node: group for group in operations.inseparable() for node in group}
        self.reasons: dict[int, Why] = {}
        self._leave(operations.obvious())
        self.cuts: set[int] = set()
        #: Operations that compile alone.
        self.innocent: set[int] = set()
        self.tried: dict[Unit, UnsupportedError | None] = {}
        if not self.reasons:
            self.tried[tuple(range(len(operations)))] = error

    def plan(self) -> Artifact:
        rounds = 0
        while failures := self._failures():
            cuts = len(self.cuts)
            for nodes, failure in failures:
                self._resolve(nodes, failure, last=rounds >= ROUNDS)
            rounds += len(self.cuts) > cuts
        left = left_operations(self.operations, self.reasons)
        rows = [fallback_row(self.operations, item) for item in left]
        return plan_artifact(
            self.operations.name, left, sorted(self.cuts), rows, self.tried.values()
        )

    def _failures(self) -> list[tuple[Unit, UnsupportedError]]:
        steps = order(self.operations, self.reasons, self.cuts)
        tried = [(step.nodes, self._try(step.nodes)) for step in steps if step.compiled]
        return [(nodes, failure) for nodes, failure in tried if failure is not None]

    def _try(self, nodes: Unit) -> UnsupportedError | None:
        """Compile operations as one part; the error, or None."""
        if nodes not in self.tried:
            try:
                self.operations.compile(nodes)
            except UnsupportedError as error:
                self.tried[nodes] = error
            else:
                self.tried[nodes] = None
        return self.tried[nodes]

    def _resolve(self, nodes: Unit, failure: UnsupportedError, *, last: bool) -> None:
        units = self._units(nodes)
        found = self._culprits(units, failure)
        if not found and not last and len(units) > 1:
            self.cuts.add(units[len(units) // 2][0])
            return
        self._leave(found or dict.fromkeys(nodes, why(failure)))

    def _units(self, nodes: Iterable[int]) -> list[Unit]:
        """Operations of a part as units; those of a divided group are units of their own."""
        inside = set(nodes)
        found: list[Unit] = []
        for unit in ordered_units(self.operations, self.reasons):
            chosen = [node for node in unit if node in inside]
            found += [unit] if len(chosen) == len(unit) else [(node,) for node in chosen]
        return found

    def _culprits(self, units: Sequence[Unit], failure: UnsupportedError) -> dict[int, Why]:
        """Operations of a part that failed which fail alone, all or some; empty if none does."""
        nodes = nodes_of(units)
        if isinstance(failure, MachineError):
            # Each operation would meet it again.
            return dict.fromkeys(nodes, (failure.reason, MACHINE))
        named = set(self.operations.named(failure, nodes))
        found = self._alone([unit for unit in units if named.intersection(unit)])
        if found:
            return found | self._failing_alone(found)
        if len(nodes) <= FEW or len(units) == 1:
            return self._alone(units)
        middle = len(units) // 2
        for half in (units[:middle], units[middle:]):
            problem = self._try(nodes_of(half))
            if problem is not None:
                found.update(self._culprits(half, problem))
        return found

    def _failing_alone(self, found: Iterable[int]) -> dict[int, Why]:
        """Operations of the same kind as these that fail alone, in all of the program."""
        kinds = {self.operations.op_name(node) for node in found}
        suspects = [
            (node,)
            for node in range(len(self.operations))
            if node not in self.reasons
            and node not in found
            and node not in self.groups
            and self.operations.op_name(node) in kinds
        ]
        return self._alone(suspects)

    def _alone(self, units: Iterable[Unit]) -> dict[int, Why]:
        """The operations of units that fail when they are compiled by themselves."""
        units = list(units)
        singles = [unit[0] for unit in units if len(unit) == 1 and unit[0] not in self.innocent]
        found = dict(self.operations.probe(singles)) if singles else {}
        self.innocent |= set(singles) - set(found)
        for unit in units:
            failure = self._try(unit) if len(unit) > 1 else None
            if failure is not None:
                named = self.operations.named(failure, unit) or unit
                found[named[0]] = why(failure)
        return found

    def _leave(self, found: dict[int, Why]) -> None:
        """Leave operations to the framework, and those that are inseparable from them."""
        self.reasons.update(found)
        for node, (reason, kind) in found.items():
            name = self.operations.op_name(node)
            shared = f"it shares what is no array with {name}, which is left: {reason}"
            # Of draws the draw alone is no fallback.
            own = UNSUPPORTED if kind == RANDOM else kind
            for other in set(self.groups.get(node, ())).difference(found):
                self.reasons.setdefault(other, (shared, own))
