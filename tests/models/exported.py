"""One architecture as ``torch.export`` gives it: compiled ahead of time, written, read and called.

With the weights in the file, and as arguments behind the others.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from forked_sweep import Outcome
from model_check import called, differ, distance, leave_nothing_neutral, line
from zoo import Model

import polyblocks
from polyblocks.artifact import Artifact
from polyblocks.errors import PolyBlocksError

#: Those that ``make models MODELS=--exported`` takes.
NAMES = (
    *("AlbertModel", "BertModel", "BloomModel", "DistilBertModel", "ElectraModel", "GPT2Model"),
    *("GPTNeoXModel", "LlamaModel", "OPTModel", "Phi3Model", "Qwen3Model", "RobertaModel"),
    *("ConvNextModel", "ResNetModel", "SwinModel", "ViTModel"),
    *("AlexNet", "GoogLeNet", "MobileNetV3", "U-Net"),
)


def check_exported(model: Model) -> Outcome:
    """Export one architecture, make a file of it in both ways, and call what the files hold."""
    torch.manual_seed(0)
    network, arguments = model.build()
    leave_nothing_neutral(network)
    if hasattr(network, "config"):
        # A cache is no tensor, and what is exported gives tensors.
        network.config.use_cache = False
    network.eval()
    expected = called(network, arguments)
    named = {name: value for name, value in arguments.items() if name}
    leaves = [*arguments.get("", ()), *named.values()]
    with torch.no_grad():
        program = torch.export.export(network, tuple(arguments.get("", ())), named)
    began = time.monotonic()
    got: dict[str, list[torch.Tensor]] = {}
    stored: list[Any] = []
    with tempfile.TemporaryDirectory() as folder:
        for weights in ("stored", "arguments"):
            path = Path(folder) / f"{weights}.zip"
            try:
                polyblocks.aot(program, weights=weights).write(path)
                made = Artifact.from_bytes(path.read_bytes())
                stored = stored or list(_stored(made))
                results = polyblocks.load(path)(*leaves, *(stored if weights != "stored" else ()))
            except PolyBlocksError as error:
                return Outcome("fallback", f"{weights}: {line(error)}")
            got[weights] = list(results) if isinstance(results, (list, tuple)) else [results]
    seconds = time.monotonic() - began
    for weights, mine in got.items():
        difference = differ(mine, expected, [])
        if difference:
            return Outcome("wrong", f"{weights}: {difference}")
    error = max(distance(x, y) for x, y in zip(got["stored"], expected, strict=True))
    measured = {"weights": sum(w.numel() for w in network.parameters()), "seconds": seconds}
    return Outcome("compiled", measured={**measured, "error": error})


def _stored(made: Artifact) -> Any:
    """The arrays that a file holds, in the order in which they would be passed."""
    for row in made.manifest["arguments"]:
        if row.get("stored"):
            flat = np.frombuffer(made.blobs[row["stored"]], row["dtype"])
            yield torch.from_numpy(flat.copy()).as_strided(row["shape"], row["strides"])
