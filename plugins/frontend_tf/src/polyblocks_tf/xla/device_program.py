"""A loaded device program as a function of tensors on a GPU, called by TensorFlow's XLA.

XLA calls it on TensorFlow's stream, with results that TensorFlow allocates there: nothing waits.
The call is a ``tf.function`` of one operation, ``XlaCallModule``, for ``jit_compile``: run as an
operation by itself, that would wait for its results.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework.ops import EagerTensor

from polyblocks.isolation import forks
from polyblocks.program import ArraySpec
from polyblocks.runtime.arrays import HOST, ArrayInterface, Device
from polyblocks.runtime.binding import Binding
from polyblocks.runtime.device.calls.xla_device_call import XlaDeviceCall
from polyblocks.runtime.slots import Slot, check_all
from polyblocks_tf.specs import TF_DTYPES
from polyblocks_tf.xla.targets import PLATFORMS, Platform, Unavailable, register

#: Version of the operation's modules: StableHLO with the platforms beside it.
_MODULE_VERSION = 9


class DeviceProgram:
    """``call(*arrays)``: see :meth:`polyblocks.runtime.arrays.ArrayInterface.own_call`.

    Where XLA cannot call the program, ``binding.plain`` takes the tensors, which waits for them.

    Attributes:
        waits: why calls wait for the tensors that they take; empty if they do not, or are not known
            to.

    Args:
        binding: the program.
        interface: of tensors, to which their addresses need not be known.
    """

    def __init__(self, binding: Binding, interface: ArrayInterface) -> None:
        self.waits = ""
        self._binding = binding
        self._interface = interface
        #: The checked properties of the tensors accepted last, and their device.
        self._accepted: tuple[list[Any], Device] | None = None
        self._lock = forks.lock()
        self._call: XlaDeviceCall | None = None
        self._concrete: Any = None
        #: TensorFlow's numbers of devices on which XLA has called the program.
        self._known: set[int] = set()
        signature = binding.signature
        self._passed = [
            signature.sources[slot.index][1] for slot in signature.slots if slot.role == "input"
        ]
        self._made = [
            signature.sources[slot.index][1] for slot in signature.slots if slot.role == "output"
        ]
        self._empty = [
            tf.zeros(slot.spec.shape, TF_DTYPES[slot.spec.dtype])
            if slot.index < 0 and slot.spec is not None
            else None
            for slot in signature.fresh
        ]
        self.__name__ = self.__qualname__ = binding.function
        self.__doc__ = binding.plain.__doc__

    def __call__(self, *arrays: Any) -> Any:
        weights = self._binding.weights
        passed = arrays if weights is None else (*arrays, *weights.arrays)
        device = None if self.waits else self._device_of(passed, len(arrays))
        if device is None:
            return self._binding.plain(*arrays)
        try:
            made = self._run(device, passed)
        except Unavailable as error:
            self.waits = str(error)
            return self._binding.plain(*arrays)
        fresh = list(self._empty)
        for k, tensor in zip(self._made, made, strict=True):
            fresh[k] = tensor
        return self._binding.signature.returned(fresh, passed)

    def _device_of(self, passed: Sequence[Any], count: int) -> Device | None:
        """The GPU of the program's kind that all of these tensors are on, if there is one.

        Args:
            passed: the arrays of a call, and the weights.
            count: how many of them are arrays of the call.

        Raises:
            InputError: they do not fit.
        """
        if not passed or not all(isinstance(array, EagerTensor) for array in passed):
            return None
        kinds = [(t._datatype_enum(), t._shape_tuple(), t.backing_device) for t in passed]
        accepted = self._accepted
        if accepted is not None and kinds == accepted[0]:
            return accepted[1]
        first, *others = map(self._interface.device, passed)
        executable: Any = self._binding.executable  # of a target with devices, which has a driver
        known = first.kind in executable.driver.device_kinds and first.kind in PLATFORMS
        if first == HOST or not known or any(place != first for place in others):
            return None
        binding = self._binding
        check_all(binding.function, binding.signature, self._interface, passed[:count], first)
        # Weights were checked when they were bound: tensors do not change.
        self._accepted = kinds, first
        return first

    def _run(self, device: Device, arrays: Sequence[Any]) -> Sequence[Any]:
        platform = PLATFORMS[device.kind]
        with self._lock:
            if self._concrete is None:
                self._concrete = self._make(platform)
        assert self._call is not None
        count = self._call.count
        passed = [arrays[k] for k in self._passed]
        try:
            with tf.device(f"{platform.device}:{device.number}"):
                made: Sequence[Any] = context.context().call_function(
                    self._concrete.name, passed, len(self._made)
                )
        except tf.errors.OpError as error:
            if self._call.errors:
                raise self._call.errors.pop() from None
            if device.number not in self._known and self._call.count == count:
                raise Unavailable(_first_line(error)) from None
            raise
        self._known.add(device.number)
        return made

    def _make(self, platform: Platform) -> Any:
        binding = self._binding
        slots = [slot for slot in binding.signature.slots if slot.role in ("input", "output")]
        inputs = [slot for slot in slots if slot.role == "input"]
        outputs = [slot for slot in slots if slot.role == "output"]
        call = XlaDeviceCall(binding.executable, iterations=binding.num_iters)
        # Processes that share a cache of XLA's must not take each other's programs for their own.
        target = f"polyblocks_{uuid.uuid4().hex}"
        register(target, platform, call.address)
        module = module_text(target, inputs, outputs)
        self._call = call
        _keep(call)
        return _concrete(module, inputs, outputs, platform)


#: XLA keeps what it compiled for as long as it likes, so what it may call is never unloaded.
_kept: list[XlaDeviceCall] = []
_keep = _kept.append


def suits_xla(binding: Binding) -> bool:
    """Whether XLA can call a program: it allocates what is written, and passes all that is read."""
    executable, signature = binding.executable, binding.signature
    return (
        executable.takes_device_arrays
        and executable.preparation is None
        and not signature.written
        and not signature.stored
        and any(slot.role == "output" for slot in signature.slots)
        and all(
            slot.spec.is_contiguous
            for slot in (*signature.slots, *signature.fresh)
            if slot.spec is not None
        )
    )


def module_text(target: str, inputs: Sequence[Slot], outputs: Sequence[Slot]) -> str:
    """A module of StableHLO that calls a target with row-major arrays.

    Args:
        target: the name under which a handler is known.
        inputs: what is passed, in order.
        outputs: what it makes.
    """
    given = [slot.spec for slot in inputs if slot.spec is not None]
    made = [slot.spec for slot in outputs if slot.spec is not None]
    parameters = ", ".join(f"%a{k}: {_type(spec)}" for k, spec in enumerate(given))
    names = ", ".join(f"%a{k}" for k in range(len(given)))
    types = ", ".join(map(_type, made))
    results = ", ".join(f"%r#{k}" for k in range(len(made)))
    return f"""module @polyblocks {{
  func.func public @main({parameters}) -> ({types}) {{
    %r:{len(made)} = stablehlo.custom_call @{target}({names}) {{
      api_version = 4 : i32, backend_config = {{}}, has_side_effect = true,
      operand_layouts = [{", ".join(map(_layout, given))}],
      result_layouts = [{", ".join(map(_layout, made))}]
    }} : ({", ".join(map(_type, given))}) -> ({types})
    return {results} : {types}
  }}
}}
"""


def _type(spec: ArraySpec) -> str:
    element = f"u{spec.mlir_type}" if spec.dtype.startswith("uint") else spec.mlir_type
    return f"tensor<{''.join(f'{extent}x' for extent in spec.shape)}{element}>"


def _layout(spec: ArraySpec) -> str:
    rank = len(spec.shape)
    order = ", ".join(map(str, reversed(range(rank))))
    return f"dense<[{order}]> : tensor<{rank}xindex>" if rank else "dense<> : tensor<0xindex>"


def _concrete(
    module: str, inputs: Sequence[Slot], outputs: Sequence[Slot], platform: Platform
) -> Any:
    call_module = _operation()
    given = [slot.spec for slot in inputs if slot.spec is not None]
    made = [slot.spec for slot in outputs if slot.spec is not None]

    def run(*tensors: Any) -> Any:
        return call_module(
            tensors,
            version=_MODULE_VERSION,
            module=module,
            Sout=[spec.shape for spec in made],
            Tout=[TF_DTYPES[spec.dtype] for spec in made],
            platforms=[platform.module],
        )

    specs = [tf.TensorSpec(spec.shape, TF_DTYPES[spec.dtype]) for spec in given]
    function = tf.function(run, input_signature=specs, jit_compile=True, autograph=False)
    return function.get_concrete_function()


@functools.cache
def _operation() -> Callable[..., Any]:
    """The operation that runs a module of StableHLO."""
    try:
        from tensorflow.compiler.tf2xla.ops import gen_xla_ops

        call_module: Callable[..., Any] = gen_xla_ops.xla_call_module
    except (ImportError, AttributeError):
        raise Unavailable(f"TensorFlow {tf.__version__} has no operation XlaCallModule") from None
    return functools.partial(call_module, dim_args_spec=[], function_list=[])


def _first_line(error: Exception) -> str:
    text = getattr(error, "message", None) or str(error)
    return f"XLA cannot call the program: {(text.splitlines() or [''])[0]}"
