"""Every hook of PolyBlocks: the manual of plugin authors.

A plugin is a module or an object with methods marked ``@polyblocks.hookimpl``, named by an entry
point in one of three groups:

* ``polyblocks.frontends`` - a framework (``torch``, ``jax``, …);
* ``polyblocks.targets`` - a hardware target (``cpu``, …);
* ``polyblocks.extensions`` - anything else that changes the pipeline or watches it.

A plugin says which version of this interface it was written for: ``POLYBLOCKS_API = 2``. Every hook
has a version of its own as well (:data:`INTERFACES`); a plugin is accepted as long as each hook
that it implements still has the version that it was written for, whatever happened to the others.
A plugin that follows single hooks says so with a dictionary: ``POLYBLOCKS_API = {"observe": 1}``.

A frontend implements ``fingerprint``, ``import_program`` and ``array_interface``; a target
``describe_target``, ``lower_program`` and ``load_artifact``; the other hooks are open to all. A
hook whose specification here has a body may be left out: that is what the core then takes.

Hooks and ``POLYBLOCKS_API`` are all that the core looks for on a plugin. The objects that plugins
hand to the core are of classes that the core defines, whose members have defaults where they can:
:class:`Capture` and :class:`CompiledFunction` here,
:class:`polyblocks.runtime.executable.Executable` and
:class:`polyblocks.runtime.arrays.ArrayInterface`.
Arguments that an implementation does not need can be left out of its signature; a hook whose name
is not one of these is refused. ``POLYBLOCKS_TRACE_HOOKS=1`` prints every hook call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pluggy

if TYPE_CHECKING:
    from polyblocks.artifact import Artifact
    from polyblocks.errors import UnsupportedError
    from polyblocks.events import Event
    from polyblocks.frontends.function_report import FunctionReport
    from polyblocks.options import CompileOptions
    from polyblocks.pipeline import Pipeline
    from polyblocks.program import Program
    from polyblocks.runtime.executable import Executable
    from polyblocks.target import TargetDescription

#: Version of the hook interface; raised when the arguments or the meaning of any hook change.
API_VERSION = 2

#: Version of the interface -> version of every hook in it. A new interface is a new row, in which
#: the hooks that changed have a higher number; rows of the past stay.
INTERFACES: dict[int, dict[str, int]] = {
    1: {
        "fingerprint": 1,
        "import_program": 1,
        "describe_target": 1,
        "configure_pipeline": 1,
        "lower_program": 1,
        "choose_variant": 1,
        "load_artifact": 1,
        "emit_library": 1,
        "array_interface": 1,
        "jit": 1,
        "exported": 1,
        "observe": 1,
        "framework": 1,
        "frontend_options": 1,
        "preload": 1,
        "tools": 1,
        "device_kinds": 1,
        "synchronize": 1,
    },
}
# Descriptions have matrix units of the class of their kind, and buffer registers; S3 hands over
# copies, waits and barriers.
INTERFACES[2] = {**INTERFACES[1], "describe_target": 2, "lower_program": 2}

PROJECT = "polyblocks"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class Capture:
    """One function of a framework, captured for some shapes: a frontend derives its own class.

    Attributes:
        name: the user's function, for messages and reports.
    """

    name: str

    def prepare_import(self) -> None:
        """Import what every isolated process would import again; does nothing by default.

        Called in the user's process, before each ``import_program``.

        Raises:
            UnsupportedError: it is known already that this cannot be compiled.
        """

    def partition(self, error: UnsupportedError) -> Artifact | None:
        """A plan of what is compiled in parts, to be cached in the program's place.

        Called when this cannot be compiled whole, once per key.

        Args:
            error: why.

        Returns:
            An Artifact of kind ``plan``; None, the default: the error is the user's.
        """
        del error
        return None


@runtime_checkable
class CompiledFunction(Protocol):
    """A function or module that is compiled when it is called; frontends' decorators return it.

    One that knows what it was made of says so as :class:`HasOriginal`.
    """

    def polyblocks_report(self) -> FunctionReport:
        """The report of its variants so far."""


@runtime_checkable
class HasOriginal(Protocol):
    """A compiled function that knows what it was made of.

    Attributes:
        polyblocks_original: the function as it was given to the decorator.
    """

    polyblocks_original: Any


@runtime_checkable
class _Wrapper(Protocol):
    __wrapped__: Any


def original_of(function: CompiledFunction) -> Any:
    """The original of a compiled function; None if it does not know.

    One that does not say it but wraps another function, as functools does, was made of that.
    """
    if isinstance(function, HasOriginal):
        return function.polyblocks_original
    return function.__wrapped__ if isinstance(function, _Wrapper) else None


@hookspec(firstresult=True)
def fingerprint(capture: Any) -> bytes:
    """Identify a captured program without compiling it.

    Called first, on the chosen frontend, for every compilation; must not load MLIR, since on a
    warm start nothing else runs.

    Args:
        capture: whatever the frontend captured: an object of its own, of a class derived from
            :class:`Capture`.

    Returns:
        Bytes that change whenever the generated code would: graph, shapes, dtypes, strides and
        digests of the constants inside the graph.

    Example::

        @hookimpl
        def fingerprint(capture):
            return hashlib.sha256(capture.text.encode()).digest()
    """


@hookspec(firstresult=True)
def import_program(capture: Any) -> Program:
    """Turn a captured program into linalg on tensors.

    Called on a cache miss, once per variant (function, shapes, dtypes, options), on the chosen
    frontend. It may run in a forked process, so it must not change the frontend's state.

    Args:
        capture: what was given to :func:`fingerprint`.

    Returns:
        The Program.

    Raises:
        UnsupportedError: with the op, the reason and the user's source line.

    Example::

        @hookimpl
        def import_program(capture):
            module = lower_to_linalg(capture.graph)
            return Program("f", module, arguments, results)
    """


@hookspec(firstresult=True)
def describe_target(options: CompileOptions) -> TargetDescription:
    """Describe the chip to generate code for.

    Called before S1, on the chosen target. Works with no device present when ``options.arch``
    names an architecture. Must not load MLIR: the description is part of the cache key.

    Args:
        options: the checked options.

    Returns:
        The TargetDescription; equal chips give equal descriptions. Its ``options`` say which
        values of :data:`polyblocks.options.TARGET_OPTIONS` the target honours; the core refuses
        all others.

    Raises:
        TargetError: unknown architecture (the message names the known ones), or no device.

    Example::

        @hookimpl
        def describe_target(options):
            return TargetDescription("toy", "v1", (ParallelLevel("team", 1),), MEMORY)
    """


@hookspec
def configure_pipeline(
    pipeline: Pipeline, target: TargetDescription, options: CompileOptions
) -> None:
    """Insert, replace or remove passes by name.

    Called on the target first, then on every extension, before stage S1.

    Args:
        pipeline: the passes of S1 to S3, to change in place.
        target: the description of the chip.
        options: the checked options.

    Example::

        @hookimpl
        def configure_pipeline(pipeline):
            pipeline.insert_after("normalize-nests", CountNestsPass())
    """


@hookspec(firstresult=True)
def lower_program(module: Any, target: TargetDescription, options: CompileOptions) -> Artifact:
    """Lower the module after S3 to code: stages S4 and S5.

    Called on the target, after S3. The module has one function ``@main`` whose arguments carry
    ``polyblocks.arg``: a dictionary with ``role`` (``input``, ``output``, ``workspace``, ``kept``,
    ``status``), ``name``, ``dtype``, ``shape`` and ``strides``. A program that keeps what depends
    on constant arguments is lowered in two modules: this is called once for each.

    Args:
        module: the MLIR module; the target may change it in place.
        target: the description of the chip.
        options: the checked options.

    Returns:
        An Artifact with the code as blobs, and ``manifest["kernels"]``; the driver adds the rest.

    Raises:
        UnsupportedError: there is no code for something in the module; the frontend falls back.
        MachineError: it does not work on this machine now; also what Python raises there (OSError,
            ImportError, MemoryError) is taken for that, and what follows is not remembered.
        TargetError: nothing can be compiled before something is installed; the user gets to see it.

    Example::

        @hookimpl
        def lower_program(module, target, options):
            return Artifact({"kernels": []}, {"code.mlir": str(module).encode()})
    """


@hookspec(firstresult=True)
def choose_variant(artifact: Artifact) -> Artifact:
    """Choose among the architectures of an artifact before it is loaded.

    Called on the target before ``load_artifact``. A target whose programs learn only when they are
    called on which device they run leaves it out, and chooses then.

    Args:
        artifact: a checked artifact of this target, perhaps for several architectures; see
            :mod:`polyblocks.cache.artifact_variants`.

    Returns:
        The artifact for one architecture; by default what was given.

    Example::

        @hookimpl
        def choose_variant(artifact):
            return variant(artifact, archs_of(artifact)[0])
    """
    return artifact


@hookspec(firstresult=True)
def load_artifact(artifact: Artifact, device: int | None) -> Executable:
    """Load an artifact on a device.

    Called on the target before the first launch, also for artifacts from the cache; must not load
    MLIR.

    Args:
        artifact: a checked artifact of this target.
        device: index of the device, None for the host.

    Returns:
        The Executable, of a class derived from that of the core.

    Example::

        @hookimpl
        def load_artifact(artifact, device):
            return InterpretedExecutable(artifact)
    """


@hookspec(firstresult=True)
def emit_library(artifact: Artifact, name: str, folder: Path) -> Sequence[Path]:
    """Write a program as a library for C.

    Called on the target by :func:`polyblocks.ahead_of_time.library.write_library`.

    Args:
        artifact: a checked artifact of this target, perhaps for several architectures.
        name: of the function, and what names of files are made of.
        folder: where the files go; made if it is not there.

    Returns:
        The files; none, the default: the target makes no libraries.

    Raises:
        InputError: this program cannot be one.
        TargetError: what links a library is missing, or fails.

    Example::

        @hookimpl
        def emit_library(artifact, name, folder):
            path = folder / f"{name}.c"
            path.write_text(artifact.blobs["code.c"].decode())
            return [path]
    """
    return ()


@hookspec(firstresult=True)
def array_interface() -> Any:
    """How the framework's arrays are read, and how results are made.

    Called once on the frontend, when a compiled function is made.

    Returns:
        An object with the methods of :class:`polyblocks.runtime.arrays.ArrayInterface`.

    Example::

        @hookimpl
        def array_interface():
            return NumpyArrays()
    """


@hookspec(firstresult=True)
def jit(
    function: Callable[..., Any], compile_options: Mapping[str, Any] | None
) -> Callable[..., Any]:
    """Make a compiled function of a framework's function, to be captured at its first call.

    Called on the chosen frontend by ``polyblocks.compile``, which knows no framework; a frontend
    has decorators of its own as well.

    Args:
        function: a function or module of the framework.
        compile_options: the user's dictionary, checked already; None for the defaults.

    Returns:
        The compiled function.

    Example::

        @hookimpl
        def jit(function, compile_options):
            return my_decorator(function, compile_options=compile_options)
    """


@hookspec(firstresult=True)
def exported(function: Any) -> tuple[Callable[..., Any], Sequence[Any] | None]:
    """Open a program that the framework has exported.

    Called on the chosen frontend when a program is made ahead of time.

    Args:
        function: what the user gave: a function, a module, an exported program.

    Returns:
        A function that can be compiled, and the arguments to compile it for, arrays or what
        describes them, None if they are not known; by default the function, and None.

    Example::

        @hookimpl
        def exported(function):
            return function.call, function.inputs
    """
    return function, None


@hookspec
def observe(event: Event) -> None:
    """Watch the compiler.

    Called on every loaded plugin: a pass started or finished, a decision was made, the cache was
    hit, something fell back. Exceptions are logged and ignored.

    Args:
        event: see :data:`polyblocks.events.KINDS`.

    Example::

        @hookimpl
        def observe(event):
            if event.kind == "pass-end":
                print(event.data["name"], event.data["seconds"])
    """


@hookspec(firstresult=True)
def framework() -> str:
    """Name the framework's package, by which its functions and arrays are known.

    Called on frontends, to choose one where several are installed; must not import the framework.

    Returns:
        The import name; empty, the default: the frontend is only chosen by its name.

    Example::

        @hookimpl
        def framework():
            return "numpy"
    """
    return ""


@hookspec(firstresult=True)
def frontend_options() -> Sequence[str]:
    """Name the options of frontends that this one honours.

    Called on the frontend when a function is decorated. The core refuses the others.

    Returns:
        Some of :data:`polyblocks.options.FRONTEND_OPTIONS`; none by default.

    Example::

        @hookimpl
        def frontend_options():
            return ["static_argnums"]
    """
    return ()


@hookspec(firstresult=True)
def preload() -> Sequence[str]:
    """Name the modules that lowering imports.

    Called on the target before a compilation is isolated: the core imports them once, in the
    user's process, and not in every forked one.

    Returns:
        Import names; none by default.

    Example::

        @hookimpl
        def preload():
            return ["polyblocks_toy.emit"]
    """
    return ()


@hookspec(firstresult=True)
def tools() -> Mapping[str, str]:
    """Identify the programs of this machine that lowering calls: assemblers, linkers.

    Called on the target for every compilation; the answer is part of the cache key. Must not load
    MLIR.

    Returns:
        Purpose of the program -> text that changes with it, also when it is missing; empty by
        default.

    Example::

        @hookimpl
        def tools():
            return {"assembler": shutil.which("as") or "none"}
    """
    return {}


@hookspec(firstresult=True)
def device_kinds() -> Sequence[int]:
    """Say on which devices programs take arrays where they are, besides the host.

    Called on the target by frontends and when a program is made ahead of time; loads nothing.

    Returns:
        Values of ``DLDeviceType`` (dlpack.h); none by default.

    Example::

        @hookimpl
        def device_kinds():
            return [12]
    """
    return ()


@hookspec
def synchronize() -> None:
    """Wait for all that was launched.

    Called on every loaded target by ``polyblocks.device_helpers``. A target that launches
    asynchronously implements it.

    Example::

        @hookimpl
        def synchronize():
            queue.join()
    """
