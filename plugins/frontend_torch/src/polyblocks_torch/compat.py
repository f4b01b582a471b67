"""Names that differ between the releases of PyTorch that ``pyproject.toml`` accepts.

Each is looked for by its newest spelling first.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.fx import _symbolic_trace

__all__ = ["DROPS_FAR_LIMITS", "REFUSES_TWO_TO_63", "is_fx_tracing"]

#: Whether integers are clamped without a limit that all values of their type are within. Earlier
#: it was converted to the type, or refused.
DROPS_FAR_LIMITS: bool = torch.__version__ >= "2.15"

#: Whether 2.0**63 is refused as a number of int64. Earlier it became the least one.
REFUSES_TWO_TO_63: bool = torch.__version__ >= "2.14"


def _flag() -> bool:
    return bool(vars(_symbolic_trace)["_is_fx_tracing_flag"])


#: Whether ``torch.fx`` traces, also where something is compiled. PyTorch 2.14 knows it by thread.
is_fx_tracing: Callable[[], bool] = getattr(_symbolic_trace, "_get_is_fx_tracing", _flag)
