"""Calls of compiled frames without Dynamo's evaluation of frames: their guards, then their code.

Where Dynamo evaluates a frame, it looks the code up, checks the guards, and makes a second frame
for the code that it has generated, which calls the graph through a wrapper. For a function that is
one graph, the same guards are asked with a dict of the arguments, as Dynamo itself does when it has
made them; then the generated code is called as a function.
"""

from __future__ import annotations

import dis
import weakref
from collections.abc import Callable
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import CodeType, FunctionType
from typing import Any

from torch._dynamo import eval_frame

from polyblocks.isolation import forks
from polyblocks.runtime.source import Source
from polyblocks_torch.launch.graph_call import GraphCall

#: How Dynamo names graphs in the code that it generates.
_GRAPH = "__compiled_fn_"
#: Where the named tuples are defined that operations of PyTorch give.
_TUPLES = "torch.return_types"
#: Instructions with names that run no code but Python's own.
_LOADS = ("LOAD_GLOBAL", "LOAD_ATTR")
#: Arguments with which bytecode may call a function in C. Python 3.11's ``PRECALL`` runs it and
#: skips the ``CALL`` behind, but not the ``EXTENDED_ARG`` that more of them need; Python's own
#: compiler makes a tuple of them.
_MOST_ARGUMENTS = 255

#: Entries of the inline cache that are made for each variant.
TRIES = 8

_lock = forks.lock()


class _NoGuards:
    """Guards of code that Dynamo has forgotten."""

    cache_entry = None


_NONE = _NoGuards, bool, None


class GuardedCalls:
    """The compiled frames of one function.

    Attributes:
        find: called with a call's tuple of arguments and dict of keyword arguments, each of which
            guards may look at; gives the code for it, or None where Dynamo must look. None: it
            always must.
        values: called likewise; gives the variables of the frame, that guards look at.
        last: guards of the code that was called last, their check, and the code as a function.

    Args:
        function: the user's.
    """

    def __init__(self, function: FunctionType) -> None:
        self._function = function
        self._variants: list[_Variant] = []
        self.last: tuple[Any, Callable[[Any], bool], Any] = _NONE
        self.find = _finder(function, self)
        self.values = _finder(function, None)

    def add(self, guards: Any, code: CodeType) -> None:
        """Add a frame that Dynamo has compiled.

        Args:
            guards: Dynamo's.
            code: that it has generated.
        """
        function = self._function
        graph = _only_call(code)
        call = function.__globals__.get(graph)
        if call is not None and code.co_freevars == function.__code__.co_freevars:
            self._variants = [*self._variants, _Variant(guards, code, graph, call)]

    def choose(self, values: dict[str, Any]) -> Callable[..., Any] | None:
        """The code whose guards hold for the values of a frame's variables."""
        for variant in self._variants:
            guards = variant.guards
            # Dynamo forgets code when it is reset, or when an object that guards know is gone.
            if guards.cache_entry is None:
                self._variants = [each for each in self._variants if each is not variant]
            elif guards.check(values):
                call = variant.call or variant.make(self._function)
                self.last = guards, guards.root.check, call
                return call
        return None


# Called by another compiled function, which Python runs a part of: no frames of that one.
eval_frame.skip_code(GuardedCalls.choose.__code__)


class _Variant:
    """One compiled frame.

    Attributes:
        guards: Dynamo's.
        call: the code as a function; None until it is called for the first time. By the name that
            it has for the graph as ``graph_name``.
        graph: what it calls, if that is a function of the graph's arguments alone.

    Args:
        guards: see there.
        code: that Dynamo has generated.
        graph: the name by which it calls the graph.
        compiled: what it calls.
    """

    __slots__ = ("_code", "_compiled", "_graph", "call", "graph", "guards")

    def __init__(self, guards: Any, code: CodeType, graph: str, compiled: Any) -> None:
        self.guards = guards
        self.call: Callable[..., Any] | None = None
        self.graph: GraphCall | None = None
        self._code, self._graph, self._compiled = code, graph, compiled

    def make(self, function: FunctionType) -> Callable[..., Any]:
        """The code as a function, with machine code in place of the graph where that can be.

        Args:
            function: which was compiled.
        """
        outer = eval_frame.set_eval_frame(None)
        try:
            with _lock:
                if self.call is None:
                    self.call = self._build(function)
                return self.call
        finally:
            eval_frame.set_eval_frame(outer)

    def _build(self, function: FunctionType) -> Callable[..., Any]:
        code, known, name = self._code, function.__globals__, ""
        native = getattr(self._compiled, "native_call", None)
        self.graph = None if native is None else native(self._compiled)
        if self.graph is not None:
            call = self.graph.call
            # Beside the name that Dynamo itself has put there.
            name = f"{self._graph}_native"
            calls = (each for each in dis.get_instructions(code) if each.opname == "CALL")
            many = any((each.arg or 0) > _MOST_ARGUMENTS for each in calls)
            known[name] = _spread(call) if many else call
            code = code.replace(
                co_names=tuple(name if each == self._graph else each for each in code.co_names)
            )
        eval_frame.skip_code(code)
        made: Any = FunctionType(code, known, code.co_name, None, function.__closure__)
        made.graph_name, made.graph, made.tries = name, self.graph, TRIES
        if name:
            weakref.finalize(made, known.pop, name, None).atexit = False
        return made


def _spread(call: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Python that calls one in C with the tuple of its arguments."""

    def spread(*args: Any) -> Any:
        return call(*args)

    eval_frame.skip_code(spread.__code__)
    return spread


def _only_call(code: CodeType) -> str:
    """The name of the graph, in generated code that calls it and nothing else; else empty.

    Named tuples are made of its results: PyTorch's own, which run no Python.
    """
    graphs = [name for name in code.co_names if name.startswith(_GRAPH)]
    if len(graphs) != 1:
        return ""
    calls = tuples = 0
    for each in dis.get_instructions(code):
        tuples += isinstance(each.argval, type) and each.argval.__module__ == _TUPLES
        calls += each.opname.startswith("CALL") and "INTRINSIC" not in each.opname
        if each.opcode in dis.hasname and each.opname not in _LOADS:
            return ""
    return graphs[0] if calls == 1 + tuples else ""


def _finder(
    function: FunctionType, calls: GuardedCalls | None
) -> Callable[[tuple[Any, ...], dict[str, Any]], Any] | None:
    """A function of a call's arguments, see :attr:`GuardedCalls.find`.

    Where they are not all that the function takes, as with defaults, it returns None.

    Args:
        function: whose arguments they are.
        calls: of the function; None: the result is :attr:`GuardedCalls.values`.
    """
    code = function.__code__
    if code.co_kwonlyargcount:
        return None
    count, source = code.co_argcount, Source("args, kwargs")
    names, others = code.co_varnames[:count], iter(code.co_varnames[count:])
    values = [f"{name!r}: args[{k}]" for k, name in enumerate(names)]
    takes_more, takes_keywords = code.co_flags & CO_VARARGS, code.co_flags & CO_VARKEYWORDS
    source.add(f"if len(args) {'<' if takes_more else '!='} {count}:")
    if takes_more or takes_keywords:
        source.add("return None", 2)
    else:
        source.add("try:", 2)
        source.add(f"args += tuple([kwargs[name] for name in {names}[len(args):]])", 3)
        source.add("except KeyError:", 2)
        source.add("return None", 3)
        source.add(f"if len(args) != {count}:", 2)
        source.add("return None", 3)
    if takes_more:
        values.append(f"{next(others)!r}: args[{count}:]" if count else f"{next(others)!r}: args")
    if takes_keywords:
        values.append(f"{next(others)!r}: kwargs")
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        values.append(f"{name!r}: {source.name('cell', cell)}.cell_contents")
    source.add(f"values = {{{', '.join(values)}}}")
    if code.co_freevars:  # a cell may be empty
        source.lines[-1:] = ["    try:", "    " + source.lines[-1], "    except ValueError:"]
        source.add("return None", 2)
    if calls is None:
        source.add("return values")
    else:
        known = source.name("calls", calls)
        source.add(f"guards, check, call = {known}.last")
        source.add("if guards.cache_entry is not None and check(values):")
        source.add("return call", 2)
        source.add(f"return {known}.choose(values)")
    made = source.build(function.__name__)
    eval_frame.skip_code(made.__code__)
    return made
