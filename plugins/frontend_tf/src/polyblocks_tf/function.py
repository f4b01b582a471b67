"""A decorated function: traced and compiled once for each kind of arguments."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context, record
from tensorflow.python.framework import ops
from tensorflow.python.framework.ops import EagerTensor

from polyblocks.errors import InputError, TargetError
from polyblocks.frontends.function_report import FunctionReport
from polyblocks.isolation import forks
from polyblocks.options import CompileOptions
from polyblocks.registry.registry import get_registry
from polyblocks_tf.compiler import compile_function
from polyblocks_tf.launch.device_call import is_on_gpu
from polyblocks_tf.location import call_location
from polyblocks_tf.models.layer import as_layer, call_context
from polyblocks_tf.numbers.inspection import asks_for_types
from polyblocks_tf.numbers.number import NeedsValue, Trace
from polyblocks_tf.numbers.policy import Policy
from polyblocks_tf.numbers.trial import Trial
from polyblocks_tf.tracing import inside
from polyblocks_tf.tracing.distribution import is_distributed, replica
from polyblocks_tf.tracing.gradients import Recorded, forward_mode_watches
from polyblocks_tf.tracing.graph import Graph
from polyblocks_tf.tracing.loaded import name_of
from polyblocks_tf.tracing.structure import Arguments, check_leaf, check_unmasked, plain_key
from polyblocks_tf.tracing.tracing import scalars, trace

_executing_eagerly = context.executing_eagerly
_could_record = record.could_possibly_record


class Variant:
    """A function compiled for one kind of arguments.

    Attributes:
        concrete: the traced function of the flat arrays.
        call: runs it on the flat arrays.
        arguments: the arguments that it was traced with, as a template.
        holds_for: whether it is right for the values of the numbers that it takes as arguments.
        recorded: the same for gradient tapes outside; made when one is met.
    """

    def __init__(
        self,
        concrete: Any,
        call: Callable[..., Any],
        arguments: Arguments,
        holds_for: Callable[[Sequence[float]], bool] = lambda _: True,
    ) -> None:
        self.concrete = concrete
        self.call = call
        self.arguments = arguments
        self.holds_for = holds_for
        self.recorded: Recorded | None = None


class CompiledFunction:
    """The decorator's result. Attributes that it lacks are those of the original.

    Args:
        function: what the user gave.
        python_function: what is traced.
        options: the checked options.
        input_signature: specs of the positional arguments; None: each call's own.
        autograph: whether Python's control flow on tensors is translated.
    """

    #: AutoGraph calls what has this as it is, instead of translating it.
    autograph_info__: Mapping[str, Any] = types.MappingProxyType({})

    def __init__(
        self,
        function: Any,
        python_function: Callable[..., Any],
        options: CompileOptions,
        input_signature: Sequence[Any] | None,
        autograph: bool,
    ) -> None:
        self._function = function
        self._python_function = python_function
        self._options = options
        self._input_signature = None if input_signature is None else list(input_signature)
        self._autograph = autograph
        self._names = _parameter_names(python_function)
        self._name = _name_of(function)
        self._report = FunctionReport(self._name, options.target, "TensorFlow")
        self._variants: dict[Any, Variant] = {}
        self._policies: dict[tuple[Any, ...], Policy] = {}
        self._calls: dict[Any, Callable[..., Any]] = {}
        self._lock = forks.rlock()
        self._symbolic: dict[Any, Any] = {}
        self._layer: Any = None
        self._bound: weakref.WeakKeyDictionary[Any, CompiledFunction] = weakref.WeakKeyDictionary()
        # Models have no names for functools; what lacks is left out.
        functools.update_wrapper(self, function, updated=())

    def polyblocks_report(self) -> FunctionReport:
        """The report of this function's variants and fallbacks so far."""
        return self._report

    @property
    def polyblocks_options(self) -> CompileOptions:
        """The checked options."""
        return self._options

    @property
    def polyblocks_original(self) -> Any:
        """The original function."""
        return self._function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # The quick way of known calls with arrays and switches alone.
        if (
            _executing_eagerly()
            and not _could_record()
            and call_context() is None
            and not is_distributed()
        ):
            call, leaves = self._known_call(args, kwargs)
            if call is not None:
                return call(*leaves)
        return self._slowly(args, kwargs)

    def _known_call(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Callable[..., Any] | None, list[Any]]:
        """The launcher of an earlier call of the same kind, and the arrays in the arguments."""
        leaves: list[Any] = []
        keys = []
        for value in args:
            key = plain_key(value, leaves)
            if key is None:
                return None, leaves
            keys.append(key)
        for name in sorted(kwargs):
            key = plain_key(kwargs[name], leaves)
            if key is None:
                return None, leaves
            keys.append((name, key))
        return self._calls.get(tuple(keys)), leaves

    def _slowly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._input_signature is not None:
            args, kwargs = self._by_signature(args, kwargs), {}
        arguments = Arguments(args, kwargs, self._names)
        if arguments.of_keras and hasattr(self._function, "compute_output_spec"):
            with self._lock:
                self._layer = self._layer or as_layer(self)
            return self._layer(*args, **kwargs)
        within = call_context()
        if within is not None:
            arguments.key = (*arguments.key, ("context", within))
        where = replica()
        if where is not None:
            arguments.key = (*arguments.key, ("replica", where))
        if arguments.symbolic or not _executing_eagerly():
            return inside.call(self, arguments)
        variant = self._variants.get(arguments.key)
        changing: tuple[int, ...] = ()
        if variant is None and arguments.numbers:
            found = self._with_numbers(arguments)
            variant, changing = found if found is not None else (None, ())
        if variant is None:
            variant = self._compile(arguments)
        leaves, arguments.leaves = arguments.leaves, []  # a variant keeps no arrays alive
        leaves += scalars(arguments, changing)
        if _could_record():
            return self._record(variant, leaves)
        return variant.call(*leaves)

    def trace(
        self,
        arguments: Arguments,
        specs: Sequence[tf.TensorSpec],
        places: Sequence[int] = (),
        numbers: Trace | None = None,
    ) -> Any:
        """See :func:`polyblocks_tf.tracing.tracing.trace`."""
        with inside.tracing(self._name):
            return trace(self._python_function, arguments, specs, self._autograph, places, numbers)

    def trace_inline(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Be a part of the function that is being traced."""
        within = call_context()  # TensorFlow does not know that the function reads it
        symbolic = self._symbolic.get(within)
        if symbolic is None:
            symbolic = tf.function(self._python_function, autograph=self._autograph)
            self._symbolic[within] = symbolic
        return symbolic(*args, **kwargs)

    def _by_signature(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments as tensors of the signature's dtypes.

        Raises:
            InputError: too few, too many, or one that does not fit.
        """
        signature = self._input_signature or []
        if kwargs:
            order = list(self._names[len(args) :])
            unknown = [name for name in kwargs if name not in order]
            if unknown:
                raise InputError(f"{self._name} has no argument '{unknown[0]}' in its signature")
            args = (*args, *(kwargs[name] for name in order if name in kwargs))
        if len(args) != len(signature):
            raise InputError(
                f"{self._name} takes {len(signature)} arguments by its input_signature, "
                f"got {len(args)}"
            )
        converted = []
        for number, (value, spec) in enumerate(zip(args, signature, strict=True)):
            name = self._names[number] if number < len(self._names) else f"argument {number + 1}"
            converted.append(_fitted(value, spec, name, self._name))
        return tuple(converted)

    def _compile(self, arguments: Arguments) -> Variant:
        with self._lock:
            known = self._variants.get(arguments.key)
            if known is not None:
                return known
            specs = [
                check_leaf(leaf, name, self._options.target)
                for leaf, name in zip(arguments.leaves, arguments.names, strict=True)
            ]
            for leaf, name in zip(arguments.leaves, arguments.names, strict=True):
                _check_device(leaf, name, self._options)
            concrete = self.trace(arguments, specs)
            call = compile_function(
                concrete,
                name=self._name,
                arrays=[isinstance(leaf, np.ndarray) for leaf in arguments.leaves],
                options=self._options,
                report=self._report,
            )
            variant = Variant(concrete, call, arguments)
            self._variants[arguments.key] = variant
            if self._input_signature is None:
                self._calls[arguments.key] = call
            if arguments.numbers:
                self._policies.setdefault(tuple(arguments.kinds), Policy(arguments.numbers))
            return variant

    def _with_numbers(self, arguments: Arguments) -> tuple[Variant, tuple[int, ...]] | None:
        """The variant that takes changing numbers as arguments, and their places.

        None where all of them are constants.
        """
        if ops.is_auto_dtype_conversion_enabled() or any(map(is_on_gpu, arguments.leaves)):
            return None
        if self._asks_for_types:
            return None
        with self._lock:
            policy = self._policies.get(tuple(arguments.kinds))
            while policy is not None and (places := policy.changing(arguments.numbers)):
                key = arguments.key_without(places)
                variant = self._variants.get(key)
                if variant is None:
                    variant = self._try_numbers(arguments, places, policy)
                    if variant is None:
                        continue  # fewer of them change now
                    self._variants[key] = variant
                return (variant, places) if variant.holds_for(arguments.numbers) else None
        return None

    @functools.cached_property
    def _asks_for_types(self) -> bool:
        return asks_for_types(self._python_function)

    def _try_numbers(
        self, arguments: Arguments, places: tuple[int, ...], policy: Policy
    ) -> Variant | None:
        """Compile with arguments in place of changing numbers.

        None where the function needs their values, or cannot be compiled as it is for constants.
        """
        big = {
            place
            for place in places
            if arguments.kinds[place][1] is int and not -(2**63) <= arguments.numbers[place] < 2**63
        }
        if big:  # no scalar of int64 holds them
            policy.fix(big)
            return None
        leaves = [*arguments.leaves, *scalars(arguments, places)]
        names = [*arguments.names, *(arguments.kinds[place][0] for place in places)]
        specs = [
            check_leaf(leaf, name, self._options.target)
            for leaf, name in zip(leaves, names, strict=True)
        ]
        numbers = Trace()
        trial = Trial(self._report)
        try:
            concrete = self.trace(arguments, specs, places, numbers)
            if Graph.of(concrete).is_general:  # a shape depends on a number
                policy.fix(places)
                return None
            call = compile_function(
                concrete,
                name=self._name,
                arrays=[isinstance(leaf, np.ndarray) for leaf in leaves],
                options=dataclasses.replace(self._options, strict_target=False),
                report=trial,
            )
        except NeedsValue as needed:
            policy.fix(needed.numbers & set(places) or places)
            return None
        except Exception:  # with a constant it is the user's, or no error at all
            policy.fix(places)
            return None
        finally:
            numbers.open = False
        if trial.is_worse():
            policy.fix(places)
            return None
        trial.accept()
        return Variant(concrete, call, arguments, numbers.holds_for)

    def _record(self, variant: Variant, given: list[Any]) -> Any:
        leaves = [tf.convert_to_tensor(leaf) for leaf in given]
        if forward_mode_watches(variant.concrete, leaves):
            reason = "a ForwardAccumulator outside needs its derivative"
            strict = self._options.strict_target
            self._report.not_compiled("forward mode", reason, call_location(), strict=strict)
            return variant.concrete(*leaves)
        if variant.recorded is None:
            with self._lock:
                if variant.recorded is None:
                    variant.recorded = Recorded(
                        variant.concrete, self._name, self._options, self._report
                    )
        if not variant.recorded.is_needed(leaves):
            return variant.call(*given)
        return variant.recorded(*leaves)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As a method: one compiled function per object, whose ``self`` is a constant."""
        if instance is None:
            return self
        try:
            bound = self._bound.get(instance)
        except TypeError:  # no weak references, or no hash
            return types.MethodType(self, instance)
        if bound is None:
            bound = CompiledFunction(
                self._function,
                _Method(self._python_function, instance),
                self._options,
                self._input_signature,
                self._autograph,
            )
            bound._report = self._report
            self._bound[instance] = bound
        return bound

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "_function" not in self.__dict__:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(self._function, name)

    def __repr__(self) -> str:
        return f"<polyblocks {self._name}>"


class _Method:
    """A method that does not keep its object alive."""

    def __init__(self, function: Callable[..., Any], instance: Any) -> None:
        self._function = function
        self._instance = weakref.ref(instance)
        self.__signature__ = inspect.signature(types.MethodType(function, instance))
        self.__name__ = getattr(function, "__name__", "method")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        instance = self._instance()
        if instance is None:
            raise ReferenceError(f"the object of {self.__name__} is gone")
        return self._function(instance, *args, **kwargs)


def _name_of(function: Any) -> str:
    name = name_of(function) or getattr(function, "__name__", None)
    name = name or getattr(function, "name", None)
    return name if isinstance(name, str) else type(function).__name__


def _parameter_names(function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _fitted(value: Any, spec: Any, name: str, function: str) -> Any:
    if isinstance(spec, (list, tuple, dict)):
        try:
            return tf.nest.map_structure(
                lambda v, s: _fitted(v, s, name, function), value, spec, check_types=False
            )
        except (ValueError, TypeError) as error:
            first = str(error).splitlines()[0]
            raise InputError(f"{name} of {function} does not fit its signature: {first}") from None
    if not isinstance(value, tf.Tensor):
        check_unmasked(value, name)
        try:
            value = tf.convert_to_tensor(value, spec.dtype)
        except (ValueError, TypeError) as error:
            first = str(error).splitlines()[0]
            raise InputError(f"{name} of {function} must be {_text(spec)}: {first}") from None
    if value.dtype != spec.dtype or not spec.shape.is_compatible_with(value.shape):
        raise InputError(
            f"{name} of {function} must be {_text(spec)} by its input_signature, "
            f"got {value.dtype.name}{value.shape}"
        )
    return value


def _text(spec: Any) -> str:
    return f"{spec.dtype.name}{spec.shape}"


def _check_device(leaf: Any, name: str, options: CompileOptions) -> None:
    if not isinstance(leaf, EagerTensor) or "CPU" in leaf.backing_device.upper():
        return
    target = get_registry().target(options.target)
    kinds = () if options.simulate else target.hook.device_kinds()
    if int(leaf.__dlpack_device__()[0]) not in kinds:
        where = "the simulator" if options.simulate else f"target '{options.target}'"
        raise TargetError(
            f"{name} is on {leaf.backing_device}, but {where} takes tensors on the CPU"
            f"{' and on its own devices' if kinds else ''}; copy it with tf.device('CPU')"
        )
