"""How lengths are cut: radices of stages, and the two factors of a long row."""

from __future__ import annotations

import functools
import math

from polyblocks.errors import UnsupportedError

#: Lanes that a contiguous dimension should fill: those of the widest vectors of float32.
LANES = 16

#: Numbers of a matrix whose columns are transformed in strips, and columns of a strip. 65,536 on a
#: Zen 4: 0.128 ms instead of 0.157 on one thread, 0.112 instead of 0.154 on two.
LARGE, WIDTH = 1 << 14, 32

#: Odd radices that are straight-line code; lengths with other prime factors are convolutions, whose
#: errors are twice as large. 256 rows of 1216 = 64 * 19 on one thread of a Zen 4: 0.48 ms, as
#: convolutions 2.6; of 47 0.023 and 0.066.
PRIMES = (47, 43, 41, 37, 31, 29, 23, 19, 17, 13, 11, 7, 5, 3)

#: The largest radix that is a product of two primes: its numbers are held in registers.
MOST_COMPOSITE = 10

#: Numbers of the longest transforms: their factors are constants of the program, of 64 MiB in
#: float64.
LONGEST = 1 << 22


def check_length(n: int) -> None:
    """Refuse a length with too many factors.

    Raises:
        UnsupportedError: it, or that of the convolution that stands for it, is above
            :data:`LONGEST`.
    """
    needed = n if is_smooth(n) else convolution_length(n)
    if needed > LONGEST:
        raise UnsupportedError(
            f"a Fourier transform of {n} numbers needs {needed} factors, and programs hold "
            f"{LONGEST} at most; use a shorter transform"
        )


def is_smooth(n: int) -> bool:
    """Whether n is a product of radices."""
    for p in (2, *PRIMES):
        while n % p == 0:
            n //= p
    return n == 1


def radices(n: int) -> list[int]:
    """Radices of the stages for a length, whose product it is.

    Products of two primes save a stage, which is a pass over all numbers: both dimensions of
    4 x 720 x 720, 720 = 8 * 9 * 10 instead of 4 * 4 * 5 * 3 * 3, take 11.4 ms of a Zen 4's cores
    instead of 12.3.
    """
    plain, composite = _plain_radices(n), _fewest_radices(n)
    return composite if len(composite) < len(plain) else plain


def _plain_radices(n: int) -> list[int]:
    """Primes, and powers of two."""
    found = []
    for p in PRIMES:
        while n % p == 0:
            found.append(p)
            n //= p
    bits = n.bit_length() - 1
    assert n == 1 << bits, n
    # Stages of 8 need the fewest passes; two of 4 are better than one of 8 and one of 2.
    eights, left = divmod(bits, 3)
    if left == 1 and eights:
        return [8] * (eights - 1) + [4, 4] + found
    return [8] * eights + ([1 << left] if left else []) + found


@functools.cache
def _fewest_radices(n: int) -> list[int]:
    """The fewest, of these those with the smallest sum, powers of two first."""
    best: list[int] = []
    for r in (*range(2, MOST_COMPOSITE + 1), *(p for p in PRIMES if p > MOST_COMPOSITE)):
        if n % r == 0:
            found = [r, *_fewest_radices(n // r)]
            if not best or (len(found), sum(found)) < (len(best), sum(best)):
                best = sorted(found, key=lambda one: (one & (one - 1) != 0, one))
    return best


def split(n: int, few: bool = False) -> tuple[int, int] | None:
    """Factors ``a * b = n`` near each other; None if a row of this length is no such matrix.

    Both are at least :data:`LANES`, its multiples first, since vectors along them are
    full; or multiples of half of it. 1024 rows of 64 on Zen 4: 0.037 ms as 8 x 8, 0.070 side by
    side; but 655 of 100, as 10 x 10, 0.102 and 0.069.

    Args:
        n: a length.
        few: whether there are too few rows to fill vectors side by side, so that both factors may
            be anything from half of :data:`LANES` on.
    """
    best, half = None, LANES // 2
    for a in range(half, math.isqrt(n) + 1):
        if n % a or (a < LANES and not few and (a % half or n // a % half)):
            continue
        for one, other in ((a, n // a), (n // a, a)):
            partial = -(-one // LANES) * LANES * -(-other // LANES) * LANES / n
            key = (partial * max(one, other) / math.sqrt(n), one)
            if best is None or key < best[0]:
                best = key, (one, other)
    return None if best is None else best[1]


def strip(n: int, inner: int) -> int | None:
    """Columns of a strip of an [n, inner] matrix; None if it stays in one piece.

    The stages of a strip follow each other in a fast cache, and on one thread: threads would wait
    for numbers that others have just stored.
    """
    if n * inner < LARGE or inner % WIDTH:
        return None
    return WIDTH


def convolution_length(n: int) -> int:
    """The shortest good length of at least ``2 n - 1``, with radices 2 and at most one of 3."""
    least = 2 * n - 1
    power = 1 << (least - 1).bit_length()
    three = 3 * power // 4
    return three if three >= least and three % (3 * 4) == 0 else power
