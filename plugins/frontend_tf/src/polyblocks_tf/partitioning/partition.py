"""A traced function as the planner sees it; parts of it as functions of their own."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from polyblocks import driver
from polyblocks.errors import PassError, UnsupportedError
from polyblocks.frontends import programs
from polyblocks.frontends.partition import RANDOM, UNSUPPORTED, Operations, Why, run_probes, why
from polyblocks.frontends.units import Connected, Unit
from polyblocks.options import CompileOptions
from polyblocks.registry.honoured_options import describe_target
from polyblocks_tf.capture import TfCapture
from polyblocks_tf.operations import rules
from polyblocks_tf.specs import spec_of
from polyblocks_tf.tracing.graph import Graph, Substitutions, Value, fold, replay, traced


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
        self._readers: dict[Value, set[int]] = {}
        for index, node in enumerate(self.nodes):
            for value in node.inputs:
                self._readers.setdefault(value, set()).add(index)
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
        return node in self._stateful

    @functools.cached_property
    def _stateful(self) -> set[int]:
        return {
            index
            for index, node in enumerate(self.nodes)
            if any(op.op_def.is_stateful for op in node.everything())
        }

    def named(self, error: UnsupportedError, nodes: Sequence[int]) -> list[int]:
        """Those that are an operation of the type that the error names, or hold one."""
        if error.op is None:
            return []
        alike = [n for n in nodes if any(o.type == error.op for o in self.nodes[n].everything())]
        there = [n for n in alike if self._is_at(n, error)]
        return there or alike

    def _is_at(self, number: int, error: UnsupportedError) -> bool:
        """Whether an operation, or one in its loop, is where an error says."""
        return any(
            op.type == error.op and self.capture.where.find(op.name)[1] == (error.location or "")
            for op in self.nodes[number].everything()
        )

    def inseparable(self) -> list[Unit]:
        """Operations that share a list, a resource of their own, or an array of unknown shape."""
        connected = Connected(len(self.nodes))
        for value, maker in self._maker.items():
            if not self._is_array(value):
                connected.join([maker, *self._readers.get(value, ())])
        return connected.groups()

    def _is_array(self, value: Value) -> bool:
        """Whether a Program can take and give it."""
        tensor = self._symbols[value]
        shape = tensor.shape
        return shape.is_fully_defined() and spec_of((), tensor.dtype) is not None

    def part(self, numbers: Sequence[int]) -> TfCapture:
        """Some of the operations as a function of what they read from elsewhere."""
        numbers = tuple(numbers)
        known = self._parts.get(numbers)
        if known is None:
            concrete = self.function(numbers)
            known = TfCapture.of(concrete, self.name, self.capture.where)
            self._parts[numbers] = known
        return known

    def function(
        self,
        numbers: Sequence[int],
        *,
        compiled: bool = True,
        substitutions: Substitutions | None = None,
    ) -> Any:
        """The ConcreteFunction of a part; see :meth:`boundary`.

        Args:
            numbers: of its operations.
            compiled: whether it is compiled, or run by TensorFlow.
            substitutions: see :func:`polyblocks_tf.tracing.graph.replay`.
        """
        read, given = self.boundary(numbers, compiled=compiled)
        nodes = [self.nodes[number] for number in self._all_of(numbers, compiled)]

        def run(*tensors: Any) -> list[Any]:
            values: dict[Value, Any] = dict(zip(read, tensors, strict=True))
            needed = dict.fromkeys(v for node in nodes for v in node.inputs) | dict.fromkeys(given)
            for value in needed:
                if value in self.held:
                    values[value] = self.held[value]
                elif value in self.constants:
                    values[value] = tf.constant(self.constants[value])
            replay(nodes, values, substitutions or {})
            return [values[value] for value in given]

        return traced(run, [self._symbols[value] for value in read])

    def boundary(
        self, numbers: Sequence[int], *, compiled: bool = True
    ) -> tuple[list[Value], list[Value]]:
        """The inputs of a part, and the results that other parts need.

        A compiled part computes again what it reads and no program gives: a list that a loop in
        another part has filled, for the gradient of that loop.

        Args:
            numbers: of its operations.
            compiled: whether it is compiled, or run by TensorFlow.
        """
        inside = set(numbers)
        everything = self._all_of(numbers, compiled)
        own = {value for number in everything for value in self.nodes[number].outputs}
        read = dict.fromkeys(
            value
            for number in everything
            for value in self.nodes[number].inputs
            if value not in own and value not in self.held and value not in self.constants
        )
        given = [
            value
            for number in numbers
            for value in self.nodes[number].outputs
            if value in self._returned
            or (
                not inside.issuperset(self._readers.get(value, ()))
                and not (compiled and self._is_made_again(value))
            )
        ]
        return list(read), given

    def _all_of(self, numbers: Sequence[int], compiled: bool) -> list[int]:
        """The operations of a part, and those that it computes again."""
        found = set(numbers)
        missing = list(numbers) if compiled else []
        while missing:
            for value in self.nodes[missing.pop()].inputs:
                maker = self._maker.get(value)
                if maker is not None and maker not in found and self._is_made_again(value):
                    found.add(maker)
                    missing.append(maker)
        return sorted(found)

    def _is_made_again(self, value: Value) -> bool:
        """Whether each compiled part that reads a value makes its own."""
        return not self._is_array(value) and self._maker[value] not in self._stateful

    @functools.cached_property
    def _returned(self) -> set[Value]:
        return set(self.graph.outputs)

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
            if not self._is_array(value):
                raise UnsupportedError("it takes or gives a value that is no array of static shape")
        try:
            return self.part(numbers)
        except (ValueError, TypeError, KeyError) as error:
            raise UnsupportedError(f"it cannot be traced alone: {error}") from None

    def probe(self, nodes: Sequence[int]) -> dict[int, Why]:
        """Those of the operations that cannot be compiled alone.

        Equal operations are probed once.
        """
        found: dict[int, Why] = {}
        alike: dict[str, list[int]] = {}
        parts: dict[str, TfCapture] = {}
        for number in nodes:
            try:
                part = self._checked([number])
            except UnsupportedError as error:
                found[number] = why(error)
                continue
            text = part.fingerprint_text()
            parts.setdefault(text, part)
            alike.setdefault(text, []).append(number)
        ready: list[str] = []
        for text, part in parts.items():
            try:
                part.prepare_import()
                ready.append(text)
            except UnsupportedError as error:
                found.update(dict.fromkeys(alike[text], why(error)))
        outcomes = run_probes([parts[text] for text in ready], self._attempt)
        for text, outcome in zip(ready, outcomes, strict=True):
            if outcome is not None:
                found.update(dict.fromkeys(alike[text], outcome))
        return found

    def _attempt(self, part: TfCapture) -> None:
        from polyblocks_tf.importer import import_capture

        description = describe_target(self.options)
        try:
            driver.compile_program(import_capture(part), description, self.options)
        except PassError as error:
            raise UnsupportedError(str(error)) from error
