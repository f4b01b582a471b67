"""Argument reduction by pi/2 for large arguments: Payne and Hanek's method without branches.

Both keep exactly the part of x * 2/pi that matters: its integer part modulo 4 and enough of the
fraction to survive the worst cancellation (no float32 comes closer than 2^-32, no float64 closer
than 2^-62, to a multiple of pi/2; J.-M. Muller, "Elementary Functions", section 11.3).
"""

from __future__ import annotations

from polyblocks.codegen.vector_math.builder import Builder, Val, bits_of
from polyblocks.codegen.vector_math.double_double import fast_two_sum, two_product, two_sum
from polyblocks.codegen.vector_math.formats import ROUNDER, round_scaled


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


# float32: 1/(2*pi) in chunks of 29 bits, each product with a float32 exact in float64. A float32
# has at most 2^104 as its unit in the last place; 7 chunks leave 2^-75 of a turn.
_CHUNK, _CHUNKS = 29, 7
_FRACTION = _two_over_pi(_CHUNK * _CHUNKS) >> 2
_INVERSE_TWO_PI = tuple(
    ((_FRACTION >> (_CHUNK * (_CHUNKS - 1 - i))) & ((1 << _CHUNK) - 1)) * 2.0 ** (-_CHUNK * (i + 1))
    for i in range(_CHUNKS)
)

# float64: the bits of 2/pi in 64-bit words, behind one word of zeros for the smallest exponents.
_WORDS = 20
_BITS = _two_over_pi(64 * (_WORDS - 1))
_TWO_OVER_PI = tuple((_BITS >> (64 * (_WORDS - 1 - i))) & (2**64 - 1) for i in range(_WORDS))
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)


def reduce_huge_f32(b: Builder, x: Val) -> tuple[Val, Val]:
    """``x = n*pi/2 + r`` for a float32 held in float64: r in float64, n modulo 4 in i32."""
    magnitude = abs(x)
    turns = b.const("f64", 0.0)
    quadrants = b.const("f64", 0.0)
    big = 2.0**52
    for chunk in _INVERSE_TWO_PI:
        product = magnitude * chunk
        # Above 2^52 a float64 is an integer already, and the rounding trick would not hold.
        whole = b.select(product < big, (product + big) - big, product)
        turns = turns + (product - whole)
        # Quadrants go at once: what is left may cancel to 2^-32 and must keep its low bits.
        n, _ = round_scaled(b, turns, 4.0)
        quadrants = quadrants + n
        turns = b.fnma(n, 0.25, turns)
    _, i = round_scaled(b, quadrants, 1.0)
    r = turns * 6.283185307179586
    negative = x < 0.0
    i = i.to("i32")
    return b.select(negative, -r, r), b.select(negative, 0 - i, i)


def reduce_huge_f64(b: Builder, x: Val) -> tuple[Val, Val, Val]:
    """``x = n*pi/2 + r + rest``: r and rest in float64, n modulo 4 in i64.

    The significand M of |x| = M * 2^k multiplies 192 bits of 2/pi, taken from where they weigh
    2^(1-k); higher bits give multiples of 4. Kept are 2 integer and 126 fraction bits.
    """
    bits = x.bits() & (2**63 - 1)
    significand = (bits & (2**52 - 1)) | 2**52
    # Bit i of 2/pi (i = 1 is the first) weighs 2^-i; the leading word of zeros moves it by 64.
    offset = bits.shr_u(52) - (1075 - 62)
    window = _window(b, offset.shr_u(6))
    shift = offset & 63
    back = 63 - shift
    w0, w1, w2 = (
        (high << shift) | (low.shr_u(1)).shr_u(back)
        for high, low in zip(window[:3], window[1:], strict=True)
    )
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


def _window(b: Builder, index: Val) -> list[Val]:
    """Words ``index .. index+3`` of 2/pi, by a binary tree of selects; ``index`` up to 17."""
    words = [b.const("i64", word) for word in _TWO_OVER_PI]
    for step, keep in ((16, 19), (8, 11), (4, 7), (2, 5), (1, 4)):
        bit = (index & step).ne(0)
        last = len(words) - 1
        words = [
            b.select(bit, words[min(i + step, last)], words[i]) for i in range(min(keep, last + 1))
        ]
    return words


def _multiply_high(x: Val, y: Val) -> Val:
    """Upper 64 bits of the unsigned product, from 32-bit halves (which vector units multiply)."""
    mask = 2**32 - 1
    x0, x1, y0, y1 = x & mask, x.shr_u(32), y & mask, y.shr_u(32)
    middle = x1 * y0 + (x0 * y0).shr_u(32)
    other = x0 * y1 + (middle & mask)
    return x1 * y1 + middle.shr_u(32) + other.shr_u(32)


def _fraction_times_half_pi(b: Builder, high: Val, low: Val) -> tuple[Val, Val]:
    """The signed fraction ``(high * 2^64 + low) * 2^-128`` times pi/2, in two parts."""
    signed = ((high >> 32) + bits_of("f64", ROUNDER["f64"])).as_float() - ROUNDER["f64"]
    parts = [signed * 2.0**-32]
    for piece, scale in ((high & (2**32 - 1), -64), (low.shr_u(32), -96), (low & (2**32 - 1), -128)):
        value = (piece | bits_of("f64", 2.0**52)).as_float() - 2.0**52
        parts.append(value * 2.0**scale)
    f, error = two_sum(parts[0], parts[1])
    f, error2 = two_sum(f, parts[2])
    f_low = error + (error2 + parts[3])
    f, f_low = fast_two_sum(f, f_low)
    r, error = two_product(b, f, b.const("f64", _HALF_PI[0]))
    rest = error + b.fma(f, _HALF_PI[1], f_low * _HALF_PI[0])
    return fast_two_sum(r, rest)
