"""Calls of a function that is compiled already, without what Dynamo prepares for new ones.

``torch.compile``'s wrapper keeps errors and half-made states of a compilation from the caller:
20 Python calls that are needed when something is compiled, and that take longer
than a small program once its data has pushed them out of the caches. A call that finds its code in
Dynamo's cache needs none of them. All guards are checked, by
:mod:`polyblocks_torch.tracing.guarded_calls` where that can be, else by Dynamo as it evaluates the
frame; where there is no code, the call starts again in the ordinary way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import CodeType, FunctionType
from typing import Any

import torch
from torch import _guards, compiler
from torch._dynamo import eval_frame
from torch._dynamo.eval_frame import OptimizeContext
from torch.autograd import forward_ad
from torch.fx import _symbolic_trace

from polyblocks_torch.compat import is_fx_tracing
from polyblocks_torch.inline_cache.cache import InlineCache, inline_cache
from polyblocks_torch.inline_cache.guard_tree import Fact
from polyblocks_torch.tracing.gate import Gate
from polyblocks_torch.tracing.guarded_calls import GuardedCalls

#: The stance in which nothing is asked for; :func:`torch.compiler.set_stance` makes others.
_USUAL_STANCE = eval_frame._stance if eval_frame._stance == eval_frame.DynamoStance() else None

#: How names of the functions begin that go on after a graph break.
_RESUMES = "__resume_at"


class _NotCached(Exception):
    """Dynamo has no code for a call."""


class LeftToPython(Exception):
    """Dynamo has failed with the frame of a call before any of it ran.

    Its tracing state may be half undone when its callback returns, and is clean when a call ends.
    """


class CachedCalls:
    """The calls of one function, and what became of its frames.

    Args:
        gate: where calls wait for what another thread compiles.
        tell: takes a way of calling that PyTorch runs, and why; may raise.
    """

    def __init__(self, gate: Gate, tell: Callable[[str, str], None]) -> None:
        self._gate = gate
        self._tell = tell
        self._code: CodeType | None = None
        self._guarded: GuardedCalls | None = None
        self._inline: InlineCache | None = None
        self._interrupted = False
        #: Whether there are variants of the function, each of which is one piece of compiled code.
        self.whole = False

    def begins_with(self, code: CodeType) -> bool:
        """Whether calls begin with a frame of this code, so that they can start again."""
        return code is self._code

    def compiled(self, code: CodeType, result: CodeType | None, guards: Any = None) -> bool:
        """Record the result of compiling a frame.

        Args:
            code: the frame's own.
            result: what Dynamo made of it; None if Python runs it.
            guards: of the result.

        Returns:
            Whether the call goes on, and ends, without Python.
        """
        if code is not self._code:
            return False
        # Where Python runs a part, a call cannot start again.
        interrupted = result is None or any(n.startswith(_RESUMES) for n in result.co_names)
        self._interrupted |= interrupted
        self.whole = not self._interrupted
        if result is not None and self.whole and self._guarded is not None:
            self._guarded.add(guards, result)
        return self.whole

    def wrap(self, context: OptimizeContext, ordinary: Any) -> Any:
        """A function whose calls look into the cache first.

        Args:
            context: Dynamo's, with the callback for new frames.
            ordinary: what the context made of a function.

        Returns:
            A function in place of ``ordinary``; ``ordinary`` itself for modules, which
            have Python around the frame that is compiled.
        """
        inner = getattr(ordinary, "_torchdynamo_orig_callable", None)
        if not type(ordinary) is type(inner) is FunctionType:
            return ordinary
        self._code = inner.__code__
        self._guarded = GuardedCalls(inner)
        call = self._call(context, inner, ordinary)
        self._inline = inline_cache(inner, call, self._facts())
        if self._inline is not None:
            call = _entrance(inner, ordinary, self._inline.call)
        call.__wrapped__ = inner
        call._torchdynamo_wrapper_id = id(call)
        # Called by another compiled function, which Python runs a part of: no frame of that one.
        eval_frame.skip_code(call.__code__)
        return call

    def _facts(self) -> list[Fact]:
        """Conditions of an ordinary call, see :func:`_is_usual`.

        Whether this thread traces shows in its dispatch keys and modes; where it does, and calls
        with tensors that have data, the code gives what they are to give.
        """
        fx_tracing = vars(_symbolic_trace)
        facts = [
            Fact(vars(self._gate), "owner", None),
            Fact(vars(self), "whole", True),
            Fact(vars(eval_frame), "_stance", _USUAL_STANCE),
            Fact(vars(compiler), "_is_exporting_flag", False),
            Fact(vars(torch.autograd.profiler), "_is_profiler_enabled", False),
            Fact(vars(torch.utils._device), "CURRENT_DEVICE", None),
            Fact(vars(forward_ad), "_current_level", -1),
        ]
        if "_is_fx_tracing_flag" in fx_tracing:
            facts.append(Fact(fx_tracing, "_is_fx_tracing_flag", False))
        return facts

    def _remember(self, found: Any, args: tuple[Any, ...]) -> None:
        """Let the inline cache know a call for which there is code.

        Args:
            found: the code.
            args: of the call.
        """
        assert self._guarded is not None
        assert self._guarded.values is not None
        guards, _, last = self._guarded.last
        found.tries -= 1
        if last is not found or self._inline is None or guards.cache_entry is None:
            return
        outer = eval_frame.set_eval_frame(None)
        try:
            values = self._guarded.values(args, {})
            if values is None or not self._inline.remember(guards, values, args, found):
                found.tries = 0
        finally:
            eval_frame.set_eval_frame(outer)

    def _call(self, context: OptimizeContext, inner: FunctionType, ordinary: FunctionType) -> Any:
        gate = self._gate
        recompiles = context._isolate_recompiles_id
        lookup = _Lookup(inner.__code__, context.callback)
        set_eval_frame = eval_frame.set_eval_frame
        set_recompiles = eval_frame.set_eval_frame_isolate_recompiles_id
        assert self._guarded is not None
        find = self._guarded.find
        profiler = torch.autograd.profiler

        @functools.wraps(ordinary)
        def call(*args: Any, **kwargs: Any) -> Any:
            for value in (*args, *kwargs.values()) if kwargs else args:
                # Dynamo's guards of a dense tensor end the process.
                if value.__class__ is torch.Tensor and value.is_nested:
                    self._tell("nested tensor", _NESTED)
                    return _by_python(inner, args, kwargs)
            if (gate.owner is not None or not _is_usual()) and not _becomes_usual(gate):
                return ordinary(*args, **kwargs)
            if self.whole:
                # A profiler shows what Dynamo does, and ranges of its own around it.
                if find is not None and not profiler._is_profiler_enabled:
                    found = find(args, kwargs)
                    if found is not None:
                        if found.tries and not kwargs:
                            self._remember(found, args)
                        return found(*args, **kwargs)
                outer_recompiles = set_recompiles(recompiles)
                outer = set_eval_frame(lookup)
                try:
                    return inner(*args, **kwargs)
                except _NotCached:
                    pass
                finally:
                    set_eval_frame(outer)
                    set_recompiles(outer_recompiles)
            if self._interrupted:
                try:
                    return ordinary(*args, **kwargs)
                except LeftToPython:
                    return _by_python(inner, args, kwargs)
            with gate.alone():
                try:
                    result = ordinary(*args, **kwargs)
                except LeftToPython:
                    return _by_python(inner, args, kwargs)
                except RuntimeError as error:
                    # With strict_target: Dynamo has not looked at it, and says so at the end.
                    if "found no compiled frames" not in str(error):
                        raise
                    self._tell("call", " ".join(str(error).split()))
                    raise
            # A function that Dynamo never looks at is Python's as well.
            self._interrupted |= not self.whole
            return result

        return call


def _entrance(inner: FunctionType, ordinary: FunctionType, call: Any) -> Any:
    """A function with the signature of the user's, that passes its arguments on.

    Args:
        inner: the user's.
        ordinary: whose attributes it gets.
        call: takes the arguments, by position where the function takes them so.
    """
    code = inner.__code__
    plain = not (code.co_kwonlyargcount or code.co_flags & (CO_VARARGS | CO_VARKEYWORDS))
    names = code.co_varnames[: code.co_argcount]
    if plain and not inner.__defaults__ and "call" not in names:
        listed = [*names]
        if code.co_posonlyargcount:
            listed.insert(code.co_posonlyargcount, "/")
        source = f"lambda {', '.join(listed)}: call({', '.join(names)})"
        entrance: Any = eval(source, {"call": call})
    else:

        def entrance(*args: Any, **kwargs: Any) -> Any:
            return call(*args, **kwargs)

    return functools.update_wrapper(entrance, ordinary)


def _by_python(inner: FunctionType, args: Any, kwargs: Any) -> Any:
    """A call that Dynamo does not look at."""
    outer = eval_frame.set_eval_frame(None)
    try:
        return inner(*args, **kwargs)
    finally:
        eval_frame.set_eval_frame(outer)


#: Of the layout that is torch.strided, not torch.jagged.
_NESTED = "nested tensors cannot be compiled; pass x.to_padded_tensor(0.0)"


def _is_usual() -> bool:
    """Whether a call is neither traced nor forbidden: what Dynamo's own wrapper asks for."""
    return not (
        # As :func:`_is_traced` asks.
        torch._C._is_tracing()
        or getattr(_guards._TLS, "tracing_context", None) is not None
        or is_fx_tracing()
        or compiler._is_exporting_flag
        or eval_frame._stance is not _USUAL_STANCE
    )


def _is_traced() -> bool:
    """Whether this thread itself traces, and not some other one."""
    return torch._C._is_tracing() or getattr(_guards._TLS, "tracing_context", None) is not None


def _becomes_usual(gate: Gate) -> bool:
    """Whether a call is usual when no other thread compiles: until then all seem to be traced."""
    # A thread that traces may hold what the other one waits for.
    while not _is_traced() and not gate.is_mine():
        if gate.owner is not None:
            gate.wait()
        elif _is_usual():
            return True
        elif gate.owner is None and not _is_usual():
            return False
    return False


class _Lookup:
    """Dynamo's callback while it looks for a frame in its cache.

    Args:
        code: the frame that there must be code for.
        callback: what compiles new frames.
    """

    def __init__(self, code: CodeType, callback: Any) -> None:
        self._code = code
        # Dynamo finds the backend of a callback by this name, and entries of its cache by that.
        self._torchdynamo_orig_backend = callback

    def __call__(self, frame: Any, cache_entry: Any, frame_state: Any) -> Any:
        if frame.f_code is self._code:
            raise _NotCached
        return self._torchdynamo_orig_backend(frame, cache_entry, frame_state)
