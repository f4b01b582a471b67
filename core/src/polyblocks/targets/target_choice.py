"""How targets find the chip that a user names, and what they say if they cannot."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from polyblocks.errors import TargetError

Chip = TypeVar("Chip")


class ProductNames(Mapping[str, Chip]):
    """Chips by the names of products, however those are spelt.

    Case, blanks, hyphens and underscores do not count, nor do words that say nothing about the
    chip: ``Maker Model X-9`` and ``model-x9`` are the same when ``maker`` is such a word.

    Args:
        chips: name -> chip.
        aliases: another name -> a name in ``chips``.
        noise: words that do not count, in lower case.
    """

    def __init__(
        self, chips: Mapping[str, Chip], aliases: Mapping[str, str], noise: Iterable[str]
    ) -> None:
        words = "|".join(rf"\b{word}\b" for word in noise)
        self._noise = re.compile(rf"{words}|[\s_-]+")
        self._written = [*chips, *aliases]
        self._chips = {self._spelling(name): chip for name, chip in chips.items()}
        self._chips |= {self._spelling(name): chips[to] for name, to in aliases.items()}

    def __getitem__(self, name: str) -> Chip:
        return self._chips[self._spelling(name)]

    def __iter__(self) -> Iterator[str]:
        """The names as the tables have them."""
        return iter(self._written)

    def __len__(self) -> int:
        return len(self._written)

    def _spelling(self, name: str) -> str:
        return self._noise.sub("", name.lower())


def unknown_arch(target: str, name: str, known: Iterable[str], listed: str) -> TargetError:
    """The error for an unknown architecture; it names the nearest ones.

    Args:
        target: name of the target.
        name: what the user wrote.
        known: every name that could have been meant.
        listed: what to list when none is near.
    """
    near = difflib.get_close_matches(name.lower(), list(known), n=3, cutoff=0.5)
    hint = (
        f"did you mean {' or '.join(repr(n) for n in near)}?"
        if near
        else f"known are native, {listed}"
    )
    return TargetError(f"unknown arch '{name}' for target '{target}'; {hint}")


def no_device(target: str, reason: str, example: str) -> TargetError:
    """The error for a target whose ``arch`` is the device present, without a device."""
    return TargetError(
        f"target '{target}' has no device to generate code for: {reason}; name one, for example "
        f"compile_options={{'target': '{target}', 'arch': '{example}'}}"
    )
