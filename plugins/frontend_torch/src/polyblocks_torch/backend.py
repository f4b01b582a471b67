"""The backend: ``torch.compile(model, backend="polyblocks", options={"target": "cpu"})``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.exc import TorchDynamoException
from torch._dynamo.resume_execution import TORCH_DYNAMO_RESUME_IN_PREFIX
from torch._dynamo.symbolic_convert import InstructionTranslator
from torch._dynamo.utils import graph_break_reasons
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from polyblocks import driver
from polyblocks.errors import FallbackError, InputError, OptionError, PolyBlocksError, TargetError
from polyblocks.isolation.frames import with_large_frame
from polyblocks.options import CompileOptions
from polyblocks.registry.honoured_options import checked_options
from polyblocks_torch.arguments.aliased_arguments import with_overlaps
from polyblocks_torch.arguments.frozen import weights_of
from polyblocks_torch.arguments.integer_arguments import with_integers
from polyblocks_torch.arguments.number_arguments import (
    NumbersLeft,
    are_all_numbers,
    numbers_as_tensors,
)
from polyblocks_torch.arguments.numpy_scalars import scalars_as_numbers
from polyblocks_torch.compiler import compile_graph
from polyblocks_torch.elements.copies import views_again, visible_copy
from polyblocks_torch.gradients.absent_gradients import (
    absent_gradients_told,
    without_absent_gradients,
)
from polyblocks_torch.gradients.early_backward import EarlyBackward
from polyblocks_torch.gradients.inner_gradients import guarding_leaves
from polyblocks_torch.gradients.masked_stores import masks_selected
from polyblocks_torch.gradients.tangent_strides import tangents_apart
from polyblocks_torch.launch.accelerator import takes
from polyblocks_torch.location import source_location
from polyblocks_torch.partitioning.partitioned_call import BoxedCall
from polyblocks_torch.partitioning.plan import FRONTEND
from polyblocks_torch.recording import direct
from polyblocks_torch.recording.covered_windows import windows_covered
from polyblocks_torch.recording.shared_outputs import keep_wrappers, shares_alike
from polyblocks_torch.recurrent import as_loops
from polyblocks_torch.recurrent.shapes import shapes_alone
from polyblocks_torch.report import FunctionReport, GraphBreak
from polyblocks_torch.tracing.eager_frames import check_draws, reason_to_run_eagerly
from polyblocks_torch.tracing.frame_memory import check_breaks_are_allowed
from polyblocks_torch.tracing.python_kernels import operations_kept


def polyblocks_backend(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compile one graph of Dynamo.

    Dynamo's settings are the caller's here: with ``dynamic=False`` it stops after
    ``torch._dynamo.config.recompile_limit`` shapes. The decorator has no such limit.

    Args:
        gm: Dynamo's graph.
        example_inputs: one fake tensor or number per placeholder.
        options: the dictionary of compile options.
        mode: ``torch.compile``'s modes are Inductor's; only ``default`` is accepted.

    Raises:
        OptionError, TargetError, InputError, FallbackError: see :mod:`polyblocks.errors`.
    """
    if mode not in (None, "default"):
        raise OptionError(f"mode='{mode}' belongs to Inductor; pass options={{...}} instead")
    checked = checked_options(options, FRONTEND)
    report = FunctionReport("torch.compile", checked.target)
    return compile_frame(gm, example_inputs, options=checked, report=report)


@with_large_frame
@shapes_alone(False)
def compile_frame(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: CompileOptions,
    report: FunctionReport,
) -> Callable[..., Any]:
    """Compile one graph of Dynamo, forward and (where gradients are asked for) backward.

    With symbolic shapes (``torch.compile`` without ``dynamic=False``) every new shape is compiled
    by itself when it is first met.
    """
    _check_inputs(gm, example_inputs, options)
    check_draws(gm)
    scalars_as_numbers(gm)
    _record_graph_break(gm, options, report)
    reason = reason_to_run_eagerly(gm)
    if reason is not None:
        report.not_compiled(*reason, strict=options.strict_target)
        forward: Callable[..., Any] = gm.forward
        return forward
    seen = visible_copy(gm)
    if seen is not None:
        views_again(gm)
        where = source_location(seen)
        return _run_by_pytorch(gm, "indexing", options, report)(
            f"the view that a tensor without dimensions chooses{f' at {where}' if where else ''} "
            "is updated, or returned, or read after an update of what it shows; take a copy with "
            "torch.index_select"
        )
    if any(_is_symbolic(value) for value in example_inputs):
        if are_all_numbers(gm, example_inputs):
            with contextlib.suppress(NumbersLeft):
                return _compile(gm, example_inputs, options, report)
        return _SpecializedByShape(gm, options, report)
    return _compile(gm, example_inputs, options, report)


def _compile(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    options: CompileOptions,
    report: FunctionReport,
) -> Callable[..., Any]:
    call = with_overlaps(
        gm,
        example_inputs,
        lambda values: _compile_once(gm, values, options, report),
        _run_by_pytorch(gm, "overlapping arguments", options, report),
    )
    return guarding_leaves(
        gm, call, example_inputs, _run_by_pytorch(gm, "gradients", options, report)
    )


def _compile_once(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    options: CompileOptions,
    report: FunctionReport,
) -> Callable[..., Any]:
    compile_ = partial(
        compile_graph,
        name=report.name,
        options=options,
        report=report,
        # Guards do not reach what subclasses are made of.
        guarded=not any(is_traceable_wrapper_subclass(value) for value in example_inputs),
    )
    infer = partial(compile_, kind="inference")
    # A program that is looked at, and not run, keeps nothing.
    if options.freeze_weights and driver.loads_really():
        infer = partial(infer, weights=weights_of(gm, example_inputs))
    as_loops(gm)
    masks_selected(gm)
    windows_covered(gm)
    with operations_kept():
        recorded = direct.record(gm, example_inputs)
    if recorded is not None:
        return _opened(infer(recorded, example_inputs))
    failed: list[Exception] = []
    noting = partial(_noting_failures, failed=failed)
    early = EarlyBackward(report.name, options)
    backend = aot_autograd(
        fw_compiler=early.forward_compiler(
            with_integers(noting(partial(compile_, kind="forward")))
        ),
        # Nothing guards incoming gradients, nor what hooks make of saved tensors.
        bw_compiler=without_absent_gradients(
            with_integers(noting(partial(compile_, kind="backward", guarded=False)))
        ),
        inference_compiler=with_integers(noting(infer)),
        partition_fn=early.partition,
        # Updates of arguments stay in the graph, where they can be fused.
        keep_inference_input_mutations=True,
        # None here: they are applied on a cache miss, see retrace.py.
        decompositions={},
    )
    with numbers_as_tensors(), operations_kept(), tangents_apart(), absent_gradients_told():
        try:
            made: Callable[..., Any] = backend(gm, example_inputs)
        except (PolyBlocksError, TorchDynamoException, NumbersLeft):
            raise
        except Exception as error:
            if error in failed:
                raise
            first = str(error).strip().split("\n", 1)[0]
            reason = f"AOTAutograd cannot trace it ({type(error).__name__}: {first})"
            if "modified by an inplace operation" in first:
                reason = _OVERWRITTEN
            return _run_by_pytorch(gm, "autograd", options, report)(reason)
    if not shares_alike(gm, made):
        keep_wrappers(made)
    return made


def _opened(call: BoxedCall) -> Callable[..., Any]:
    """A function of arguments one after another instead of their list."""

    def opened(*args: Any) -> Any:
        return call(list(args))

    # Of the launcher's; Dynamo's wrappers keep attributes.
    opened.native_call = getattr(call, "native_call", None)  # type: ignore[attr-defined]
    return opened


def _noting_failures(compile_: Callable[..., Any], failed: list[Exception]) -> Callable[..., Any]:
    """A compiler of graphs that records its own errors, apart from PyTorch's around it."""

    def compiler(*args: Any, **options: Any) -> Any:
        try:
            return compile_(*args, **options)
        except Exception as error:
            failed.append(error)
            raise

    return compiler


#: AOTAutograd asks for all gradients at once.
_OVERWRITTEN = (
    "a gradient needs a tensor that is updated in place after it was used; PyTorch runs the "
    "function, and fails only where that gradient is asked for; update a copy"
)


def _run_by_pytorch(
    gm: fx.GraphModule, how: str, options: CompileOptions, report: FunctionReport
) -> Callable[[str], Callable[..., Any]]:
    """Report the operations of a graph that PyTorch runs, with a reason."""

    def fall_back(reason: str) -> Callable[..., Any]:
        report.not_compiled(how, reason, strict=options.strict_target)
        forward: Callable[..., Any] = gm.forward
        return forward

    return fall_back


#: So many sets of numbers are compiled for each set of shapes.
NUMBERS = 16


class _SpecializedByShape:
    """A graph with symbolic shapes: one compiled variant per set of actual shapes and numbers."""

    def __init__(self, gm: fx.GraphModule, options: CompileOptions, report: FunctionReport) -> None:
        self._gm = gm
        self._options = options
        self._report = report
        self._variants: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self._nodes = [node for node in gm.graph.nodes if node.op == "placeholder"]
        # Dynamo takes the sources away when it is done.
        self._names = [_user_name(node) for node in self._nodes]
        #: Floats, which Dynamo passes as tensors.
        self._floats = frozenset(
            i
            for i, node in enumerate(self._nodes)
            if getattr(node.meta.get("grapharg"), "pass_arg_as_tensor", False)
        )
        #: The numbers that were compiled for, by shapes.
        self._numbers: dict[tuple[Any, ...], set[tuple[Any, ...]]] = {}

    def __call__(self, *args: Any) -> Any:
        shapes: list[Any] = [torch.is_grad_enabled()]
        numbers: list[Any] = []
        for i, a in enumerate(args):
            if i in self._floats:
                # As text: NaN is itself, and 0 has a sign.
                numbers.append(repr(a.item()))
            elif isinstance(a, torch.Tensor):
                shapes.append((a.shape, a.stride()))
            else:
                numbers.append(a)
        key = (*shapes, *numbers)
        variant = self._variants.get(key)
        if variant is None:
            known = self._numbers.setdefault(tuple(shapes), set())
            if len(known) >= NUMBERS:
                left = _run_by_pytorch(self._gm, "changing numbers", self._options, self._report)
                return left(self._many(known, tuple(numbers)))(*args)
            gm = _with_floats(self._gm, {i: args[i].item() for i in self._floats})
            variant = _compile(gm, list(args), self._options, self._report)
            known.add(tuple(numbers))
            self._variants[key] = variant
        return variant(*args)

    def _many(self, known: set[tuple[Any, ...]], numbers: tuple[Any, ...]) -> str:
        places = [
            i
            for i, node in enumerate(self._nodes)
            if i in self._floats or not _is_tensor(node.meta.get("example_value"))
        ]
        counts = [len({row[k] for row in (*known, numbers)}) for k in range(len(numbers))]
        place = places[max(range(len(counts)), key=counts.__getitem__)]
        read = next((source_location(user) for user in self._nodes[place].users), None)
        where = f", read at {read}," if read else ""
        return (
            f"{self._names[place]}{where} shapes the program or chooses what it computes, and has "
            f"had more than {NUMBERS} values, each of which is compiled by itself; pass a tensor"
        )


def _with_floats(gm: fx.GraphModule, values: Mapping[int, float]) -> fx.GraphModule:
    """A graph for the values of its floats."""
    if not values:
        return gm
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    graph.output(graph.graph_copy(gm.graph, copies))
    for i, old in enumerate(node for node in gm.graph.nodes if node.op == "placeholder"):
        for user in list(copies[old].users) if i in values else ():
            if user.op == "call_method" and user.target == "item":
                user.replace_all_uses_with(values[i])  # type: ignore[arg-type]
                graph.erase_node(user)
    return fx.GraphModule(gm, graph)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return any(not isinstance(n, int) for n in (*value.shape, *value.stride()))
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


def _check_inputs(
    gm: fx.GraphModule, example_inputs: Sequence[Any], options: CompileOptions
) -> None:
    names = [n for n in gm.graph.nodes if n.op == "placeholder"]
    places: dict[torch.device, str] = {}
    for node, value in zip(names, example_inputs, strict=False):
        if not isinstance(value, torch.Tensor):
            continue
        name = _user_name(node)
        if value.device.type != "cpu" and not takes(options, value.device):
            raise TargetError(
                f"{name} is on {value.device}, but target '{options.target}' takes tensors on "
                f"the CPU; pass {name}.cpu() or choose another target"
            )
        places.setdefault(value.device, name)
        if value.layout != torch.strided:
            raise InputError(
                f"{name} has layout {value.layout}, but only strided tensors can be compiled; "
                f"pass {name}.to_dense()"
            )
    if len(places) > 1:
        found = ", ".join(f"{name} on {device}" for device, name in places.items())
        raise InputError(
            f"the tensors are in several places: {found}; expected all on the CPU or all on one "
            "device; move them to one with .to(...)"
        )


def _user_name(node: fx.Node) -> str:
    """``L['x']`` -> ``x``; parameters of a module get their path."""
    argument = node.meta.get("grapharg")
    source = getattr(argument, "source", None)
    text = source.name if source is not None else str(node.target)
    text = text() if callable(text) else text
    return text.removeprefix("L['").replace("']", "", 1) if text.startswith("L['") else text


def _record_graph_break(
    gm: fx.GraphModule, options: CompileOptions, report: FunctionReport
) -> None:
    reason = getattr(gm, "compile_subgraph_reason", None)
    if getattr(reason, "graph_break", False):
        check_breaks_are_allowed()
    else:
        # A break before the first operation has no graph.
        reason = _break_before() if options.strict_target else None
    if reason is None:
        return
    row = GraphBreak.of(reason)
    if options.strict_target:
        raise FallbackError(
            f"graph break ({row.reason}); strict_target forbids that Python runs the rest",
            location=row.location or None,
        )
    report.graph_break(row)


def _break_before() -> Any:
    """The break after which Dynamo traces the rest of a function; None if it traces from the start.

    With ``torch.compile`` alone: the decorator forbids breaks.
    """
    code = InstructionTranslator.current_tx().f_code
    if not code.co_name.startswith(TORCH_DYNAMO_RESUME_IN_PREFIX):
        return None
    alike = [
        reason
        for reason in graph_break_reasons
        if any(frame.filename == code.co_filename for frame in reason.user_stack)
    ]
    return alike[-1] if alike else None
