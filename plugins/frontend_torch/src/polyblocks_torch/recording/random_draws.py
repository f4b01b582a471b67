"""Random numbers are drawn by PyTorch: what surrounds a draw is taken out of it, and compiled."""

from __future__ import annotations

import torch
from torch import fx

from polyblocks_torch.partitioning.node_rules import fills_fresh_memory, is_random
from polyblocks_torch.recording.graph_editor import GraphEditor
from polyblocks_torch.specs import problem_with

aten = torch.ops.aten


def split_dropout(editor: GraphEditor) -> None:
    """``native_dropout`` -> a draw and arithmetic, so that only the draw is the framework's.

    The same operations in the same order as PyTorch's CPU kernel, bit for bit
    (aten/src/ATen/native/Dropout.cpp, native_dropout_cpu).
    """
    graph = editor.graph
    for node in list(graph.nodes):
        if node.target is not aten.native_dropout.default:
            continue
        operand, p, train = node.args
        value = operand.meta["val"]
        if train is False or problem_with(value) is not None:
            continue
        with graph.inserting_before(node):
            shaped = editor.call(aten.empty_like.default, operand, dtype=torch.bool)
            mask = editor.call(aten.bernoulli.p, shaped, 1.0 - p)
            kept = editor.call(aten._to_copy.default, mask, dtype=value.dtype)
            product = editor.call(aten.mul.Tensor, operand, kept)
            scale = 0.0 if p == 1.0 else 1.0 / (1.0 - p)
            scaled = editor.call(aten.mul.Scalar, product, scale)
        for made in (shaped, mask, kept, product, scaled):
            made.meta.update({k: v for k, v in node.meta.items() if k == "stack_trace"})
        for user in list(node.users):
            new = (scaled, mask)[user.args[1]]
            # Views of the result recorded its memory, by which they are recognized.
            new.meta["val"] = user.meta["val"]
            user.replace_all_uses_with(new)
            editor.replace_returned(user, new)
            graph.erase_node(user)
        graph.erase_node(node)


def drop_metadata_edges(editor: GraphEditor) -> None:
    """``empty_like(x)`` needs the shape of x alone: cut the edge.

    Random draws hang on such edges (``bernoulli(empty_like(x))`` is what dropout becomes), and
    every edge into a draw would split the graph once more.
    """
    graph = editor.graph
    for node in list(graph.nodes):
        value = node.meta.get("val")
        if node.target is aten.empty_like.default and problem_with(value) is None:
            fresh = editor.fresh(node, value)
            node.replace_all_uses_with(fresh)
            editor.replace_returned(node, fresh)
            graph.erase_node(node)
        elif fills_fresh_memory(node):
            # Drawn in place (see partitioned_call.py), so it has the layout of that memory.
            node.meta["val"] = node.args[0].meta["val"]
        elif is_random(node) and _op_name(node).endswith("_like"):
            operand = node.args[0]
            value = operand.meta.get("val")
            if problem_with(value) is None:
                node.replace_input_with(operand, editor.fresh(node, value))


def _op_name(node: fx.Node) -> str:
    """``aten::rand_like``; what runs a draw with a saved state is named otherwise."""
    schema = getattr(node.target, "_schema", None)
    return schema.name if schema is not None else str(node.target)
