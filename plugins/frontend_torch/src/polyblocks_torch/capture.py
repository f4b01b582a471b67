"""TorchCapture: one graph of AOTAutograd as a pure function of arrays.

AOTAutograd hands out graphs whose arguments may be numbers, whose outputs may be ``None``, repeat
each other or alias each other, and which end in ``copy_`` to arguments. Compiled code knows arrays
only. A TorchCapture holds the pure graph in the middle and, as plain data, what must happen around
it: which of the caller's arguments are passed, which results go into an argument's own memory, and
how each of the caller's outputs is made of results, of arguments and of views of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from polyblocks.errors import UnsupportedError
from polyblocks.hookspecs import Capture
from polyblocks.isolation.forks import fork_lock
from polyblocks.program import Argument, ArraySpec, Result
from polyblocks_torch.importing.checks import has_checks

if TYPE_CHECKING:
    from polyblocks.artifact import Artifact


@dataclass(frozen=True)
class FromInput:
    """The caller's argument number ``position``."""

    position: int


@dataclass(frozen=True, eq=False)
class FromConstant:
    """A tensor that the graph holds; passed at every call."""

    tensor: torch.Tensor


@dataclass(frozen=True)
class View:
    """``as_strided`` of a base.

    Attributes:
        shape, strides: in elements of the view.
        offset: from the base's first element, in elements of the view.
        dtype: what the memory is read as, e.g. the parts of a complex base; None: as the base.
        conj, neg: whether it is a lazy conjugate or negation of what is in memory.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: str | None = None
    conj: bool = False
    neg: bool = False


@dataclass(frozen=True)
class InputOutput:
    """An output that is an argument of the caller, or a view of one."""

    position: int
    view: View | None = None


@dataclass(frozen=True)
class ResultOutput:
    """An output that is a result of the program, or a view of one."""

    index: int
    view: View | None = None


@dataclass(frozen=True)
class EmptyOutput:
    """An output without elements: allocated, never computed."""

    spec: ArraySpec


@dataclass(frozen=True)
class OpaqueOutput:
    """An output that is no array of a Program; only the framework can compute it.

    ``index`` counts the elements of the graph's output after the results.
    """

    index: int


@dataclass(frozen=True)
class LiteralOutput:
    """``None`` or a number."""

    value: Any


Source = FromInput | FromConstant
Output = InputOutput | ResultOutput | EmptyOutput | OpaqueOutput | LiteralOutput


@dataclass(eq=False)
class TorchCapture(Capture):
    """A canonical graph and the plan around it. See ``canonical.capture_graph``.

    Attributes:
        name: the user's function, for reports.
        graph_module: placeholders are the arguments, the output is the tuple of results (then
            that of opaque outputs, if there is a problem), and every node is free of side effects.
        arguments: one per placeholder.
        results: one per element of the output.
        sources: where each argument comes from.
        resolve: for each argument, whether a lazy conjugation or negation must be resolved first.
        outputs: one per output of the caller's graph.
        input_count: number of arguments of the caller's graph.
        problem: why this cannot be compiled at all; None if nothing speaks against it.
        recover: makes the plan that :meth:`partition` gives.
    """

    name: str
    graph_module: fx.GraphModule
    arguments: tuple[Argument, ...]
    results: tuple[Result, ...]
    sources: tuple[Source, ...]
    resolve: tuple[bool, ...]
    outputs: tuple[Output, ...]
    input_count: int
    problem: UnsupportedError | None = None
    recover: Callable[[UnsupportedError], Artifact] | None = None
    _text: str | None = field(default=None, repr=False)

    @property
    def is_trivial(self) -> bool:
        """Whether nothing is computed, nor checked."""
        return not self.results and self.problem is None and not has_checks(self.graph_module.graph)

    def fingerprint_text(self) -> str:
        """The program's identity as text; see :mod:`polyblocks_torch.fingerprint`."""
        if self._text is None:
            from polyblocks_torch.fingerprint import describe

            self._text = describe(self)
        return self._text

    def partition(self, error: UnsupportedError) -> Artifact | None:
        """See :class:`polyblocks.hookspecs.Capture`."""
        return None if self.recover is None else self.recover(error)

    def prepare_import(self) -> None:
        """Called in the user's process before the isolated import: load what it needs, once.

        Raises:
            UnsupportedError: the graph holds something that no Program can express.
        """
        if self.problem is not None:
            raise self.problem
        with fork_lock:
            from polyblocks_torch.importing.importer import preload

            preload()
