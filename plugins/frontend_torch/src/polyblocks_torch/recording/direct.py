"""A graph of Dynamo -> the graph of ATen operations, in one pass, where nothing speaks against it.

AOTAutograd runs a graph twice, once to learn what it changes and aliases and once to trace it, and
both runs serve what a plain function does not do: gradients, updates of arguments, tensors that
are no plain ones. A plain function is recorded directly; whatever is met that is not plain ends
that, and AOTAutograd gets the graph. The result is the same graph, node by node.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch._dispatch.python import enable_python_dispatcher
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import _get_current_dispatch_mode

from polyblocks_torch.graphs import graph_module
from polyblocks_torch.recording.recorder import CannotRecord, Recorder, like
from polyblocks_torch.recurrent import RECURRENT
from polyblocks_torch.specs import spec_of, storage_key

logger = logging.getLogger(__name__)


def record(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> fx.GraphModule | None:
    """The ATen graph of a plain function; None where AOTAutograd must make it.

    Plain is a function of tensors that need no gradient, which calls functions of tensors, changes
    nothing but what it has made and has one name for, and returns new tensors.

    Args:
        gm: Dynamo's graph.
        example_inputs: one tensor per placeholder.
    """
    if not all(_is_plain_tensor(value) for value in example_inputs):
        return None
    if _ambient_state_matters() or not _is_plain(gm):
        return None
    # Without symbols: what has no static shape raises, and is AOTAutograd's.
    mode = FakeTensorMode()
    graph = fx.Graph()
    attributes: dict[str, Any] = {}
    recorder = Recorder(graph, mode, {}, attributes, functionalize=True)
    try:
        inputs = [_fake(mode, value) for value in example_inputs]
        with torch.no_grad(), enable_python_dispatcher(), mode, recorder:
            results = _run(gm, inputs, recorder)
        graph.output(tuple(recorder.node_of(value) for value in results))
    except Exception as error:
        # Also errors of the operations: AOTAutograd will meet and report them.
        logger.debug("left to AOTAutograd: %s: %s", type(error).__name__, error)
        return None
    return graph_module(attributes, graph)


def _is_plain_tensor(value: Any) -> bool:
    # Subclasses hide their contents; a lazy conjugate is resolved by the operations on it.
    return (
        type(value) in (torch.Tensor, torch.nn.Parameter, FakeTensor)
        and value.layout == torch.strided
        and not (value.requires_grad and torch.is_grad_enabled())
        and not (value.is_conj() or value.is_neg())
        and all(type(extent) is int for extent in (*value.shape, *value.stride()))
    )


def _fake(mode: FakeTensorMode, value: torch.Tensor) -> torch.Tensor:
    # PyTorch chooses by requires_grad how to multiply matrices, gradients enabled or not.
    with torch.inference_mode(value.is_inference()):
        if value.storage_offset() == 0:
            return like(mode, value).requires_grad_(value.requires_grad)
        # as_strided counts from the beginning of the memory.
        with mode:
            span = value.storage_offset() + spec_of(value).span
            whole = torch.empty(span, dtype=value.dtype, device=value.device)
            part = whole.as_strided(value.shape, value.stride(), value.storage_offset())
        return part.requires_grad_(value.requires_grad)


def _ambient_state_matters() -> bool:
    return (
        torch._C._is_any_autocast_enabled()
        or torch._C._functorch.peek_interpreter_stack() is not None
        or _get_current_dispatch_mode() is not None
    )


def _is_plain(gm: fx.GraphModule) -> bool:
    if any(True for _ in gm.parameters()) or any(True for _ in gm.buffers()):
        return False  # AOTAutograd makes them arguments
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        if node.op not in ("call_function", "call_method"):
            return False
        if isinstance(node.target, HigherOrderOperator) or node.target in RECURRENT:
            return False
        # A node without a tensor result sets a state: gradients on or off, a seed, a stream.
        value = node.meta.get("example_value")
        values = value if isinstance(value, (list, tuple)) else (value,)
        if not values or not all(type(item) is FakeTensor for item in values):
            return False
    return True


def _run(
    gm: fx.GraphModule, arguments: Sequence[torch.Tensor], recorder: Recorder
) -> list[torch.Tensor]:
    values: dict[fx.Node, Any] = {}
    inputs = iter(arguments)
    for number, node in enumerate(gm.graph.nodes):
        if node.op == "placeholder":
            value = next(inputs)
            made = recorder.graph.placeholder(f"arg{number}_1")
            made.meta["val"] = value
            recorder.track(value, made)
        elif node.op == "output":
            return _results(fx.map_arg(node.args[0], values.__getitem__), arguments)
        else:
            recorder.begin(node)
            args = fx.map_arg(node.args, values.__getitem__)
            kwargs = fx.map_arg(node.kwargs, values.__getitem__)
            if node.op == "call_method":
                value = getattr(args[0], str(node.target))(*args[1:], **kwargs)
            else:
                value = node.target(*args, **kwargs)
        values[node] = value
    raise CannotRecord("no output")


def _results(returned: Any, arguments: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    results = list(returned) if isinstance(returned, (list, tuple)) else [returned]
    taken = {storage_key(value) for value in arguments}
    for value in results:
        if type(value) is not FakeTensor:
            raise CannotRecord("a result that is no tensor")
        if value.requires_grad:
            raise CannotRecord("a result that requires a gradient")
        key = storage_key(value)
        if key is None or key in taken:
            raise CannotRecord("a result that is an argument, or hides what it is")
    return results
