"""Arguments that share memory with updated ones.

AOTAutograd makes one argument of those that overlap, and bakes in where each begins; arguments that
do not overlap when a graph is compiled are taken for separate ones. Dynamo guards neither, only
which arguments are the same tensor. Here each call asks; there is one variant for each way to lie.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import combinations
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from torch import fx

from polyblocks.runtime.source import Source
from polyblocks_torch.specs import memory_key, storage_key

Call = Callable[..., Any]

#: So many ways to lie are compiled; others are PyTorch's.
VARIANTS = 8

#: Largest number of arguments whose pairs are compared one by one.
_FEW = 6

#: Where the arguments of overlapping pairs lie; empty where none overlap.
_Pattern = tuple[tuple[int, ...], ...]


def with_overlaps(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    compile_: Callable[[Sequence[Any]], Call],
    left: Callable[[str], Call],
) -> Call:
    """Compile a graph, for each way in which its arguments overlap; as it is if none is updated.

    Args:
        gm: a graph of Dynamo.
        example_inputs: one value per placeholder.
        compile_: compiles it for such values.
        left: gives what PyTorch runs instead, and takes the reason.
    """
    nodes = [node for node in gm.graph.nodes if node.op == "placeholder"]
    inputs = [_real(node, value) for node, value in zip(nodes, example_inputs, strict=True)]
    tensors = {i: None for i, value in enumerate(inputs) if _has_memory(value)}
    changing = {i: None for i, node in enumerate(nodes) if i in tensors and _is_updated(node)}
    if not changing or len(tensors) < 2:
        return compile_(example_inputs)
    gives_views = _gives_views(gm)

    def compiled_for(
        values: Sequence[Any], overlapping: Sequence[tuple[int, int]], given: Any
    ) -> Call:
        if _are_mixed(values, overlapping):
            return left(_MIXED)
        if overlapping and gives_views:
            return left(_VIEWS)
        return left(_MANY) if len(variants) >= VARIANTS else compile_(given)

    overlapping = _overlapping(inputs, tensors, changing)
    pattern = _pattern(inputs, overlapping)
    variants: dict[_Pattern, Call] = {}
    first = variants[pattern] = compiled_for(inputs, overlapping, example_inputs)

    def dispatch(args: tuple[Any, ...]) -> Any:
        overlapping = _overlapping(args, tensors, changing)
        found = _pattern(args, overlapping)
        call = variants.get(found)
        if call is None:
            call = variants[found] = compiled_for(args, overlapping, list(args))
        return call(*args)

    if pattern:
        return lambda *args: dispatch(args)
    return _written(first, dispatch, inputs, tensors, changing)


_MIXED = (
    "some arguments are updated that share memory with others of another dtype, storage, sign or "
    "conjugation; pass copies"
)
#: AOTAutograd makes the views from another argument than the program, and so a row of ``x`` of one
#: of ``x.t()``.
_VIEWS = (
    "some arguments are updated that overlap others, and views of arguments are results; pass "
    "copies, or return copies"
)
_MANY = (
    f"arguments that are updated overlap others in more than {VARIANTS} ways; pass copies, or "
    "tensors that do not overlap"
)


def _written(
    call: Call,
    other: Call,
    inputs: Sequence[Any],
    tensors: Collection[int],
    changing: Collection[int],
) -> Call:
    """``call`` where the arguments do not overlap, else ``other``."""
    source = Source("*args")
    compiled = source.name("compiled", call)
    others = source.name("other", other)
    if len(changing) * (len(tensors) - 1) <= _FEW:
        for i in tensors:
            source.add(f"x{i} = args[{i}].data_ptr()")
        apart = [
            f"(x{u} + {_nbytes(inputs[u])} <= x{v} or x{v} + {_nbytes(inputs[v])} <= x{u})"
            for u, v in combinations(tensors, 2)
            if u in changing or v in changing
        ]
        source.add(f"if {' and '.join(apart)}:")
    else:
        sizes = [_nbytes(inputs[i]) for i in tensors]
        apart_ = source.name("apart", _are_apart(list(tensors), sizes))
        source.add(f"if {apart_}(args):")
    source.add(f"return {compiled}(*args)", depth=2)
    source.add(f"return {others}(args)")
    return source.build("overlaps")


def _are_apart(checked: Sequence[int], sizes: Sequence[int]) -> Callable[[tuple[Any, ...]], bool]:
    """Whether no two of many arguments overlap."""
    pick, count = itemgetter(*checked), len(checked)
    spans = np.array(sizes)

    def are_apart(args: tuple[Any, ...]) -> bool:
        begins = np.fromiter(map(torch.Tensor.data_ptr, pick(args)), np.int64, count)
        order = begins.argsort()
        ends = (begins + spans)[order]
        return bool((ends[:-1] <= begins[order][1:]).all())

    return are_apart


def _real(node: fx.Node, value: Any) -> Any:
    """The graph's argument; ``value`` may be a fake of it."""
    if type(value) in (torch.Tensor, torch.nn.Parameter):
        return value
    return getattr(node.meta.get("grapharg"), "example", None)


def _is_updated(node: fx.Node) -> bool:
    """Whether tracing has changed an argument, or one that shares its memory."""
    fake = getattr(node.meta.get("grapharg"), "fake_tensor", None)
    try:
        return fake is not None and fake._version > 0
    except RuntimeError:  # tensors of inference mode do not say
        return True


def _gives_views(gm: fx.GraphModule) -> bool:
    """Whether results that are not arguments share memory with arguments."""
    arguments, results = [], []
    for node in gm.graph.nodes:
        value = node.meta.get("example_value")
        if node.op == "placeholder" and isinstance(value, torch.Tensor):
            arguments.append(value)
        elif node.op == "output":
            results = [n for n in node.all_input_nodes if n.op != "placeholder"]
    values = [node.meta.get("example_value") for node in results]
    storages = {memory_key(value) for value in arguments} - {None}
    return any(memory_key(value) in storages for value in values)


def _has_memory(value: Any) -> bool:
    plain = type(value) in (torch.Tensor, torch.nn.Parameter)
    return plain and value.layout == torch.strided and value.numel() > 0


def _nbytes(value: torch.Tensor) -> int:
    last = sum((n - 1) * s for n, s in zip(value.shape, value.stride(), strict=True))
    return (last + 1) * value.element_size()


def _overlapping(
    args: Sequence[Any], tensors: Collection[int], changing: Collection[int]
) -> list[tuple[int, int]]:
    """Pairs of tensors that share bytes and include one that changes."""
    found = []
    started: list[tuple[int, int]] = []
    for begin, i in sorted((args[i].data_ptr(), i) for i in tensors):
        started = [(end, k) for end, k in started if end > begin]
        found += [(i, k) for _, k in started if i in changing or k in changing]
        started.append((begin + _nbytes(args[i]), i))
    return found


def _pattern(args: Sequence[Any], overlapping: Sequence[tuple[int, int]]) -> _Pattern:
    together = sorted({i for pair in overlapping for i in pair})
    return tuple(
        (
            i,
            args[i].storage_offset(),
            args[i].untyped_storage().nbytes(),
            min(k for k in together if _share_storage(args[i], args[k])),
            *(() if args[i]._base is None else args[i]._base.shape),
        )
        for i in together
    )


def _share_storage(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.untyped_storage()._cdata == b.untyped_storage()._cdata


def _are_mixed(args: Sequence[Any], overlapping: Sequence[tuple[int, int]]) -> bool:
    """Whether tensors that share bytes are no views of one another, or say other things of them."""
    return any(
        args[i].dtype != args[k].dtype
        or storage_key(args[i]) is None
        or storage_key(args[i]) != storage_key(args[k])
        for i, k in overlapping
    )
