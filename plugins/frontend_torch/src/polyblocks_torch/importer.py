"""TorchCapture -> Program. Runs on a cache miss only, in an isolated process."""

from __future__ import annotations

from polyblocks.program import Program
from polyblocks_torch.capture import TorchCapture
from polyblocks_torch.decompositions import decomposition_table
from polyblocks_torch.location import source_location
from polyblocks_torch.lowering import lower_graph
from polyblocks_torch.retrace import decompose
from polyblocks_torch.small_integers import tensors_for_numbers


def import_capture(capture: TorchCapture) -> Program:
    """Decompose, lower, and describe.

    Raises:
        UnsupportedError: with the op, the reason and the user's source line.
    """
    if capture.problem is not None:
        raise capture.problem
    module, inputs = decompose(capture.graph_module, decomposition_table())
    tensors_for_numbers(module)
    sources: dict[str, None] = {}
    for node in capture.graph_module.graph.nodes:
        if node.op == "call_function":
            sources[f"{node.target} {source_location(node) or ''}".strip()] = None
    return Program(
        capture.name,
        lower_graph(module, inputs),
        capture.arguments,
        capture.results,
        {"ops": list(sources)},
    )
