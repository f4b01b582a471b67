"""TfCapture: one traced function as a pure function of arrays.

The arguments of the Program are those of the traced function, then what it captured: arrays, and
the values of variables. New values of variables are results that go into the variables afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import tensorflow as tf

from polyblocks.driver import loads_really
from polyblocks.errors import UnsupportedError
from polyblocks.hookspecs import Capture
from polyblocks.program import ArraySpec
from polyblocks_tf.export import export
from polyblocks_tf.location import Locations
from polyblocks_tf.operations import rules
from polyblocks_tf.specs import spec_of
from polyblocks_tf.tracing.graph import Graph

if TYPE_CHECKING:
    from polyblocks.artifact import Artifact


@dataclass(frozen=True, eq=False)
class Captured:
    """One argument of the Program.

    Attributes:
        name: for reports.
        kind: ``argument`` of the traced function, ``array`` that it captured, or ``variable``.
        spec: None if no Program can hold it.
        held: the captured array, or the variable's handle; None for an argument.
    """

    name: str
    kind: Literal["argument", "array", "variable"]
    spec: ArraySpec | None
    held: Any = None


@dataclass(eq=False)
class TfCapture(Capture):
    """A traced function of static shapes, and what the driver wants to know of it.

    Attributes:
        name: the user's function, for reports.
        concrete: the ConcreteFunction.
        arguments: one per input of its graph.
        where: of its operations, for messages.
        keeps: whether values that depend on captured arrays and variables alone may be computed
            once; not if the program is inspected instead of run.
        recover: makes the plan that :meth:`partition` gives.
    """

    name: str
    concrete: Any
    arguments: tuple[Captured, ...]
    where: Locations
    keeps: bool = field(default_factory=loads_really)
    recover: Callable[[UnsupportedError], Artifact] | None = None
    stablehlo: bytes = b""
    _text: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, concrete: Any, name: str, where: Locations | None = None) -> Any:
        """Make one of a ConcreteFunction."""
        where = Locations(concrete.graph) if where is None else where
        return cls(name, concrete, tuple(_arguments(concrete)), where)

    @property
    def is_trivial(self) -> bool:
        """Whether it has neither results nor effects."""
        graph = Graph.of(self.concrete)
        return not graph.outputs and not graph.nodes

    def fingerprint_text(self) -> str:
        """The program's identity as text; see :mod:`polyblocks_tf.fingerprint`."""
        if self._text is None:
            from polyblocks_tf.fingerprint import describe

            self._text = describe(self)
        return self._text

    def partition(self, error: UnsupportedError) -> Artifact | None:
        """See :class:`polyblocks.hookspecs.Capture`."""
        return None if self.recover is None else self.recover(error)

    def prepare_import(self) -> None:
        """Export the graph, see :func:`polyblocks_tf.export.export`.

        Raises:
            UnsupportedError: it holds something that no Program can express, or that the bridge
                does not translate, or at which the bridge crashes.
        """
        for argument in self.arguments:
            if argument.spec is None:
                raise UnsupportedError(f"'{argument.name}' is no array of static shape")
        for node in Graph.of(self.concrete).nodes:
            for op in node.everything():
                reason = rules.refused(op)
                if reason is not None:
                    _, location = self.where.find(op.name)
                    raise UnsupportedError(reason, op=op.type, location=location or None)
        if not self.stablehlo:
            self.stablehlo = export(self.concrete, self.where, self.name)


def _arguments(concrete: Any) -> list[Captured]:
    count = len(concrete.inputs) - len(concrete.captured_inputs)
    found = []
    for tensor in concrete.inputs[:count]:
        name = tensor.op.name
        found.append(Captured(name, "argument", _spec(tensor.shape, tensor.dtype)))
    variables = {id(v.handle): v for v in concrete.graph.variables}
    for tensor, held in zip(concrete.inputs[count:], concrete.captured_inputs, strict=True):
        if held.dtype != tf.resource:
            found.append(Captured(tensor.op.name, "array", _spec(held.shape, held.dtype), held))
            continue
        variable = variables.get(id(held))
        name = variable.name if variable is not None else tensor.op.name
        found.append(Captured(name, "variable", _variable_spec(held), held))
    return found


def _variable_spec(handle: Any) -> ArraySpec | None:
    data = getattr(handle, "_handle_data", None)
    if data is None or not data.is_set or len(data.shape_and_type) != 1:
        return None
    part = data.shape_and_type[0]
    return _spec(tf.TensorShape(part.shape), tf.as_dtype(part.dtype))


def _spec(shape: tf.TensorShape, dtype: tf.DType) -> ArraySpec | None:
    if not shape.is_fully_defined():
        return None
    return spec_of(tuple(shape.as_list()), dtype)
