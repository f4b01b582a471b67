"""erf and erfc.

erf in float32: odd polynomial below 0.95, beyond it 1 - exp(-q(x)) with a polynomial
q = -log(erfc); both branches are computed.
"""

from __future__ import annotations

from polyblocks.codegen.vector_math import coefficients as table
from polyblocks.codegen.vector_math.builder import Builder, Val
from polyblocks.codegen.vector_math.exp_log import exp_polynomial, exp_reduced
from polyblocks.codegen.vector_math.formats import LOG2_E, power_of_two, round_scaled


def erf_f32(b: Builder, x: Val) -> Val:
    """Error function, float32."""
    magnitude = abs(x)
    s = x * x
    small = b.fma(x, b.horner(s, table.ERF_F32), x)
    # 1 - erf(4) is below half a unit in the last place of 1.
    q = -b.horner(b.clamp(magnitude, None, 4.0), table.ERF_TAIL_F32)
    n, i = round_scaled(b, q, LOG2_E)
    tail = exp_polynomial(b, exp_reduced(b, q, n)) * power_of_two(i, "f32")
    return b.select(magnitude < 0.95, small, (1.0 - tail).copysign(x))
