"""The public functions ``compile``, ``load``, ``targets``, ``frontends``; compiling files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyblocks.attributes import RESUME_ATTRIBUTE
from polyblocks.errors import InputError
from polyblocks.options import CompileOptions
from polyblocks.registry.frontend_choice import chosen_frontend
from polyblocks.registry.honoured_options import describe_target
from polyblocks.registry.registry import FRONTENDS, TARGETS, get_registry

if TYPE_CHECKING:
    from polyblocks.artifact import Artifact
    from polyblocks.runtime.arrays import ArrayInterface

#: ``03-S2-affine.mlir`` (after a stage) or ``07-S3-fuse-slices.mlir`` (after a pass).
_DUMP = re.compile(r"^\d+-(?P<stage>S\d+)-(?P<rest>[\w-]+)\.mlir$")


def targets() -> list[str]:
    """Names of the installed targets, without loading them."""
    return get_registry().names(TARGETS)


def frontends() -> list[str]:
    """Names of the installed frontends, without loading them."""
    return get_registry().names(FRONTENDS)


def compile(
    function: Callable[..., Any],
    *,
    frontend: str | None = None,
    compile_options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile a function or module of a framework; it is captured at its first call.

    Args:
        function: what to compile.
        frontend: which framework it is written in; default: see
            :func:`polyblocks.registry.frontend_choice.chosen_frontend`.
        compile_options: see :class:`polyblocks.CompileOptions`.

    Returns:
        The compiled function.

    Raises:
        InputError: ``function`` cannot be called, or it is not clear which frontend is meant.
        PluginError: the frontend is not installed or does not work.
        OptionError: an unknown option or a wrong value.

    Example::

        fast = polyblocks.compile(f, compile_options={"target": "cpu"})
    """
    if not callable(function):
        raise InputError(f"polyblocks.compile takes a function, not {type(function).__name__}")
    CompileOptions.from_dict(compile_options)
    hook = get_registry().frontend(frontend or chosen_frontend(function)).hook
    compiled: Callable[..., Any] = hook.jit(function=function, compile_options=compile_options)
    return compiled


def compile_file(path: Path, options: CompileOptions, after: str | None = None) -> Artifact:
    """Compile an MLIR file: linalg on tensors, loops over memrefs, or a dump to be resumed.

    Args:
        path: the file; text or bytecode.
        options: the checked options.
        after: the stage or ``stage:pass`` that the module went through; default: what the dump
            says in its ``polyblocks.done`` attribute or by its file name, else nothing.

    Returns:
        The artifact; the cache is not used.

    Raises:
        InputError: the file cannot be read or is not valid MLIR.
        TargetError, PluginError: the target cannot be used.
        UnsupportedError: a pass failed, or native code crashed.
    """
    return compile_text(_read(path), options, str(path), after)


def compile_text(
    text: str | bytes, options: CompileOptions, name: str = "text", after: str | None = None
) -> Artifact:
    """Compile MLIR text or bytecode, as :func:`compile_file` does; ``name`` is for messages."""
    from polyblocks import driver
    from polyblocks.isolation.isolation import limited

    data = text.encode() if isinstance(text, str) else text
    description = _describe(options)

    def job() -> bytes:
        module, done = _parse(data, name, after)
        return driver.compile_module(module, description, options, done=done).to_bytes()

    with limited(options.compile_timeout):
        return driver.isolated(job, Path(name).name, get_registry().target(options.target))


def compile_until(path: Path, options: CompileOptions, until: str, after: str | None = None) -> str:
    """The text of the module after a pass, marked so that compiling it goes on from there.

    Args:
        path: the file; text or bytecode.
        options: the checked options.
        until: the last stage or ``stage:pass`` to run.
        after: see :func:`compile_file`.

    Raises:
        InputError: as :func:`compile_file`; also when no such pass was run.
    """
    from polyblocks import driver
    from polyblocks.isolation.isolation import limited, run_isolated

    data = _read(path)
    description = _describe(options)

    def job() -> bytes:
        from polyblocks.pipeline import watching
        from polyblocks.stages import mark

        ran: list[str] = []

        def watch(stage: str, name: str, module: Any) -> None:
            ran.append(f"{stage}:{name}" if name else stage)
            if ran[-1] == until:
                mark(module, until)
                raise _Reached(module.operation.get_asm(enable_debug_info=True))

        module, done = _parse(data, str(path), after)
        try:
            with watching(watch):
                driver.compile_module(module, description, options, done=done)
        except _Reached as reached:
            return f"{reached}\n".encode()
        raise InputError(f"'{until}' was not run on {path}; there were {', '.join(ran)}")

    with limited(options.compile_timeout):
        driver.preload(get_registry().target(options.target))
        return run_isolated(job, label=path.name).decode()


class _Reached(Exception):
    """Ends a compilation; holds the module's text."""


def _describe(options: CompileOptions) -> Any:
    description = describe_target(options)
    get_registry().extensions()
    return description


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None


def _parse(data: bytes, name: str, after: str | None) -> tuple[Any, str | None]:
    """The module with a signature, and how far it came if its mark does not say so."""
    from polyblocks import mlir, signature

    try:
        module = mlir.parse(data, mlir.make_context(every_dialect=False))
        done = after
        if done is None and RESUME_ATTRIBUTE not in module.operation.attributes:
            done = stage_of_file(Path(name))
        if not signature.is_in(data):
            on_memrefs = signature.infer(module)
            if on_memrefs and done is None:
                done = "S2:bufferize"
    except ValueError as error:
        raise InputError(f"{name} cannot be compiled: {' '.join(str(error).split())}") from None
    return module, done


def load(
    source: Artifact | str | os.PathLike[str],
    *,
    weights: Mapping[str, Any] | Sequence[Any] | None = None,
    arrays: ArrayInterface | None = None,
    num_threads: int | None = None,
    num_iters: int = 1,
) -> Callable[..., Any]:
    """Load a compiled program; needs its target's package, but no compiler and no framework.

    Args:
        source: an artifact, or the file of one.
        weights: of a program that was compiled with ``weights="arguments"``: arrays by the names
            that they have in the framework (a ``state_dict``), or a list in the program's order.
            They are checked here, once, and the function takes the other arrays. It reads them
            where they are: values that change in place are seen by the next call, and so is
            memory that an array gets anew.
        arrays: of the framework whose arrays come and go; default: NumPy arrays, those of any
            framework with a frontend, and on a device all that speak DLPack.
        num_threads: threads of each call; None: see :mod:`polyblocks.runtime.threads`.
        num_iters: run the program this many times per call, for timing.

    Returns:
        A function of the program's inputs; see :func:`polyblocks.runtime.launch.bind`.

    Raises:
        ArtifactError: the file is damaged, or holds no program.
        InputError: the weights do not fit, or the program takes none.
        OSError: the file cannot be read.
        PluginError: the artifact's target is not installed.

    Example::

        blur = polyblocks.load("blur.zip")
        result = blur(image)
    """
    from polyblocks import driver
    from polyblocks.artifact import Artifact
    from polyblocks.errors import ArtifactError
    from polyblocks.runtime.bound_weights import bind_weights
    from polyblocks.runtime.foreign.foreign_arrays import by_framework, readers
    from polyblocks.runtime.launch import bind
    from polyblocks.runtime.native.dispatch import dispatched

    artifact = source if isinstance(source, Artifact) else Artifact.read(source)
    if artifact.manifest["kind"] != "program":
        raise ArtifactError(f"the artifact holds a {artifact.manifest['kind']}, not a program")
    executable = driver.load(artifact)
    read = readers(executable)
    held = (
        None
        if weights is None
        else bind_weights(executable.manifest, artifact.blobs, weights, read)
    )

    def bound(interface: ArrayInterface) -> Callable[..., Any]:
        return bind(
            executable,
            interface,
            num_threads=num_threads,
            num_iters=num_iters,
            blobs=artifact.blobs,
            weights=held,
        )

    if arrays is not None:
        call = bound(arrays)
        return dispatched(call, lambda *_: call)
    default = read(held.arrays[0]) if held is not None and held.arrays else None
    return by_framework(bound, executable, default)


def stage_of_file(path: Path) -> str | None:
    """The stage or pass in a dump's file name: ``S2``, ``S3:fuse-slices``, or None."""
    from polyblocks.stages import STAGES

    match = _DUMP.match(path.name)
    if match is None or match["stage"] not in STAGES:
        return None
    stage, rest = match["stage"], match["rest"]
    return stage if rest == STAGES[stage] else f"{stage}:{rest}"
