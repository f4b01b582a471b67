"""One traced function -> a program that XLA calls: whole, in parts, or left to the framework."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jax.extend.core import ClosedJaxpr

from polyblocks import driver
from polyblocks.errors import UnsupportedError
from polyblocks.frontends import programs
from polyblocks.frontends.function_report import FunctionReport, Variant
from polyblocks.frontends.partition import (
    Plan,
    Step,
    check_may_stay,
    fallback_row,
    order,
)
from polyblocks.frontends.planner import make_plan
from polyblocks.isolation.frames import with_large_frame
from polyblocks.options import CompileOptions
from polyblocks.registry.registry import get_registry
from polyblocks_jax.capture import capture_jaxpr
from polyblocks_jax.jaxprs.inline import flatten
from polyblocks_jax.jaxprs.nesting import check_inner, tell
from polyblocks_jax.jaxprs.parts import FRONTEND, Equations
from polyblocks_jax.launch.programs import Registered, register
from polyblocks_jax.specs import text_of
from polyblocks_jax.transforms.constants import known_values

#: XLA's GPU platforms -> the ``DLDeviceType`` of their arrays.
PLATFORMS = {"cuda": 2, "rocm": 10}


@dataclass(frozen=True, eq=False)
class Site:
    """One decorated function, as far as compiling its traces is concerned.

    Attributes:
        name: the user's function.
        options: the checked options.
        report: receives what happened.
    """

    name: str
    options: CompileOptions
    report: FunctionReport


@dataclass(frozen=True, eq=False)
class Partitioned:
    """A function with equations that the framework runs."""

    equations: Equations
    steps: Sequence[Step]
    #: The compiled parts by their equations.
    parts: dict[tuple[int, ...], Registered] = field(default_factory=dict)


@with_large_frame
def compile_jaxpr(
    closed: ClosedJaxpr,
    site: Site,
    arguments: Sequence[str] = (),
    platform: str = "cpu",
    updates: Mapping[int, int] | None = None,
    constants: Sequence[Any] = (),
    kind: str = "inference",
) -> Registered | Partitioned:
    """Compile a traced function, or what can be compiled of it.

    Args:
        closed: the function.
        site: which one, how, and who wants to know.
        arguments: names of its inputs.
        platform: XLA's, where it will run.
        updates: number of a result -> that of the input whose memory it may take over; a function
            that is cut into parts makes no use of it.
        constants: values of its first inputs, the same at each call; what depends on them alone is
            computed now, unless the function is cut into parts.
        kind: see :class:`polyblocks.frontends.function_report.Variant`.

    Raises:
        FallbackError: with ``strict_target``, when an operation cannot be compiled.
        TargetError, PluginError: the target cannot be used.
    """
    begin = time.perf_counter()
    name = site.name if kind == "inference" else f"{site.name} ({kind})"
    variant = Variant(name, kind, arguments=[text_of(aval) for aval in closed.in_avals])
    made = _compile(closed, site, arguments, variant, platform, updates or {}, constants)
    variant.seconds = time.perf_counter() - begin
    site.report.add_variant(variant)
    return made


def _compile(
    closed: ClosedJaxpr,
    site: Site,
    arguments: Sequence[str],
    variant: Variant,
    platform: str,
    updates: Mapping[int, int],
    constants: Sequence[Any],
) -> Registered | Partitioned:
    equations = Equations(flatten(closed), site.name, site.options)
    try:
        if closed.effects:
            raise UnsupportedError("it has effects")
        # A program that is inspected, not run, takes its constants as other arguments.
        values = known_values(closed, constants) if driver.loads_really() else {}
        capture = capture_jaxpr(closed, site.name, arguments, updates, values)
    except UnsupportedError as error:
        # Nothing that a cache could have a key for.
        artifact = make_plan(equations, error)
    else:
        capture.recover = lambda error: make_plan(equations, error)
        artifact, cached = programs.obtain(capture, FRONTEND, site.options)
        if artifact.manifest["kind"] == "program":
            variant.outcome = "compiled"
            tell(equations, range(len(equations)), site)
            site.report.compiled(variant, artifact, cached)
            loops = equations.has_loops()
            return register(
                artifact, site.options, loops=loops, platform=platform, constants=values
            )
        variant.cached = cached
    return _in_parts(equations, Plan.of(artifact), site, variant, platform)


def _in_parts(
    equations: Equations, plan: Plan, site: Site, variant: Variant, platform: str
) -> Partitioned:
    for left in plan.left:
        row = fallback_row(equations, left)
        check_may_stay(left, row["location"], site.options, "JAX")
        check_inner(equations, left, row["location"])
        site.report.left_to_framework(row)
    steps = order(equations, {left.index for left in plan.left}, plan.cuts)
    tell(equations, [node for step in steps if step.compiled for node in step.nodes], site)
    made = Partitioned(equations, steps)
    for step in steps:
        if step.compiled:
            artifact, cached = programs.obtain_part(
                equations.capture(step.nodes), FRONTEND, site.options
            )
            site.report.compiled(variant, artifact, cached)
            made.parts[step.nodes] = register(
                artifact, site.options, loops=equations.has_loops(step.nodes), platform=platform
            )
    variant.outcome = "partitioned" if made.parts else "framework"
    return made


def takes(options: CompileOptions, platforms: Sequence[str]) -> bool:
    """Whether programs for the target take arrays of these platforms of XLA where they are."""
    kinds = {PLATFORMS.get(platform) for platform in platforms}
    ours = set(get_registry().target(options.target).hook.device_kinds())
    return len(platforms) == 1 and kinds <= ours and not options.simulate


def argument_names(closed: ClosedJaxpr) -> list[str]:
    """Readable names of a jaxpr's inputs, as far as JAX knows them."""
    names: Any = closed.jaxpr.debug_info.arg_names
    count = len(closed.in_avals)
    if names is None or len(names) != count:
        return [f"arg{i}" for i in range(count)]
    return [name or f"arg{i}" for i, name in enumerate(names)]
