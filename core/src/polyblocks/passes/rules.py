"""Passes made of rules: changes of the same kind of thing under one name in the pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from polyblocks.affine.model import Sequence
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class RulePass(NestPass):
    """Rules that are applied one after the other, each to the whole model.

    A rule is written and tested as a pass. Dumps, times and ``polyblocks bisect`` go rule by rule,
    under the names of the rules; a pipeline is changed by the name of the pass or of a rule.

    Attributes:
        name: of the pass.
        purpose: one sentence for the table of passes.
        rules: in order.
    """

    name: str
    purpose: str
    rules: tuple[NestPass, ...]

    def __post_init__(self) -> None:
        """Refuse a pass without rules.

        Raises:
            ValueError: there are none.
        """
        if not self.rules:
            raise ValueError(f"pass '{self.name}' has no rules; expected at least one")

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """The facts that its rules need of the module before it."""
        made: frozenset[str] = frozenset()
        needed: frozenset[str] = frozenset()
        for rule in self.rules:
            needed |= facts.declared(rule, "needs") - made
            made = made - facts.declared(rule, "breaks") | facts.declared(rule, "establishes")
        return needed

    @property
    def establishes(self) -> frozenset[str]:  # type: ignore[override]
        """The facts that hold behind it, whatever held before."""
        made: frozenset[str] = frozenset()
        for rule in self.rules:
            made = made - facts.declared(rule, "breaks") | facts.declared(rule, "establishes")
        return made

    @property
    def breaks(self) -> frozenset[str]:  # type: ignore[override]
        """The facts that do not hold behind it, whatever held before."""
        broken: frozenset[str] = frozenset()
        for rule in self.rules:
            broken = (broken | facts.declared(rule, "breaks")) - facts.declared(rule, "establishes")
        return broken

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Apply all rules."""
        for rule in self.rules:
            rule.transform(sequence, context)


def rules_of(p: Any) -> tuple[Any, ...]:
    """The rules of a pass; itself if it has none."""
    return p.rules if isinstance(p, RulePass) else (p,)


def steps(passes: Iterable[Any]) -> Iterator[Any]:
    """Passes, and in place of those that are made of rules, these."""
    for p in passes:
        yield from rules_of(p)
