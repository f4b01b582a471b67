"""Compile options: one frozen dataclass, checked once, with suggestions for what is misspelt."""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from polyblocks.errors import OptionError

#: Modes for floating-point contractions, and the MLIR types that operands are rounded to; MLIR
#: has no type for TF32.
FLOAT_MODES = {
    "fp16": "f16",
    "fp32": "f32",
    "mixed_fp16_fp32": "f16",
    "mixed_bf16_fp32": "bf16",
    "tf32": "",
}
PRECISION_MODES = (*FLOAT_MODES, "int32", "mixed_int8_int32")

#: Options that the frontend alone acts on; it names those that it honours with the hook
#: ``frontend_options``.
FRONTEND_OPTIONS = ("static_argnums", "static_argnames", "freeze_weights")
#: Options that the target acts on; ``TargetDescription.options`` says which values it honours.
TARGET_OPTIONS = (
    "mm_conv_precision_mode",
    "freeze_weights",
    "polyblocks_gpu_no_tensor_core",
    "on_gpu_tensors",
    "device_one_time_load",
    "use_graph",
    "simulate",
)
#: Values besides the defaults that every target honours, because they ask for nothing.
EVERYWHERE: Mapping[str, tuple[Any, ...]] = {"use_graph": (False,)}


@dataclass(frozen=True)
class CompileOptions:
    """Options of one compilation; the keys of the ``compile_options`` dictionary.

    Options that a frontend does not support are refused when the function is decorated, those that
    a target does not when it is compiled; see :mod:`polyblocks.registry.honoured_options`.

    Attributes:
        target: name of an installed target.
        arch: chip to generate for; None or ``native`` for the device present.
        debug: dump the module after each stage; a string is the folder. Also set by
            ``POLYBLOCKS_DEBUG``.
        static_argnums: JAX: arguments that are compile-time constants.
        static_argnames: JAX: the same, by name.
        num_threads: set the maximum CPU threads per call. Default: framework setting,
            ``OMP_NUM_THREADS``, then all allowed CPUs.
        mm_conv_precision_mode: set the operand and accumulator types of contractions; None: as
            written.
        mlir_disable_fast_math: disable reassociation and multiply-add contraction.
        polyblocks_disable_affine_fusion: disable loop fusion.
        polyblocks_disable_reduce_reduce_fusion: do not fuse dependent reductions (softmax max and
            sum).
        polyblocks_disable_unsafe_math_canonicalizations: disable unsafe floating-point rewrites,
            for example division to reciprocal multiply.
        polyblocks_gpu_no_tensor_core: do not use matrix units on a GPU.
        strict_target: raise ``FallbackError`` instead of falling back to the framework.
        on_gpu_tensors: make an ahead-of-time library expect its arrays and leave its results on
            the GPU; host arrays are an error instead of being copied. Functions compiled when
            called take arrays on either side.
        device_one_time_load: load a GPU module once and keep it.
        use_graph: record a GPU program of several kernels as a graph and replay it: once addresses
            repeat (``'auto'``), from the first call (``True``) or never (``False``).
        num_iters: run the compiled function this many times per call, for timing.
        simulate: run a GPU build in the simulator.
        profile: measure the time of every kernel, for ``polyblocks explain``.
        freeze_weights: PyTorch: compute once what depends only on parameters and buffers, and
            recompute it when PyTorch changes one of them (optimizers, in-place operations,
            ``load_state_dict``, assignments).
        compile_timeout: limit the compile time of a variant, in seconds; after it the framework
            runs what is not compiled. None or 0: no limit. Also set by
            ``POLYBLOCKS_COMPILE_TIMEOUT``.
    """

    target: str = "cpu"
    arch: str | None = None
    debug: bool | str = False
    static_argnums: tuple[int, ...] = ()
    static_argnames: tuple[str, ...] = ()
    num_threads: int | None = None
    mm_conv_precision_mode: str | None = None
    mlir_disable_fast_math: bool = False
    polyblocks_disable_affine_fusion: bool = False
    polyblocks_disable_reduce_reduce_fusion: bool = False
    polyblocks_disable_unsafe_math_canonicalizations: bool = False
    polyblocks_gpu_no_tensor_core: bool = False
    strict_target: bool = False
    on_gpu_tensors: bool = False
    device_one_time_load: bool = True
    use_graph: bool | str = "auto"
    num_iters: int = 1
    simulate: bool = False
    profile: bool = False
    freeze_weights: bool = False
    compile_timeout: float | None = 600.0

    @classmethod
    def from_dict(cls, options: Mapping[str, Any] | None) -> CompileOptions:
        """Check a user's dictionary and make options of it.

        Raises:
            OptionError: unknown name (with the nearest one) or a value of the wrong kind.
        """
        if isinstance(options, cls):
            return dataclasses.replace(options, **_overrides.get()) if _overrides.get() else options
        options = {} if options is None else options
        if not isinstance(options, Mapping):
            raise OptionError(
                f"compile_options must be a dictionary, not {type(options).__name__}; "
                "write compile_options={'target': 'cpu'}"
            )
        known = {f.name: f for f in dataclasses.fields(cls)}
        values: dict[str, Any] = {}
        for name, value in options.items():
            if name not in known:
                near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
                listed = f"the options are {', '.join(known)}"
                hint = f"did you mean '{near[0]}'?" if near else listed
                raise OptionError(f"unknown compile option '{name}'; {hint}")
            values[name] = _checked(name, value)
        outside = os.environ.get("POLYBLOCKS_COMPILE_TIMEOUT", "")
        if outside and "compile_timeout" not in values:
            values["compile_timeout"] = _seconds(outside)
        return cls(**{**values, **_overrides.get()})

    def cache_key(self) -> str:
        """Canonical JSON of the options that change generated code."""
        run_only = (
            "debug", "strict_target", "num_threads", "num_iters", "device_one_time_load",
            "use_graph", "on_gpu_tensors", "compile_timeout",
        )  # fmt: skip
        data = {k: v for k, v in dataclasses.asdict(self).items() if k not in run_only}
        return json.dumps(data, sort_keys=True)


#: Name of each option -> its default.
DEFAULTS: dict[str, Any] = {f.name: f.default for f in dataclasses.fields(CompileOptions)}

_overrides: ContextVar[Mapping[str, Any]] = ContextVar(
    "polyblocks_option_overrides", default=MappingProxyType({})
)


@contextmanager
def overriding(**values: Any) -> Iterator[None]:
    """Give options these values in :meth:`CompileOptions.from_dict`, whatever the user says."""
    token = _overrides.set({**_overrides.get(), **values})
    try:
        yield
    finally:
        _overrides.reset(token)


def _checked(name: str, value: Any) -> Any:
    default = DEFAULTS[name]
    if name == "target":
        return _expect(name, value, isinstance(value, str) and value != "", "the name of a target")
    if name == "arch":
        return _expect(name, value, value is None or isinstance(value, str), "a string or None")
    if name == "debug":
        return _expect(name, value, isinstance(value, (bool, str)), "a bool or a folder name")
    if name == "static_argnums":
        items = (value,) if isinstance(value, int) else value
        ok = isinstance(items, (tuple, list)) and all(isinstance(i, int) for i in items)
        return tuple(_expect(name, items, ok, "an int or a tuple of ints"))
    if name == "static_argnames":
        names = (value,) if isinstance(value, str) else value
        ok = isinstance(names, (tuple, list)) and all(isinstance(n, str) for n in names)
        return tuple(_expect(name, names, ok, "a name or a tuple of names"))
    if name == "num_threads":
        ok = value is None or _is_positive_int(value)
        return _expect(name, value, ok, "a positive int or None")
    if name == "compile_timeout":
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return _expect(name, value, value is None or (number and value >= 0), "seconds or None")
    if name == "num_iters":
        return _expect(name, value, _is_positive_int(value), "a positive int")
    if name == "use_graph":
        ok = isinstance(value, bool) or value == "auto"
        return _expect(name, value, ok, "'auto', True or False")
    if name == "mm_conv_precision_mode":
        ok = value is None or value in PRECISION_MODES
        return _expect(name, value, ok, f"one of {', '.join(PRECISION_MODES)}")
    return _expect(name, value, isinstance(value, type(default)), "True or False")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise OptionError(f"POLYBLOCKS_COMPILE_TIMEOUT must be seconds or 0, not {text!r}")
    return seconds


def _is_positive_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _expect(name: str, value: Any, ok: bool, what: str) -> Any:
    if not ok:
        raise OptionError(f"compile option '{name}' must be {what}, not {value!r}")
    return value


def check_execution_backend(name: str, known: Sequence[str]) -> None:
    """For ``polymage_jit_*``.

    Raises:
        OptionError: there is no backend of this name.
    """
    if name not in known:
        raise OptionError(f"execution_backend must be one of {', '.join(known)}, not {name!r}")


def one_of_both(
    compile_options: Mapping[str, Any] | None, runtime_args: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """The options of ``polymage_jit_*``, which takes them under two names.

    Raises:
        OptionError: they are given under both.
    """
    if compile_options is not None and runtime_args is not None:
        raise OptionError("pass compile_options or runtime_args, which mean the same, not both")
    return compile_options if compile_options is not None else runtime_args
