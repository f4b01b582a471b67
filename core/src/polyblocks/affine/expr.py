"""Affine expressions with floordiv and mod over loop variables, simplified by value ranges.

An expression is ``const + sum(coefficient * atom)``; an atom is a loop variable, ``e floordiv k``
or ``e mod k``. Variables run from 0 to ``extent - 1``, so every expression has a known range, and a
division that a range makes trivial disappears when it is built.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Iterator, Mapping
from typing import Any

_ids = itertools.count()


class Var:
    """A loop variable: 0, 1, … extent - 1. Two variables are equal only if they are the same.

    ``value`` is the MLIR value of one whose loop is around whole nests; None for loops of nests.
    """

    __slots__ = ("extent", "id", "name", "value")

    def __init__(self, extent: int, name: str = "", value: Any = None) -> None:
        self.extent = extent
        self.id = next(_ids)
        self.name = name or f"i{self.id}"
        self.value = value

    def __hash__(self) -> int:
        # Not the address: the order of terms, and so the code, must be the same in every run.
        return self.id

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return self.name


class _Digit:
    """A quotient or a remainder; immutable."""

    __slots__ = ("_hash", "dividend", "divisor")

    def __init__(self, dividend: Expr, divisor: int) -> None:
        self.dividend = dividend
        self.divisor = divisor
        self._hash = hash((dividend, divisor))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is type(self)
            and self.divisor == other.divisor
            and self.dividend == other.dividend
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dividend!r}, {self.divisor})"


class Div(_Digit):
    """``dividend floordiv divisor``, divisor > 0."""

    __slots__ = ()


class Mod(_Digit):
    """``dividend mod divisor``, divisor > 0, never negative."""

    __slots__ = ()


Atom = Var | Div | Mod


class Expr:
    """An immutable affine expression; build it with operators and :meth:`of`."""

    __slots__ = ("_hash", "_range", "const", "terms")

    const: int
    terms: tuple[tuple[Atom, int], ...]
    _hash: int | None
    _range: tuple[int, int] | None

    def __init__(self, const: int = 0, terms: Mapping[Atom, int] | None = None) -> None:
        self.const = const
        self._hash = self._range = None
        if not terms:
            self.terms = ()
            return
        kept = [term for term in terms.items() if term[1] != 0]
        if len(kept) > 1:
            for atom, _ in kept:
                if type(atom) is not Var:
                    kept.sort(key=_order)
                    break
            else:
                kept.sort(key=_age)
        self.terms = tuple(kept)

    @classmethod
    def _of(cls, const: int, terms: tuple[tuple[Atom, int], ...]) -> Expr:
        """An expression of terms that are in order, without zeros."""
        new = cls.__new__(cls)
        new.const = const
        new.terms = terms
        new._hash = new._range = None
        return new

    @classmethod
    def of(cls, value: Expr | Var | int) -> Expr:
        """An Expr of a variable or an integer."""
        if isinstance(value, Expr):
            return value
        if isinstance(value, Var):
            # A variable with one value is that value.
            return cls._of(0, ((value, 1),)) if value.extent != 1 else cls._of(0, ())
        return cls._of(value, ())

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.const, self.terms))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Expr) and self.const == other.const and self.terms == other.terms
        )

    def __add__(self, other: Expr | Var | int) -> Expr:
        other = Expr.of(other)
        if not other.terms:
            return Expr._of(self.const + other.const, self.terms) if other.const else self
        if not self.terms:
            return Expr._of(self.const + other.const, other.terms) if self.const else other
        terms = dict(self.terms)
        for atom, coefficient in other.terms:
            terms[atom] = terms.get(atom, 0) + coefficient
        return Expr(self.const + other.const, terms)

    def __mul__(self, factor: int) -> Expr:
        if factor == 1:
            return self
        if factor == 0:
            return Expr(0)
        return Expr._of(self.const * factor, tuple([(a, c * factor) for a, c in self.terms]))

    __rmul__ = __mul__

    def __sub__(self, other: Expr | Var | int) -> Expr:
        other = Expr.of(other)
        if not other.terms:
            return Expr._of(self.const - other.const, self.terms) if other.const else self
        terms = dict(self.terms)
        for atom, coefficient in other.terms:
            terms[atom] = terms.get(atom, 0) - coefficient
        return Expr(self.const - other.const, terms)

    def __floordiv__(self, divisor: int) -> Expr:
        if divisor == 1:
            return self
        whole, rest = self._split(divisor)
        low, high = rest.range()
        if low // divisor == high // divisor:
            return whole + low // divisor
        if not whole.terms and whole.const == 0 and len(rest.terms) == 1 and rest.const == 0:
            ((atom, coefficient),) = rest.terms
            # (e floordiv a) floordiv b = e floordiv (a * b)
            if isinstance(atom, Div) and coefficient == 1:
                return atom.dividend // (atom.divisor * divisor)
        digits = rest._digits(divisor)
        if digits is not None:
            unit, upper, _ = digits
            return whole + upper // (divisor // unit)
        return whole + Expr(0, {Div(rest, divisor): 1})

    def __mod__(self, divisor: int) -> Expr:
        if divisor == 1:
            return Expr(0)
        _, rest = self._split(divisor)
        low, high = rest.range()
        if low // divisor == high // divisor:
            return rest - (low // divisor) * divisor
        digits = rest._digits(divisor)
        if digits is not None:
            unit, upper, lower = digits
            return (upper % (divisor // unit)) * unit + lower
        return Expr(0, {Mod(rest, divisor): 1})

    def _digits(self, divisor: int) -> tuple[int, Expr, Expr] | None:
        """``self = unit * upper + lower`` with 0 <= lower < unit, a divisor of ``divisor``.

        A quotient then depends on ``upper`` alone. None if there is no unit above 1.
        """
        for unit in sorted({math.gcd(c, divisor) for _, c in self.terms}, reverse=True):
            if unit == 1:
                break
            upper = {a: c // unit for a, c in self.terms if c % unit == 0}
            lower = Expr(self.const % unit, {a: c for a, c in self.terms if c % unit != 0})
            low, high = lower.range()
            if low >= 0 and high < unit:
                return unit, Expr(self.const // unit, upper), lower
        return None

    def _split(self, divisor: int) -> tuple[Expr, Expr]:
        """``self = divisor * whole + rest`` with the terms of rest not divisible by divisor."""
        whole = {a: c // divisor for a, c in self.terms if c % divisor == 0}
        rest = {a: c for a, c in self.terms if c % divisor != 0}
        if not rest:
            return Expr(self.const // divisor, whole), Expr(self.const % divisor)
        return Expr(0, whole), Expr(self.const, rest)

    def range(self) -> tuple[int, int]:
        """Smallest and largest value that it can take (a bound, tight for single atoms)."""
        if self._range is None:
            low = high = self.const
            for atom, c in self.terms:
                a, b = _atom_range(atom)
                low += c * (a if c > 0 else b)
                high += c * (b if c > 0 else a)
            self._range = low, high
        return self._range

    def tight_range(self) -> tuple[int, int]:
        """As :meth:`range`, where quotients are also seen as what is left of their dividends.

        ``e - k * (e floordiv k)`` is ``e mod k``, so its range is known although ``e`` is in it
        twice. So is that of ``(e + 1) floordiv k - e floordiv k``.
        """
        low, high = self.range()
        if all(isinstance(atom, Var) for atom, _ in self.terms):
            return low, high
        for least, most in (self.without_digits().range(), self._range_of_pairs()):
            low, high = max(low, least), min(high, most)
        return low, high

    def _range_of_pairs(self) -> tuple[int, int]:
        """As :meth:`range`, with a quotient and one that is taken off seen together.

        Of dividends that differ by ``d``, quotients differ by ``d / k``, rounded down or up.
        """
        rest = dict(self.terms)
        low = high = self.const
        for mine, factor in self.terms:
            if not isinstance(mine, Div) or factor < 0 or mine not in rest:
                continue
            for other, taken in self.terms:
                if other not in rest or taken != -factor or not isinstance(other, Div):
                    continue
                if other.divisor == mine.divisor:
                    least, most = (mine.dividend - other.dividend).tight_range()
                    low += factor * (least // mine.divisor)
                    high += factor * -(-most // mine.divisor)
                    del rest[mine], rest[other]
                    break
        least, most = Expr(0, rest).range()
        return low + least, high + most

    def without_digits(self) -> Expr:
        """The same number, with ``k * (e floordiv k)`` as ``e - e mod k``, as deep as it goes."""
        result = Expr(self.const)
        for atom, c in self.terms:
            if isinstance(atom, Div) and c % atom.divisor == 0:
                whole = atom.dividend - atom.dividend % atom.divisor
                result = result + whole.without_digits() * (c // atom.divisor)
            else:
                result = result + Expr(0, {atom: c})
        return result

    def variables(self) -> Iterator[Var]:
        """Every variable in it; one that occurs twice comes twice."""
        for atom, _ in self.terms:
            if isinstance(atom, Var):
                yield atom
            else:
                yield from atom.dividend.variables()

    def coefficient(self, var: Var) -> int | None:
        """The factor of ``var``; None if it also (or only) occurs under a floordiv or mod."""
        factor = 0
        for atom, c in self.terms:
            if atom is var:
                factor = c
            elif not isinstance(atom, Var) and atom.dividend.depends_on(var):
                return None
        return factor

    def depends_on(self, var: Var) -> bool:
        """Whether the variable is in it."""
        for atom, _ in self.terms:
            if atom is var or (not isinstance(atom, Var) and atom.dividend.depends_on(var)):
                return True
        return False

    def depends_on_any(self, variables: Container[Var]) -> bool:
        """Whether one of the variables is in it."""
        for atom, _ in self.terms:
            if isinstance(atom, Var):
                if atom in variables:
                    return True
            elif atom.dividend.depends_on_any(variables):
                return True
        return False

    def substitute(self, values: Mapping[Var, Expr]) -> Expr:
        """Replace variables by expressions, simplifying again."""
        const = self.const
        terms: dict[Atom, int] = {}
        changed = False
        for atom, c in self.terms:
            new: Expr | None
            if isinstance(atom, Var):
                new = values.get(atom)
            else:
                inside = atom.dividend.substitute(values)
                if inside is atom.dividend:
                    new = None
                else:
                    new = inside // atom.divisor if isinstance(atom, Div) else inside % atom.divisor
            if new is None:
                terms[atom] = terms.get(atom, 0) + c
                continue
            changed = True
            const += new.const * c
            for inner, factor in new.terms:
                terms[inner] = terms.get(inner, 0) + factor * c
        return Expr(const, terms) if changed else self

    def evaluate(self, values: Mapping[Var, int]) -> int:
        """The number that it is for these values of its variables."""
        total = self.const
        for atom, c in self.terms:
            if isinstance(atom, Var):
                total += c * (values[atom] if atom.extent != 1 else 0)
            elif isinstance(atom, Div):
                total += c * (atom.dividend.evaluate(values) // atom.divisor)
            else:
                total += c * (atom.dividend.evaluate(values) % atom.divisor)
        return total

    @property
    def is_constant(self) -> bool:
        """Whether it is a number."""
        return not self.terms

    def __repr__(self) -> str:
        parts = [f"{c}*{_show(a)}" if c != 1 else _show(a) for a, c in self.terms]
        if self.const or not parts:
            parts.append(str(self.const))
        return " + ".join(parts)


def _age(term: tuple[Atom, int]) -> int:
    """As :func:`_order`, where all are variables."""
    return term[0].id  # type: ignore[union-attr]


def _order(term: tuple[Atom, int]) -> tuple[Any, ...]:
    """Sort key: variables first, by age. Only the order of ages counts, so every run agrees."""
    atom, coefficient = term
    if isinstance(atom, Var):
        return 0, atom.id, coefficient
    inner = atom.dividend
    parts = tuple(_order(t) for t in inner.terms)
    return 1, isinstance(atom, Mod), atom.divisor, inner.const, parts, coefficient


def _atom_range(atom: Atom) -> tuple[int, int]:
    if isinstance(atom, Var):
        return 0, max(atom.extent - 1, 0)
    low, high = atom.dividend.range()
    if isinstance(atom, Div):
        return low // atom.divisor, high // atom.divisor
    if low // atom.divisor == high // atom.divisor:
        return low % atom.divisor, high % atom.divisor
    return 0, atom.divisor - 1


def _show(atom: Atom) -> str:
    if isinstance(atom, Var):
        return atom.name
    word = "floordiv" if isinstance(atom, Div) else "mod"
    return f"(({atom.dividend!r}) {word} {atom.divisor})"
