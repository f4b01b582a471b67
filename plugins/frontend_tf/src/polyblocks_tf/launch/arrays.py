"""The ArrayInterface of TensorFlow: tensors for the generic launch path."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework.ops import EagerTensor

from polyblocks.errors import InputError
from polyblocks.program import ArraySpec
from polyblocks.runtime import buffers
from polyblocks.runtime.arrays import HOST, ArrayInterface, Device
from polyblocks.runtime.device.exported import tensor_in
from polyblocks.runtime.numpy_arrays import NumpyArrays
from polyblocks_tf.launch.threads import thread_setting
from polyblocks_tf.specs import DTYPE_NAMES, TF_DTYPES, dtype_list
from polyblocks_tf.xla.device_program import DeviceProgram, suits_xla

if TYPE_CHECKING:
    from polyblocks.runtime.binding import Binding
    from polyblocks.runtime.native.reader import NativeReader

#: Results of at least this size (bytes) are tensors on memory of the pool. Smaller ones are copied
#: by TensorFlow into memory of its own, which takes less than the rest of the call does.
POOLED_BYTES = 1 << 14

_numpy = NumpyArrays()


def _unsupported(dtype: tf.DType) -> InputError:
    return InputError(
        f"unsupported dtype {dtype.name}: expected one of {dtype_list()}; use tf.cast"
    )


class TfArrays(ArrayInterface):
    """Eager tensors on the host, and NumPy arrays.

    Tensors are never written: a program that updates takes none.
    """

    def is_array(self, value: Any) -> bool:
        """Whether ``value`` is an eager tensor or a NumPy array."""
        return isinstance(value, (EagerTensor, np.ndarray))

    def describe(self, array: Any) -> ArraySpec:
        """Shape, dtype and strides of a tensor, which is always dense."""
        if isinstance(array, np.ndarray):
            return _numpy.describe(array)
        if array.dtype not in DTYPE_NAMES:
            raise _unsupported(array.dtype)
        return ArraySpec.contiguous(tuple(array.shape), DTYPE_NAMES[array.dtype])

    def pointer(self, array: Any) -> int:
        """The address of the first element."""
        if isinstance(array, np.ndarray):
            return _numpy.pointer(array)
        # NumPy gets a scalar as a value without memory.
        if self.device(array) != HOST or not array.shape.rank:
            return tensor_in(tf.experimental.dlpack.to_dlpack(array))[0]
        return int(array._numpy().__array_interface__["data"][0])

    def memory(self, array: Any) -> Any:
        """NumPy's view of a tensor on the host: as long as that lives, TensorFlow neither frees nor
        writes it.
        """
        if isinstance(array, np.ndarray) or self.device(array) != HOST:
            return array
        try:
            view = array._numpy() if array.shape.rank else np.from_dlpack(array)
        except (BufferError, RuntimeError, TypeError, tf.errors.OpError):  # of this dtype
            return array
        is_view = isinstance(view, np.ndarray) and _numpy.pointer(view) == self.pointer(array)
        return view if is_view else array

    def is_constant(self, array: Any) -> bool:
        """Whether :meth:`memory` has a view of it: TensorFlow's tensors are values."""
        return self.memory(array) is not array

    def device(self, array: Any) -> Device:
        """Where the tensor lies."""
        if isinstance(array, np.ndarray):
            return HOST
        kind, number = array.__dlpack_device__()
        return Device(int(kind), int(number))

    def is_writable(self, array: Any) -> bool:
        """Never of tensors: they are values."""
        return isinstance(array, np.ndarray) and _numpy.is_writable(array)

    def empty(self, spec: ArraySpec, device: Device) -> Any:
        """A new tensor on memory of the pool."""
        _expect_host(device)
        if not spec.is_contiguous:
            raise InputError(f"tensors of TensorFlow are dense; strides {spec.strides} are not")
        dtype = TF_DTYPES[spec.dtype].as_numpy_dtype
        memory: Any = buffers.outputs.acquire(max(spec.nbytes, 1))
        view: Any = np.ndarray(spec.shape, dtype, memory)
        context.ensure_initialized()  # this may be the first tensor of the process
        return EagerTensor(view, None)

    def allocation(self, spec: ArraySpec) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Small tensors are on memory of TensorFlow."""
        if buffers.POISONED or spec.nbytes >= POOLED_BYTES or not spec.is_contiguous:
            return super().allocation(spec)
        from polyblocks_tf.launch.native_maker import maker

        arguments = spec.shape, TF_DTYPES[spec.dtype].as_numpy_dtype
        made = maker(spec, functools.partial(_small, *arguments))
        return (_small, arguments) if made is None else (made, ())

    def native_reader(self) -> NativeReader | None:
        """Reads eager tensors, where all are on the host."""
        from polyblocks_tf.launch.native_reader import reader

        return reader()

    def own_call(self, binding: Binding) -> Callable[..., Any] | None:
        """A program for devices as TensorFlow's XLA calls it, on TensorFlow's stream."""
        return DeviceProgram(binding, _Unaddressed()) if suits_xla(binding) else None

    def num_threads(self) -> int | None:
        """See :func:`polyblocks_tf.launch.threads.thread_setting`."""
        return thread_setting()

    def transfer(self, array: Any, device: Device) -> Any:
        """The tensor itself if it is on the device, else a copy there."""
        if device == HOST and isinstance(array, np.ndarray):
            return array
        if device != HOST and device.kind not in _GPUS:
            raise InputError(f"TensorFlow makes no tensors here on device {tuple(device)}")
        with tf.device("CPU" if device == HOST else f"GPU:{device.number}"):
            return tf.identity(array)

    def leaves(self, value: Any) -> list[Any]:
        """The leaves of a structure, as ``tf.nest.flatten`` orders them."""
        return list(tf.nest.flatten(value))

    def named(self, value: Any) -> dict[str, Any]:
        """Variables as tensors: those of Keras's models by their paths, those of modules by the
        attributes that lead to them.
        """
        if isinstance(value, tf.keras.layers.Layer):
            return {each.path: tf.convert_to_tensor(each) for each in value.variables}
        if isinstance(value, tf.Variable):
            return {"": value.read_value()}
        if isinstance(value, tf.Module):
            found = value._flatten(
                predicate=lambda each: isinstance(each, tf.Variable),
                with_path=True,
                expand_composites=False,
            )
            return {".".join(map(str, path)): each.read_value() for path, each in found}
        return super().named(value)

    def with_arrays(self, value: Any, make: Callable[[ArraySpec], Any]) -> Any:
        """``tf.TensorSpec`` and Keras's symbolic tensors become tensors."""

        def concrete(leaf: Any) -> Any:
            if not isinstance(leaf, tf.TypeSpec) and not tf.keras.utils.is_keras_tensor(leaf):
                return leaf
            shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
            if not isinstance(leaf, tf.TensorSpec) and isinstance(leaf, tf.TypeSpec):
                raise InputError(f"{type(leaf).__name__} describes no tensor; pass a tf.TensorSpec")
            shape = tf.TensorShape(shape)
            if not shape.is_fully_defined():
                raise InputError(
                    f"an input of shape {shape} leaves a size open; a program has one size: pass a "
                    "tf.TensorSpec with numbers"
                )
            dtype = tf.as_dtype(dtype)
            if dtype not in DTYPE_NAMES:
                raise _unsupported(dtype)
            return make(ArraySpec.contiguous(tuple(shape), DTYPE_NAMES[dtype]))

        return tf.nest.map_structure(concrete, value)

    def make_ready(self, array: Any, stream: int) -> None:
        """Wait until it is computed; TensorFlow does that when it shows its memory."""
        del stream
        if isinstance(array, np.ndarray):
            return
        tf.experimental.dlpack.to_dlpack(array)

    def waits(self, arrays: Sequence[Any]) -> frozenset[int]:
        """None: an array is computed when :meth:`pointer` has told its address."""
        del arrays
        return frozenset()

    def adopt(self, memory: Any) -> Any:
        """A tensor on memory of a GPU, which is waited for: TensorFlow reads it on a stream of its
        own, which waits for no other and which DLPack does not tell.
        """
        memory.wait()
        return tf.experimental.dlpack.from_dlpack(memory.__dlpack__())


class _Unaddressed(TfArrays):
    """Tensors whose addresses are not looked at, for which TensorFlow would wait.

    XLA aligns what it passes.
    """

    def pointer(self, array: Any) -> int:
        del array
        return 0


def _small(shape: tuple[int, ...], dtype: Any) -> Any:
    context.ensure_initialized()  # this may be the first tensor of the process
    return EagerTensor(np.empty(shape, dtype), None)


#: ``DLDeviceType`` of GPUs.
_GPUS = (2, 10)


def _expect_host(device: Device) -> None:
    if device != HOST:
        raise InputError(f"this frontend makes tensors on the host, not on device {tuple(device)}")
