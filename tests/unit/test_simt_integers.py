"""Integer ops of the simulator against Python's integers, on random and extreme values."""

from __future__ import annotations

import numpy as np
import pytest
from simt_kernels import apply

rng = np.random.default_rng(1)
WIDTHS = (8, 16, 32, 64)


def values(bits: int, n: int = 64) -> np.ndarray:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    some = [0, 1, -1, low, high, low + 1, 2, -2, 3, 7]
    more = rng.integers(low, high, n - len(some), endpoint=True)
    return np.array([*some, *more.tolist()], np.int64)


def held(bits: int) -> np.dtype:
    return np.dtype(f"int{next(w for w in WIDTHS if bits <= w)}")


def as_signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def as_unsigned(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


def trunc_div(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def check(op: str, bits: int, expected, ins: int = 2, nonzero: bool = False, amount: bool = False):
    """``expected`` maps Python integers (signed) to an integer, which is wrapped."""
    a = values(bits)
    arrays = [a, rng.permutation(a), rng.permutation(a)][:ins]
    if nonzero:
        arrays[1] = np.where(arrays[1] == 0, 3, arrays[1])
    if amount:
        arrays[1] = np.arange(len(a)) % bits
    type_ = f"i{bits}"
    raw = [(type_, np.where(x >= 0, x, x).astype(held(bits))) for x in arrays]
    got = apply(op.replace("T", type_), raw, (type_, held(bits)))
    want = [as_signed(expected(*map(int, row)), bits) for row in zip(*arrays, strict=True)]
    # What lies in memory above an odd width is zero.
    stored = [w if bits in WIDTHS else as_unsigned(w, bits) for w in want]
    np.testing.assert_array_equal(got, np.array(stored, np.int64).astype(held(bits)))


@pytest.mark.parametrize("bits", [*WIDTHS, 5, 24, 48])
class TestArithmetic:
    @pytest.mark.parametrize(
        "op,function",
        [
            ("add", lambda a, b: a + b),
            ("sub", lambda a, b: a - b),
            ("mul", lambda a, b: a * b),
            ("and", lambda a, b: a & b),
            ("or", lambda a, b: a | b),
            ("xor", lambda a, b: a ^ b),
        ],
    )
    def test_wrapping(self, bits, op, function):
        check(f"llvm.{op} %x0, %x1 : T", bits, function)

    def test_division(self, bits):
        check("llvm.sdiv %x0, %x1 : T", bits, trunc_div, nonzero=True)
        check("llvm.srem %x0, %x1 : T", bits, lambda a, b: a - trunc_div(a, b) * b, nonzero=True)
        check(
            "llvm.udiv %x0, %x1 : T",
            bits,
            lambda a, b: as_unsigned(a, bits) // as_unsigned(b, bits),
            nonzero=True,
        )
        check(
            "llvm.urem %x0, %x1 : T",
            bits,
            lambda a, b: as_unsigned(a, bits) % as_unsigned(b, bits),
            nonzero=True,
        )

    def test_shifts(self, bits):
        check("llvm.shl %x0, %x1 : T", bits, lambda a, b: a << b, amount=True)
        check("llvm.ashr %x0, %x1 : T", bits, lambda a, b: a >> b, amount=True)
        check("llvm.lshr %x0, %x1 : T", bits, lambda a, b: as_unsigned(a, bits) >> b, amount=True)

    def test_extremes(self, bits):
        check("llvm.intr.smax(%x0, %x1) : (T, T) -> T", bits, max)
        check("llvm.intr.smin(%x0, %x1) : (T, T) -> T", bits, min)
        check(
            "llvm.intr.umax(%x0, %x1) : (T, T) -> T",
            bits,
            lambda a, b: max(as_unsigned(a, bits), as_unsigned(b, bits)),
        )
        check(
            "llvm.intr.umin(%x0, %x1) : (T, T) -> T",
            bits,
            lambda a, b: min(as_unsigned(a, bits), as_unsigned(b, bits)),
        )

    def test_saturation(self, bits):
        low, high, top = -(1 << (bits - 1)), (1 << (bits - 1)) - 1, (1 << bits) - 1
        clamp = lambda v: max(low, min(high, v))  # noqa: E731
        check("llvm.intr.sadd.sat(%x0, %x1) : (T, T) -> T", bits, lambda a, b: clamp(a + b))
        check("llvm.intr.ssub.sat(%x0, %x1) : (T, T) -> T", bits, lambda a, b: clamp(a - b))
        check(
            "llvm.intr.uadd.sat(%x0, %x1) : (T, T) -> T",
            bits,
            lambda a, b: min(top, as_unsigned(a, bits) + as_unsigned(b, bits)),
        )
        check(
            "llvm.intr.usub.sat(%x0, %x1) : (T, T) -> T",
            bits,
            lambda a, b: max(0, as_unsigned(a, bits) - as_unsigned(b, bits)),
        )


@pytest.mark.parametrize("bits", [*WIDTHS, 24])
class TestBits:
    def test_counting(self, bits):
        digits = lambda a: f"{as_unsigned(a, bits):0{bits}b}"  # noqa: E731
        check(
            '"llvm.intr.ctlz"(%x0) <{is_zero_poison = false}> : (T) -> T',
            bits,
            lambda a: len(digits(a)) - len(digits(a).lstrip("0")),
            ins=1,
        )
        check(
            '"llvm.intr.cttz"(%x0) <{is_zero_poison = false}> : (T) -> T',
            bits,
            lambda a: len(digits(a)) - len(digits(a).rstrip("0")),
            ins=1,
        )
        check("llvm.intr.ctpop(%x0) : (T) -> T", bits, lambda a: digits(a).count("1"), ins=1)
        check(
            "llvm.intr.bitreverse(%x0) : (T) -> T", bits, lambda a: int(digits(a)[::-1], 2), ins=1
        )
        check('"llvm.intr.abs"(%x0) <{is_int_min_poison = false}> : (T) -> T', bits, abs, ins=1)

    def test_funnel_shifts(self, bits):
        def both(a: int, b: int) -> int:
            return as_unsigned(a, bits) << bits | as_unsigned(b, bits)

        check(
            "llvm.intr.fshl(%x0, %x1, %x2) : (T, T, T) -> T",
            bits,
            lambda a, b, c: both(a, b) << (as_unsigned(c, bits) % bits) >> bits,
            ins=3,
        )
        check(
            "llvm.intr.fshr(%x0, %x1, %x2) : (T, T, T) -> T",
            bits,
            lambda a, b, c: both(a, b) >> (as_unsigned(c, bits) % bits),
            ins=3,
        )


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_byte_swap(bits):
    check(
        "llvm.intr.bswap(%x0) : (T) -> T",
        bits,
        lambda a: int.from_bytes(as_unsigned(a, bits).to_bytes(bits // 8, "little"), "big"),
        ins=1,
    )


PREDICATES = {
    "eq": lambda a, b, u, v: a == b,
    "ne": lambda a, b, u, v: a != b,
    "slt": lambda a, b, u, v: a < b,
    "sle": lambda a, b, u, v: a <= b,
    "sgt": lambda a, b, u, v: a > b,
    "sge": lambda a, b, u, v: a >= b,
    "ult": lambda a, b, u, v: u < v,
    "ule": lambda a, b, u, v: u <= v,
    "ugt": lambda a, b, u, v: u > v,
    "uge": lambda a, b, u, v: u >= v,
}


@pytest.mark.parametrize("name", PREDICATES)
@pytest.mark.parametrize("bits", [1, 8, 24, 64])
def test_comparisons(name, bits):
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    a, b = rng.integers(low, high, (2, 64), endpoint=True)
    dtype = np.dtype(bool) if bits == 1 else held(bits)
    type_ = f"i{bits}"
    got = apply(
        f'llvm.icmp "{name}" %x0, %x1 : {type_}',
        [(type_, (a & 1 if bits == 1 else a).astype(dtype)) for a in (a, b)],
        ("i1", bool),
    )
    want = [
        PREDICATES[name](x, y, as_unsigned(x, bits), as_unsigned(y, bits))
        for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("op", ["add", "sub", "mul", "and", "or", "xor"])
def test_arithmetic_of_one_bit(op):
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    got = apply(f"llvm.{op} %x0, %x1 : i1", [("i1", a), ("i1", b)], ("i1", bool))
    table = {"add": a ^ b, "sub": a ^ b, "mul": a & b, "and": a & b, "or": a | b, "xor": a ^ b}
    np.testing.assert_array_equal(got, table[op])


@pytest.mark.parametrize("source,to", [(1, 8), (8, 32), (24, 64), (32, 64), (1, 64)])
def test_widening(source, to):
    a = rng.integers(-(1 << (source - 1)), (1 << (source - 1)) - 1, 64, endpoint=True)
    raw = (a & 1).astype(bool) if source == 1 else a.astype(held(source))
    got = apply(f"llvm.sext %x0 : i{source} to i{to}", [(f"i{source}", raw)], (f"i{to}", held(to)))
    np.testing.assert_array_equal(got, a)
    got = apply(f"llvm.zext %x0 : i{source} to i{to}", [(f"i{source}", raw)], (f"i{to}", held(to)))
    np.testing.assert_array_equal(got, [as_unsigned(x, source) for x in a.tolist()])


@pytest.mark.parametrize("source,to", [(64, 32), (32, 8), (64, 16)])
def test_narrowing(source, to):
    a = values(source)
    got = apply(
        f"llvm.trunc %x0 : i{source} to i{to}",
        [(f"i{source}", a.astype(held(source)))],
        (f"i{to}", held(to)),
    )
    np.testing.assert_array_equal(got, [as_signed(x, to) for x in a.tolist()])


@pytest.mark.parametrize("sign", "su")
@pytest.mark.parametrize("name,function", [("add", int.__add__), ("sub", int.__sub__),
                                           ("mul", int.__mul__)])  # fmt: skip
@pytest.mark.parametrize("bits", [8, 32, 64])
def test_overflow(sign, name, function, bits):
    a = values(bits)
    b = rng.permutation(a)
    type_, pair = f"i{bits}", f"!llvm.struct<(i{bits}, i1)>"
    text = (
        f'"llvm.intr.{sign}{name}.with.overflow"(%x0, %x1) : ({type_}, {type_}) -> {pair}\n'
        f"%flag = llvm.extractvalue %pair[1] : {pair}\n%r = llvm.zext %flag : i1 to i8"
    )
    ins = [(type_, a.astype(held(bits))), (type_, b.astype(held(bits)))]
    got = apply(text, ins, ("i8", np.int8), first="%pair")
    read = as_signed if sign == "s" else as_unsigned
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if sign == "s" else (0, (1 << bits) - 1)
    exact = [function(read(x, bits), read(y, bits)) for x, y in zip(a.tolist(), b.tolist(),
                                                                   strict=True)]  # fmt: skip
    np.testing.assert_array_equal(got, [not low <= e <= high for e in exact])
