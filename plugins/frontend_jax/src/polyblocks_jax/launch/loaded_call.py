"""Loaded programs as functions of JAX arrays: called by XLA, dispatched by ``jax.jit``.

Arguments are checked when JAX meets arguments of a new kind (shape, dtype, where they lie);
later calls go through JAX's C++ code alone. All that is no array of JAX's goes the generic way.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from polyblocks.errors import InputError
from polyblocks.isolation import forks
from polyblocks.runtime.arrays import HOST, Device
from polyblocks.runtime.binding import Binding
from polyblocks.runtime.native.call import NativeCall, address_of
from polyblocks.runtime.slots import check_all, text_of
from polyblocks_jax.compat import with_misses, without_cache
from polyblocks_jax.launch.address_list import address_list
from polyblocks_jax.launch.arrays import JaxArrays, check_made
from polyblocks_jax.launch.forked import lacks_threads
from polyblocks_jax.launch.programs import register_loaded
from polyblocks_jax.specs import spec_of
from polyblocks_jax.transforms.lowering import ffi_call
from polyblocks_jax.transforms.meshes import partitioned_devices
from polyblocks_jax.transforms.tracing import is_tracing

polyblocks_loaded_p = Primitive("polyblocks_loaded")
polyblocks_loaded_p.multiple_results = True


def loaded_call(binding: Binding) -> Callable[..., Any] | None:
    """A function that calls a program through XLA; see :meth:`ArrayInterface.own_call`."""
    if not _suits_xla(binding):
        return None
    program = _Program(binding)
    jitted = jax.jit(program.trace)
    call: Any = with_misses(jitted, program.call_anew)
    call.__name__ = call.__qualname__ = binding.function
    call.__doc__ = binding.plain.__doc__

    def native_call(slow: Callable[..., Any]) -> NativeCall | None:
        # A dispatcher on the type of the first array goes on to JAX's function.
        if program.kind is None:
            return None
        target = address_of(ctypes.pythonapi.PyObject_Vectorcall)
        return NativeCall((program.kind,), target, slow)

    if binding.weights is None:
        call.native_call = native_call
        return call

    weights = program.weights
    listing = program.listing()

    def with_weights(*arrays: Any) -> Any:
        return call(*arrays, *weights)

    if listing is None:
        return with_weights

    def listed_anew(
        inner: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A call with the list of addresses that JAX's cache does not know."""
        del kwargs
        arrays = args[1:]
        if not program.takes_list(arrays, listing):
            return without_cache(with_weights(*arrays))
        return inner(*args)

    with_list = functools.partial(with_misses(jax.jit(program.trace_listed), listed_anew), listing)

    def native_list(slow: Callable[..., Any]) -> NativeCall | None:
        del slow
        return native_call(with_list)

    with_list.native_call = native_list  # type: ignore[attr-defined]
    return with_list


def _suits_xla(binding: Binding) -> bool:
    """Whether XLA can call a program so that a caller does not see the difference."""
    signature, manifest = binding.signature, binding.executable.manifest
    # XLA allocates what a program writes, and returns no argument as it is.
    if signature.written or any(kind == "input" for kind, _ in signature.results):
        return False
    # A failed check is an error of the call, but XLA tells it when the result is looked at.
    if manifest.get("checks") and not binding.executable.takes_device_arrays:
        return False
    # Arrays of JAX are values; others may change.
    weights = [] if binding.weights is None else binding.weights.arrays
    if not all(isinstance(array, jax.Array) for array in weights):
        return False
    every = (*signature.inputs, *signature.weights, *signature.fresh)
    slots = [slot for slot in every if slot.spec is not None]
    if not any(slot.index >= 0 for slot in signature.fresh):
        return False
    return all(slot.spec.is_contiguous for slot in slots if slot.spec is not None) and all(
        signature.sources[number][0] == "stored" for number in _prepared_from(binding)
    )


def _prepared_from(binding: Binding) -> Sequence[int]:
    """Numbers of the arguments that the program's preparation reads."""
    preparation = binding.executable.preparation
    if preparation is None:
        return ()
    rows, sources = preparation.manifest["arguments"], preparation.manifest["sources"]
    return [source for row, source in zip(rows, sources, strict=True) if row["role"] == "input"]


class _Traced(JaxArrays):
    """Values that are being traced, as if they were arrays on the host."""

    def is_array(self, value: Any) -> bool:
        return isinstance(value, jax.core.Tracer) or super().is_array(value)

    def device(self, array: Any) -> Device:
        del array
        return HOST

    def pointer(self, array: Any) -> int:
        return 0 if isinstance(array, jax.core.Tracer) else super().pointer(array)


_traced = _Traced()


class _Known:
    """A loaded program, registered with XLA once per platform on which it was called.

    JAX's caches keep it with what they hold of the calls, so it has neither weights nor arrays.

    Args:
        binding: of the program.
    """

    def __init__(self, binding: Binding) -> None:
        self.function = binding.function
        self.executable = binding.executable
        signature = binding.signature
        inputs = [slot for slot in signature.slots if slot.role == "input"]
        sources = [signature.sources[slot.index] for slot in inputs]
        #: Of each input that XLA passes, the number of the argument of the call.
        self.passed = [k for kind, k in sources if kind == "input"]
        #: Of each output that XLA allocates, the number among the fresh results.
        self.made = [
            signature.sources[slot.index][1] for slot in signature.slots if slot.role == "output"
        ]
        specs = [signature.fresh[k].spec for k in self.made]
        self._specs = [spec for spec in specs if spec is not None]
        self._constants = {
            number: signature.stored[k]
            for number, (kind, k) in enumerate(sources)
            if kind == "stored"
        }
        first = len(signature.inputs)
        #: Numbers of the inputs that XLA does not pass where it passes the addresses of weights.
        self._listed = [
            number for number, (kind, k) in enumerate(sources) if kind == "input" and k >= first
        ]
        self._blobs = binding.blobs
        self._settings: dict[str, Any] = {
            "num_threads": binding.num_threads,
            "num_iters": binding.num_iters,
        }
        self._registered: dict[tuple[str, bool], Any] = {}
        self._lock = forks.lock()

    def avals(self) -> list[Any]:
        """Of the results that XLA allocates."""
        return [jax.core.ShapedArray(s.shape, jax.numpy.dtype(s.dtype)) for s in self._specs]

    def on(self, platform: str, *, is_listed: bool = False) -> Any:
        """As XLA knows it on a platform; None if it would have to hold too much, or without LLVM,
        which links what XLA calls.
        """
        key = platform, is_listed
        with self._lock:
            if key not in self._registered:
                made = None
                with contextlib.suppress(ImportError):
                    made = register_loaded(
                        self.executable,
                        self._blobs,
                        {number: _array(*stored) for number, stored in self._constants.items()},
                        platform=platform,
                        listed=self._listed if is_listed else (),
                        **self._settings,
                    )
                self._registered[key] = made
            return self._registered[key]


class _Program:
    """A loaded program with its bound weights and checks.

    Args:
        binding: see there.
    """

    def __init__(self, binding: Binding) -> None:
        self.binding = binding
        self._known = _Known(binding)
        #: Arrays passed behind the caller's.
        self.weights = () if binding.weights is None else tuple(binding.weights.arrays)
        #: The class of JAX's arrays, once XLA has called the program.
        self.kind: type | None = None

    def call_anew(
        self, inner: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A call that JAX's cache does not know."""
        plain = self.binding.plain
        every, args = args, args[: len(args) - len(self.weights)]
        traced = any(isinstance(value, jax.core.Tracer) for value in args)
        ours = traced or (bool(every) and all(isinstance(value, jax.Array) for value in args))
        if kwargs or not ours or lacks_threads():
            return without_cache(plain(*args, **kwargs))
        if traced:
            check_all(self.binding.function, self.binding.signature, _traced, args)
        else:
            place = plain.check(args)  # type: ignore[attr-defined]
            if self.binding.weights is not None:
                self.binding.weights.addresses()  # which checks them
            platform = "cpu" if place == HOST else _platform_of(every[0])
            if self._known.on(platform) is None:
                return without_cache(plain(*args))
            self.kind = type(every[0])
        for slot in self.binding.signature.fresh:
            assert slot.spec is not None
            check_made(slot.spec)
        return inner(*every)

    def listing(self) -> Any:
        """The addresses of the weights, an array of JAX's; None: they have to be passed."""
        weights = self.binding.weights
        if weights is None or not weights.are_constants:
            return None
        return address_list(weights.read())

    def takes_list(self, arrays: Sequence[Any], listing: Any) -> bool:
        """Whether XLA may be given addresses of weights instead of these, which are checked.

        Where a function is traced, XLA may keep what it was given longer than the weights live.
        """
        if not arrays or lacks_threads() or not all(map(_is_concrete, arrays)):
            return False
        place = self.binding.plain.check(arrays)  # type: ignore[attr-defined]
        if place != HOST or arrays[0].devices() != listing.devices():
            return False
        if self._known.on("cpu", is_listed=True) is None:
            return False
        self.kind = type(arrays[0])
        for slot in self.binding.signature.fresh:
            assert slot.spec is not None
            check_made(slot.spec)
        return True

    def trace_listed(self, listing: Any, *arrays: Any) -> Any:
        """The function that ``jax.jit`` traces where XLA gets the addresses of the weights."""
        if not is_tracing():  # jax.disable_jit
            return self.binding.plain(*arrays)
        values = self._values(arrays)
        count = len(values)
        passed = (values[k] for k in self._known.passed if k < count)
        made = polyblocks_loaded_p.bind(listing, *passed, program=self._known, is_listed=True)
        return self._returned(made, arrays)

    def trace(self, *arrays: Any) -> Any:
        """The function that ``jax.jit`` traces."""
        if not is_tracing():  # jax.disable_jit
            return self.binding.plain(*arrays[: len(arrays) - len(self.weights)])
        values = self._values(arrays)
        passed = (values[k] for k in self._known.passed)
        made = polyblocks_loaded_p.bind(*passed, program=self._known, is_listed=False)
        return self._returned(made, arrays)

    def _values(self, arrays: Sequence[Any]) -> list[Any]:
        """The values passed for arrays, the first ones of the inputs and weights.

        Raises:
            InputError: JAX has narrowed one.
        """
        signature = self.binding.signature
        values = [
            jax.random.key_data(array)
            if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key)
            else array
            for array in arrays
        ]
        slots = (*signature.inputs, *signature.weights)
        for slot, value in zip(slots, values, strict=False):
            assert slot.spec is not None
            if (got := spec_of(value.aval)).dtype != slot.spec.dtype:  # of NumPy, and narrowed
                raise InputError(
                    f"{self.binding.function}: JAX makes {text_of(got)} of '{slot.name}', expected "
                    f"{text_of(slot.spec)}; jax.config.update('jax_enable_x64', True)"
                )
        return values

    def _returned(self, made: Sequence[Any], arrays: Sequence[Any]) -> Any:
        """The results of the call, with those that XLA has allocated."""
        signature = self.binding.signature
        fresh: list[Any] = [
            jax.numpy.zeros(slot.spec.shape, slot.spec.dtype) if slot.spec is not None else None
            for slot in signature.fresh
        ]
        for k, value in zip(self._known.made, made, strict=True):
            fresh[k] = value
        return signature.returned(fresh, arrays)


def _is_concrete(value: Any) -> bool:
    return isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer)


def _array(slot: Any, contents: bytes) -> np.ndarray[Any, Any]:
    """Contents that the artifact has, as an array that is aligned for every vector."""
    memory = np.empty(max(len(contents), 1) + 64, np.uint8)
    start = -memory.ctypes.data % 64
    made = memory[start : start + len(contents)]
    made[:] = np.frombuffer(contents, np.uint8)
    return made


def _platform_of(array: Any) -> str:
    """XLA's name of the platform that an array is on: ``cuda`` or ``rocm`` of a GPU's."""
    (device,) = array.devices()
    if device.platform != "gpu":
        return str(device.platform)
    return "rocm" if "rocm" in device.client.platform_version else "cuda"


@polyblocks_loaded_p.def_abstract_eval
def _abstract(*avals: Any, program: _Known, is_listed: bool) -> Any:
    del avals, is_listed
    return program.avals()


@polyblocks_loaded_p.def_impl
def _run(*args: Any, **params: Any) -> Any:
    """Outside of any trace: a jaxpr with the primitive is being evaluated step by step."""
    return jax.jit(lambda *values: polyblocks_loaded_p.bind(*values, **params))(*args)


def _lower(ctx: Any, *args: Any, program: _Known, is_listed: bool) -> Any:
    name, manifest = program.function, program.executable.manifest
    if (count := partitioned_devices(ctx.module_context.axis_context)) > 1:
        raise InputError(
            f"{name}: its arrays lie on {count} devices; expected all on one device; call it in "
            "jax.shard_map, or copy them to one device"
        )
    (platform, *others) = ctx.module_context.platforms
    if others or (platform != "cpu" and not program.executable.takes_device_arrays):
        raise InputError(
            f"{name} is compiled for target '{manifest.get('target', '?')}'; its arrays are on "
            f"{' and '.join([platform, *others])}; copy them to the host"
        )
    registered = program.on(platform, is_listed=is_listed)
    if registered is None:
        raise InputError(
            f"{name} cannot be called inside of jax.jit: it holds more weights than such programs "
            "may together, or llvmlite is not installed; call it outside of jax.jit"
        )
    return ffi_call(ctx, args, registered, {}, name)


mlir.register_lowering(polyblocks_loaded_p, _lower, inline=False)


def _batch(args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
    """``jax.vmap``: the program runs once for each element."""
    mapped = [k for k, dim in enumerate(dims) if dim is not None]
    moved = tuple(jax.numpy.moveaxis(args[k], dims[k], 0) for k in mapped)

    def one(values: Sequence[Any]) -> Any:
        full = list(args)
        for k, value in zip(mapped, values, strict=True):
            full[k] = value
        return polyblocks_loaded_p.bind(*full, **params)

    made = jax.lax.map(one, moved)
    return made, [0] * len(made)


batching.primitive_batchers[polyblocks_loaded_p] = _batch


def _differentiate(primals: Any, tangents: Any, *, program: _Known, is_listed: bool) -> Any:
    raise InputError(
        f"{program.function} is loaded from a file, which has no gradients; differentiate "
        "the function that it was made of, and compile what results"
    )


ad.primitive_jvps[polyblocks_loaded_p] = _differentiate
