"""Tables of Markdown, and the numbers in their cells."""

from __future__ import annotations

from typing import Any

NONE = "–"


def table(heads: list[str], rows: list[list[str]]) -> list[str]:
    """Lines of a Markdown table; all columns but the first are numbers."""
    rule = ["---", *["---:"] * (len(heads) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in (heads, rule, *rows)]


def milliseconds(seconds: float | None) -> str:
    """Three digits, or all before the point."""
    if seconds is None:
        return NONE
    value = seconds * 1e3
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def number(value: float | None, unit: str = "") -> str:
    """Two digits behind the point."""
    return NONE if value is None else f"{value:.2f}{unit}"


def percent(value: float | None) -> str:
    """Whole percents, without the sign."""
    return NONE if value is None else f"{value * 100:.0f}"


def error(row: dict[str, Any]) -> str:
    """The largest error of one peer's row."""
    value = row.get("max_error")
    return NONE if value is None else f"{value:.1e}"
