"""Whether ``jax.jit`` traces the function that it calls, or runs it."""

from __future__ import annotations

import jax

from polyblocks_jax.compat import under_a_jit


def is_tracing() -> bool:
    """Whether what is computed now becomes part of a jaxpr that JAX will lower.

    ``jax.jit`` also runs its function, operation by operation: under ``jax.disable_jit``, and, to
    find the operation at fault, when a result is refused by ``jax.debug_nans`` or
    ``jax.debug_infs``. Then the function must be the user's: a compiled program would only be
    refused again.
    """
    disabled: bool = jax.config.jax_disable_jit  # type: ignore[attr-defined] # made at run time
    return under_a_jit() and not disabled
