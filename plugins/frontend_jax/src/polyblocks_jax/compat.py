"""Names and signatures that differ between the releases of JAX that ``pyproject.toml`` accepts.

Each is looked for by its newest spelling first. ``jax._src`` is where ``jax.extend`` takes them
from; JAX 0.10 is the first that lists all of them there.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax._src import config, core, xla_metadata_lib
from jax._src.interpreters import ad, mlir

try:  # JAX 0.10
    from jax.extend.core import DropVar, jaxprs_in_params
    from jax.extend.core import unsafe_am_i_under_a_jit_DO_NOT_USE as under_a_jit
except ImportError:  # JAX 0.8, 0.9
    DropVar = core.DropVar  # type: ignore[misc]
    jaxprs_in_params = core.jaxprs_in_params
    under_a_jit = core.unsafe_am_i_under_a_jit

__all__ = [
    "FIRST_CALL_PLACES",
    "DropVar",
    "context_of_now",
    "default_lowering",
    "host_array",
    "jaxprs_in_params",
    "linearize_jaxpr",
    "register_linearization",
    "under_a_jit",
    "varying_axes",
    "with_misses",
    "without_cache",
]

#: Whether the equations of a function that JAX has traced once, as most of ``jax.numpy``, have the
#: place in the user's source where that was called first. JAX 0.9.1 gives them none.
FIRST_CALL_PLACES = jax.__version_info__ < (0, 9, 1)

#: Rules learn since JAX 0.9.1 whether a pullback is made of what they give.
_TELLS_VJP = "is_vjp" in inspect.signature(ad.linearize_jaxpr).parameters


def register_linearization(primitive: Any, rule: Callable[..., Any]) -> None:
    """Make the rule known that linearizes a primitive.

    Args:
        primitive: whose rule it is.
        rule: called with ``is_vjp``, which arguments vary, the arguments and parameters.
    """

    def untold(*args: Any, **params: Any) -> Any:
        return rule(False, *args, **params)

    ad.primitive_linearizations[primitive] = rule if _TELLS_VJP else untold


def linearize_jaxpr(jaxpr: Any, varies: Sequence[bool], is_vjp: bool) -> Any:
    """JAX's own of the same name.

    Args:
        jaxpr: the function.
        varies: for each input, whether it has a tangent.
        is_vjp: see :func:`register_linearization`.
    """
    told = {"is_vjp": is_vjp} if _TELLS_VJP else {}
    return ad.linearize_jaxpr(jaxpr, varies, **told)


def with_misses(
    jitted: Any, handle: Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
) -> Any:
    """``jax.jit(f)`` with an own function for calls that its cache does not know.

    Others are dispatched by JAX in C++ as they always are. Both functions share a cache.

    Args:
        jitted: what ``jax.jit`` returned.
        handle: called with what JAX calls for arguments of a new kind, tracers, and what it does
            not take, and with the arguments; returns what that returns.
    """
    # A function of `jax.jit` can be copied with all its parts, as pickle does it, and attributes.
    state = jitted.__getstate__()
    inner = state["cache_miss"]

    def miss(*args: Any, **kwargs: Any) -> Any:
        return handle(inner, args, kwargs)

    kind: Any = type(jitted)
    made = kind.__new__(kind)
    made.__setstate__({**state, "cache_miss": miss})
    vars(made).update(vars(jitted))
    return made


def without_cache(results: Any) -> Any:
    """The result of a cache miss for a call that must not be cached."""
    return results, None, False


def host_array(value: Any) -> Any:
    """A constant of a jaxpr, as an array of NumPy if it is on the host; others as they are.

    Until JAX 0.9.1 the class that says of an array that it is a constant was no ``np.ndarray``.
    """
    return value.val if type(value).__name__ == "TypedNdArray" else value


def varying_axes(aval: Any) -> frozenset[Any]:
    """Axes of the mesh, those that ``jax.shard_map`` is over, along which an array differs."""
    if hasattr(aval, "mat"):  # JAX 0.10
        return frozenset(aval.mat.varying)
    return frozenset(aval.vma)


def context_of_now() -> Any:
    """The context that an equation has which is traced now."""
    made: Any = core.JaxprEqnContext
    if not inspect.signature(made).parameters:  # JAX 0.10
        return made()
    return made(
        config.compute_on_context_manager.value,
        config.threefry_partitionable.value,
        xla_metadata_lib.current_xla_metadata(),
    )


def default_lowering(primitive: Any) -> Callable[..., Any]:
    """JAX's own rule that lowers a primitive on all platforms without one of their own."""
    entry: Any = mlir._lowerings[primitive]
    # JAX 0.8 keeps the rule itself.
    rule: Callable[..., Any] = getattr(entry, "rule", entry)
    return rule


def cpu_lowering(primitive: Any) -> Callable[..., Any]:
    """JAX's own rule that lowers a primitive on CPUs: the default one, if there is no other."""
    entry: Any = mlir._platform_specific_lowerings["cpu"].get(primitive)
    rule: Callable[..., Any] = getattr(entry, "rule", entry)
    return default_lowering(primitive) if entry is None else rule
