"""What a page says of attention: the table of contractions, and how operations are counted."""

from __future__ import annotations

from typing import Any

from bench.contractions.page import verdicts

__all__ = ["remarks", "verdicts"]


def remarks(results: dict[str, Any]) -> list[str]:
    """What one has to know of the numbers."""
    del results
    return ["Operations are those of the scores that a mask leaves, whatever a peer computes."]
