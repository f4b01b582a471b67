"""The permutation of LU's pivots, by the core's algorithm.

JAX lowers it to a loop of exchanges at places known late, of a single row where there is a single
matrix. No kernel is made of such.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax._src.lib.mlir import ir
from jax._src.lib.mlir.dialects import hlo
from jax.interpreters import mlir

from polyblocks_jax.compat import default_lowering

_PRIMITIVE = jax.lax.linalg.lu_pivots_to_permutation_p


def lower_for(wanted: Callable[[], bool]) -> None:
    """Let JAX lower permutations of pivots to calls of the algorithm.

    Args:
        wanted: whether what is lowered now is for us; all else is lowered as JAX does.
    """
    as_jax_does = default_lowering(_PRIMITIVE)

    def lower(ctx: Any, pivots: Any, *, permutation_size: int) -> Any:
        (aval,), (found,) = ctx.avals_in, ctx.avals_out
        static = all(isinstance(extent, int) for extent in (*aval.shape, permutation_size))
        if not wanted() or not static or not aval.size:
            return as_jax_does(ctx, pivots, permutation_size=permutation_size)
        # The compiler comes with it, which programs from the cache do without.
        from polyblocks.stablehlo.extensions import ALGORITHM

        # The algorithm counts rows from 1, as LAPACK does.
        here = ctx.replace(avals_out=[aval])
        add = mlir.lower_fun(lambda x: x + np.int32(1), multiple_results=False)
        kind = ir.RankedTensorType.get(found.shape, ir.IntegerType.get_signless(32))
        (shifted,) = add(here, pivots)
        call = hlo.CustomCallOp(
            [kind, kind],
            [shifted] if isinstance(shifted, ir.Value) else list(shifted),
            call_target_name=ALGORITHM,
            backend_config=ir.StringAttr.get("permutation"),
        )
        return [call.results[0]]

    mlir.register_lowering(_PRIMITIVE, lower, platform="cpu")
