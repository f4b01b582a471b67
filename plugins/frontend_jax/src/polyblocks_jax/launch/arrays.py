"""The ArrayInterface of JAX: arrays for the generic launch path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from polyblocks.errors import InputError, UnsupportedError
from polyblocks.program import ArraySpec
from polyblocks.runtime.arrays import HOST, ArrayInterface, Device
from polyblocks.runtime.binding import Binding
from polyblocks.runtime.numpy_arrays import NumpyArrays
from polyblocks_jax.launch.loaded import loaded
from polyblocks_jax.specs import spec_of

_numpy = NumpyArrays()
#: Types with a shape and a dtype and no values.
_DESCRIPTIONS = (jax.ShapeDtypeStruct, jax.core.ShapedArray)


class JaxArrays(ArrayInterface):
    """JAX arrays on the host, and NumPy arrays. Arrays of random keys are what these are made of.

    For ``polyblocks.load`` and tools. Compiled functions, and loaded ones with arrays of JAX alone,
    do not go this way, but are called by XLA; see :mod:`polyblocks_jax.launch.loaded_call`.
    """

    def is_array(self, value: Any) -> bool:
        """Whether ``value`` is an array."""
        return isinstance(value, (jax.Array, np.ndarray)) and not isinstance(value, jax.core.Tracer)

    def describe(self, array: Any) -> ArraySpec:
        """Shape, dtype and strides of an array; see the base class."""
        if isinstance(array, np.ndarray):
            return _numpy.describe(array)
        try:
            spec = spec_of(array)
        except UnsupportedError as error:
            raise InputError(f"{error.reason}; use .astype()") from None
        return ArraySpec(spec.shape, spec.dtype, _strides(array, spec))

    def pointer(self, array: Any) -> int:
        """The address of the first element."""
        if isinstance(array, np.ndarray):
            return _numpy.pointer(array)
        _check_held(array)
        return int(array.block_until_ready().unsafe_buffer_pointer())

    def memory(self, array: Any) -> Any:
        """NumPy's view of one of JAX on the host: as long as that lives, JAX does not free it."""
        if isinstance(array, np.ndarray) or self.device(array) != HOST:
            return array
        if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
            return array
        view = np.asarray(array)
        return view if _numpy.pointer(view) == self.pointer(array) else array

    def is_constant(self, array: Any) -> bool:
        """Whether it is JAX's and :meth:`memory` has a view of it: JAX's arrays are values."""
        if isinstance(array, np.ndarray) or array.is_deleted() or len(array.devices()) > 1:
            return False
        return self.memory(array) is not array

    def device(self, array: Any) -> Device:
        """Where the array lies."""
        if isinstance(array, np.ndarray):
            return HOST
        if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
            array = jax.random.key_data(array)  # DLPack has no keys
        _check_held(array)
        kind, number = array.__dlpack_device__()
        return Device(int(kind), int(number))

    def is_writable(self, array: Any) -> bool:
        """Never, of JAX's own: they are values."""
        return isinstance(array, np.ndarray) and _numpy.is_writable(array)

    def empty(self, spec: ArraySpec, device: Device) -> Any:
        """A new array."""
        if device != HOST:
            raise InputError(f"this frontend makes arrays on the host, not on {tuple(device)}")
        check_made(spec)
        return jnp.empty(spec.shape, spec.dtype, device=jax.devices("cpu")[0])

    def transfer(self, array: Any, device: Device) -> Any:
        """The array on the host, or on a GPU that JAX sees."""
        if device == HOST and isinstance(array, np.ndarray):
            return array
        return jax.device_put(array, _place(device))

    def own_call(self, binding: Binding) -> Callable[..., Any] | None:
        """The program as XLA calls it, in a function that ``jax.jit`` dispatches."""
        return loaded(binding)

    def leaves(self, value: Any) -> list[Any]:
        """The leaves of a pytree."""
        return list(jax.tree_util.tree_leaves(value))

    def named(self, value: Any) -> dict[str, Any]:
        """The leaves of a pytree that are arrays, by their paths with dots between."""
        leaves, _ = jax.tree_util.tree_flatten_with_path(value)
        return {
            jax.tree_util.keystr(path, simple=True, separator="."): leaf
            for path, leaf in leaves
            if self.is_array(leaf)
        }

    def with_arrays(self, value: Any, make: Callable[[ArraySpec], Any]) -> Any:
        """``jax.ShapeDtypeStruct`` and abstract values become arrays, those of keys become keys."""

        def concrete(leaf: Any) -> Any:
            if isinstance(leaf, jax.Array) or not isinstance(leaf, _DESCRIPTIONS):
                return leaf
            if not all(isinstance(size, int) for size in leaf.shape):
                raise InputError(
                    f"an input of shape {tuple(leaf.shape)} has a symbolic size; a program has one "
                    "size: pass a ShapeDtypeStruct with numbers"
                )
            if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
                data = jax.eval_shape(
                    jax.random.key_data, jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
                )
                spec = ArraySpec.contiguous(data.shape, str(data.dtype))
                return jax.random.wrap_key_data(make(spec), impl=leaf.dtype._impl.name)
            return make(ArraySpec.contiguous(leaf.shape, str(leaf.dtype)))

        return jax.tree_util.tree_map(concrete, value)

    def make_ready(self, array: Any, stream: int) -> None:
        """Wait until it is computed: JAX does not tell its streams."""
        del stream
        if not isinstance(array, np.ndarray):
            array.block_until_ready()

    def adopt(self, memory: Any) -> Any:
        """An array on memory of a GPU; JAX waits for the stream that writes it."""
        return jax.dlpack.from_dlpack(memory)


def _strides(array: Any, spec: ArraySpec) -> tuple[int, ...]:
    """Of an array that may have a layout of its own; else those of its row-major spec."""
    # Arrays of keys, and those that are deleted, tell none.
    layout: Any = getattr(getattr(array, "format", None), "layout", None)
    order = getattr(layout, "major_to_minor", None)
    if order is None:
        return spec.strides
    if layout.tiling:
        raise InputError(
            f"the array lies in tiles {layout.tiling}, expected rows; copy it to a row-major layout"
        )
    dense = ArraySpec.contiguous(tuple(spec.shape[dim] for dim in order), spec.dtype)
    steps = dict(zip(order, dense.strides, strict=True))
    return tuple(steps[dim] for dim in range(len(order)))


def _check_held(array: Any) -> None:
    if array.is_deleted():
        raise InputError("it has been deleted, or was donated to another call; pass a copy")


def check_made(spec: ArraySpec) -> None:
    """Check that JAX has arrays like this one, as it is configured now.

    Raises:
        InputError: it has not; says what to do.
    """
    if not spec.is_contiguous:
        raise InputError(f"JAX has row-major arrays only, not strides {list(spec.strides)}")
    dtype = jnp.dtype(spec.dtype)
    if jax.dtypes.canonicalize_dtype(dtype) != dtype:
        raise InputError(
            f"JAX makes no {spec.dtype} now; jax.config.update('jax_enable_x64', True)"
        )


#: ``DLDeviceType`` -> JAX's name of the platform.
_PLATFORMS = {1: "cpu", 2: "cuda", 10: "rocm"}


def _place(device: Device) -> Any:
    platform = _PLATFORMS.get(device.kind)
    try:
        found = {each.local_hardware_id or 0: each for each in jax.devices(platform)}
        return found[device.number]
    except (RuntimeError, KeyError):
        raise InputError(f"JAX sees no device {tuple(device)}") from None
