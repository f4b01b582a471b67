"""StableHLO and CHLO -> linalg on tensors, shared by the frontends that speak StableHLO."""

from polyblocks.stablehlo.lower import lower
from polyblocks.stablehlo.parse import parse

__all__ = ["lower", "parse"]
