"""Runs an artifact's launch plan on NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polyblocks.errors import InputError
from polyblocks.simt.buffers import Address, Buffer
from polyblocks.simt.types import Array

if TYPE_CHECKING:
    from polyblocks.simt.simulator import LaunchResult, Simulator


def run_plan(
    simulator: Simulator,
    plan: Mapping[str, Any],
    arrays: Sequence[Array],
    sample: int | None = None,
) -> tuple[LaunchResult, ...]:
    """Run the launches of a plan in order.

    Args:
        simulator: holds the kernels.
        plan: ``arguments`` (rows of the manifest, each with a ``role``), ``launches`` and
            ``workspace_bytes``. A launch has ``kernel``, ``grid``, ``block``, ``shared_bytes``
            and ``arguments``: ``{"argument": n}`` (the n-th row), ``{"workspace": bytes}``,
            ``{"value": number}``, or ``{"tensor_map": {...}}`` with a place and a description.
        arrays: one array per row whose role is ``input`` or ``output``, in order. Outputs, and
            inputs that kernels write, are changed in place. Initial contents of outputs and of the
            workspace count as not written.
        sample: blocks of a launch to run at most, see :meth:`Simulator.launch`. Then everything
            counts as written, since others than these would have.

    Returns:
        one result per launch.

    Raises:
        InputError: another number of arrays than the plan has, or an argument it does not have.
    """
    rows = list(plan["arguments"])
    given = [index for index, row in enumerate(rows) if row["role"] in ("input", "output")]
    if len(given) != len(arrays):
        raise InputError(f"the plan has {len(given)} inputs and outputs, got {len(arrays)} arrays")
    with simulator.scratch():
        buffers: dict[int, Buffer] = {}
        for index, array in zip(given, arrays, strict=True):
            row = rows[index]
            updated = row.get("updates")
            if updated is not None and updated in buffers:
                buffers[index] = buffers[updated]
                continue
            name = f"{row['role']} {row.get('name') or index}"
            written = row["role"] == "input" or sample is not None
            buffers[index] = simulator.buffer(array, written=written, name=name)
        for index, row in enumerate(rows):
            if row["role"] == "status":
                buffers[index] = simulator.buffer(np.zeros(1, np.int64), name="status")
        workspace = simulator.buffer(
            int(plan.get("workspace_bytes", 0)), written=sample is not None, name="workspace"
        )
        results = tuple(
            simulator.launch(
                launch["kernel"],
                launch["grid"],
                launch["block"],
                [_argument(simulator, a, buffers, workspace) for a in launch["arguments"]],
                launch.get("shared_bytes", 0),
                # Blocks that wait for others need all of them.
                None if launch.get("waits") else sample,
                launch.get("cluster", 1),
            )
            for launch in plan["launches"]
        )
        for index, array in zip(given, arrays, strict=True):
            if array.flags.writeable:
                buffers[index].get(array)
    return results


def _argument(
    simulator: Simulator,
    argument: Mapping[str, Any],
    buffers: Mapping[int, Buffer],
    workspace: Buffer,
) -> Buffer | Address | int | float:
    if "argument" in argument and argument["argument"] in buffers:
        return buffers[argument["argument"]] + int(argument.get("offset", 0))
    if "workspace" in argument:
        return workspace + (int(argument["workspace"]) + int(argument.get("offset", 0)))
    if "value" in argument:
        value: int | float = argument["value"]
        return value
    if "tensor_map" in argument:
        described = argument["tensor_map"]
        place = _argument(simulator, described, buffers, workspace)
        if isinstance(place, Buffer):
            place = place + 0
        assert isinstance(place, Address)
        return simulator.tensor_map(place, described)
    raise InputError(
        f"expected an argument, a workspace offset or a value of the plan, got {dict(argument)}"
    )
