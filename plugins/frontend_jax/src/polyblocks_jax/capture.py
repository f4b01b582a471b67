"""JaxCapture: a traced function as StableHLO, with what identifies it."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr

from polyblocks.errors import UnsupportedError
from polyblocks.hookspecs import Capture
from polyblocks.isolation.forks import fork_lock
from polyblocks.program import Argument, Result
from polyblocks_jax.compat import jaxprs_in_params
from polyblocks_jax.jaxprs.evaluate import evaluate
from polyblocks_jax.location import source_location
from polyblocks_jax.specs import spec_of, struct_of
from polyblocks_jax.transforms.meshes import without_mesh
from polyblocks_jax.transforms.permutations import lower_for

if TYPE_CHECKING:
    from polyblocks.artifact import Artifact


#: Types that JAX narrows unless ``jax_enable_x64`` is set.
_WIDE = ("float64", "int64", "uint64", "complex128")

#: Whether StableHLO is made for us now: a compiled function in another one is part of that.
capturing: ContextVar[bool] = ContextVar("polyblocks_capturing", default=False)
lower_for(capturing.get)


@dataclass(eq=False)
class JaxCapture(Capture):
    """A pure function of arrays.

    Attributes:
        name: the user's function, for reports.
        data: the function in StableHLO, as MLIR text with the locations of the source.
        digest: what identifies it: StableHLO without names and locations, shapes, dtypes, versions.
        arguments: one per input of the jaxpr.
        results: one per output of it.
        ops: name and source line of each operation, for reports.
        recover: makes the plan that :meth:`partition` gives.
    """

    name: str
    data: str
    digest: bytes
    arguments: tuple[Argument, ...]
    results: tuple[Result, ...]
    ops: tuple[str, ...]
    recover: Callable[[UnsupportedError], Artifact] | None = None

    def partition(self, error: UnsupportedError) -> Artifact | None:
        """See :class:`polyblocks.hookspecs.Capture`."""
        return None if self.recover is None else self.recover(error)

    def prepare_import(self) -> None:
        """Called in the user's process before the isolated import: load what it needs, once."""
        with fork_lock:
            from polyblocks_jax.importer import preload

            preload()


def capture_jaxpr(
    closed: ClosedJaxpr,
    name: str,
    arguments: Sequence[str] = (),
    updates: Mapping[int, int] | None = None,
    constants: Collection[int] = (),
) -> JaxCapture:
    """The capture of a jaxpr without effects.

    Args:
        closed: its constants become part of the program.
        name: the user's function.
        arguments: names of the inputs, for reports.
        updates: number of a result -> that of the input whose memory it takes over.
        constants: numbers of inputs that are the same at each call.

    Raises:
        UnsupportedError: it takes or gives what no Program can express, or JAX has no StableHLO
            for it.
    """
    closed = without_mesh(closed)
    specs = [spec_of(aval) for aval in closed.in_avals]
    results = [spec_of(aval) for aval in closed.out_avals]
    module = stablehlo_of(closed)
    operation = module.operation
    text = operation.get_asm(enable_debug_info=False)
    # Neither bytecode nor the forms of single operations are the same in any two builds of MLIR.
    data = operation.get_asm(enable_debug_info=True, print_generic_op_form=True)
    updates = dict(updates or {})
    known = f"jax {jax.__version__}\n{specs}\n{results}\n{sorted(updates.items())}\n{text}"
    if constants:
        known = f"constants {sorted(constants)}\n{known}"
    digest = hashlib.sha256(known.encode())
    names = arguments or [f"arg{i}" for i in range(len(specs))]
    ops = dict.fromkeys(
        f"{eqn.primitive.name} {source_location(eqn)}".strip() for eqn in closed.jaxpr.eqns
    )
    return JaxCapture(
        name,
        data,
        digest.digest(),
        tuple(
            Argument(name, spec, number in constants)
            for number, (name, spec) in enumerate(zip(names, specs, strict=True))
        ),
        tuple(Result(f"result{i}", spec, updates.get(i)) for i, spec in enumerate(results)),
        tuple(ops),
    )


def stablehlo_of(closed: ClosedJaxpr) -> Any:
    """JAX's own StableHLO of a jaxpr; one argument per input, one result per output.

    Raises:
        UnsupportedError: JAX has none.
    """

    def program(*args: Any) -> Any:
        return tuple(evaluate(closed, *args))

    jitted = jax.jit(program, keep_unused=True)
    inside = capturing.set(True)
    # It may have been traced under another setting than that of now.
    wide = jax.enable_x64(True) if _is_wide(closed.jaxpr) else contextlib.nullcontext()
    try:
        with wide:
            traced = jitted.trace(*map(struct_of, closed.in_avals))
            return traced.lower(lowering_platforms=("cpu",)).compiler_ir("stablehlo")
    except NotImplementedError as error:
        reason = str(error).strip().splitlines()[0]
        raise UnsupportedError(f"it has no form in StableHLO ({reason})") from error
    finally:
        capturing.reset(inside)


def _is_wide(jaxpr: Jaxpr) -> bool:
    """Whether it computes with values of types that JAX narrows by default."""
    variables = [*jaxpr.invars, *jaxpr.constvars, *jaxpr.outvars]
    variables += [var for eqn in jaxpr.eqns for var in eqn.outvars]
    return any(str(getattr(var.aval, "dtype", "")) in _WIDE for var in variables) or any(
        _is_wide(inner) for eqn in jaxpr.eqns for inner in jaxprs_in_params(eqn.params)
    )
