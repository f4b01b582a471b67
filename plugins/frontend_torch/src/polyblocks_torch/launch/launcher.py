"""A compiled program as a Python function, generated for its arguments and results.

Besides running the code, a call unpacks the arguments, allocates the outputs, and writes the
addresses into one array. The source of the function spells that out, without loops or lookups.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch._C._dynamo.guards import _empty_strided_cpu  # type: ignore[attr-defined]
from torch._C._profiler import _RecordFunctionFast

from polyblocks.errors import ExecutionError
from polyblocks.frontends.kernel_label import kernel_label
from polyblocks.options import CompileOptions
from polyblocks.program import ArraySpec
from polyblocks.runtime import buffers
from polyblocks.runtime.kept.preparer import Preparer
from polyblocks.runtime.source import Source
from polyblocks_torch.arguments.frozen import FrozenWeights
from polyblocks_torch.capture import (
    EmptyOutput,
    FromInput,
    InputOutput,
    LiteralOutput,
    TorchCapture,
    View,
)
from polyblocks_torch.importing.checks import failure as failure_of_check
from polyblocks_torch.launch.argument_writer import ArgumentWriter
from polyblocks_torch.launch.device_launcher import allocation, device_of, run_on_device
from polyblocks_torch.launch.graph_call import GraphCall
from polyblocks_torch.launch.native_graph import native_graph
from polyblocks_torch.specs import TORCH_DTYPES
from polyblocks_torch.threads import thread_count

if TYPE_CHECKING:
    from polyblocks.runtime.executable import Executable

#: Outputs of at least this size (bytes) come from the pool of reused buffers.
POOLED_BYTES = 1 << 20


def make_call(
    capture: TorchCapture,
    executable: Executable | None,
    options: CompileOptions,
    unguarded: Mapping[int, str] | None = None,
) -> Callable[[list[Any]], tuple[Any, ...]]:
    """The function that runs a loaded program on the arguments of the captured graph.

    Args:
        capture: what was compiled.
        executable: the loaded program; None if the capture computes nothing.
        options: ``num_threads`` and ``num_iters`` matter here.
        unguarded: positions of arguments that may look otherwise than what was compiled for, and
            the operations that give them ("" for those that are no operation's).

    Returns:
        A function of the list of the graph's arguments (emptied by the call) that returns the
        tuple of the graph's outputs. Its attribute ``of_arguments`` has the numbers of outputs that
        are arguments or views of them; ``native_call`` is the result of
        :func:`polyblocks_torch.launch.native_graph.native_graph`, if there is any.
    """
    source = Source()
    _unpack(source, capture)
    device = device_of(capture)
    if executable is not None:
        arguments = ArgumentWriter(source, capture, device, unguarded or {})
        if device is not None:
            run_on_device(source, capture, executable, options, device, arguments)
        else:
            _run(source, capture, executable, options, arguments)
        arguments.write_back()
    outputs = [_output(source, output, device) for output in capture.outputs]
    source.add(f"return ({', '.join(outputs)}{',' if len(outputs) == 1 else ''})")
    call = boxed(source.build(capture.name))
    call.polyblocks_executable = executable  # type: ignore[attr-defined]
    call.of_arguments = frozenset(  # type: ignore[attr-defined]
        number for number, each in enumerate(capture.outputs) if isinstance(each, InputOutput)
    )
    if executable is not None and device is None and not unguarded:
        call.native_call = native_graph(  # type: ignore[attr-defined]
            capture, executable, options, _failure_of(executable.manifest.get("checks", []))
        )
    if executable is None and device is None:
        call.native_call = lambda _: _of_views(capture, outputs, source)  # type: ignore[attr-defined]
    return call


def _of_views(capture: TorchCapture, outputs: list[str], named: Source) -> GraphCall:
    """A graph that computes nothing, as a function of its arguments one after another.

    Args:
        capture: of the graph.
        outputs: expressions of them.
        named: has the objects that these name.
    """
    source = Source(", ".join(f"a{k}" for k in range(capture.input_count)))
    source.names.update(named.names)
    source.add(f"return ({', '.join(outputs)}{',' if len(outputs) == 1 else ''})")
    call = source.build(capture.name)
    # An artifact that is loaded needs no Dynamo, which then looks at no frame.
    if dynamo := sys.modules.get("torch._dynamo"):
        dynamo.eval_frame.skip_code(call.__code__)
    only = capture.outputs[0] if len(outputs) == 1 else None
    whole = isinstance(only, InputOutput) and only.view is None
    return GraphCall(call, len(outputs), forwarded=only.position if whole else None)  # type: ignore[union-attr]


def boxed(call: Callable[[list[Any]], tuple[Any, ...]]) -> Callable[[list[Any]], tuple[Any, ...]]:
    """Mark a function for AOTAutograd: it takes the list of arguments, which it empties."""
    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def _unpack(source: Source, capture: TorchCapture) -> None:
    used = {s.position for s in capture.sources if isinstance(s, FromInput)}
    used |= {o.position for o in capture.outputs if isinstance(o, InputOutput)}
    if used == set(range(capture.input_count)):
        if used:
            source.add(f"{', '.join(f'a{i}' for i in sorted(used))}, = args")
    else:
        for position in sorted(used):
            source.add(f"a{position} = args[{position}]")
    source.add("args.clear()")


def _run(
    source: Source,
    capture: TorchCapture,
    executable: Executable,
    options: CompileOptions,
    arguments: ArgumentWriter,
) -> None:
    addresses: list[str] = []
    released: list[str] = []
    inputs = iter(range(len(capture.sources)))
    fresh = iter(i for i, result in enumerate(capture.results) if result.updates is None)
    rows = executable.manifest["arguments"]
    unread = set(executable.manifest.get("unread", ()))
    if executable.preparation is not None:
        _find_kept(source, capture, executable, options)
    roles = [row["role"] for row in rows]
    read = [
        index
        for index, number in enumerate(n for n, role in enumerate(roles) if role == "input")
        if number not in unread
    ]
    of_arguments = arguments.addresses(read)
    for number, row in enumerate(rows):
        if row["role"] == "input":
            addresses.append(of_arguments.get(next(inputs), "0"))
        elif row["role"] == "kept":
            addresses.append("kept.address")
        elif row["role"] == "output":
            index = next(fresh)
            source.add(f"r{index} = {_allocation(source, capture.results[index].spec)}")
            addresses.append(f"r{index}.data_ptr()")
        elif row["role"] == "workspace":
            pool = source.name("workspaces", buffers.workspaces)
            source.add(f"w{number} = {pool}.acquire({row['shape'][0]})")
            addresses.append(f"w{number}.address")
            released.append(f"w{number}.release()")
        else:
            source.add(f"s{number} = {_allocation(source, ArraySpec((1,), 'int32', (1,)))}")
            addresses.append(f"s{number}.data_ptr()")
    pack = source.name("pack", struct.Struct(f"{len(rows)}Q").pack)
    entry = source.name("entry", executable.entry)
    threads = (
        str(options.num_threads)
        if options.num_threads is not None
        else source.name("threads", thread_count) + "()"
    )
    run = f"code = {entry}({pack}({', '.join(addresses)}), {threads})"
    depth = 1
    if options.num_iters > 1:
        source.add(f"for _ in range({options.num_iters}):")
        depth = 2
    # A range of PyTorch's profiler around the call, where there is a profiler.
    profiler = source.name("profiler", torch.autograd.profiler)
    label = f"{capture.name}: {kernel_label(executable.manifest)}"
    source.add(f"if {profiler}._is_profiler_enabled:", depth)
    source.add(f"with {source.name('range', _RecordFunctionFast)}({label!r}):", depth + 1)
    source.add(run, depth + 2)
    source.add("else:", depth)
    source.add(run, depth + 1)
    for line in released:
        source.add(line)
    failure = source.name("failure", _failure_of(executable.manifest.get("checks", [])))
    source.add("if code:")
    source.add(f"raise {failure}(code)", depth=2)


def _find_kept(
    source: Source, capture: TorchCapture, executable: Executable, options: CompileOptions
) -> None:
    """The prepared arrays of the weights of this call."""
    preparer = Preparer(executable)
    frozen = FrozenWeights(preparer, options.num_threads)
    weights = []
    for number in preparer.inputs:
        argument = capture.sources[number]
        assert isinstance(argument, FromInput)
        weights.append(f"a{argument.position}")
    source.add(f"kept = {source.name('find_kept', frozen.find())}(({', '.join(weights)},))")


def allocation_of(spec: ArraySpec) -> tuple[Callable[..., torch.Tensor], tuple[Any, ...]]:
    """A function that makes a tensor on the host, and its arguments."""
    layout = spec.shape, spec.strides, TORCH_DTYPES[spec.dtype]
    if spec.nbytes >= POOLED_BYTES:
        return pooled_tensor, (spec.nbytes, *layout)
    return poisoned_tensor if buffers.POISONED else _empty_strided_cpu, layout


def _allocation(source: Source, spec: ArraySpec) -> str:
    function, (*sizes, dtype) = allocation_of(spec)
    arguments = ", ".join([*map(repr, sizes), source.name("dtype", dtype)])
    return f"{source.name('pooled' if len(sizes) > 2 else 'empty', function)}({arguments})"


def _output(source: Source, output: Any, device: torch.device | None) -> str:
    if isinstance(output, LiteralOutput):
        return repr(output.value) if output.value is None else source.name("literal", output.value)
    if isinstance(output, EmptyOutput):
        if device is not None:
            return allocation(source, output.spec, device)
        return _allocation(source, output.spec)
    name = f"a{output.position}" if isinstance(output, InputOutput) else f"r{output.index}"
    return name if output.view is None else strided(source, name, output.view)


def strided(source: Source, base: str, view: View) -> str:
    """An expression for a view of the tensor called ``base``."""
    if view.dtype is not None:
        function = source.name("retyped", retyped)
        dtype = source.name("dtype", TORCH_DTYPES[view.dtype])
        made = f"{function}({base}, {dtype}, {view.shape}, {view.strides}, {view.offset})"
    else:
        function = source.name("as_strided", torch.as_strided)
        offset = f", {base}.storage_offset() + {view.offset}" if view.offset else ""
        made = f"{function}({base}, {view.shape}, {view.strides}{offset})"
    if view.conj:
        made = f"{source.name('conj', torch._conj)}({made})"
    return f"{source.name('neg_view', torch._neg_view)}({made})" if view.neg else made


def retyped(
    base: torch.Tensor,
    dtype: torch.dtype,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
) -> torch.Tensor:
    """A view of the memory of a dense tensor as elements of another type.

    Args:
        base: without gaps.
        dtype: of the elements that its memory is read as.
        shape, strides: of the view.
        offset: from the first element of ``base``, in elements of the view.
    """
    flat = base.as_strided((base.numel(),), (1,)).view(dtype)
    return flat.as_strided(shape, strides, flat.storage_offset() + offset)


def _failure_of(checks: list[str]) -> Callable[[int], ExecutionError]:
    def failure(code: int) -> ExecutionError:
        known = 0 < code <= len(checks)
        if not known:
            return ExecutionError(f"the compiled program returned code {code}")
        return failure_of_check(checks[code - 1])

    return failure


def poisoned_tensor(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype
) -> torch.Tensor:
    """A small tensor that is filled with a pattern; see :mod:`polyblocks.runtime.buffers`."""
    made: torch.Tensor = _empty_strided_cpu(shape, strides, dtype)
    buffers.poison(made.data_ptr(), made.untyped_storage().nbytes())
    return made


def pooled_tensor(
    nbytes: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype
) -> torch.Tensor:
    """A tensor on a buffer of the pool; the buffer goes back when the last view of it dies."""
    # A change in place makes no view: autograd treats views that a function returns in a special
    # way. It takes 1.6 µs less than an empty tensor that is set to the memory.
    return torch.frombuffer(buffers.outputs.acquire(nbytes), dtype=dtype).as_strided_(
        shape, strides
    )
