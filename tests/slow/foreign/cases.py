"""Small programs as users write them, each run as it is and compiled."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

#: Takes what compiles a function (or gives it back as it is); returns all that can be seen.
Scenario = Callable[[Callable[..., Any]], Any]


@dataclass(frozen=True)
class Case:
    """A program.

    Attributes:
        name: ``group/name``.
        run: the program.
        rtol: relative tolerance instead of the one of the dtype; 0 if that holds.
    """

    name: str
    run: Scenario
    rtol: float = 0.0


@dataclass
class Group:
    """Cases of one kind.

    Attributes:
        name: of the kind.
        arguments: makes the arguments of a row of :meth:`table` from its texts.
        call: how such a row is run: its function, compiled or not, and what makes its arguments.
    """

    name: str
    arguments: Callable[..., list[Any]]
    call: Callable[[Callable[..., Any], Callable[[], list[Any]]], Any]
    cases: list[Case] = field(default_factory=list)

    def program(self, scenario: Scenario) -> Scenario:
        """Add a function of what compiles, as a decorator."""
        self.cases.append(Case(f"{self.name}/{scenario.__name__}", scenario))
        return scenario

    def table(
        self,
        rows: Iterable[tuple[Any, ...]],
        call: Callable[[Callable[..., Any], Callable[[], list[Any]]], Any] | None = None,
        rtol: float = 0.0,
    ) -> None:
        """Add rows of a name, a function and its arguments.

        Args:
            rows: what to add.
            call: instead of the group's.
            rtol: relative tolerance; 0: that of the dtype.
        """
        run = call or self.call
        for name, function, *texts in rows:

            def scenario(
                jit: Any, function: Any = function, texts: tuple[Any, ...] = tuple(texts)
            ) -> Any:
                return run(jit(function), lambda: self.arguments(*texts))

            self.cases.append(Case(f"{self.name}/{name}", scenario, rtol))


def collected(modules: Iterable[Any]) -> list[Group]:
    """All groups of modules, in their order.

    Raises:
        ValueError: two cases with one name.
    """
    groups = [v for m in modules for v in vars(m).values() if isinstance(v, Group)]
    names = [case.name for group in groups for case in group.cases]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        where = ", ".join(str(inspect.getsourcefile(m)) for m in modules)
        raise ValueError(f"expected different names of cases in {where}, not twice {twice}")
    return groups
