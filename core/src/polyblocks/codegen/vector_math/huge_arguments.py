"""Argument reduction by pi/2 for large arguments: Payne and Hanek's method without branches.

Both keep exactly the part of x * 2/pi that matters: its integer part modulo 4 and enough of the
fraction to survive the worst cancellation (no float32 comes closer than 2^-32, no float64 closer
than 2^-62, to a multiple of pi/2; J.-M. Muller, "Elementary Functions", section 11.3).
"""

from __future__ import annotations

import itertools

from polyblocks.codegen.builder import Builder, Val, bits_of
from polyblocks.codegen.vector_math.double_double import fast_two_sum, two_product, two_sum
from polyblocks.codegen.vector_math.formats import NAN, ROUNDER


def _two_over_pi(bits: int) -> int:
    """``floor(2^bits * 2 / pi)``, with pi from Machin's formula in integers."""
    guard = 64
    one = 1 << (bits + guard)

    def arctan_of_inverse(n: int) -> int:
        power = one // n
        total, k, sign = power, 1, 1
        while power:
            power //= n * n
            k += 2
            sign = -sign
            total += sign * (power // k)
        return total

    pi = 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))
    return int((2 * one * one // pi) >> guard)


# float32: the bits of 2/pi in 32-bit words. The smallest argument, 2^19 or more, needs them from 6
# places before the first; the largest, below 2^128, ends in the seventh word.
_WORDS_F32 = 7
_BITS_F32 = _two_over_pi(32 * _WORDS_F32 - 6)
_TWO_OVER_PI_F32 = tuple(
    (_BITS_F32 >> (32 * (_WORDS_F32 - 1 - i))) & (2**32 - 1) for i in range(_WORDS_F32)
)

# float64: the bits of 2/pi in 64-bit words, behind one word of zeros for the smallest exponents.
_WORDS = 20
_BITS = _two_over_pi(64 * (_WORDS - 1))
_TWO_OVER_PI = tuple((_BITS >> (64 * (_WORDS - 1 - i))) & (2**64 - 1) for i in range(_WORDS))
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)


def reduce_huge_f32(b: Builder, x: Val) -> tuple[Val, Val]:
    """``x = n*pi/2 + r`` for a float32 of at least 2^19: r in float64, n modulo 4 in i32.

    The significand M of |x| = M * 2^k multiplies 96 bits of 2/pi, taken from where they weigh
    2^(1-k); higher bits give multiples of 4. Kept are 2 integer and 62 fraction bits.
    """
    bits = x.bits() & (2**31 - 1)
    significand = (bits & (2**23 - 1)) | 2**23
    offset = bits.shr_u(23) - (127 + 19)
    window = _window(b, _TWO_OVER_PI_F32, offset.shr_u(5), 4)
    w0, w1, w2 = _shifted(window, offset & 31, 31)
    wide = significand.zext("i64")
    total = ((significand * w0).zext("i64") << 32) + wide * w1.zext("i64")
    total = total + (wide * w2.zext("i64")).shr_u(32)
    # Round to the nearest multiple of pi/2: the fraction as a signed number.
    n = (total + 2**61).shr_u(62).to("i32")
    fraction = total << 2
    r = _signed_half(fraction) * (2.0**-32 * _HALF_PI[0])
    r = b.fma(_unsigned_half(fraction & (2**32 - 1)), 2.0**-64 * _HALF_PI[0], r)
    # Infinities and NaN have no place on the circle.
    r = b.select(bits >= 0x7F800000, NAN, r)
    negative = x < 0.0
    return b.select(negative, -r, r), b.select(negative, 0 - n, n)


def reduce_huge_f64(b: Builder, x: Val) -> tuple[Val, Val, Val]:
    """``x = n*pi/2 + r + rest``: r and rest in float64, n modulo 4 in i64.

    The significand M of |x| = M * 2^k multiplies 192 bits of 2/pi, taken from where they weigh
    2^(1-k); higher bits give multiples of 4. Kept are 2 integer and 126 fraction bits.
    """
    bits = x.bits() & (2**63 - 1)
    significand = (bits & (2**52 - 1)) | 2**52
    # Bit i of 2/pi (i = 1 is the first) weighs 2^-i; the leading word of zeros moves it by 64.
    offset = bits.shr_u(52) - (1075 - 62)
    window = _window(b, _TWO_OVER_PI, offset.shr_u(6), 18)
    w0, w1, w2 = _shifted(window, offset & 63, 63)
    middle = significand * w1
    low = middle + _multiply_high(significand, w2)
    carry = low.compare("ult", middle).zext("i64")
    high = significand * w0 + _multiply_high(significand, w1) + carry
    # Round to the nearest multiple of pi/2: the fraction as a signed 128-bit number.
    fraction = (high << 2) | low.shr_u(62)
    n = high.shr_u(62) + fraction.shr_u(63)
    r, rest = _fraction_times_half_pi(b, fraction, low << 2)
    sign = x < 0.0
    r, rest = b.select(sign, -r, r), b.select(sign, -rest, rest)
    # Infinities and NaN have no place on the circle.
    nan = x - x
    return r + nan, rest, b.select(sign, 0 - n, n)


def _window(b: Builder, table: tuple[int, ...], index: Val, count: int) -> list[Val]:
    """Words ``index .. index+3`` of a table, by a binary tree of selects; ``index < count``."""
    words = [b.const(index.kind, word) for word in table]
    steps = [1 << level for level in range((count - 1).bit_length())]
    for step in reversed(steps):
        bit = (index & step).ne(0)
        # The steps still to come move the window by at most step - 1.
        keep = min(4 + step - 1, len(words))
        last = len(words) - 1
        words = [b.select(bit, words[min(i + step, last)], words[i]) for i in range(keep)]
    return words


def _shifted(words: list[Val], shift: Val, last_bit: int) -> list[Val]:
    """The words of the window moved left by ``shift`` bits, less than a word; one word fewer."""
    back = last_bit - shift
    return [(high << shift) | low.shr_u(1).shr_u(back) for high, low in itertools.pairwise(words)]


def _signed_half(value: Val) -> Val:
    """The upper 32 bits of an i64, signed, as a float64 (exact)."""
    magic = ROUNDER["f64"]
    return ((value >> 32) + bits_of("f64", magic)).as_float() - magic


def _unsigned_half(value: Val) -> Val:
    """An i64 below 2^32 as a float64 (exact)."""
    return (value | bits_of("f64", 2.0**52)).as_float() - 2.0**52


def _multiply_high(x: Val, y: Val) -> Val:
    """Upper 64 bits of the unsigned product, from 32-bit halves (which vector units multiply)."""
    mask = 2**32 - 1
    x0, x1, y0, y1 = x & mask, x.shr_u(32), y & mask, y.shr_u(32)
    middle = x1 * y0 + (x0 * y0).shr_u(32)
    other = x0 * y1 + (middle & mask)
    return x1 * y1 + middle.shr_u(32) + other.shr_u(32)


def _fraction_times_half_pi(b: Builder, high: Val, low: Val) -> tuple[Val, Val]:
    """The signed fraction ``(high * 2^64 + low) * 2^-128`` times pi/2, in two parts."""
    parts = [_signed_half(high) * 2.0**-32]
    for piece, scale in (
        (high & (2**32 - 1), -64),
        (low.shr_u(32), -96),
        (low & (2**32 - 1), -128),
    ):
        parts.append(_unsigned_half(piece) * 2.0**scale)
    f, error = two_sum(parts[0], parts[1])
    f, error2 = two_sum(f, parts[2])
    f_low = error + (error2 + parts[3])
    f, f_low = fast_two_sum(f, f_low)
    r, error = two_product(b, f, b.const("f64", _HALF_PI[0]))
    rest = error + b.fma(f, _HALF_PI[1], f_low * _HALF_PI[0])
    return fast_two_sum(r, rest)
