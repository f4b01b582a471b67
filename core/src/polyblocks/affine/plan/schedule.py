"""Schedules written and read: the same values, limits and errors for all kinds of plans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyblocks.affine.plan.keys import PlanKind, keys_of
from polyblocks.errors import UnsupportedError


def printed(kind: PlanKind, values: Mapping[str, Any]) -> dict[str, Any]:
    """A schedule of this kind, as the attribute has it; of known keys only."""
    unknown = values.keys() - {*keys_of(kind)}
    assert not unknown, f"internal error: a schedule of {kind.value} has no keys {unknown}"
    return dict(values)


class Schedule:
    """One schedule that is read.

    Its methods raise :class:`polyblocks.errors.UnsupportedError` where a value is not what it has
    to be.

    Args:
        given: the dictionary.
        name: of the nest, for messages.
        chip: the target's name and architecture, for messages.
    """

    def __init__(self, given: Mapping[str, Any], name: str, chip: str) -> None:
        self.given, self.name, self.chip = given, name, chip

    def __contains__(self, key: str) -> bool:
        return key in self.given

    # Errors

    def refuse(self, reason: str) -> UnsupportedError:
        """The error that says why the schedule is invalid."""
        return UnsupportedError(f"invalid schedule for '{self.name}': {reason}")

    def unexpected(self, expected: str, got: Any, fix: str = "") -> UnsupportedError:
        """The error for a value that the schedule must not have."""
        return self.refuse(f"expected {expected}, got {got}{'; ' if fix else ''}{fix}")

    # Values

    def check_keys(self, kind: PlanKind) -> None:
        """Check that all keys are those of a kind of plan."""
        known = keys_of(kind)
        for key in sorted(self.given.keys() - {*known}):
            raise self.unexpected(f"keys of {kind.value} ({', '.join(known)})", f"'{key}'")

    def number(self, key: str, default: int | None = None, least: int = 1) -> int:
        """A whole number."""
        value = self.given.get(key, default)
        if type(value) is not int or value < least:
            raise self.unexpected(f"a whole number from {least} on for '{key}'", repr(value))
        return value

    def pair(self, key: str) -> tuple[int, int]:
        """Two whole numbers from 1 on."""
        value: Any = self.given.get(key)
        right = isinstance(value, list) and len(value) == 2
        if not right or any(type(v) is not int or v < 1 for v in value):
            raise self.unexpected(f"two whole numbers from 1 on for '{key}'", repr(value))
        return value[0], value[1]

    def choice(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self.given.get(key, default)
        if not isinstance(value, bool):
            raise self.unexpected(f"true or false for '{key}'", repr(value))
        return value

    def choices(self, key: str) -> tuple[bool, bool]:
        """Two of true and false."""
        value: Any = self.given.get(key)
        if not isinstance(value, list) or [type(v) for v in value] != [bool, bool]:
            raise self.unexpected(f"two of true and false for '{key}'", repr(value))
        return value[0], value[1]

    def numbers(self, value: Any, what: str, length: int | None = None) -> list[int]:
        """A list of numbers of loops, accesses or buffers."""
        right = isinstance(value, list) and all(type(v) is int and v >= 0 for v in value)
        if not right or (length is not None and len(value) != length):
            many = "a list of" if length is None else f"{length}"
            raise self.unexpected(f"{many} non-negative integers for {what}", repr(value))
        return list(value)

    def permutation(self, value: Any, loops: list[int], what: str) -> list[int]:
        """Numbers of loops, each once."""
        found = self.numbers(value, what, len(loops))
        if sorted(found) != sorted(loops):
            raise self.unexpected(f"a permutation of loops {sorted(loops)} for {what}", found)
        return found

    def check_derived(self, key: str, value: Any) -> None:
        """Check a key whose value follows from the others, if it is given."""
        if self.given.get(key, value) != value:
            raise self.unexpected(
                f"{_in_words(value)} for '{key}', which follows from the other keys",
                _in_words(self.given[key]),
                "change those, or omit it",
            )

    # Limits

    def at_most(self, number: int, limit: int, of: str, *keys: str) -> None:
        """Check a size of the nest or the plan against a limit; ``keys`` can be made smaller."""
        if number > limit:
            raise self.unexpected(f"at most {limit} {of}", number, _reduce(keys))

    def within_chip(self, number: int, limit: int, of: str, *keys: str) -> None:
        """Check what a plan takes of the chip."""
        self.at_most(number, limit, f"{of} on {self.chip}", *keys)

    def multiple(self, key: str, number: int, of: int, what: str, whole: int | None = None) -> None:
        """Check that a size is a multiple of another one, or of all that there are (``whole``)."""
        if number % of and number != whole:
            other = "" if whole is None else f", or {whole}"
            raise self.unexpected(f"a multiple of {of} ({what}){other} for '{key}'", number)


def _in_words(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _reduce(keys: tuple[str, ...]) -> str:
    named = " or ".join(f"'{key}'" for key in keys)
    return f"reduce {named}" if keys else ""
