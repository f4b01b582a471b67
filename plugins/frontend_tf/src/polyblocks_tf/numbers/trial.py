"""A report that holds its entries until it is known whether the variant is used."""

from __future__ import annotations

from typing import Any

from polyblocks.artifact import Artifact
from polyblocks.frontends.function_report import FunctionReport, Variant


class Trial(FunctionReport):
    """Receives what happens when a variant with changing numbers is compiled.

    Args:
        report: of the function; gets the entries if the variant is used.
    """

    def __init__(self, report: FunctionReport) -> None:
        super().__init__(report.name, report.target, report.framework)
        self._report = report
        self._rows: list[dict[str, Any]] = []
        self._compiled: list[tuple[Variant, Artifact, bool]] = []

    def add_variant(self, variant: Variant) -> None:
        """Keep a variant."""
        self.variants.append(variant)

    def left_to_framework(self, row: dict[str, Any]) -> None:
        """Keep what the framework runs."""
        self._rows.append(row)

    def compiled(self, variant: Variant, artifact: Artifact, cached: bool) -> None:
        """Keep a compiled program."""
        self._compiled.append((variant, artifact, cached))

    def waits_for_arguments(self, reason: str) -> None:
        """Tell the function's report: what is called is in use."""
        self._report.waits_for_arguments(reason)

    def is_worse(self) -> bool:
        """Whether the framework has to run what is compiled where the numbers are constants."""
        known = {fallback.op for fallback in self._report.fallbacks}
        known |= {row["op"] for row in self._report.random_draws}
        return any(row["op"] not in known for row in self._rows)

    def accept(self) -> None:
        """Tell the function's report."""
        for row in self._rows:
            self._report.left_to_framework(row)
        for variant, artifact, cached in self._compiled:
            self._report.compiled(variant, artifact, cached)
        for variant in self.variants:
            self._report.add_variant(variant)
