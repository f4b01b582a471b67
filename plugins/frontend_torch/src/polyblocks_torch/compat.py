"""Names that differ between the releases of PyTorch that ``pyproject.toml`` accepts.

Each is looked for by its newest spelling first.
"""

from __future__ import annotations

from collections.abc import Callable

from torch.fx import _symbolic_trace

__all__ = ["is_fx_tracing"]


def _flag() -> bool:
    return bool(vars(_symbolic_trace)["_is_fx_tracing_flag"])


#: Whether ``torch.fx`` traces, also where something is compiled. PyTorch 2.14 knows it by thread.
is_fx_tracing: Callable[[], bool] = getattr(_symbolic_trace, "_get_is_fx_tracing", _flag)
