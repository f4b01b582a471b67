"""Runs scripts, functions and programs for ``polyblocks explain``."""

from __future__ import annotations

import ctypes
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, overload

import numpy as np

from polyblocks.errors import InputError, PolyBlocksError
from polyblocks.explanation.call_time import call_often
from polyblocks.explanation.file_module import file_module, run_module
from polyblocks.hookspecs import CompiledFunction, original_of
from polyblocks.options import CompileOptions, overriding
from polyblocks.program import DTYPES, ArraySpec
from polyblocks.registry.frontend_choice import chosen_frontend
from polyblocks.reports.report import Report
from polyblocks.runtime.arrays import HOST, ArrayInterface


@overload
def explain(*, profile: bool = False) -> AbstractContextManager[Report]: ...


@overload
def explain(
    function: Callable[..., Any],
    *inputs: Any,
    compile_options: Mapping[str, Any] | None = None,
    frontend: str | None = None,
    profile: bool = True,
) -> Report: ...


def explain(
    function: Callable[..., Any] | None = None,
    *inputs: Any,
    compile_options: Mapping[str, Any] | None = None,
    frontend: str | None = None,
    profile: bool | None = None,
) -> Any:
    """Report kernels, the decisions behind them, and their times.

    Args:
        function: compiled and called with ``inputs`` a few times. Without it the result is a
            context manager that watches what the ``with`` block does.
        inputs: example arguments.
        compile_options: see :class:`polyblocks.CompileOptions`.
        frontend: which framework the function is written in; default: the only one installed.
        profile: measure the time of every kernel; it must then be compiled for that, whatever is
            in the cache. Default: for a function, but not for a block.

    Returns:
        A :class:`Report`, or a context manager that gives one.

    Raises:
        InputError: see :func:`polyblocks.compile`; or the function is compiled already.

    Example::

        report = polyblocks.explain(f, x)
        Path("f.html").write_text(report.html())

        with polyblocks.explain() as report:
            f(x)
        print(report)
    """
    if function is None:
        return _watch(bool(profile))
    return explain_call(function, inputs, compile_options, frontend, profile is not False)


@contextmanager
def _watch(profile: bool) -> Iterator[Report]:
    from polyblocks.driver import collecting_loads
    from polyblocks.registry.registry import get_registry

    report = Report()
    stop = get_registry().watch(report.add, "explain")
    try:
        if profile:
            with overriding(profile=True), collecting_loads() as loaded:
                report.loaded = loaded
                try:
                    yield report
                finally:
                    report.measure(loaded)
                    report.loaded = ()
        else:
            yield report
    finally:
        stop()


def explain_script(path: Path, arguments: Sequence[str], profile: bool = True) -> Report:
    """Run a script with its arguments, under observation.

    Args:
        path: the script.
        arguments: its ``sys.argv[1:]``.
        profile: also measure the kernels; what is in the cache without is compiled again.

    Raises:
        InputError: there is no such file.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    saved = list(sys.argv), list(sys.path)
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.resolve().parent))
    try:
        with explain(profile=profile) as report:
            try:
                runpy.run_path(str(path), run_name="__main__")
            except SystemExit as left:
                if left.code not in (None, 0):
                    report.failures.append(f"the script left with {left.code}")
    finally:
        sys.argv, sys.path = saved
    return report


def explain_function(
    path: Path,
    name: str,
    inputs: Sequence[str],
    compile_options: Mapping[str, Any] | None = None,
    profile: bool = True,
) -> Report:
    """Call a function of a Python file with random arrays, under observation.

    Args:
        path: the file; what runs only as a script in it does not run.
        name: of a function or module in it, decorated or not.
        inputs: of each argument, ``float32[3,224,224]``.
        compile_options: for a function that is not decorated.
        profile: measure the kernels.

    Raises:
        InputError: there is no such file or function, or an input is misspelt.
    """
    specs = [parse_input(text) for text in inputs]
    with file_module(path) as module, explain(profile=profile) as report:
        names = run_module(module)
        if not callable(names.get(name)):
            callables = [n for n, v in names.items() if callable(v) and n[:1] != "_"]
            raise InputError(f"{path} has no function '{name}'; it has {', '.join(callables)}")
        arrays = _arrays_of(names[name])
        function = compiled(names[name], compile_options)
        try:
            made = [fill(arrays, spec) for spec in specs]
            report.call = call_often(function, made, arrays, report.loaded)
        except Exception as error:
            # The user's error, or one about wrong inputs; the report covers the compiled part.
            what = (str(error).strip().splitlines() or [""])[0]
            report.failures.append(f"{name} raised {type(error).__name__}: {what}")
    return report


def explain_call(
    function: Callable[..., Any],
    inputs: Sequence[Any],
    compile_options: Mapping[str, Any] | None = None,
    frontend: str | None = None,
    profile: bool = True,
) -> Report:
    """Compile a function and call it with example inputs, under observation.

    See :func:`polyblocks.explain`.

    Raises:
        InputError: the function is compiled already and does not tell what it was made of.
    """
    if isinstance(function, CompiledFunction):
        # A compiled function was compiled before the report watched.
        original = original_of(function)
        if original is None:
            raise InputError("give polyblocks.explain the function itself, not the compiled one")
        frontend = frontend or chosen_frontend(function)
        function = original
    with explain(profile=profile) as report:
        made = compiled(function, compile_options, frontend)
        report.call = call_often(made, inputs, _arrays_of(made, frontend), report.loaded)
    return report


def explain_module(
    path: Path, options: CompileOptions, after: str | None = None, measure: bool = True
) -> Report:
    """Compile an MLIR file and run it with random inputs.

    Args:
        path: linalg on tensors, or a dump to be resumed.
        options: the checked options; kernels are timed with ``profile`` only.
        after: see :func:`polyblocks.api.compile_file`.
        measure: run it at all.

    Raises:
        InputError: the file cannot be read or is not valid MLIR; a program that refuses the
            inputs is a failure of the report.
    """
    from polyblocks import api, driver
    from polyblocks.runtime.launch import bind
    from polyblocks.runtime.numpy_arrays import NumpyArrays
    from polyblocks.signature import spec_of

    artifact = api.compile_file(path, options, after)
    report = Report()
    report.add_artifact(artifact, cached=False)
    if not measure:
        return report
    executable = driver.load(artifact)
    arrays = NumpyArrays()
    try:
        rows = [row for row in artifact.manifest["arguments"] if row["role"] == "input"]
        inputs = [fill(arrays, spec_of(row)) for row in rows]
        bound = bind(executable, arrays, num_threads=options.num_threads)
        report.call = call_often(bound, inputs, arrays, [executable])
    except PolyBlocksError as error:
        report.failures.append(f"it cannot be run with made-up inputs: {error}")
    report.measure([executable])
    return report


def compiled(
    function: Callable[..., Any],
    compile_options: Mapping[str, Any] | None = None,
    frontend: str | None = None,
) -> Callable[..., Any]:
    """The function, compiled unless it is decorated already."""
    from polyblocks.api import compile

    if isinstance(function, CompiledFunction):
        return function
    return compile(function, frontend=frontend, compile_options=compile_options)


def _arrays_of(function: Callable[..., Any], frontend: str | None = None) -> ArrayInterface:
    """The arrays of a function's framework, or of a frontend's."""
    from polyblocks.registry.registry import get_registry

    name = frontend or chosen_frontend(function)
    arrays: ArrayInterface = get_registry().frontend(name).hook.array_interface()
    return arrays


def parse_input(text: str) -> ArraySpec:
    """``float32[3,224,224]`` -> the spec of a contiguous array.

    Raises:
        InputError: it is not of this form, or there is no such dtype.
    """
    dtype, bracket, rest = text.strip().partition("[")
    extents = rest.removesuffix("]").split(",") if rest != "]" else []
    if not bracket or not rest.endswith("]") or not all(e.strip().isdigit() for e in extents):
        raise InputError(f"'{text}' is no input; write dtype[extents], e.g. float32[3,224,224]")
    if dtype not in DTYPES:
        raise InputError(f"there is no dtype '{dtype}'; there are {', '.join(DTYPES)}")
    return ArraySpec.contiguous(tuple(int(e) for e in extents), dtype)


def fill(arrays: ArrayInterface, spec: ArraySpec) -> Any:
    """An array with values that most programs take: floats from 0 to 1, integers 0.

    The seed is fixed: equal specs give equal values.
    """
    array = arrays.empty(spec, HOST)
    nbytes = spec.nbytes
    if nbytes == 0:
        return array
    address = (ctypes.c_uint8 * nbytes).from_address(arrays.pointer(array))
    memory = np.ctypeslib.as_array(address)
    width = DTYPES[spec.dtype][1]
    count = nbytes // width
    values = np.random.default_rng(0).random(count, np.float32)
    if spec.dtype == "bfloat16":
        # The upper half of a float32.
        memory.view(np.uint16)[:count] = values.view(np.uint32) >> 16
    elif spec.dtype == "bool":
        memory[:count] = values < 0.5
    elif spec.dtype.startswith(("float", "complex")):
        memory.view(spec.dtype)[:count] = values
    else:
        memory[:] = 0
    return array
