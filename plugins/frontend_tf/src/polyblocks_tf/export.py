"""A traced function -> StableHLO, by TensorFlow's own bridge to XLA. Runs on a cache miss only."""

from __future__ import annotations

import logging
import re
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from polyblocks import events
from polyblocks.errors import MachineError, UnsupportedError
from polyblocks.isolation.isolation import StalledError, is_isolated_child, run_isolated
from polyblocks_tf.location import Locations

logger = logging.getLogger(__name__)

#: Name of the export in tables of times.
STAGE = "S0"

#: Seconds without CPU time after which a child is taken for blocked by a lock of TensorFlow's.
_STALL_S = 3.0

#: The bridge names the operations that it cannot translate like this.
_UNSUPPORTED = re.compile(r"(\w+) \((No registered [^{]*?)\)?\{\{node ([^}]+)\}\}")
_NODE = re.compile(r"\{\{node ([^}]+)\}\}")


def export(concrete: Any, where: Locations, name: str) -> bytes:
    """The StableHLO of a traced function as MLIR bytecode.

    Its arguments are those of the graph, with the values of variables in place of the variables;
    its results those of the graph, then the new values of the variables that are assigned.

    The bridge runs in a forked process, so that its abort (a failed ``CHECK``) is an error. It runs
    in this process if captured arrays are in a device's memory, which no fork can read, and where a
    fork finds a lock of TensorFlow's held by another thread.

    Args:
        concrete: the ConcreteFunction; all shapes are static.
        where: of its operations, for messages.
        name: the user's function, for messages.

    Raises:
        UnsupportedError: the bridge does not translate it; with the operation, where it says so.
        NativeCrashError: the bridge crashed.
        MachineError: no memory, or the time of ``compile_timeout`` is over.
    """
    # Here, so that the children find it done: the context starts threads.
    context.context().ensure_initialized()

    def job() -> bytes:
        with events.timed_pass(STAGE, "export"):
            return _translate(concrete, where)

    if is_isolated_child() or not _is_on_host(concrete):
        return job()
    try:
        return run_isolated(job, stall_s=_STALL_S, label=name)
    except StalledError as error:
        logger.info("%s; exporting in this process instead", error)
        return job()


def _translate(concrete: Any, where: Locations) -> bytes:
    count = len(concrete.inputs) - len(concrete.captured_inputs)
    specs = [tf.TensorSpec(t.shape, t.dtype) for t in concrete.inputs[:count]]
    try:
        result = context.context().get_compiler_ir(
            # The public way draws a random number to learn the device.
            device_name=_host(),
            platform_name=None,
            function_name=concrete.name,
            flat_args=specs,
            captured_inputs=concrete.captured_inputs,
            stage="stablehlo_serialized",
        )
    except tf.errors.ResourceExhaustedError as error:
        raise MachineError(f"ResourceExhaustedError: {error.message}") from error
    except (ValueError, tf.errors.OpError) as error:
        raise refusal(str(error), where) from None
    data: bytes = result
    return data


def _is_on_host(concrete: Any) -> bool:
    """Whether the CPU's memory holds all arrays and variables that a function captured."""
    return all("CPU:" in held.device for held in concrete.captured_inputs)


def refusal(text: str, where: Locations) -> UnsupportedError:
    """The bridge's message as an error of ours."""
    text = text.removeprefix("Failed getting HLO text: '")
    match = _NODE.search(text)
    name = match[1] if match else ""
    op, location = where.find(name)
    first = next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")
    if _UNSUPPORTED.search(text):
        first = "XLA has no translation of it"
    return UnsupportedError(
        f"XLA's bridge: {first[:300]}", op=op or None, location=location or None
    )


def _host() -> str:
    return tf.config.list_logical_devices("CPU")[0].name.replace(
        "/device:", "/job:localhost/replica:0/task:0/device:"
    )
