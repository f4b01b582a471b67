"""A compiled program as a Python function, generated for its arguments and results.

Besides running the code, a call takes the addresses of the arrays, reads the variables, finds
memory for the results, and makes tensors of it. The source of the function spells that out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import record
from tensorflow.python.framework.ops import EagerTensor

from polyblocks.artifact import KEPT
from polyblocks.errors import ExecutionError
from polyblocks.options import CompileOptions
from polyblocks.runtime import buffers, threads
from polyblocks.runtime.kept.lasting_arrays import LastingArrays
from polyblocks.runtime.kept.preparer import Preparer
from polyblocks.runtime.source import Source
from polyblocks_tf.capture import TfCapture
from polyblocks_tf.launch.arrays import POOLED_BYTES
from polyblocks_tf.launch.threads import thread_setting
from polyblocks_tf.specs import TF_DTYPES
from polyblocks_tf.variables.bound import BoundVariables, bind_variables

if TYPE_CHECKING:
    from polyblocks.runtime.executable import Executable


#: Keywords of the generated functions whose values are addresses of C-contiguous host memory.
_ADDRESS = "{0}.__array_interface__['data'][0]"


def make_call(
    capture: TfCapture, executable: Executable, options: CompileOptions, arrays: Sequence[bool]
) -> tuple[Source, list[str]]:
    """The source that runs a loaded program; the caller adds what is returned.

    Operations of TensorFlow read and assign the variables.

    Args:
        capture: what was compiled.
        executable: the loaded program.
        options: ``num_threads`` and ``num_iters`` matter here.
        arrays: for each argument of the traced function, whether it comes as a NumPy array and
            not as a tensor.

    Returns:
        The source, whose parameters are ``a0``, ``a1``, …, and the names of the results in it.
    """
    call = _Call(capture, executable, options, arrays)
    call.take_arguments()
    entry = call.source.name("entry", executable.entry)
    run = f"code = {entry}({call.packed()}, {call.threads()})"
    if options.num_iters > 1:
        call.source.add(f"for _ in range({options.num_iters}):")
        call.source.add(run, depth=2)
    else:
        call.source.add(run)
    call.finish()
    count_outputs = len(capture.concrete.graph.outputs)
    assign = None
    for name, position in zip(
        call.names[count_outputs:], executable.manifest["report"].get("assigned", ()), strict=True
    ):
        assign = assign or call.source.name("assign", tf.raw_ops.AssignVariableOp)
        handle = call.source.name("handle", capture.arguments[position].held)
        call.source.add(f"{assign}(resource={handle}, value={name})")
    return call.source, call.names[:count_outputs]


def make_bound_call(
    capture: TfCapture,
    executable: Executable,
    options: CompileOptions,
    arrays: Sequence[bool],
    by_operations: Callable[..., Any],
) -> tuple[Source, list[str]] | None:
    """The same with variables that are bound; see :mod:`polyblocks_tf.variables`.

    Args:
        capture: what was compiled.
        executable: the loaded program.
        options: ``num_threads`` and ``num_iters`` matter here.
        arrays: for each argument, whether it comes as a NumPy array.
        by_operations: the same call, in which operations read and assign the variables.

    Returns:
        None where they cannot be bound.
    """
    preparer = None if executable.preparation is None else Preparer(executable)
    with record.stop_recording():
        bound = bind_variables(
            capture, executable, options.num_iters, preparer, lambda: _thread_count(options)
        )
    if bound is None:
        return None
    call = _Call(capture, executable, options, arrays, bound)
    call.take_arguments()
    source = call.source
    run, variables = source.name("run", bound.run), source.name("variables", bound)
    source.add(f"given, threads = {call.packed()}, {call.threads()}")
    source.add(f"prepared = {variables}.prepared")  # held, also where another thread replaces it
    source.add(f"code = {run}({bound.table}, given, prepared.record, threads)")
    source.add("if code < 0:")
    source.add(f"code = {variables}.again(code, given, threads)", depth=2)
    source.add("if code < 0:", depth=2)
    for line in call.released:
        source.add(line, depth=3)
    given = ", ".join(f"a{i}" for i in range(len(arrays)))
    source.add(f"return {source.name('by_operations', by_operations)}({given})", depth=3)
    call.finish()
    return source, call.names[: len(capture.concrete.graph.outputs)]


class _Call:
    """The source of one call while it is written.

    Attributes:
        source: the source.
        names: of the results in it; those that bound variables get are never defined.
        addresses: expressions, in the order of the program's arguments; without those that bound
            variables give.
        released: lines that give back what only the run needs.
    """

    def __init__(
        self,
        capture: TfCapture,
        executable: Executable,
        options: CompileOptions,
        arrays: Sequence[bool],
        bound: BoundVariables | None = None,
    ) -> None:
        self.source = Source(", ".join(f"a{i}" for i in range(len(arrays))))
        self.names: list[str] = []
        self.addresses: list[str] = []
        self.released: list[str] = []
        self._finished: list[str] = []
        self._capture = capture
        self._executable = executable
        self._options = options
        self._arrays = arrays
        self._bound = bound

    def take_arguments(self) -> None:
        """Find the addresses of the program's arguments, and memory for its results."""
        capture, source, names = self._capture, self.source, self.names
        with_elements = [(i, a) for i, a in enumerate(capture.arguments) if a.spec and a.spec.numel]
        inputs = iter(with_elements)
        executable = self._executable
        preparer = None
        if executable.preparation is not None and self._bound is None:
            preparer = Preparer(executable)
        read_once = set() if preparer is None else set(preparer.inputs)
        held: dict[int, tuple[str, str]] = {}
        manifest = executable.manifest
        empty = manifest["report"].get("empty", {})
        results = len(capture.concrete.graph.outputs)
        for number, row in enumerate(manifest["arguments"]):
            if row["role"] == "input":
                index, argument = next(inputs)
                if argument.kind == "variable" and self._bound is not None:
                    continue
                address = _input(source, capture, self._arrays, index, argument)
                if number in read_once:
                    # Read at each call, so that it is known whether it is still the same.
                    source.add(f"p{number} = {address}")
                    address = f"p{number}"
                    held[number] = address, f"n{index}" if argument.kind == "variable" else "None"
                self.addresses.append(address)
            elif row["role"] == KEPT:
                if preparer is not None:
                    source.add(_kept(source, preparer, self._options, held))
                    self.addresses.append("kept.address")
            elif row["role"] == "output":
                empty_results(source, names, empty)
                name = f"r{len(names)}"
                names.append(name)
                if self._bound is None or len(names) <= results:
                    self.addresses.append(_output(source, name, row, self._finished))
            elif row["role"] == "workspace":
                pool = source.name("workspaces", buffers.workspaces)
                source.add(f"w{number} = {pool}.acquire({row['shape'][0]})")
                self.addresses.append(f"w{number}.address")
                self.released.append(f"w{number}.release()")
            else:
                made = source.name("empty", np.empty)
                source.add(f"s{number} = {made}(1, 'int32')")
                self.addresses.append(_ADDRESS.format(f"s{number}"))
        empty_results(source, names, empty)

    def packed(self) -> str:
        """The addresses as bytes."""
        if not self.addresses:
            return "b''"
        pack = self.source.name("pack", struct.Struct(f"{len(self.addresses)}Q").pack)
        return f"{pack}({', '.join(self.addresses)})"

    def threads(self) -> str:
        """How many threads the call may use."""
        if self._options.num_threads is not None:
            return str(self._options.num_threads)
        return f"{self.source.name('threads', threads.resolve)}(None, {thread_setting()})"

    def finish(self) -> None:
        """Code after the run: give back, check, make tensors."""
        source = self.source
        for line in self.released:
            source.add(line)
        source.add("if code:")
        failure = source.name("failure", _failure_of(self._executable.manifest.get("checks", [])))
        source.add(f"raise {failure}(code)", depth=2)
        for line in self._finished:
            source.add(line)


def _kept(
    source: Source, preparer: Preparer, options: CompileOptions, held: dict[int, tuple[str, str]]
) -> str:
    """The line that finds what is kept of these addresses and the arrays that hold them."""
    lasting = LastingArrays(preparer, lambda: _thread_count(options))
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
    if argument.kind == "variable":
        source.add(f"if n{index}.shape != {argument.spec.shape}:")
        failure = source.name("no_value", no_value)
        source.add(f"raise {failure}({argument.name!r}, n{index}.shape)", depth=2)
    return _ADDRESS.format(f"n{index}")


def no_value(name: str, shape: Sequence[int]) -> Exception:
    """The error for a variable whose value is not of its shape: TensorFlow reads it as empty."""
    return tf.errors.FailedPreconditionError(
        None, None, f"'{name}' is uninitialized: its value has shape {tuple(shape)}; assign one"
    )


def empty_results(source: Source, names: list[str], empty: dict[str, Any]) -> None:
    """Results without elements are the same tensor at each call."""
    while (row := empty.get(str(len(names)))) is not None:
        dtype, shape = row
        names.append(source.name("empty_result", tf.zeros(shape, TF_DTYPES[dtype])))


def _output(source: Source, name: str, row: dict[str, Any], finished: list[str]) -> str:
    shape = tuple(row["shape"])
    tensor = source.name("tensor", EagerTensor)
    dtype = source.name("numpy", TF_DTYPES[row["dtype"]].as_numpy_dtype)
    size = int(np.prod(shape, dtype=np.int64)) * TF_DTYPES[row["dtype"]].size
    if size < POOLED_BYTES:
        empty = source.name("empty", _poisoned if buffers.POISONED else np.empty)
        source.add(f"{name} = {empty}({shape}, {dtype})")
        finished.append(f"{name} = {tensor}({name}, None)")  # to name the device takes 4 us
        return _ADDRESS.format(name)
    pool = source.name("outputs", buffers.outputs)
    view = source.name("view", np.ndarray)
    source.add(f"b_{name} = {pool}.acquire({size})")
    source.add(f"{name} = {view}({shape}, {dtype}, b_{name})")
    if row["dtype"] == "bfloat16":
        finished.append(f"{name} = {tensor}({name}, None)")
    else:
        adopt = source.name("adopt", tf.experimental.dlpack.from_dlpack)
        finished.append(f"{name} = {adopt}({name}.__dlpack__())")
    return f"b_{name}.address"


def _poisoned(shape: tuple[int, ...], dtype: Any) -> Any:
    """``numpy.empty``, filled with a pattern; see :mod:`polyblocks.runtime.buffers`."""
    made = np.empty(shape, dtype)
    buffers.poison(made.ctypes.data, made.nbytes)
    return made


def _thread_count(options: CompileOptions) -> int:
    return threads.resolve(options.num_threads, thread_setting())


def fitting(array: np.ndarray) -> np.ndarray:
    """The array as compiled code reads it: dense, in row-major order, each element aligned and
    its bytes in the machine's order.
    """
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return np.require(array, requirements=("C", "A"))


class CheckFailure(ExecutionError, tf.errors.InvalidArgumentError):
    """A failed check; also the error that TensorFlow's own operations raise for such values."""

    def __init__(self, message: str) -> None:
        tf.errors.InvalidArgumentError.__init__(self, None, None, message)


def _failure_of(checks: list[str]) -> Callable[[int], ExecutionError]:
    def failure(code: int) -> ExecutionError:
        known = 0 < code <= len(checks)
        return CheckFailure(
            checks[code - 1] if known else f"the compiled program returned code {code}"
        )

    return failure
