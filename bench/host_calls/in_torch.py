"""Calls in PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.host_calls import cases, files, torch_programs
from bench.host_calls.cases import Case
from bench.host_calls.measure import Call, Peer
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"target": "cpu", "strict_target": True}


def peers(case: Case, folder: Path) -> list[Peer]:
    """Ours, the loaded file of :mod:`bench.host_calls.in_files`, eager and Inductor."""
    # One function stands for all numbers of arrays, and Dynamo would give up after eight of them.
    torch._dynamo.reset()
    function, positional, keywords = torch_programs.program(case)

    def loaded() -> Call:
        weights = function.state_dict() if case.weights else None
        return Call(files.load(folder, case, weights), tuple(_tensors(case)))

    return [
        Peer(
            "decorated",
            lambda: Call(
                polyblocks_jit_torch(function, compile_options=STRICT), positional, keywords
            ),
        ),
        *([] if case.kind == cases.KEYWORDS else [Peer("loaded", loaded)]),
        Peer("eager", lambda: Call(function, positional, keywords)),
        Peer(
            "Inductor", lambda: Call(torch.compile(function, dynamic=False), positional, keywords)
        ),
    ]


def _tensors(case: Case) -> list[torch.Tensor]:
    return [torch.from_numpy(x) for x in case.inputs]


def arrays_of(result: Any) -> list[np.ndarray[Any, Any]]:
    """The tensors of a result."""
    leaves = torch.utils._pytree.tree_leaves(result)
    return [x.numpy() for x in leaves]


def wait(result: Any) -> None:
    """Nothing runs on after a call."""
