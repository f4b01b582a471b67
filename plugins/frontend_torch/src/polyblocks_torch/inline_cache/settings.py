"""Settings of PyTorch that Dynamo's guard of the global state compares, each as a call in C++.

The guard itself takes seven times as long: it makes an object of all of them at each call.
"""

from __future__ import annotations

import ctypes
import functools
import json
from pathlib import Path
from typing import NamedTuple

import torch
from torch._C._dynamo.guards import GlobalStateGuard

from polyblocks.runtime.native.call import address_of


class Setting(NamedTuple):
    """See ``code.SETTING``."""

    function: int
    first: int
    second: int
    third: int
    mask: int
    expected: int


#: The guard's names -> library, function, whether it is a method of ``at::Context``, its other
#: arguments, and bits of the result.
_CALLS: dict[str, tuple[str, str, bool, tuple[int, ...], int]] = {
    "grad_mode": ("c10", "_ZN3c108GradMode10is_enabledEv", False, (), 1),
    # Enabled, disabled for subclasses, or for all.
    "torch_function": (
        *("torch_cpu", "_ZN2at4impl22PythonTorchFunctionTLS18get_disabled_stateEv", False, ()),
        0xFF,
    ),
    "default_dtype": ("c10", "_ZN3c1031get_default_dtype_as_scalartypeEv", False, (), 0xFF),
    "num_threads": ("torch_cpu", "_ZN2at15get_num_threadsEv", False, (), 0xFFFFFFFF),
    "deterministic_algorithms": (
        *("torch_cpu", "_ZNK2at7Context23deterministicAlgorithmsEv", True, ()),
        1,
    ),
    "deterministic_algorithms_warn_only": (
        *("torch_cpu", "_ZNK2at7Context31deterministicAlgorithmsWarnOnlyEv", True, ()),
        1,
    ),
    "allow_fp16_reduce": (
        *("torch_cpu", "_ZNK2at7Context24allowFP16ReductionCuBLASEv", True, ()),
        0xFF,
    ),
    "allow_bf16_reduce": (
        *("torch_cpu", "_ZNK2at7Context24allowBF16ReductionCuBLASEv", True, ()),
        0xFF,
    ),
    # Of Float32Backend::CUDA and Float32Op::MATMUL.
    "allow_tf32": (
        *("torch_cpu", "_ZNK2at7Context16float32PrecisionENS_14Float32BackendENS_9Float32OpE"),
        *(True, (1, 3), 0xFF),
    ),
    # Whether it is on shows in the keys of the thread.
    "autocast_state": ("torch_cpu", "_ZN2at8autocast25is_autocast_cache_enabledEv", False, (), 1),
}
_CONTEXT = "_ZN2at13globalContextEv"
#: Known by another one. From PyTorch 2.15 on the guard compares the precision as a whole, which is
#: compared here in all releases, and not whether it is TF32 alone.
_IMPLIED = {"torch_function_all_disabled", "cuda_matmul_precision"}


def current_settings() -> list[Setting] | None:
    """The settings of this thread; None where the guard has to be asked.

    That is where it compares something else, or the settings of autocast matter.
    """
    calls = _calls()
    if calls is None or torch._C._is_any_autocast_enabled():
        return None
    found = []
    for function, arguments, mask in calls:
        call = ctypes.PYFUNCTYPE(ctypes.c_int64, *(ctypes.c_int64,) * 3)(function)
        found.append(Setting(function, *arguments, mask, call(*arguments) & mask))
    return found


@functools.cache
def _calls() -> list[tuple[int, tuple[int, int, int], int]] | None:
    try:
        state = json.loads(str(GlobalStateGuard().__getstate__()))
        if not set(_CALLS) <= set(state) <= set(_CALLS) | _IMPLIED:
            return None
        folder = Path(torch.__file__).parent / "lib"
        libraries = {
            name: ctypes.CDLL(str(folder / f"lib{name}.so")) for name in ("c10", "torch_cpu")
        }
        context = ctypes.CFUNCTYPE(ctypes.c_void_p)((_CONTEXT, libraries["torch_cpu"]))()
        made = []
        for library, name, is_method, rest, mask in _CALLS.values():
            given = (*((context or 0,) if is_method else ()), *rest, 0, 0, 0)
            function = address_of(getattr(libraries[library], name))
            made.append((function, (given[0], given[1], given[2]), mask))
    except (AttributeError, OSError, TypeError, ValueError):
        return None
    return made
