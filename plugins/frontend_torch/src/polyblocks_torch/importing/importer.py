"""TorchCapture -> Program. Runs on a cache miss only, in an isolated process."""

from __future__ import annotations

from polyblocks import events
from polyblocks.program import Program
from polyblocks_torch.capture import TorchCapture
from polyblocks_torch.importing.decompositions import decomposition_table
from polyblocks_torch.importing.lowering import lower_graph
from polyblocks_torch.location import source_location
from polyblocks_torch.recording.retrace import decompose
from polyblocks_torch.rewrites.unused_vectors import leave_out_unused_vectors

#: Name of the import in tables of times.
STAGE = "S0"


def preload() -> None:
    """Load and build what every import needs: torch-mlir's op classes, the decomposition table.

    It takes 0.15 s, and is for the user's process: a child would do it again each time.
    """
    import torch_mlir.dialects.torch  # noqa: F401

    from polyblocks_torch.control_flow.importing import node_importer

    node_importer()  # imports torch_mlir.extras.fx_importer
    decomposition_table()


def import_capture(capture: TorchCapture) -> Program:
    """Decompose, lower, and describe.

    Raises:
        UnsupportedError: with the op, the reason and the user's source line.
    """
    if capture.problem is not None:
        raise capture.problem
    leave_out_unused_vectors(capture.graph_module.graph)
    with events.timed_pass(STAGE, "decompose"):
        module, inputs = decompose(capture.graph_module, decomposition_table())
    sources: dict[str, None] = {}
    for node in capture.graph_module.graph.nodes:
        if node.op == "call_function":
            sources[f"{node.target} {source_location(node) or ''}".strip()] = None
    with events.timed_pass(STAGE, "lower-graph"):
        lowered = lower_graph(module, inputs, consume=True)
    return Program(
        capture.name,
        lowered,
        capture.arguments,
        capture.results,
        {"ops": list(sources)},
    )
