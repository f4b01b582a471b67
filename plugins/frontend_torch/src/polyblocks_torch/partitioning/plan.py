"""Find out which nodes of a graph that does not compile whole must stay with the framework.

Parts are tried and probed in turn until all of them compile: first without the nodes that can
never be compiled, then without those that fail alone, and where a part fails although none of its
nodes does, it is cut in two. To probe a node takes a fixed time, whatever its size, so those that
the failure names go first: mostly nothing else has to be probed.
"""

from __future__ import annotations

from operator import getitem

from torch import fx

from polyblocks import driver
from polyblocks.artifact import Artifact
from polyblocks.errors import MachineError, PassError, UnsupportedError
from polyblocks.frontends import programs
from polyblocks.frontends.partition import MACHINE, plan_artifact, why
from polyblocks.options import CompileOptions
from polyblocks.registry.honoured_options import describe_target
from polyblocks_torch.capture import TorchCapture
from polyblocks_torch.location import source_location
from polyblocks_torch.partitioning.partition import (
    Step,
    fallback_row,
    left_nodes,
    obvious,
    part_capture,
    steps,
)
from polyblocks_torch.partitioning.probe import probe_nodes

#: The name under which the driver finds this frontend.
FRONTEND = "torch"

#: Rounds of halving; parts that still fail then fall back whole. Each round halves
#: them, so this bounds a part that is hard to place to 1/64 of the graph.
ROUNDS = 8

#: So often only what the failures name is probed. To try a part again takes as long as some dozens
#: of probes: a graph in which more kinds of operations fail is probed whole.
NAMED_TRIES = 4


def make_plan(capture: TorchCapture, error: UnsupportedError, options: CompileOptions) -> Artifact:
    """Plan a graph; the parts that compile are compiled (and cached) on the way.

    Args:
        capture: a graph that does not compile whole.
        error: what happened when it was tried.
        options: the checked options.

    Returns:
        An Artifact of kind ``plan``: ``plan["left"]`` lists the nodes that the framework runs (see
        :class:`polyblocks_torch.partitioning.partition.FallbackOp`), ``plan["cuts"]`` the indices
        of nodes that begin a new part.
    """
    return _Planner(capture, error, options).plan()


class _Planner:
    def __init__(
        self, capture: TorchCapture, error: UnsupportedError, options: CompileOptions
    ) -> None:
        self.capture = capture
        self.options = options
        self.graph = capture.graph_module.graph
        self.reasons = obvious(self.graph)
        self.cuts: set[fx.Node] = set()
        #: Nodes that compile alone.
        self.innocent: set[fx.Node] = set()
        self.tried: dict[tuple[fx.Node, ...], UnsupportedError | None] = {}
        if not self.reasons:
            (whole,) = self._parts()
            self.tried[whole.nodes] = error

    def plan(self) -> Artifact:
        tries = rounds = 0
        while failures := self._failures():
            unnamed = [
                (step, failure)
                for step, failure in failures
                if tries >= NAMED_TRIES or not self._leave_named(step, failure)
            ]
            for step, failure in unnamed:
                self._resolve(step, failure, last=rounds >= ROUNDS)
            tries += 1
            rounds += bool(unnamed)
        nodes = list(self.graph.nodes)
        left = left_nodes(self.graph, self.reasons)
        rows = [fallback_row(nodes[item.index], item) for item in left]
        cuts = [index for index, node in enumerate(nodes) if node in self.cuts]
        return plan_artifact(self.capture.name, left, cuts, rows, self.tried.values())

    def _parts(self) -> list[Step]:
        return [s for s in steps(self.graph, set(self.reasons), self.cuts) if s.compiled]

    def _failures(self) -> list[tuple[Step, UnsupportedError]]:
        found = []
        for step in self._parts():
            if step.nodes not in self.tried:
                self.tried[step.nodes] = self._failure(step)
            failure = self.tried[step.nodes]
            if failure is not None:
                found.append((step, failure))
        return found

    def _failure(self, step: Step) -> UnsupportedError | None:
        part = part_capture(self.capture, step)
        if part.is_trivial:
            return None
        try:
            programs.obtain_part(part, FRONTEND, self.options)
        except UnsupportedError as error:
            return error
        return None

    def _leave_named(self, step: Step, failure: UnsupportedError) -> bool:
        """Leave the nodes that a failure names and that fail alone; False if there are none."""
        found = self._probed(_named(_operations(step), failure))
        self.reasons.update(found)
        return bool(found)

    def _resolve(self, step: Step, failure: UnsupportedError, *, last: bool) -> None:
        if isinstance(failure, MachineError):
            # Each node would meet it again.
            self.reasons.update(dict.fromkeys(step.nodes, (failure.reason, MACHINE)))
            return
        operations = _operations(step)
        found = self._probed(operations)
        if not found and not last and len(operations) > 1:
            self.cuts.add(operations[len(operations) // 2])
            return
        if not found:
            found = dict.fromkeys(step.nodes, why(failure))
        self.reasons.update(found)

    def _probed(self, nodes: list[fx.Node]) -> dict[fx.Node, tuple[str, str]]:
        """The nodes that fail alone."""
        suspects = [n for n in nodes if n not in self.innocent]
        found = self._culprits(suspects)
        self.innocent |= set(suspects) - set(found)
        return found

    def _culprits(self, suspects: list[fx.Node]) -> dict[fx.Node, tuple[str, str]]:
        """The nodes that fail alone: first in the import, which is quick, else in all stages."""
        from polyblocks_torch.importing.importer import import_capture

        module = self.capture.graph_module
        return probe_nodes(module, suspects, import_capture) or probe_nodes(
            module, suspects, self._compile_alone
        )

    def _compile_alone(self, capture: TorchCapture) -> None:
        from polyblocks_torch.importing.importer import import_capture

        description = describe_target(self.options)
        try:
            driver.compile_program(import_capture(capture), description, self.options)
        except PassError as error:
            raise UnsupportedError(str(error)) from error


def _operations(step: Step) -> list[fx.Node]:
    """The nodes of a step that compute; elements of tuples go with their producers."""
    return [n for n in step.nodes if n.op == "call_function" and n.target is not getitem]


def _named(nodes: list[fx.Node], failure: UnsupportedError) -> list[fx.Node]:
    """The nodes that an error is about: of its op, or of the line whose op became that one."""
    same = [n for n in nodes if str(n.target) == failure.op]
    if same or failure.location is None:
        return same
    return [n for n in nodes if source_location(n) == failure.location]
