"""A compiled program as a function of tensors on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.framework.ops import EagerTensor

from polyblocks.frontends.function_report import FunctionReport
from polyblocks.options import CompileOptions
from polyblocks.runtime.arrays import HOST, Device
from polyblocks.runtime.launch import bind
from polyblocks.runtime.source import Source
from polyblocks_tf.capture import TfCapture
from polyblocks_tf.launch.arrays import TfArrays
from polyblocks_tf.launch.launcher import empty_results
from polyblocks_tf.specs import TF_DTYPES
from polyblocks_tf.xla.device_program import DeviceProgram

#: Writes the expression of what is returned: of the source and the names of the results in it.
Finish = Callable[[Source, list[str]], str]


def wherever_tensors_are(
    capture: TfCapture,
    executable: Any,
    options: CompileOptions,
    arguments: int,
    finish: Finish,
    host_call: Callable[..., Any],
    report: FunctionReport,
) -> Callable[..., Any]:
    """Tensors on a GPU are used there and the results stay there; those of the host are copied.

    Arrays and variables of the function are copied to the GPU of its arguments, and new values
    of variables go into them wherever they are.

    Args:
        capture: what was compiled.
        executable: the loaded program, of a target with devices.
        options: ``num_iters`` matters here.
        arguments: how many the function takes.
        finish: gives what is returned.
        host_call: the same for arrays of the host.
        report: records whether calls wait for the tensors.
    """
    on_device = _on_device(capture, executable, options, arguments, finish, report)

    def call(*leaves: Any) -> Any:
        return on_device(*leaves) if any(map(is_on_gpu, leaves)) else host_call(*leaves)

    return call


def is_on_gpu(leaf: Any) -> bool:
    """Whether an argument is a tensor on a GPU."""
    return isinstance(leaf, EagerTensor) and "GPU" in leaf.backing_device.upper()


def _on_device(
    capture: TfCapture,
    executable: Any,
    options: CompileOptions,
    arguments: int,
    finish: Finish,
    report: FunctionReport,
) -> Callable[..., Any]:
    interface = TfArrays()
    run = bind(executable, interface, num_iters=options.num_iters)
    #: Tensors that the function holds, on each device where it was called, by their arguments.
    constants: dict[tuple[Device, int], Any] = {}
    manifest = executable.manifest
    taken = [(k, a, a.spec) for k, a in enumerate(capture.arguments) if a.spec and a.spec.numel]

    def results_of(*leaves: Any) -> tuple[Any, ...]:
        place = next(interface.device(leaf) for leaf in leaves if is_on_gpu(leaf))
        given = []
        for k, argument, spec in taken:
            if argument.kind == "argument":
                given.append(leaves[k])
                continue
            if argument.kind == "variable":
                dtype = TF_DTYPES[spec.dtype]
                value = tf.raw_ops.ReadVariableOp(resource=argument.held, dtype=dtype)
                given.append(moved(value, place))
                continue
            if (place, k) not in constants:
                constants[place, k] = moved(argument.held, place)
            given.append(constants[place, k])
        results = run(*given)
        if isinstance(run, DeviceProgram) and run.waits:
            report.waits_for_arguments(run.waits)
        return results if isinstance(results, tuple) else (results,)

    def moved(held: Any, place: Device) -> Any:
        assert place != HOST
        return held if interface.device(held) == place else interface.transfer(held, place)

    source = Source(", ".join(f"a{i}" for i in range(arguments)))
    names: list[str] = []
    count = 0
    for row in manifest["arguments"]:
        if row["role"] == "output":
            empty_results(source, names, manifest["report"].get("empty", {}))
            names.append(f"results[{count}]")
            count += 1
    empty_results(source, names, manifest["report"].get("empty", {}))
    given = ", ".join(f"a{i}" for i in range(arguments))
    source.add(f"results = {source.name('run', results_of)}({given})")
    outputs = len(capture.concrete.graph.outputs)
    assigned: Sequence[int] = manifest["report"].get("assigned", ())
    for name, position in zip(names[outputs:], assigned, strict=True):
        assign = source.name("assign", tf.raw_ops.AssignVariableOp)
        handle = source.name("handle", capture.arguments[position].held)
        source.add(f"{assign}(resource={handle}, value={name})")
    source.add(f"return {finish(source, names[:outputs])}")
    return source.build(capture.name)
