"""A compiled program as a Python function, generated for its arguments and results.

What a call does besides running the code: take the addresses of the arrays, read the variables,
find memory for the results, make tensors of it. The source of the function spells that out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.ops import EagerTensor

from polyblocks.artifact import KEPT
from polyblocks.errors import ExecutionError
from polyblocks.options import CompileOptions
from polyblocks.runtime import buffers, threads
from polyblocks.runtime.kept.lasting_arrays import LastingArrays
from polyblocks.runtime.kept.preparer import Preparer
from polyblocks.runtime.source import Source
from polyblocks_tf.capture import TfCapture
from polyblocks_tf.specs import TF_DTYPES

if TYPE_CHECKING:
    from polyblocks.runtime.executable import Executable

#: Results of at least this size (bytes) are tensors on memory of the pool. Smaller ones are copied
#: by TensorFlow into memory of its own, which takes less than the rest of the call does.
POOLED_BYTES = 1 << 14

#: TensorFlow's kernels want tensors to begin where a vector of this size (bytes) may.
ALIGNMENT = 64

#: Keywords of the generated functions whose values are addresses of C-contiguous host memory.
_ADDRESS = "{0}.__array_interface__['data'][0]"


def make_call(
    capture: TfCapture, executable: Executable, options: CompileOptions, arrays: Sequence[bool]
) -> tuple[Source, list[str]]:
    """The source that runs a loaded program; the caller adds what is returned.

    Args:
        capture: what was compiled.
        executable: the loaded program.
        options: ``num_threads`` and ``num_iters`` matter here.
        arrays: for each argument of the traced function, whether it comes as a NumPy array and
            not as a tensor.

    Returns:
        The source, whose parameters are ``a0``, ``a1``, …, and the names of the results in it.
    """
    parameters = [f"a{i}" for i in range(len(arrays))]
    source = Source(", ".join(parameters))
    addresses: list[str] = []
    released: list[str] = []
    finished: list[str] = []
    names: list[str] = []
    with_elements = [(i, a) for i, a in enumerate(capture.arguments) if a.spec and a.spec.numel]
    inputs = iter(with_elements)
    preparer = None if executable.preparation is None else Preparer(executable)
    read_once = set() if preparer is None else set(preparer.inputs)
    held: dict[int, tuple[str, str]] = {}
    manifest = executable.manifest
    empty = manifest["report"].get("empty", {})
    for number, row in enumerate(manifest["arguments"]):
        if row["role"] == "input":
            index, argument = next(inputs)
            address = _input(source, capture, arrays, index, argument)
            if number in read_once:
                # Read at each call, so that it is known whether it is still the same.
                source.add(f"p{number} = {address}")
                address = f"p{number}"
                held[number] = address, f"n{index}" if argument.kind == "variable" else "None"
            addresses.append(address)
        elif row["role"] == KEPT:
            assert preparer is not None
            source.add(_kept(source, preparer, options, held))
            addresses.append("kept.address")
        elif row["role"] == "output":
            empty_results(source, names, empty)
            name = f"r{len(names)}"
            names.append(name)
            addresses.append(_output(source, name, row, finished))
        elif row["role"] == "workspace":
            pool = source.name("workspaces", buffers.workspaces)
            source.add(f"w{number} = {pool}.acquire({row['shape'][0]})")
            addresses.append(f"w{number}.address")
            released.append(f"w{number}.release()")
        else:
            made = source.name("empty", np.empty)
            source.add(f"s{number} = {made}(1, 'int32')")
            addresses.append(_ADDRESS.format(f"s{number}"))
    empty_results(source, names, empty)
    pack = source.name("pack", struct.Struct(f"{len(addresses)}Q").pack)
    entry = source.name("entry", executable.entry)
    count = (
        str(options.num_threads)
        if options.num_threads is not None
        else f"{source.name('threads', threads.resolve)}(None, {thread_setting()})"
    )
    run = f"code = {entry}({pack}({', '.join(addresses)}), {count})"
    if options.num_iters > 1:
        source.add(f"for _ in range({options.num_iters}):")
        source.add(run, depth=2)
    else:
        source.add(run)
    for line in released:
        source.add(line)
    source.add("if code:")
    failure = source.name("failure", _failure_of(manifest.get("checks", [])))
    source.add(f"raise {failure}(code)", depth=2)
    for line in finished:
        source.add(line)
    count_outputs = len(capture.concrete.graph.outputs)
    assign = None
    for name, position in zip(
        names[count_outputs:], manifest["report"].get("assigned", ()), strict=True
    ):
        assign = assign or source.name("assign", tf.raw_ops.AssignVariableOp)
        handle = source.name("handle", capture.arguments[position].held)
        source.add(f"{assign}(resource={handle}, value={name})")
    return source, names[:count_outputs]


def _kept(
    source: Source, preparer: Preparer, options: CompileOptions, held: dict[int, tuple[str, str]]
) -> str:
    """The line that finds what is kept of these addresses and the arrays that hold them."""
    lasting = LastingArrays(
        preparer, lambda: threads.resolve(options.num_threads, thread_setting())
    )
    pairs = [held[number] for number in preparer.inputs]
    found, arrays = (", ".join(names) for names in zip(*pairs, strict=True))
    return f"kept = {source.name('kept_of', lasting.find())}(({found},), ({arrays},))"


def _input(
    source: Source, capture: TfCapture, arrays: Sequence[bool], index: int, argument: Any
) -> str:
    assert argument.spec is not None
    scalar = argument.spec.shape == ()
    if argument.kind == "array":
        view = np.asarray(argument.held._numpy())
        source.name("constant", (argument.held, view))  # keeps them alive
        return str(view.__array_interface__["data"][0])
    if argument.kind == "variable":
        read = source.name("read", tf.raw_ops.ReadVariableOp)
        handle = source.name("handle", argument.held)
        dtype = source.name("dtype", TF_DTYPES[argument.spec.dtype])
        tensor = f"{read}(resource={handle}, dtype={dtype})"
    elif arrays[index]:
        fit = source.name("fitting", fitting)
        source.add(f"n{index} = {fit}(a{index})")
        return _ADDRESS.format(f"n{index}")
    else:
        tensor = f"a{index}"
    view_of = f"{tensor}._numpy()"
    # TensorFlow gives scalars as values without memory.
    made = f"{source.name('array', np.asarray)}({view_of})" if scalar else view_of
    source.add(f"n{index} = {made}")
    return _ADDRESS.format(f"n{index}")


def empty_results(source: Source, names: list[str], empty: dict[str, Any]) -> None:
    """Results without elements are the same tensor at each call."""
    while (row := empty.get(str(len(names)))) is not None:
        dtype, shape = row
        names.append(source.name("empty_result", tf.zeros(shape, TF_DTYPES[dtype])))


def _output(source: Source, name: str, row: dict[str, Any], finished: list[str]) -> str:
    shape = tuple(row["shape"])
    tensor = source.name("tensor", EagerTensor)
    device = source.name("device", _device())
    dtype = source.name("numpy", TF_DTYPES[row["dtype"]].as_numpy_dtype)
    size = int(np.prod(shape, dtype=np.int64)) * TF_DTYPES[row["dtype"]].size
    if size < POOLED_BYTES:
        empty = source.name("empty", _poisoned if buffers.POISONED else np.empty)
        source.add(f"{name} = {empty}({shape}, {dtype})")
        finished.append(f"{name} = {tensor}({name}, {device})")
        return _ADDRESS.format(name)
    pool = source.name("outputs", buffers.outputs)
    view = source.name("view", np.ndarray)
    source.add(f"b_{name} = {pool}.acquire({size})")
    source.add(f"{name} = {view}({shape}, {dtype}, b_{name})")
    if row["dtype"] == "bfloat16":
        finished.append(f"{name} = {tensor}({name}, {device})")
    else:
        adopt = source.name("adopt", tf.experimental.dlpack.from_dlpack)
        finished.append(f"{name} = {adopt}({name}.__dlpack__())")
    return f"b_{name}.address"


def _poisoned(shape: tuple[int, ...], dtype: Any) -> Any:
    """``numpy.empty``, filled with a pattern; see :mod:`polyblocks.runtime.buffers`."""
    made = np.empty(shape, dtype)
    buffers.poison(made.ctypes.data, made.nbytes)
    return made


def thread_setting() -> int | None:
    """The intra-op parallelism that TensorFlow is set to, fixed once it runs; None: not set."""
    return tf.config.threading.get_intra_op_parallelism_threads() or None


def fitting(array: np.ndarray) -> np.ndarray:
    """The array as compiled code reads it: dense, in row-major order, each element aligned and
    its bytes in the machine's order.
    """
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return np.require(array, requirements=("C", "A"))


def _device() -> str:
    from tensorflow.python.eager import context

    return str(context.context().device_name)


def _failure_of(checks: list[str]) -> Callable[[int], ExecutionError]:
    def failure(code: int) -> ExecutionError:
        known = 0 < code <= len(checks)
        return ExecutionError(
            checks[code - 1] if known else f"the compiled program returned code {code}"
        )

    return failure
