"""Lowering of a compiled function's primitive to StableHLO.

It is a call of our program through XLA's foreign function interface, or calls of several, with
JAX's own operations between them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import jax
from jax._src.lib.mlir import ir
from jax.extend.core import ClosedJaxpr, Primitive
from jax.interpreters import mlir

from polyblocks.errors import TargetError
from polyblocks.frontends.weight_arguments import weight_arguments
from polyblocks_jax.capture import capturing
from polyblocks_jax.compiler import Partitioned, Site, argument_names, compile_jaxpr, takes
from polyblocks_jax.jaxprs.evaluate import evaluate
from polyblocks_jax.jaxprs.inline import flatten
from polyblocks_jax.launch.programs import Registered
from polyblocks_jax.location import current_location
from polyblocks_jax.specs import memory_dtype, physical
from polyblocks_jax.transforms.constants import lift_constants, passed_constants, warn_of_copied
from polyblocks_jax.transforms.meshes import partitioned_devices
from polyblocks_jax.transforms.primitive import Updates, polyblocks_call_p

#: A part of a partitioned function; see :class:`polyblocks_jax.compiler.Partitioned`.
polyblocks_part_p = Primitive("polyblocks_part")
polyblocks_part_p.multiple_results = True


def _lower(
    ctx: Any, *args: Any, jaxpr: ClosedJaxpr, site: Site, kind: str, updates: Updates
) -> Any:
    as_jax_does = mlir.lower_fun(functools.partial(evaluate, jaxpr), multiple_results=True)
    if capturing.get():
        return as_jax_does(ctx, *args)
    if why := _left_whole(ctx):
        site.report.not_compiled(*why, current_location(), strict=site.options.strict_target)
        return as_jax_does(ctx, *args)
    platforms = tuple(ctx.module_context.platforms)
    if platforms != ("cpu",) and not takes(site.options, platforms):
        raise TargetError(
            f"{site.name} is called with arrays on {' and '.join(platforms)}, but target "
            f"'{site.options.target}' takes arrays on the CPU; put them on jax.devices('cpu')[0]"
        )
    # Where arrays lie on a GPU, XLA's calls take no part in this yet.
    found = dict(updates) if platforms == ("cpu",) else {}
    names = argument_names(jaxpr)
    whole = jaxpr
    if weight_arguments():
        # Functions that are called inside hold weights of their own.
        jaxpr = flatten(jaxpr).closed
    jaxpr, constants = lift_constants(jaxpr, passed_constants())
    if constants:
        names = [*(f"constant{i}" for i in range(len(constants))), *names]
        found = {result: len(constants) + index for result, index in found.items()}
    made = compile_jaxpr(jaxpr, site, names, platforms[0], found, constants, kind)
    held = made.held if isinstance(made, Registered) else frozenset()
    copied = [i for i in range(len(constants)) if i not in held]
    if copied:
        warn_of_copied(whole, [constants[i] for i in copied], site.name)
        here = ctx.replace(avals_in=[], avals_out=[jaxpr.in_avals[i] for i in copied])
        lowered = mlir.lower_fun(lambda: tuple(constants[i] for i in copied), multiple_results=True)
        args = (*(value for values in lowered(here) for value in _each(values)), *args)
    passed = [aval for i, aval in enumerate(jaxpr.in_avals) if i not in held]
    inner = ctx.replace(avals_in=passed)
    if isinstance(made, Registered):
        updated = {result: index - len(held) for result, index in found.items()}
        return ffi_call(inner, args, made, updated, site.name)
    results = mlir.lower_fun(_evaluation(made, site.name), multiple_results=True)(inner, *args)
    if inner.tokens_out is not None:
        # The equations that JAX runs have ordered effects.
        ctx.set_tokens_out(inner.tokens_out)
    return results


def _left_whole(ctx: Any) -> tuple[str, str] | None:
    """How a function is called that JAX lowers itself, and why; None if we compile it."""
    if ctx.module_context.lowering_parameters.for_export:
        return (
            "jax.export",
            "what is exported runs without PolyBlocks, so it holds JAX's own operations; "
            "polyblocks.aot compiles ahead of time",
        )
    if (count := partitioned_devices(ctx.module_context.axis_context)) > 1:
        return (
            "sharded arrays",
            f"its arrays lie on {count} devices, and XLA partitions it among them; call it in "
            "jax.shard_map, where what each device computes is compiled",
        )
    return None


def _each(values: Any) -> Sequence[Any]:
    """The values of one result, which may be one or several."""
    return values if isinstance(values, (list, tuple)) else (values,)


def _evaluation(made: Partitioned, name: str) -> Any:
    def run_part(nodes: Sequence[int], values: list[Any]) -> Any:
        part, _, _ = made.equations.part(nodes)
        program = made.parts[tuple(nodes)]
        avals = tuple(part.out_avals)
        return polyblocks_part_p.bind(*values, avals=avals, program=program, name=name)

    def evaluate(*values: Any) -> list[Any]:
        return made.equations.evaluate(made.steps, run_part, values)

    return evaluate


def ffi_call(
    ctx: Any, args: Sequence[Any], program: Registered, updates: Mapping[int, int], name: str
) -> Any:
    """``stablehlo.custom_call`` of a program on row-major buffers.

    Results that take over an argument's memory come last. XLA copies the argument first if it is
    read later, or was not given up after all.
    """
    inputs = [_in_memory(aval) for aval in ctx.avals_in]
    operands = list(args)
    if program.is_long:
        for aval, value in zip(inputs, args, strict=True):
            if aval.size:
                here = ctx.replace(avals_in=[aval], avals_out=[_WEIGHT])
                operands += mlir.lower_fun(_weight, multiple_results=False)(here, value)
                inputs.append(_WEIGHT)
                break
    order = sorted(range(len(ctx.avals_out)), key=lambda number: number in updates)
    outputs = [_in_memory(ctx.avals_out[number]) for number in order]
    if len(outputs) > 1:
        outputs.append(_UNUSED)
    aliases = {updates[n]: place for place, n in enumerate(order) if n in updates}
    ctx = ctx.replace(avals_in=inputs, avals_out=outputs)
    build = jax.ffi.build_ffi_lowering_function
    # XLA names the call after the last part of its location, and traces show that name.
    named = re.sub(r"\W", "_", f"{name}.{program.label}")
    with ir.Location.name(named, ir.Location.current):
        made = build(program.target, operand_output_aliases=aliases)(ctx, *operands).results
    return [made[order.index(number)] for number in range(len(order))]


#: A further result, without elements, of a call that has several. A tuple of just the values that a
#: loop carries would become the root of the loop's body; XLA's motion of loop-invariant code takes
#: the operands of that root for the values that the body returns, and so a call that reads the
#: loop's values for one that does not depend on them.
_UNUSED = jax.core.ShapedArray((0,), jax.numpy.dtype("uint8"))

#: XLA runs what it holds for cheap (below 1,000 operations) on the caller's thread, and counts a
#: foreign call as nothing. Longer calls get a further operand, for which it counts as many
#: operations as there are elements; computing it takes a tenth of a microsecond.
_WEIGHT = jax.core.ShapedArray((1024,), jax.numpy.dtype("int32"))


def _weight(array: Any) -> Any:
    """Something that XLA can neither foresee nor leave out."""
    first = jax.lax.slice(array.reshape(-1), (0,), (1,))
    number = jax.lax.convert_element_type(jax.numpy.real(first), _WEIGHT.dtype)
    return number + jax.lax.iota(_WEIGHT.dtype, _WEIGHT.size)


def _in_memory(aval: Any) -> Any:
    made = physical(aval)
    return jax.core.ShapedArray(made.shape, jax.numpy.dtype(memory_dtype(made)))


mlir.register_lowering(polyblocks_call_p, _lower, inline=False)


@polyblocks_part_p.def_abstract_eval
def _abstract_part(*avals: Any, **params: Any) -> Any:
    del avals
    return params["avals"]


def _lower_part(ctx: Any, *args: Any, program: Registered, name: str, **params: Any) -> Any:
    del params
    return ffi_call(ctx, args, program, {}, name)


mlir.register_lowering(polyblocks_part_p, _lower_part, inline=False)
