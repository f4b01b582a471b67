"""Memory of arrays: elements that share a place (sliding windows), and places by number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from polyblocks.program import ArraySpec
from polyblocks_torch.specs import is_dense, problem_with, spec_of

aten = torch.ops.aten

Call = Callable[..., fx.Node]
Constant = Callable[[torch.Tensor], fx.Node]


def may_overlap(spec: ArraySpec) -> bool:
    """Whether two elements may be in one place; extents that are repeated (stride 0) apart."""
    return strides_overlap(spec.shape, spec.strides)


def strides_overlap(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """As :func:`may_overlap`, of an array of this shape."""
    reach = 0
    for stride, extent in sorted(zip(strides, shape, strict=True)):
        if extent == 1 or stride == 0:
            continue
        if stride <= reach:
            return True
        reach += (extent - 1) * stride
    return False


def share_places(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether two elements may be in one place, also by repetition."""
    pairs = list(zip(shape, strides, strict=True))
    repeated = any(extent > 1 and stride == 0 for extent, stride in pairs)
    return 0 not in shape and (repeated or strides_overlap(shape, strides))


def read_memory_of_views(
    graph: fx.Graph,
    call: Call,
    constant: Constant,
    root_of: Callable[[fx.Node], fx.Node],
    reject: Callable[[str, fx.Node], None],
) -> list[tuple[fx.Node, fx.Node]]:
    """Let each ``as_strided`` be one of memory that the graph computes, in place.

    It reads the memory that its operand is a view of, which is lost where views are values. Its
    replacement keeps the base in its metadata: it still shares memory.

    Args:
        graph: a functional graph.
        call: adds an operation, at the insertion point of the graph.
        constant: adds a constant.
        root_of: what a node is a view of.
        reject: takes the reason and the node where the memory is of no value of the graph.

    Returns:
        The replaced node and its replacement.
    """
    replaced = []
    for node in list(graph.nodes):
        if node.target in (aten.as_strided.default, aten.as_strided_scatter.default):
            args: tuple[Any, ...] = node.args
        elif node.target in _VIEW_STORED_INTO:
            # Overlapping elements overlap in the result too: a store is visible in all of them.
            args = _stored_in_memory(graph, node, call)
        else:
            continue
        if not args:
            continue
        scatters = node.target is not aten.as_strided.default
        root = args[0] if scatters else root_of(args[0])
        values: list[Any] = [n.meta.get("val") for n in (node, args[0], root)]
        if any(problem_with(v) is not None for v in values):
            continue
        value, viewed, base = values
        if base.dtype != value.dtype:
            continue
        *rest, size, strides = args[1 : 3 + scatters]
        given = args[3 + scatters] if len(args) > 3 + scatters else None
        start = viewed.storage_offset() if given is None else given
        offset = int(start) - int(base.storage_offset())
        spec = spec_of(base)
        asked = ArraySpec(tuple(size), spec.dtype, tuple(strides))
        if 0 in (*asked.shape, *spec.shape):
            continue
        if not _has_places(spec, asked, offset, some=scatters):
            reject("reads or writes memory beside the elements of its operand", node)
            continue
        with graph.inserting_before(node):
            memory = memory_of(root, call, constant)
            target = aten.as_strided_scatter.default if scatters else node.target
            new = call(target, memory, *rest, size, strides, offset)
            if scatters:
                new = call(aten.as_strided.default, new, list(spec.shape), list(spec.strides), 0)
        new.meta.update(node.meta)
        if not scatters:
            new.meta["view_of"] = root
        node.replace_all_uses_with(new)
        graph.erase_node(node)
        replaced.append((node, new))
    return replaced


#: Operations that store into a view of their operand -> that view.
_VIEW_STORED_INTO: dict[Any, Any] = {
    aten.diagonal_scatter.default: aten.diagonal.default,
    aten.select_scatter.default: aten.select.int,
    aten.slice_scatter.default: aten.slice.Tensor,
}


def _stored_in_memory(graph: fx.Graph, node: fx.Node, call: Call) -> tuple[Any, ...]:
    """The arguments of an ``as_strided_scatter`` into memory in which the operand overlaps itself.

    Empty where it does not.
    """
    args: tuple[Any, ...] = node.args
    x, stored, *where = args
    values: list[Any] = [n.meta.get("val") for n in (x, stored, node)]
    if node.kwargs or any(problem_with(v) is not None for v in values):
        return ()
    value, source, result = values
    if not may_overlap(spec_of(value)) or not may_overlap(spec_of(result)):
        return ()
    with torch._C._DisableTorchDispatch():
        memory = torch.empty_strided(value.shape, value.stride(), device="meta")
        part = _VIEW_STORED_INTO[node.target](memory, *where)
    start = int(value.storage_offset()) + part.storage_offset()
    with graph.inserting_before(node):
        if source.dtype != value.dtype:
            stored = call(aten._to_copy.default, stored, dtype=value.dtype)
        if source.shape != part.shape:
            stored = call(aten.expand.default, stored, list(part.shape))
    return x, stored, list(part.shape), list(part.stride()), start


def memory_of(node: fx.Node, call: Call, constant: Constant) -> fx.Node:
    """The memory of a value, as a new one of one dimension.

    Args:
        node: the value.
        call: adds an operation.
        constant: adds a constant.

    Returns:
        [places from the first to the last element]; anything where there is no element.
    """
    spec = spec_of(node.meta["val"])
    dense = is_dense(spec)
    if dense:
        order = sorted(range(len(spec.shape)), key=lambda d: (-spec.strides[d], d))
        node = call(aten.permute.default, node, order)
    flat = call(aten.clone.default, node, memory_format=torch.contiguous_format)
    flat = call(aten.view.default, flat, [spec.numel])
    if dense:
        return flat
    places = constant(_element_of_place(spec).clamp(min=0))
    return call(aten.index_select.default, flat, 0, places)


def _has_places(spec: ArraySpec, asked: ArraySpec, offset: int, *, some: bool) -> bool:
    """Whether an array has an element in each place of another one.

    Args:
        spec: of the array.
        asked: the places.
        offset: of the first one of them from the first element of the array.
        some: whether it is enough that they lie between its first and last one.
    """
    if offset < 0 or offset + asked.span > spec.span:
        return False
    if some or is_dense(spec):
        return True
    return bool((_element_of_place(spec)[_places_of_elements(asked) + offset] >= 0).all())


def _element_of_place(spec: ArraySpec) -> torch.Tensor:
    """An element at each place, by its row-major number; -1 at places without an element."""
    found = torch.full((spec.span,), -1)
    found[_places_of_elements(spec)] = torch.arange(spec.numel)
    return found


def _places_of_elements(spec: ArraySpec) -> torch.Tensor:
    """The place of each element, in row-major order."""
    place = torch.zeros((), dtype=torch.int64)
    for extent, stride in zip(spec.shape, spec.strides, strict=True):
        place = place.unsqueeze(-1) + torch.arange(extent) * stride
    return place.reshape(-1)
