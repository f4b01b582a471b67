"""The autograd functions of plain graphs, without the steps that only other graphs need.

Around the two graphs of a function AOTAutograd updates arguments, makes views of them anew, wraps
and unwraps subclasses, hands on the states of random numbers and integers, and asks at each call
what of that there is. Where there is nothing of it, that is most of the time of a small call. Here
the same calls are generated for one graph. Whatever is unusual about a call, such as gradients that
are differentiated again, goes AOTAutograd's way.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._dynamo import eval_frame
from torch._functorch._aot_autograd.runtime_wrappers import _should_disable_saved_tensors_hooks
from torch._functorch._aot_autograd.schemas import OutputType, ViewAndMutationMeta

from polyblocks.runtime.source import Source
from polyblocks_torch.launch.graph_call import GraphCall
from polyblocks_torch.launch.launcher import boxed

_FRESH = (OutputType.non_alias, OutputType.unsafe_view_alias)


def is_plain(function: Any, metadata: ViewAndMutationMeta) -> bool:
    """Whether the two graphs of a function take and return tensors and do nothing else.

    Args:
        function: AOTAutograd's subclass of ``torch.autograd.Function``.
        metadata: of its graphs.
    """
    updates = (
        metadata.num_mutated_inp_runtime_indices
        or metadata.mutated_graph_handled_indices_seen_by_autograd
        or metadata.indices_of_inputs_that_requires_grad_with_mutations_in_bw
    )
    aliases = metadata.num_outputs_aliased or metadata.num_intermediate_bases
    states = (
        metadata.num_graphsafe_rng_states
        or metadata.is_rng_op_functionalized
        or metadata.tokens
        or metadata.num_backward_tokens
        or metadata.grad_enabled_mutation is not None
    )
    no_tensors = (
        function.maybe_subclass_metadata is not None
        or function.num_symints_saved_for_bw
        or metadata.num_opaque_objects_saved_for_bw
        or metadata.dynamic_outputs
        or metadata.dynamic_saved_tensors_idxs
        or any(
            info.output_type not in _FRESH or not issubclass(info.raw_type, torch.Tensor)
            for info in metadata.output_info
        )
    )
    return not (updates or aliases or states or no_tensors or _should_disable_saved_tensors_hooks())


def call_plainly(
    function: Any,
    theirs: Callable[..., Any],
    metadata: ViewAndMutationMeta,
    detached: Sequence[int],
) -> Callable[[list[Any]], Any]:
    """Generate the calls of a plain function, see :func:`is_plain`.

    Args:
        function: its ``forward`` and ``backward`` are replaced.
        theirs: AOTAutograd's wrapper around it, of the list of arguments.
        metadata: of its graphs.
        detached: arguments that never need gradients.

    Returns:
        The function to call in place of ``theirs``. It has ``native_call`` as
        :func:`polyblocks_torch.launch.launcher.make_call` does.
    """
    count = len(metadata.input_info)
    call: Callable[..., Any] | None = None

    def run(args: list[Any]) -> Any:
        nonlocal call
        if call is not None:
            return call(*args)
        # Objects that stand for hooks of compiled autograd are of no other type later.
        plain = len(args) == count and all(
            type(x) in (torch.Tensor, torch.nn.Parameter) for x in args
        )
        results = theirs(args)
        if plain:
            # Not while the function is compiled, with tensors that have no memory.
            forward, backward = _forward(function, metadata), _backward(function, metadata)
            function.forward, function.backward = staticmethod(forward), staticmethod(backward)
            call = _call(function, theirs, count, detached)
        return results

    def native_call(_: Any) -> GraphCall | None:
        return None if call is None else GraphCall(call, len(metadata.output_info))

    run.native_call = native_call  # type: ignore[attr-defined]
    return boxed(run)


def _call(
    function: Any, theirs: Callable[..., Any], count: int, detached: Sequence[int]
) -> Callable[..., Any]:
    """A function of the arguments, one after another."""
    names = [f"a{k}" for k in range(count)]
    source = Source(", ".join(names))
    c, profiler = source.name("c", torch._C), source.name("profiler", torch.autograd.profiler)
    source.add(f"if {profiler}._is_profiler_enabled or not {c}.is_grad_enabled() or \\")
    source.add(f"{c}._are_functorch_transforms_active():", 3)
    source.add(f"return {source.name('theirs', theirs)}([{', '.join(names)}])", 2)
    evaluate = source.name("evaluate", eval_frame.set_eval_frame)
    source.add(f"outer, replays = {evaluate}(None), {c}._is_view_replay_enabled()")
    source.add(f"{c}._set_view_replay_enabled(True)")
    source.add("try:")
    # ``torch.autograd.Function.apply`` calls it where nothing is transformed.
    apply = source.name("apply", super(torch.autograd.Function, function).apply)
    alive = source.name("alive", torch._C._functorch.unwrap_if_dead)
    given = [f"{n}.detach()" if k in detached else f"{alive}({n})" for k, n in enumerate(names)]
    source.add(f"return {apply}({', '.join(given)})", 2)
    source.add("finally:")
    source.add(f"{c}._set_view_replay_enabled(replays)", 2)
    source.add(f"{evaluate}(outer)", 2)
    return _built(source, "gradients")


def _forward(function: Any, metadata: ViewAndMutationMeta) -> Callable[..., Any]:
    """``forward``, which keeps in ``ctx`` what AOTAutograd's ``backward`` looks for."""
    source = Source("ctx, *args")
    source.add("ctx.set_materialize_grads(False)")
    reference = source.name("ref", weakref.ref)
    asked = [i for i, info in enumerate(metadata.input_info) if info.requires_grad]
    noted = ", ".join(f"{reference}(args[{i}])" for i in asked)
    # Of :mod:`polyblocks_torch.gradients.second_gradients`.
    source.add(f"ctx.differentiable = [{noted}]")
    graph = function.compiled_fw
    native = getattr(graph, "native_call", None)
    native = native and native(lambda *args: graph(list(args)))
    whole = f"results = {source.name('graph', graph)}(list(args))"
    if native is not None:
        # Machine code shows no range to a profiler.
        profiler = source.name("profiler", torch.autograd.profiler)
        source.add(f"if {profiler}._is_profiler_enabled:")
        source.add(whole, 2)
        source.add("else:")
        source.add(f"results = {source.name('native', native.call)}(*args)", 2)
    else:
        source.add(whole)
    checked = _saved(metadata.tensors_saved_for_backwards_with_vc_check_slice)
    unchecked = _saved(metadata.tensors_saved_for_backwards_no_vc_check_slice)
    source.add("saved = [x.detach() if x._is_view() else x for x in results" + f"[{checked}]]")
    source.add("ctx.save_for_backward(*saved)")
    source.add(
        "ctx._tensors_no_vc_check = [x.detach() if x._is_view() else x for x in results"
        f"[{unchecked}]]"
    )
    source.add("ctx.symints = ctx.opaque_objects = ()")
    returned = []
    for k, info in enumerate(metadata.output_info):
        source.add(f"r{k} = results[{k}]")
        if info.output_type == OutputType.unsafe_view_alias:
            view = source.name("view", torch.ops.aten._unsafe_view.default)
            source.add(f"r{k} = {view}(r{k}, r{k}.shape)")
        returned.append(f"r{k}")
    fixed = [f"r{k}" for k, info in enumerate(metadata.output_info) if not info.requires_grad]
    if fixed:
        source.add(f"ctx.mark_non_differentiable({', '.join(fixed)})")
    source.add("ctx._materialize_non_diff_grads = False")
    source.add(f"return ({', '.join(returned)},)")
    return _built(source, "forward")


def _saved(part: slice) -> str:
    return ":".join("" if end is None else str(end) for end in (part.start, part.stop))


def _backward(function: Any, metadata: ViewAndMutationMeta) -> Callable[..., Any]:
    """``backward``, for gradients that have the strides of the results."""
    source = Source("ctx, gradients")
    c, theirs = source.name("c", torch._C), source.name("theirs", function.backward)
    graph = source.name("function", function)
    source.add(f"graph = {graph}.compiled_bw")
    unusual = (
        "graph is None",
        "type(gradients) is not list",
        f"{c}.is_grad_enabled()",
        f"{c}._functorch.peek_interpreter_stack() is not None",
        f"{c}._get_deterministic_algorithms()",
        f"{c}._autograd._get_current_graph_task_keep_graph()",
    )
    source.add(f"if {' or '.join(unusual)}:")
    source.add(f"return {theirs}(ctx, gradients)", 2)
    taken = [k for k, info in enumerate(metadata.output_info) if info.requires_grad_for_backward]
    for k, tangent in zip(taken, metadata.subclass_tangent_meta, strict=True):
        layout: Any = tangent.memory_format
        source.add(f"g{k} = gradients[{k}]")
        if layout.memory_format is not None:
            name = source.name("layout", layout.memory_format)
            alike = f"g{k}.is_contiguous(memory_format={name})"
        else:
            alike = (
                f"g{k}.stride() == {tuple(layout.stride)} and g{k}.shape == {tuple(layout.size)}"
            )
        tensor = source.name("tensor", torch.Tensor)
        source.add(f"if g{k} is not None and not (type(g{k}) is {tensor} and {alike}):")
        source.add(f"return {theirs}(ctx, gradients)", 2)
    passed = ", ".join(f"g{k}" for k in taken)
    source.add(f"arguments = [*ctx.saved_tensors, *ctx._tensors_no_vc_check, {passed}]")
    source.add("gradients.clear()")
    # Nothing but the list, which the graph empties, keeps them alive.
    source.add(f"del {passed}") if passed else None
    source.add("ctx.maybe_clear_saved_tensors()")
    evaluate = source.name("evaluate", eval_frame.set_eval_frame)
    source.add(f"outer = {evaluate}(None)")
    source.add("try:")
    # Without the wrapper that keeps Dynamo from looking.
    source.add("graph = getattr(graph, '_torchdynamo_orig_callable', graph)", 2)
    # The variables of the thread that asked for gradients.
    source.add(f"if {c}._is_key_in_tls('context'):", 2)
    source.add(f"context = {c}._get_obj_in_tls('context')", 3)
    source.add("if context is not None:", 3)
    source.add("return context.run(graph, arguments)", 4)
    source.add("return graph(arguments)", 2)
    source.add("finally:")
    source.add(f"{evaluate}(outer)", 2)
    return _built(source, "backward")


def _built(source: Source, label: str) -> Callable[..., Any]:
    made = source.build(label)
    eval_frame.skip_code(made.__code__)
    return made
