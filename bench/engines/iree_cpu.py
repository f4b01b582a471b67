"""IREE's CPU backend, on the StableHLO that JAX makes."""

from __future__ import annotations

from typing import Any

import iree.compiler
import iree.runtime
import jax
import numpy as np

from bench.engines import Prepared, written_in

OUTPUTS = {"iree": "allocated by IREE at each call"}
DISTRIBUTIONS = {"iree": ("iree-base-compiler", "iree-base-runtime", "jax")}

_FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-opt-level=O3",
)

_config: Any = None


def warm_up(name: str, threads: int) -> None:
    """Make a device of so many workers; compile something small."""
    global _config
    iree.runtime.flags.parse_flags(f"--task_topology_group_count={threads}")
    _config = iree.runtime.Config("local-task")
    prepare(name, "softmax", (np.ones((4, 4), np.float32),)).call()


def prepare(name: str, program: str, inputs: tuple[np.ndarray[Any, Any], ...]) -> Prepared:
    """The function as StableHLO; exporting and compiling belong to the first call."""
    function: Any = None
    arguments = [
        iree.runtime.asdevicearray(_config.device, x.astype(np.int32) if x.dtype == np.int64 else x)
        for x in inputs
    ]

    def call() -> Any:
        nonlocal function
        if function is None:
            function = _compile(program, inputs)
        return function(*arguments)

    return Prepared(call, lambda result: result.to_host())


def _compile(program: str, inputs: tuple[np.ndarray[Any, Any], ...]) -> Any:
    lowered = jax.jit(written_in("in_jax", program)).lower(*inputs)
    binary = iree.compiler.compile_str(
        str(lowered.compiler_ir("stablehlo")), input_type="stablehlo", extra_args=list(_FLAGS)
    )
    context = iree.runtime.SystemContext(config=_config)
    module = iree.runtime.VmModule.copy_buffer(context.instance, binary)
    context.add_vm_module(module)
    return context.modules[module.name]["main"]
