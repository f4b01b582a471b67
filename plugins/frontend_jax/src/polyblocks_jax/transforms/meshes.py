"""Functions on several devices: what each of them computes, and who partitions it."""

from __future__ import annotations

from typing import Any

import jax
from jax._src.sharding_impls import SPMDAxisContext
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var

from polyblocks.errors import UnsupportedError
from polyblocks_jax.compat import DropVar, context_of_now, varying_axes

#: Equations that say something of devices and compute nothing.
_STATEMENTS = ("pvary", "reshard", "sharding_constraint", "mesh_cast")
#: Parameters that say where a result shall lie.
_PLACES = ("out_sharding", "sharding")


def partitioned_devices(context: Any) -> int:
    """The number of devices among which XLA partitions what is lowered now.

    Args:
        context: ``axis_context`` of what is lowered. In ``jax.shard_map`` over all axes of the
            mesh, and in ``jax.pmap``, it is a program for each device, and the number is 1.
    """
    if isinstance(context, SPMDAxisContext):
        mesh = context.mesh
        return 1 if context.manual_axes == set(mesh.axis_names) else int(mesh.size)
    return int(getattr(context, "num_devices", 1))


def without_mesh(closed: ClosedJaxpr) -> ClosedJaxpr:
    """One device's computation: the same function, of arrays that lie on no mesh.

    Raises:
        UnsupportedError: it holds ``jax.shard_map``, which means nothing without its mesh.
    """
    if not _mentions_mesh(closed.jaxpr):
        return closed
    with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), ())):
        return ClosedJaxpr(_cleared(closed.jaxpr), closed.consts)


def _mentions_mesh(jaxpr: Jaxpr) -> bool:
    for var in (*jaxpr.invars, *jaxpr.constvars, *jaxpr.outvars):
        if _on_mesh(var.aval):
            return True
    return any(
        eqn.primitive.name in _STATEMENTS
        or not eqn.ctx.cur_abstract_mesh.empty
        or any(_on_mesh(var.aval) for var in eqn.outvars)
        for eqn in jaxpr.eqns
    )


def _on_mesh(aval: Any) -> bool:
    if not isinstance(aval, jax.core.ShapedArray):
        return False
    return bool(varying_axes(aval)) or not aval.sharding.mesh.empty


def _cleared(jaxpr: Jaxpr) -> Jaxpr:
    names: dict[Any, Any] = {}

    def new_var(var: Any) -> Any:
        if isinstance(var, DropVar):
            return DropVar(_plain(var.aval))
        names[var] = Var(_plain(var.aval))
        return names[var]

    def read(atom: Any) -> Any:
        return Literal(atom.val, _plain(atom.aval)) if isinstance(atom, Literal) else names[atom]

    constvars = [new_var(var) for var in jaxpr.constvars]
    invars = [new_var(var) for var in jaxpr.invars]
    eqns = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in _STATEMENTS:
            names.update(zip(eqn.outvars, map(read, eqn.invars), strict=True))
            continue
        if eqn.primitive.name == "shard_map":
            raise UnsupportedError("it says what each device of a mesh computes")
        eqns.append(
            eqn.replace(
                invars=[read(atom) for atom in eqn.invars],
                outvars=[new_var(var) for var in eqn.outvars],
                params={name: _parameter(name, value) for name, value in eqn.params.items()},
                ctx=_context(eqn),
            )
        )
    outvars = [read(atom) for atom in jaxpr.outvars]
    return jaxpr.replace(constvars=constvars, invars=invars, outvars=outvars, eqns=eqns)


def _plain(aval: Any) -> Any:
    if not isinstance(aval, jax.core.ShapedArray):
        return aval
    return jax.core.ShapedArray(aval.shape, aval.dtype, weak_type=aval.weak_type)


def _parameter(name: str, value: Any) -> Any:
    if isinstance(value, ClosedJaxpr):
        return ClosedJaxpr(_cleared(value.jaxpr), value.consts)
    if isinstance(value, Jaxpr):
        return _cleared(value)
    if isinstance(value, (tuple, list)):
        return (
            type(value)([_parameter("", each) for each in value]) if _has_jaxprs(value) else value
        )
    return None if name in _PLACES else value


def _has_jaxprs(values: Any) -> bool:
    return any(isinstance(value, (ClosedJaxpr, Jaxpr)) for value in values)


def _context(eqn: Any) -> Any:
    """As the equation was traced, but on no mesh."""
    none = jax.sharding.get_abstract_mesh()
    with eqn.ctx.manager, jax.sharding.use_abstract_mesh(none):
        return context_of_now()
