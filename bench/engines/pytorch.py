"""PyTorch eager, Inductor, and this compiler."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
import torch

from bench import empty_backend, peers
from bench.arrays import tensor
from bench.engines import OURS, VARIANTS, Prepared, joined, written_in
from bench.predictions import predicted_seconds

_ALLOCATES = "allocated by PyTorch at each call"
OUTPUTS = {
    "eager": _ALLOCATES,
    "inductor": _ALLOCATES,
    "inductor-max-autotune": _ALLOCATES,
} | dict.fromkeys(
    (OURS, *VARIANTS),
    "new at each call; from 1 MiB on out of a pool that takes them back when they are freed",
)
DISTRIBUTIONS = dict.fromkeys(OUTPUTS, ("torch",)) | dict.fromkeys(
    (OURS, *VARIANTS),
    (
        "polyblocks-compiler",
        "polyblocks-torch",
        "polyblocks-cpu",
        "torch-mlir",
        "llvmlite",
        "torch",
    ),
)

_AUTOTUNE = "max-autotune-no-cudagraphs"


def warm_up(name: str, threads: int) -> None:
    """Set the threads; compile something small."""
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    _contestant(name, lambda x: x + 1).warm_up()


def prepare(name: str, program: str, inputs: tuple[np.ndarray[Any, Any], ...]) -> Prepared:
    """The function as this peer runs it."""
    function = written_in("in_torch", program)
    torch._dynamo.reset()
    arguments = [tensor(x) for x in inputs]
    call = _contestant(name, function).prepare()

    prepared = partial(Prepared, lambda: call(*arguments), joined)
    if name != OURS and name not in VARIANTS:
        return prepared()

    def details() -> dict[str, float | None]:
        found = {
            "predicted": predicted_seconds(call.polyblocks_report().to_json()),
            "overhead": capture_seconds(function, arguments),
        }
        # Dynamo has forgotten the function: the next call captures it again, which a turn that is
        # over after one call would measure.
        call(*arguments)
        return found

    return prepared(details)


def capture_seconds(function: Any, arguments: list[torch.Tensor]) -> float:
    """Seconds of Dynamo and AOTAutograd alone, in a process that has used them."""
    torch._dynamo.reset()
    captured = empty_backend.captured(function)
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        captured(*arguments)
        seconds.append(time.perf_counter() - begin)
    return seconds[0] - min(seconds[1:])


def explain(name: str, error: Exception) -> str:
    """Why it could not run, in one line."""
    return _contestant(name, torch.neg).explain(error)


def _contestant(name: str, function: Any) -> peers.Contestant:
    if name == "inductor-max-autotune":
        return peers.inductor(function, name, mode=_AUTOTUNE)
    if name in VARIANTS:
        return peers.polyblocks(function, **VARIANTS[name])
    return peers.PEERS[name](function)
