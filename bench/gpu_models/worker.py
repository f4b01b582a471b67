"""A process that compiles models: orders as lines of JSON in, rows as lines of JSON out."""

from __future__ import annotations

import logging
import resource
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from bench.orders import answers, in_one_line, serve

Json = dict[str, Any]


def row(name: str, batch: int, arch: str) -> Json:
    """The row of a model in float16, see :data:`bench.gpu_models.__main__.KEYS`."""
    import torch

    import polyblocks
    from bench.gpu_models import zoo
    from bench.gpu_models.predicted import predicted
    from bench.gpu_static.build import describe

    target = describe(arch)
    module, inputs = zoo.empty(name, batch, torch.float16)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, torch.no_grad():
        # Machine code of one target is read from what its assembler prints.
        debug = {"debug": folder} if target.name == "amdgpu" else {}
        options = {"target": target.name, "arch": arch, **debug}
        begin, processor = time.perf_counter(), processor_seconds()
        artifact = polyblocks.aot(module, inputs, options, frontend="torch", weights="arguments")
        seconds, processor = time.perf_counter() - begin, processor_seconds() - processor
        found = predicted(artifact, folder, target)
    return {
        "launches": len(artifact.manifest["launches"]),
        "layer": period(
            [each["kernel"] for each in artifact.manifest["launches"]], zoo.MODELS[name].layers
        ),
        **found,
        "workspace": artifact.manifest["workspace_bytes"],
        "artifact": sum(map(len, artifact.blobs.values())),
        "compile": seconds,
        "processor": processor,
    }


def period(names: Sequence[str], layers: int = 0) -> int:
    """The launches of a layer: after how many the same kernel comes again, mostly; 0 if seldom.

    Of that many ``layers``, each but the last may be one launch.
    """
    if layers and max(map(names.count, names), default=0) >= layers - 1 >= len(names) // 2:
        return 1
    for step in range(1, len(names) // 2 + 1):
        again = sum(a == b for a, b in zip(names, names[step:], strict=False))
        if 2 * again > len(names) - step and len(set(names[:step])) > 1:
            return step
    return 0


def processor_seconds() -> float:
    """Of this process and of those that it has waited for."""
    own, others = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def answer(order: Json) -> Json:
    """The row, or the problem."""
    try:
        return row(order["name"], order["batch"], order["arch"])
    except Exception as error:
        return {"problem": in_one_line(error)}


def main() -> None:
    """Answer until the orders end."""
    file = answers()
    logging.disable(logging.WARNING)
    serve(file, answer)


if __name__ == "__main__":
    main()
