"""A traced function as the planner sees it; parts of it as functions of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from polyblocks import driver
from polyblocks.errors import PassError, UnsupportedError
from polyblocks.frontends import programs
from polyblocks.frontends.partition import RANDOM, UNSUPPORTED, Operations, Why, run_probes, why
from polyblocks.options import CompileOptions
from polyblocks.registry.honoured_options import describe_target
from polyblocks_tf import rules
from polyblocks_tf.capture import TfCapture
from polyblocks_tf.graph import Graph, Substitutions, Value, fold, replay, traced


class TfOperations(Operations):
    """The operations of a traced function, constants aside.

    Constants are part of whatever reads them: XLA wants to see shapes and axes.

    Args:
        capture: the whole function.
        options: for compiling parts of it.
    """

    def __init__(self, capture: TfCapture, options: CompileOptions) -> None:
        self.name = capture.name
        self.capture = capture
        self.options = options
        self.graph = Graph.of(capture.concrete)
        #: Constants, and what follows from them.
        self.constants = fold(self.graph)
        for node in self.graph.nodes:
            if node.op.type == "Const":
                self.constants[node.outputs[0]] = tf.make_ndarray(node.op.get_attr("value"))
        self.nodes = [
            node
            for node in self.graph.nodes
            if not node.outputs or not all(value in self.constants for value in node.outputs)
        ]
        self._maker = {v: i for i, node in enumerate(self.nodes) for v in node.outputs}
        count = len(self.graph.inputs) - len(self.graph.captured)
        #: Value -> the captured array or resource.
        self.held = dict(zip(self.graph.values[count:], self.graph.captured, strict=True))
        self._symbols = dict(zip(self.graph.values, self.graph.inputs, strict=True))
        for node in self.graph.nodes:
            self._symbols.update(zip(node.outputs, node.op.outputs, strict=True))
        self._parts: dict[tuple[int, ...], TfCapture] = {}

    def __len__(self) -> int:
        return len(self.nodes)

    def operands(self, node: int) -> list[int]:
        """The operations whose results this one reads."""
        return [self._maker[v] for v in self.nodes[node].inputs if v in self._maker]

    def op_name(self, node: int) -> str:
        """TensorFlow's type of the operation, or of that inside it which has a rule against it."""
        ops = self.nodes[node].everything()
        refused = next((op for op in ops if rules.refused(op) is not None), None)
        return str((refused or self.nodes[node].op).type)

    def location(self, node: int) -> str:
        """``file:line`` of the user's source."""
        return self.capture.where.find(self.nodes[node].op.name)[1]

    def obvious(self) -> dict[int, Why]:
        """Operations with a rule against them, or of values that no Program holds."""
        found: dict[int, Why] = {}
        for index, node in enumerate(self.nodes):
            for op in node.everything():
                reason = rules.refused(op)
                if reason is not None:
                    found[index] = (reason, RANDOM if rules.is_random(op) else UNSUPPORTED)
        return found

    def is_ordered(self, node: int) -> bool:
        """Whether it reads or changes a state."""
        return any(op.op_def.is_stateful for op in self.nodes[node].everything())

    def part(self, numbers: Sequence[int]) -> TfCapture:
        """Some of the operations as a function of what they read from elsewhere."""
        numbers = tuple(numbers)
        known = self._parts.get(numbers)
        if known is None:
            concrete = self.function(numbers)
            known = TfCapture.of(concrete, self.name, self.capture.where)
            self._parts[numbers] = known
        return known

    def function(self, numbers: Sequence[int], substitutions: Substitutions | None = None) -> Any:
        """The ConcreteFunction of a part; see :meth:`boundary`.

        Args:
            numbers: of its operations.
            substitutions: see :func:`polyblocks_tf.graph.replay`.
        """
        read, given = self.boundary(numbers)

        def run(*tensors: Any) -> list[Any]:
            values: dict[Value, Any] = dict(self.held)
            values.update(zip(read, tensors, strict=True))
            nodes = [self.nodes[number] for number in numbers]
            needed = {v for node in nodes for v in node.inputs} | set(given)
            for value, array in self.constants.items():
                if value in needed:
                    values[value] = tf.constant(array)
            replay(nodes, values, substitutions or {})
            return [values[value] for value in given]

        return traced(run, [self._symbols[value] for value in read])

    def boundary(self, numbers: Sequence[int]) -> tuple[list[Value], list[Value]]:
        """What a part reads from elsewhere, and what elsewhere needs of it."""
        inside = set(numbers)
        own = {value for number in numbers for value in self.nodes[number].outputs}
        read: dict[Value, None] = {}
        for number in numbers:
            for value in self.nodes[number].inputs:
                if value not in own and value not in self.held and value not in self.constants:
                    read[value] = None
        wanted = set(self.graph.outputs)
        for index, node in enumerate(self.nodes):
            if index not in inside:
                wanted.update(node.inputs)
        given = [v for number in numbers for v in self.nodes[number].outputs if v in wanted]
        return list(read), given

    @staticmethod
    def argument_count(capture: TfCapture) -> int:
        """How many tensors a part is called with."""
        return sum(argument.kind == "argument" for argument in capture.arguments)

    def compile(self, nodes: Sequence[int]) -> None:
        """Compile a part, so that it is in the cache."""
        programs.obtain_part(self._checked(nodes), "tf", self.options)

    def _checked(self, numbers: Sequence[int]) -> TfCapture:
        """The part; one that cannot be traced, or takes or gives what is no array, is refused."""
        read, given = self.boundary(numbers)
        for value in (*read, *given):
            tensor = self._symbols[value]
            if tensor.dtype in (tf.resource, tf.variant) or not tensor.shape.is_fully_defined():
                raise UnsupportedError("it takes or gives a value that is no array of static shape")
        try:
            return self.part(numbers)
        except (ValueError, TypeError, KeyError) as error:
            raise UnsupportedError(f"it cannot be traced alone: {error}") from None

    def probe(self, nodes: Sequence[int]) -> dict[int, Why]:
        """Those of the operations that cannot be compiled alone.

        TensorFlow exports each in this process; what comes then may crash, and runs isolated.
        """
        found: dict[int, Why] = {}
        ready: list[tuple[int, TfCapture]] = []
        for number in nodes:
            try:
                part = self._checked([number])
                part.prepare_import()
                ready.append((number, part))
            except UnsupportedError as error:
                found[number] = why(error)
        outcomes = run_probes([part for _, part in ready], self._attempt)
        for (number, _), outcome in zip(ready, outcomes, strict=True):
            if outcome is not None:
                found[number] = outcome
        return found

    def _attempt(self, part: TfCapture) -> None:
        from polyblocks_tf.importer import import_capture

        description = describe_target(self.options)
        try:
            driver.compile_program(import_capture(part), description, self.options)
        except PassError as error:
            raise UnsupportedError(str(error)) from error
