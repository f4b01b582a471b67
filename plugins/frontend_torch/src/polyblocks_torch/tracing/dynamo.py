"""Dynamo's settings for one decorated function, applied only while Dynamo compiles a frame.

``torch.compile(dynamic=False)`` would change two settings at every call, which costs more than
the rest of Dynamo's work for a small function. Here Dynamo's own callback is wrapped instead: it
runs once per new frame or variant.
"""

from __future__ import annotations

import gc
import logging
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import CodeType
from typing import Any

import torch
import torch._dynamo
from torch._C._dynamo.eval_frame import _FrameAction as FrameAction
from torch._C._dynamo.eval_frame import _FrameExecStrategy as FrameExecStrategy
from torch._dynamo import config
from torch._dynamo.eval_frame import OptimizeContext
from torch._dynamo.exc import BackendCompilerFailed, TorchDynamoException, Unsupported, UserError
from torch._dynamo.symbolic_convert import TensorifyState
from torch._dynamo.types import ConvertFrameReturn
from torch._dynamo.utils import ExactWeakKeyDictionary, counters, graph_break_reasons
from torch.autograd import forward_ad
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.utils import _pytree as pytree

from polyblocks.errors import FallbackError, InputError, PolyBlocksError
from polyblocks_torch.elements.traced import elements_gathered
from polyblocks_torch.location import is_of_user
from polyblocks_torch.recurrent.shapes import shapes_alone
from polyblocks_torch.report import Frame, FunctionReport, GraphBreak, one_line
from polyblocks_torch.tracing.cached_calls import CachedCalls, LeftToPython
from polyblocks_torch.tracing.collection import collection_paused
from polyblocks_torch.tracing.dynamo_logs import suppressed_errors, without_logs
from polyblocks_torch.tracing.frame_memory import FrameMemory
from polyblocks_torch.tracing.gate import Gate
from polyblocks_torch.tracing.logging_calls import FUNCTIONS
from polyblocks_torch.tracing.python_kernels import made_without_looking
from polyblocks_torch.tracing.traced_counts import counts_of_length
from polyblocks_torch.tracing.traced_modules import traceable
from polyblocks_torch.tracing.value_variants import ValueVariants

logger = logging.getLogger("polyblocks")

#: One variant per shape, and never a limit after which Python takes over without a word.
SETTINGS: dict[str, Any] = {
    "assume_static_by_default": True,
    "recompile_limit": sys.maxsize,
    "accumulated_recompile_limit": sys.maxsize,
    "suppress_errors": False,
    # Counters of modules.
    "allow_unspec_int_on_nn_module": True,
    # Gradients that the function takes, and those of them, are parts of its graph.
    "trace_autograd_ops": True,
    # They become loops, see recurrent/.
    "allow_rnn": True,
    # NumPy's generators draw NumPy's numbers: Python runs them.
    "use_numpy_random_stream": True,
    # Two calls of Python in each call, for a range in traces around what takes the arguments.
    "record_runtime_overhead": False,
}

#: So often a frame is tried that Dynamo fails with: it may have been the arguments' fault.
TRIES = 3

#: Why Python runs a function that torch.func calls.
_TRANSFORMED = (
    "torch.func (grad, vmap, ...) calls it with tensors of its own; compile the transformed "
    "function instead: polyblocks_jit_torch(torch.func.grad(function))"
)


def optimize(
    backend: Callable[..., Any], *, strict: bool, report: FunctionReport
) -> Callable[[Any], Any]:
    """``torch.compile`` of a backend, with our settings.

    Args:
        backend: takes a Dynamo graph and example inputs.
        strict: a graph break is an error.
        report: receives the frames.

    Returns:
        A function that wraps functions, methods, modules and module classes.

    Raises:
        InputError: the environment switches Dynamo off.
    """
    context = torch._dynamo.optimize(backend, nopython=strict, isolate_recompiles=True)
    if not isinstance(context, OptimizeContext):
        raise InputError(
            "Dynamo, which captures functions for polyblocks, is switched off by "
            "TORCHDYNAMO_DISABLE; unset it, or pass execution_backend='std' to polymage_jit_torch"
        )
    assert callable(context.callback), "Dynamo has a callback for new frames"
    gate = Gate(context.enter_exit_hooks)
    cached = CachedCalls(gate, partial(report.not_compiled, strict=strict))
    context.callback = _Converter(context.callback, strict, report, gate, cached)
    return lambda function: cached.wrap(context, context(function))


class _Converter:
    """Dynamo's callback for a new frame, under our settings, with our errors and our report."""

    def __init__(
        self,
        inner: Callable[..., Any],
        strict: bool,
        report: FunctionReport,
        gate: Gate,
        cached: CachedCalls,
    ) -> None:
        # Dynamo finds the backend of a callback by this name.
        self._torchdynamo_orig_backend = inner
        self._strict = strict
        self._report = report
        self._gate = gate
        self._cached = cached
        self._memory = FrameMemory()
        self._values = ValueVariants()
        #: Whether it is said that torch.func calls the function.
        self._transformed = False
        #: How often Dynamo has failed with a frame's code, one time after another; by identity,
        #: since code that Dynamo generates may hold constants without a hash.
        self._failures = ExactWeakKeyDictionary()

    @elements_gathered()
    def __call__(self, frame: Any, cache_entry: Any, frame_state: Any) -> Any:
        code = frame.f_code
        location = f"{code.co_filename}:{code.co_firstlineno}"
        if self._failures.get(code, 0) >= TRIES:
            return _by_python()
        refused = self._values.refused(frame)
        if refused is not None:
            reason, where = refused
            if self._strict:
                raise _forbidden(code, reason, where)
            return self._run_eagerly(code, reason, where)
        # A function without tensor work may have some for other arguments; Dynamo would never look
        # at it again.
        empty = {"allow_empty_graphs": self._cached.begins_with(code) and _has_tensors(frame)}
        breaks, reasons = set(counters["graph_break"]), len(graph_break_reasons)
        self._gate.close()
        stays = False
        # PyTorch forgets this where a compilation fails only.
        TensorifyState.clear()
        try:
            with (
                config.patch(SETTINGS | _warnings_after() | empty),
                traceable(),
                counts_of_length(self._strict),
                shapes_alone(True),
                _transforms_left(),
                made_without_looking(),
                without_logs(),
                collection_paused(),
                suppressed_errors() as suppressed,
            ):
                result = self._memory.converted(
                    frame,
                    lambda: self._torchdynamo_orig_backend(frame, cache_entry, frame_state),
                )
            guarded = getattr(result, "guarded_code", None)
            if guarded is not None:
                self._values.compiled(frame, guarded.code)
            whole = self._cached.compiled(
                code,
                None if guarded is None else guarded.code,
                None if guarded is None else guarded.guard_manager,
            )
            # Dynamo keeps the code when this returns: a thread that looks before compiles it too.
            stays = whole and self._gate.is_called
        except BackendCompilerFailed as error:
            inner = error.inner_exception
            if isinstance(inner, PolyBlocksError):
                raise inner.with_traceback(None) from None
            raise
        except (Unsupported, UserError) as error:
            if not self._strict:
                raise
            raise FallbackError(
                f"graph break ({_reason(error)}); strict_target forbids that Python runs the rest",
                op=code.co_name,
                location=_location_of(error) or location,
            ) from error
        except PolyBlocksError:
            raise
        except Exception as error:
            # Besides Dynamo's own errors, those of what it calls, such as a size that a shape rule
            # asks for and that depends on data.
            where, reason = _location_of(error) or location, _failure(error)
            _forget(error)
            if self._strict:
                raise _forbidden(code, reason, where) from error
            self._failures[code] = self._failures.get(code, 0) + 1
            return self._run_eagerly(code, reason, where)
        finally:
            if not stays:
                self._gate.open()
        if code in self._failures:
            self._failures[code] = 0
        if isinstance(result, ConvertFrameReturn):
            found = [one_line(b) for b in counters["graph_break"] if b not in breaks]
            found += [_suppressed_reason(error) for error in suppressed]
            self._tell_breaks(reasons)
            self._record(frame, location, result, found + _untraceable_arguments(frame))
        return result

    def _tell_breaks(self, first: int) -> None:
        """Report where graphs end, from a number on among the reasons that Dynamo keeps."""
        for why in graph_break_reasons[first:]:
            # Also where nothing was computed before it, so that there is no graph to tell.
            self._report.graph_break(GraphBreak.of(why))

    def _run_eagerly(self, code: CodeType, reason: str, where: str) -> ConvertFrameReturn:
        """Let Python run a frame, this time.

        Args:
            code: the frame's.
            reason: why; reported once.
            where: ``file:line``.
        """
        self._report.frame(Frame(code.co_name, where, False, reason))
        if self._cached.begins_with(code):
            raise LeftToPython from None
        return _by_python()

    def _record(
        self, frame: Any, location: str, result: ConvertFrameReturn, breaks: list[str]
    ) -> None:
        function = frame.f_code.co_name
        if result.guarded_code is not None:
            self._report.frame(Frame(function, location, True))
        elif torch._C._functorch.peek_interpreter_stack() is not None:
            if not self._transformed:
                self._transformed = True
                self._report.not_compiled("torch.func", _TRANSFORMED, location)
        elif result.skip_reason and not _is_harmless(frame, result.skip_reason):
            # Dynamo says why in its counters only.
            reason = breaks[-1] if breaks else one_line(result.skip_reason)
            self._report.frame(Frame(function, location, False, reason))


def _forbidden(code: CodeType, reason: str, where: str) -> FallbackError:
    """The error that strict_target makes of a frame that Python would run."""
    message = f"{reason}; strict_target forbids that Python runs it"
    return FallbackError(message, op=code.co_name, location=where)


def _warnings_after() -> dict[str, Any]:
    """A warning or a print does not end a graph, see logging_calls.py."""
    known = set(config.reorderable_logging_functions)
    return {"reorderable_logging_functions": known | FUNCTIONS}


@contextmanager
def _transforms_left() -> Iterator[None]:
    """Leave the transformations of torch.func that an error has kept open."""
    depth, level = torch._C._functorch.get_dynamic_layer_stack_depth(), forward_ad._current_level
    try:
        yield
    finally:
        torch._C._functorch.pop_dynamic_layer_stack_and_undo_to_depth(depth)
        while forward_ad._current_level > level:
            forward_ad.exit_dual_level()


#: Parts of Dynamo's reasons to leave frames to Python that hold no tensor work.
_NO_WORK = ("no tensor", "Dynamo-generated", "skipfile", "namedtuple constructor")


def _is_harmless(frame: Any, reason: str) -> bool:
    """Whether nothing falls back when Python runs a frame."""
    file = frame.f_code.co_filename
    of_python = file.startswith(sysconfig.get_path("stdlib")) and "-packages" not in file
    return any(part in reason for part in _NO_WORK) or (of_python and not _has_tensors(frame))


def _has_tensors(frame: Any) -> bool:
    leaves = pytree.tree_leaves(dict(frame.f_locals))
    return any(isinstance(value, torch.Tensor) for value in leaves)


def _untraceable_arguments(frame: Any) -> list[str]:
    """Why PyTorch cannot trace a frame with its arguments, where it keeps the reason to itself."""
    for name, value in frame.f_locals.items():
        for tensor in pytree.tree_leaves(value):
            if isinstance(tensor, torch.Tensor) and tensor.is_quantized:
                dtype = str(tensor.dtype).removeprefix("torch.")
                return [f"{name} is a quantized tensor ({dtype}), which PyTorch cannot trace"]
    return []


def _suppressed_reason(error: Exception) -> str:
    reason, where = one_line(str(error)).rstrip("."), _location_of(error)
    reason += f", at {where}" if where else ""
    if "graph break in loop" in str(error):
        reason += ", in a loop: Dynamo ends no graph there"
    return reason


def _by_python() -> ConvertFrameReturn:
    """Python runs a frame, this time, and those that it calls: they may hold what Dynamo met."""
    strategy = FrameExecStrategy(FrameAction.SKIP, FrameAction.SKIP)
    return ConvertFrameReturn(frame_exec_strategy=strategy, apply_to_code=False)


def _forget(error: BaseException) -> None:
    """Let go of what was being traced.

    It holds contexts that are open, each of which sets states of PyTorch back where it ends: now,
    and not when garbage is collected in the middle of another call.
    """
    chain: BaseException | None = error
    while chain is not None:
        traceback.clear_frames(chain.__traceback__)
        chain.__traceback__ = None
        chain = chain.__cause__ or chain.__context__
    with _transforms_left():
        gc.collect()


def _failure(error: Exception) -> str:
    """Why Dynamo has failed, in one line: the error that an operation gave, if there is one."""
    met = re.search(r": got (.+)$", str(error).strip(), re.MULTILINE)
    if met:
        reason = met[1]
    elif isinstance(error, (TorchDynamoException, GuardOnDataDependentSymNode)):
        reason = _reason(error)
    else:
        reason = f"{type(error).__name__}: {_reason(error)}"
    return f"Dynamo cannot trace it: {reason}"[:300]


def _reason(error: Exception) -> str:
    """An error's message in one line; of data-dependent expressions without their hints."""
    line = one_line(str(error) or type(error).__name__)
    depends = re.search(r"Could not .*data-dependent expression .*?(?= \(unhinted: | *$)", line)
    if depends is None:
        return line
    return f"{depends[0]}: a size, or what Python branches on, is a value of a tensor"


def _location_of(error: Exception) -> str | None:
    stack = getattr(error, "real_stack", None) or ()
    frames = [f for f in stack if is_of_user(f.filename)] or list(stack)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None
