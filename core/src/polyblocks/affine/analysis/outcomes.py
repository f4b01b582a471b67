"""Comparisons of two numbers: which outcomes are possible, and what an outcome says of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from polyblocks.affine.model import Op

if TYPE_CHECKING:
    from polyblocks.affine.analysis.intervals import Interval

#: Predicates of ``arith.cmpf`` by their number.
_FLOATS = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
)
_INTEGERS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_SIGNS = {"eq": "=", "ne": "≠", "gt": ">", "ge": "≥", "lt": "<", "le": "≤"}
_OPPOSITE = {"=": "≠", "≠": "=", ">": "≤", "≤": ">", "<": "≥", "≥": "<"}
Ends = tuple[float, float]


@dataclass(frozen=True)
class Relation:
    """A comparison.

    Attributes:
        sign: how the numbers are compared; empty if only whether they are numbers counts.
        missing: the outcome if one of them is no number.
        unsigned: whether integers are read without a sign.
    """

    sign: str
    missing: bool = False
    unsigned: bool = False

    def outcome(self, x: Interval, y: Interval, same: bool) -> bool | None:
        """The only possible outcome; None if there are two.

        Args:
            x: what is compared.
            y: with what.
            same: whether both are the same value.
        """
        if not self.sign:
            return None if x.nans or y.nans else not self.missing
        low, high = (0.0, 0.0) if same else _difference(x, y)
        surely, never = {
            "=": (low == high == 0, high < 0 or low > 0),
            "≠": (high < 0 or low > 0, low == high == 0),
            "<": (high < 0, low >= 0),
            "≤": (high <= 0, low > 0),
            ">": (low > 0, high <= 0),
            "≥": (low >= 0, high < 0),
        }[self.sign]
        missing = {self.missing} if x.nans or y.nans else set()
        if surely:
            return True if missing <= {True} else None
        if never:
            return False if missing <= {False} else None
        return None

    def ends(self, x: Interval, y: Interval, holds: bool) -> tuple[tuple[Ends, Ends] | None, bool]:
        """Between what the two lie when the outcome is ``holds``, and whether both are numbers."""
        number = self.missing is not holds
        if not self.sign:
            return None, number
        sign = self.sign if holds else _OPPOSITE[self.sign]
        infinity = float("inf")
        # Where one of the two is no number, the other one can be anything.
        if not number and (x.nans or y.nans) and not (_is_constant(x) or _is_constant(y)):
            return None, False
        strict = 1 if x.whole and y.whole else 0
        if sign == "=":
            return ((y.low, y.high), (x.low, x.high)), number
        if sign in ("<", "≤"):
            step = strict if sign == "<" else 0
            return ((-infinity, y.high - step), (x.low + step, infinity)), number
        if sign in (">", "≥"):
            step = strict if sign == ">" else 0
            return ((y.low + step, infinity), (-infinity, x.high - step)), number
        return None, number


def _is_constant(x: Interval) -> bool:
    return not x.nans and x.low == x.high


def _difference(x: Interval, y: Interval) -> Ends:
    """Signs of left minus right; infinite ends are unknown differences."""
    infinity = float("inf")
    low = -infinity if x.low == -infinity or y.high == infinity else x.low - y.high
    high = infinity if x.high == infinity or y.low == -infinity else x.high - y.low
    return low, high


def float_relation(op: Op) -> Relation | None:
    """The relation of an ``arith.cmpf``; None for constant predicates."""
    name = _FLOATS[op.attributes["predicate"].value]
    if name in ("true", "false"):
        return None
    if name in ("ord", "uno"):
        return Relation("", missing=name == "uno")
    return Relation(_SIGNS[name[1:]], missing=name[0] == "u")


def integer_relation(op: Op) -> Relation:
    """The relation of an ``arith.cmpi``."""
    name = _INTEGERS[op.attributes["predicate"].value]
    return Relation(_SIGNS[name[-2:]], unsigned=name[0] == "u")
