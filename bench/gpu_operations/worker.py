"""A process that compiles operations, one order after the other: lines of JSON in and out."""

from __future__ import annotations

import logging
import time
from typing import Any

from bench.orders import answers, in_one_line, serve

Json = dict[str, Any]


def measured(name: str, arch: str) -> Json:
    """The row of an operation, see :data:`bench.gpu_operations.sweep.KEYS`."""
    import torch

    import polyblocks
    from bench.gpu_operations.cases import operations
    from bench.gpu_operations.floor import floor
    from bench.gpu_operations.traffic import is_elementwise
    from bench.gpu_static.build import describe

    operation = next(each for each in operations() if each.name == name)
    target = describe(arch)
    operands = operation.operands()
    least = floor(operation.function, operands, target)
    begin = time.perf_counter()
    options = {"target": target.name, "arch": arch}
    with torch.no_grad():
        artifact = polyblocks.aot(operation.function, operands, options, frontend="torch")
    kernels = [_kernel(row) for row in artifact.manifest["kernels"]]
    seconds = time.perf_counter() - begin
    torch._dynamo.reset()
    times = [kernel["predicted"] for kernel in kernels]
    # Kernels of that kind compute each element of their results once, and so do all kernels of
    # functions of single elements.
    every = is_elementwise(operation.function, operands)
    rows = [r for r in artifact.manifest["kernels"] if every or r["kind"] == "pointwise"]
    operations = sum((r["estimate"]["seconds"] or {}).get("compute", 0.0) for r in rows)
    return {
        "floor": max(least.seconds, operations),
        "bytes": least.bytes,
        "flops": least.flops,
        "operations": operations,
        "predicted": None if None in times else sum(times),
        "kernels": kernels,
        "compile": seconds,
    }


def _kernel(row: Json) -> Json:
    resources = row["resources"]
    return {
        "name": row["name"],
        "kind": row["kind"],
        "calls": row["calls"],
        "threads": row["parallel"],
        "predicted": row["estimate"]["predicted_seconds"],
        "bound": row["estimate"]["bound"],
        "unit": row.get("unit"),
        **{
            key: resources[key]
            for key in ("registers", "shared_bytes", "stack_bytes", "spill_bytes")
        },
    }


def answer(order: Json) -> Json:
    """The row, or the problem."""
    try:
        return measured(order["name"], order["arch"])
    except Exception as error:
        return {"problem": in_one_line(error)}


def main() -> None:
    """Answer until the orders end."""
    file = answers()
    logging.disable(logging.WARNING)
    serve(file, answer)


if __name__ == "__main__":
    main()
