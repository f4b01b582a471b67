"""The call of a graph's program in machine code, for arguments that are as the guards say."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from polyblocks.options import CompileOptions
from polyblocks.runtime.slots import Signature, signature_of
from polyblocks_torch.capture import FromInput, InputOutput, ResultOutput, TorchCapture
from polyblocks_torch.launch.graph_call import GraphCall

if TYPE_CHECKING:
    from polyblocks.runtime.executable import Executable

#: A function of the graph's arguments, one after another, that returns the tuple of its outputs.
Call = Callable[..., tuple[Any, ...]]


def native_graph(
    capture: TorchCapture,
    executable: Executable,
    options: CompileOptions,
    failure: Callable[[int], Exception],
) -> Callable[[Call], GraphCall | None] | None:
    """A maker of machine code that calls a program of the host; None where none can.

    Unlike the launcher's it shows no range to PyTorch's profiler.

    Args:
        capture: what was compiled.
        executable: the loaded program.
        options: ``num_threads`` and ``num_iters`` matter here.
        failure: the error for the status of a failed run.

    Returns:
        A function of what is called with arguments that machine code does not take, such as tensors
        without memory. It gives None where the process may have no machine code, or the program
        has weights prepared.
    """
    signature = _signature(capture, executable)
    return None if signature is None else partial(_make, executable, signature, options, failure)


def _signature(capture: TorchCapture, executable: Executable) -> Signature | None:
    """The program's, with the graph's arguments in order.

    None if an argument or an output is something else than a tensor that is passed as it is.
    """
    positions = [s.position for s in capture.sources if isinstance(s, FromInput)]
    converted = any(capture.resolve) or len(positions) < len(capture.sources)
    if converted or sorted(positions) != list(range(capture.input_count)):
        return None
    if any(result.updates is not None for result in capture.results):
        return None
    results = []
    for output in capture.outputs:
        if isinstance(output, ResultOutput) and output.view is None:
            results.append(("fresh", output.index))
        elif isinstance(output, InputOutput) and output.view is None:
            results.append(("input", output.position))
        else:
            return None
    plain = signature_of(executable.manifest, {})
    inputs = sorted(zip(positions, plain.inputs, strict=True), key=lambda pair: pair[0])
    return dataclasses.replace(
        plain,
        inputs=tuple(slot for _, slot in inputs),
        sources=tuple(
            (kind, positions[k]) if kind == "input" else (kind, k) for kind, k in plain.sources
        ),
        results=tuple(results),
    )


def _make(
    executable: Executable,
    signature: Signature,
    options: CompileOptions,
    failure: Callable[[int], Exception],
    slow: Call,
) -> GraphCall | None:
    from polyblocks.runtime.native.builtin import builtin
    from polyblocks.runtime.native.call import native
    from polyblocks_torch.launch.arrays import TorchArrays

    def failed(code: int) -> NoReturn:
        raise failure(code)

    call = native(
        *(executable, TorchArrays(), signature, slow, failed),
        num_threads=options.num_threads,
        num_iters=options.num_iters,
        fixed={},
        weights=None,
        alive=None,
        in_tuple=True,
    )
    if call is None:
        return None
    made: Call = builtin(executable.manifest.get("name", "main"), call.function, call.table)
    return GraphCall(made, len(signature.results), call.function)
