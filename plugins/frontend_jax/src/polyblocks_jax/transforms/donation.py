"""Arguments that are given up, so that results may take over their memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Donation:
    """The ``donate_argnums`` and ``donate_argnames`` of a function.

    Naming too few costs a copy, and so does naming too many: ``jax.jit`` knows whose memory may
    really be used.

    Attributes:
        numbers: of positional arguments; like ``jax.jit``, without negative ones.
        names: of arguments.
        positional: names of all positional arguments.
    """

    numbers: frozenset[int]
    names: frozenset[str]
    positional: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        numbers: int | Sequence[int] | None,
        names: str | Iterable[str] | None,
    ) -> Donation:
        """Of a function, as ``jax.jit`` takes it."""
        numbers = (numbers,) if isinstance(numbers, int) else numbers or ()
        names = (names,) if isinstance(names, str) else names or ()
        try:
            positional = tuple(inspect.signature(function).parameters)
        except (TypeError, ValueError):
            positional = ()
        return cls(frozenset(numbers), frozenset(names), positional)

    def among(self, paths: Sequence[Any]) -> list[int]:
        """Which leaves are given up, of those at these paths in ``(args, kwargs)``."""
        if not self.numbers and not self.names:
            return []
        return [i for i, (part, which, *_) in enumerate(paths) if self._has(part, which)]

    def without_static(
        self, numbers: Collection[int], names: Collection[str]
    ) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """The donated arguments without the static ones.

        Args:
            numbers: of static positional arguments.
            names: of static keyword arguments.
        """
        static = {self.positional[n] for n in numbers if n < len(self.positional)} | set(names)
        kept = self.numbers - set(numbers)
        kept -= {n for n, name in enumerate(self.positional) if name in static}
        return tuple(sorted(kept)), tuple(sorted(self.names - static))

    def _has(self, part: Any, which: Any) -> bool:
        if part.idx == 0:
            known = self.positional[which.idx : which.idx + 1]
            return which.idx in self.numbers or not self.names.isdisjoint(known)
        named = {self.positional[n] for n in self.numbers if -1 < n < len(self.positional)}
        return which.key in self.names | named


NOTHING = Donation(frozenset(), frozenset())
