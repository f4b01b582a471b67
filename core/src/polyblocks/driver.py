"""The driver: import -> S1..S3 -> S4, S5 -> Artifact -> Executable. The only file that knows it."""

from __future__ import annotations

import gc
import importlib
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from polyblocks import events, preparation
from polyblocks.algorithms.factorizations.limits import limits_of
from polyblocks.artifact import SCHEMA, TRANSIENT, Artifact
from polyblocks.attributes import NAME_ATTRIBUTE
from polyblocks.cache.cache import Cache, cache_key, default_cache, toolchain_versions
from polyblocks.errors import PassError, PluginError, UnsupportedError, of_machine
from polyblocks.isolation import speculation
from polyblocks.isolation.forks import fork_lock
from polyblocks.isolation.isolation import limited, run_isolated
from polyblocks.options import CompileOptions
from polyblocks.registry.honoured_options import describe_target
from polyblocks.registry.registry import get_registry
from polyblocks.runtime.executable import Executable

if TYPE_CHECKING:
    from polyblocks.hookspecs import Capture
    from polyblocks.program import Program
    from polyblocks.registry.plugin import Plugin
    from polyblocks.target import TargetDescription


def compile_capture(capture: Capture, frontend: str, options: CompileOptions) -> Artifact:
    """Compile what a frontend captured, or take it from the cache.

    One process or thread compiles a key, all others wait for it. With ``options.debug`` the cache
    is written but not read, since the dumps are what is wanted.

    Args:
        capture: what the frontend captured.
        frontend: the frontend's name.
        options: the checked options.

    Raises:
        UnsupportedError: it cannot be compiled (also when a pass or native code failed).
        TargetError, PluginError: the target cannot be used.
    """
    registry = get_registry()
    source = registry.frontend(frontend)
    target = registry.target(options.target)
    description = describe_target(options)
    key = variant_key(source.hook.fingerprint(capture=capture), description, options, source)

    def build() -> Artifact:
        try:
            capture.prepare_import()
            made = speculation.take(key)
            if made is not None:
                return Artifact.from_bytes(made)
            return isolated(_job_of(capture, source, description, options), capture.name, target)
        except (PassError, UnsupportedError) as error:
            problem = of_machine(error) or (
                error if isinstance(error, UnsupportedError) else UnsupportedError(str(error))
            )
            plan = capture.partition(problem)
            if plan is None:
                if problem is error:
                    raise
                raise problem from error
            if problem.transient:
                plan.manifest[TRANSIENT] = True
            return plan

    def limited_build() -> Artifact:
        # Also what the plan of a partition compiles and probes.
        grid = description.multiprocessor is not None
        with limited(options.compile_timeout), limits_of(grid=grid):
            return build()

    return cached(key, limited_build, refresh=bool(options.debug))


def compile_soon(capture: Capture, frontend: str, options: CompileOptions) -> None:
    """Start to do what :func:`compile_capture` will be asked for, unless the cache has it.

    Another process does it beside this one, if there is a core for that. The arguments and errors
    are those of :func:`compile_capture`.
    """
    # Dumps are those of one compilation after the other.
    if options.debug or not speculation.is_worthwhile():
        return
    source = get_registry().frontend(frontend)
    description = describe_target(options)
    key = variant_key(source.hook.fingerprint(capture=capture), description, options, source)
    if default_cache().get(key) is not None:
        return
    capture.prepare_import()
    preload(get_registry().target(options.target))
    grid = description.multiprocessor is not None
    with limited(options.compile_timeout), limits_of(grid=grid):
        speculation.start(key, _job_of(capture, source, description, options), capture.name)


def _job_of(
    capture: Capture, source: Plugin, description: TargetDescription, options: CompileOptions
) -> Callable[[], bytes]:
    """The job of a child that compiles a capture of a frontend; it returns the artifact's bytes."""

    def job() -> bytes:
        program = source.hook.import_program(capture=capture)
        return compile_program(program, description, options).to_bytes()

    return job


def isolated(job: Callable[[], bytes], name: str, target: Plugin) -> Artifact:
    """Run a compilation for a target in a child; a watcher learns of its end also when it fails.

    Raises:
        PluginError: what the target compiles with cannot be imported.
        PolyBlocksError: see :func:`polyblocks.isolation.isolation.run_isolated`.
    """
    preload(target)
    begin = time.perf_counter()
    try:
        return Artifact.from_bytes(run_isolated(job, label=name))
    except BaseException as error:
        seconds = time.perf_counter() - begin
        events.emit("compile-end", name=name, seconds=seconds, error=str(error))
        raise


def variant_key(
    fingerprint: bytes, target: TargetDescription, options: CompileOptions, *plugins: Plugin
) -> str:
    """The cache key of one variant: program, options, target, versions of all generators.

    Args:
        fingerprint: the program's.
        target: the target's description.
        options: the checked options.
        plugins: what else takes part in compiling, besides the target's plugin and extensions.
    """
    registry = get_registry()
    plugin = registry.target(target.name)
    toolchain = toolchain_versions(registry.foreign(plugin, *plugins))
    tools = dict(plugin.hook.tools())
    versions = json.dumps([toolchain, registry.versions(plugin, *plugins), tools], sort_keys=True)
    return cache_key([fingerprint, options.cache_key(), target.fingerprint(), versions])


def cached(
    key: str,
    build: Callable[[], Artifact],
    *,
    refresh: bool = False,
    cache: Cache | None = None,
) -> Artifact:
    """The cache's artifact for ``key``, else what ``build`` makes, stored for the next one.

    One that is marked as of this moment only (see :data:`polyblocks.artifact.TRANSIENT`) is not.
    """
    cache = cache or default_cache()
    if not refresh:
        found = cache.get(key)
        if found is not None:
            events.emit("cache-hit", key=key)
            return found
    with cache.lock(key):
        found = None if refresh else cache.get(key)
        if found is not None:
            events.emit("cache-hit", key=key)
            return found
        events.emit("cache-miss", key=key)
        artifact = build()
        if not artifact.manifest.get(TRANSIENT):
            cache.put(key, artifact)
    return artifact


def compile_program(
    program: Program, description: TargetDescription, options: CompileOptions
) -> Artifact:
    """Run all stages on a Program in this process; the module is consumed."""
    from polyblocks import signature

    signature.attach(program)
    return compile_module(program.module, description, options, metadata=program.metadata)


def compile_module(
    module: Any,
    description: TargetDescription,
    options: CompileOptions,
    *,
    done: str | None = None,
    metadata: dict[str, Any] | None = None,
) -> Artifact:
    """Run all stages on a module whose ``@main`` carries its signature.

    Args:
        module: consumed. One that was read from a dump resumes where its mark says.
        description: the target's description.
        options: the checked options.
        done: mark the module so first: ``S2``, ``S3:fuse-slices``.
        metadata: JSON values for the artifact's report.
    """
    from polyblocks.affine.element import printed
    from polyblocks.passes.standard import standard_pipeline
    from polyblocks.pipeline import PassContext
    from polyblocks.stages import mark

    registry = get_registry()
    target = registry.target(description.name)
    name = _module_name(module)
    events.emit("compile-begin", name=name, target=description.name)
    begin = time.perf_counter()
    record = events.Record()
    if registry.foreign(target):
        # Their passes make operations of any dialect.
        module.context.load_all_available_dialects()
    with events.listening(record):
        pipeline = standard_pipeline(description, options)
        registry.configure(pipeline, description, options)
        if _verifies_s3():
            from polyblocks.s3.verify import VerifyS3Pass

            # Behind what targets and extensions have put there.
            pipeline.append("S3", VerifyS3Pass())
        context = PassContext.create(description, options, name)
        if done is not None:
            mark(module, done)
        elif context.dump_folder is not None:
            context.dump(module, "S0-input")
        try:
            with context.active():
                pipeline.run(module, context)
                apart = preparation.split(module)
                unread = [] if apart is None else preparation.unread(module)
                artifact = _lowered(module, target, description, options)
                if apart is not None:
                    artifact.manifest["unread"] = unread
                    sources = preparation.sources(apart)
                    made = _lowered(apart, target, description, options)
                    made.manifest["sources"] = sources
                    preparation.join(artifact, made)
        finally:
            printed.cache_clear()
    seconds = time.perf_counter() - begin
    artifact.manifest.update(
        schema=SCHEMA,
        kind="program",
        target=description.name,
        arch=description.arch,
        name=name,
        versions=toolchain_versions(registry.foreign(target)),
    )
    artifact.manifest.setdefault("report", {}).update(
        seconds=seconds,
        passes=record.passes,
        decisions=record.decisions,
        chip=_chip(description),
        **(metadata or {}),
    )
    events.emit("compile-end", name=name, seconds=seconds)
    return artifact


def _lowered(
    module: Any, target: Any, description: TargetDescription, options: CompileOptions
) -> Artifact:
    """The target's artifact of a module after S3, with the entries of every manifest."""
    from polyblocks import signature

    signature.keep(module)
    arguments = signature.rows(module)
    artifact: Artifact = target.hook.lower_program(
        module=module, target=description, options=options
    )
    artifact.manifest.setdefault("arguments", arguments)
    artifact.manifest.setdefault("entry", "polyblocks_main")
    artifact.manifest.setdefault("kernels", [])
    artifact.manifest["workspace_bytes"] = _workspace_bytes(artifact.manifest["arguments"])
    return artifact


def load(
    artifact: Artifact, device: int | None = None, options: CompileOptions | None = None
) -> Executable:
    """Load an artifact on a device through its own target.

    Args:
        artifact: of kind ``program``.
        device: index of the device, None for the host or whatever device its arrays are on.
        options: those that concern running it, for targets that have such.
    """
    instead = _instead.get()
    if instead is not None:
        replacement: Executable = instead(artifact)
        return replacement
    target = get_registry().target(artifact.manifest["target"])
    artifact = target.hook.choose_variant(artifact=artifact)
    executable: Executable = target.hook.load_artifact(artifact=artifact, device=device)
    if not isinstance(executable, Executable):
        raise PluginError(
            f"{target} gives a {type(executable).__name__} for the hook 'load_artifact'; derive "
            "its class from polyblocks.runtime.executable.Executable"
        )
    apart = preparation.part(artifact)
    if apart is not None:
        executable.preparation = target.hook.load_artifact(artifact=apart, device=device)
    if options is not None:
        executable.configure(options)
    for collected in _collecting:
        collected.append(executable)
    return executable


_collecting: list[list[Executable]] = []

_instead: ContextVar[Callable[[Artifact], Any] | None] = ContextVar(
    "polyblocks_load_instead", default=None
)


@contextmanager
def loading_with(load_instead: Callable[[Artifact], Any]) -> Iterator[None]:
    """Programs that this thread loads inside the block are what this function returns."""
    token = _instead.set(load_instead)
    try:
        yield
    finally:
        _instead.reset(token)


def loads_really() -> bool:
    """Whether :func:`load` loads, so that what it returns may be kept for others."""
    return _instead.get() is None


@contextmanager
def collecting_loads() -> Iterator[list[Executable]]:
    """The programs that this process loads inside the block, kept alive as long as the list is."""
    collected: list[Executable] = []
    _collecting.append(collected)
    try:
        yield collected
    finally:
        # By identity: equal lists are not the same one.
        _collecting[:] = [c for c in _collecting if c is not collected]


def _chip(description: TargetDescription) -> dict[str, Any]:
    """The rates and sizes of the description that reports compare with."""
    return {
        "flops": dict(description.flops),
        "matrix_flops": {unit.name: unit.flops for unit in description.matrix_units},
        "memory": [
            {"name": level.name, "size": level.size, "bandwidth": level.bandwidth}
            for level in description.memory
        ],
        "threads": description.parallel[0].size if description.parallel else 1,
        "shared": description.parallel[0].name if description.parallel else "",
    }


def _module_name(module: Any) -> str:
    attributes = module.operation.attributes
    return attributes[NAME_ATTRIBUTE].value if NAME_ATTRIBUTE in attributes else "main"


def _workspace_bytes(arguments: list[dict[str, Any]]) -> int:
    return sum(row["shape"][0] for row in arguments if row["role"] == "workspace")


def _verifies_s3() -> bool:
    """Whether the output of S3 is checked against its contract."""
    return os.environ.get("POLYBLOCKS_VERIFY", "") not in ("", "0")


def preload(target: Plugin) -> None:
    """Import here, once, what every forked child would import again, for most of a second.

    A target names modules of its own with the hook ``preload``.

    Raises:
        PluginError: one of these modules cannot be imported.
    """
    from polyblocks import mlir

    ours: tuple[str, ...] = (
        "polyblocks.passes.standard",
        "polyblocks.affine.mlir.nest_cache",
        "polyblocks.affine.mlir.reader",
        "polyblocks.affine.mlir.value_ranges",
        "polyblocks.affine.mlir.writer",
        "polyblocks.algorithms.sorting.places",
    )
    if _verifies_s3():
        ours += ("polyblocks.s3.verify",)
    # A child that was forked in the middle of an import would wait for its end.
    with fork_lock, ExitStack() as restored:
        if gc.isenabled():  # what is imported stays: to look for garbage takes a fifth of the time
            gc.disable()
            restored.callback(gc.enable)
        mlir.preload()
        for name in (*ours, *target.hook.preload()):
            try:
                importlib.import_module(name)
            except ImportError as error:
                raise PluginError(
                    f"{target} cannot compile: {type(error).__name__}: {error}; install what is "
                    "missing, it is tried again at the next compilation"
                ) from error
