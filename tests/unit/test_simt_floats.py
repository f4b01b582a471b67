"""Floating-point ops of the simulator against NumPy and exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from simt_kernels import apply

from polyblocks.simt.rounding import fma, to_bf16

rng = np.random.default_rng(2)
DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
#: (bits of the significand, smallest exponent of a normal number, largest exponent)
FORMATS = {"f16": (11, -14, 15), "bf16": (8, -126, 127), "f32": (24, -126, 127),
           "f64": (53, -1022, 1023)}  # fmt: skip
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-40, 6e-8]


def values(name: str, n: int = 128) -> np.ndarray:
    some = np.array([*SPECIAL, 65504.0, 1e-300, 3.7, -3.7])
    more = rng.standard_normal(n - len(some)) * 2.0 ** rng.integers(-8, 8, n - len(some))
    with np.errstate(over="ignore"):
        whole = np.concatenate([some, more])
        return to_bf16(whole) if name == "bf16" else whole.astype(DTYPES[name])


def in_memory(a: np.ndarray, name: str) -> np.ndarray:
    return (a.view(np.uint32) >> 16).astype(np.uint16) if name == "bf16" else a


def from_memory(a: np.ndarray, name: str) -> np.ndarray:
    return (a.astype(np.uint32) << 16).view(np.float32) if name == "bf16" else a


def stored(name: str) -> np.dtype:
    return np.dtype(np.uint16 if name == "bf16" else DTYPES[name])


def run(op: str, name: str, *arrays: np.ndarray) -> np.ndarray:
    ins = [(name, in_memory(a, name)) for a in arrays]
    return from_memory(apply(op.replace("T", name), ins, (name, stored(name))), name)


def same(got: np.ndarray, want: np.ndarray) -> None:
    """Equal bits, except that any NaN is as good as another."""
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    number = ~np.isnan(want)
    np.testing.assert_array_equal(got[number], want[number])
    np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(want[number]))


def rounded(value: Fraction, name: str) -> float:
    """Round to nearest, ties to even, in a format, by exact arithmetic."""
    if value == 0:
        return 0.0
    digits, lowest, highest = FORMATS[name]
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, lowest) - digits + 1)
    result = round(size / unit) * unit
    if result > (2 - Fraction(2) ** (1 - digits)) * Fraction(2) ** highest:
        return float("inf") if value > 0 else float("-inf")
    return float(result) if value > 0 else -float(result)


@pytest.mark.parametrize("name", FORMATS)
class TestArithmetic:
    @pytest.mark.parametrize("op", ["fadd", "fsub", "fmul", "fdiv"])
    def test_rounds_once(self, name, op):
        a, b = values(name), rng.permutation(values(name))
        got = run(f"llvm.{op} %x0, %x1 : T", name, a, b)
        with np.errstate(all="ignore"):
            function = {"fadd": np.add, "fsub": np.subtract, "fmul": np.multiply,
                        "fdiv": np.divide}[op]  # fmt: skip
            want = function(a, b)
            if name == "bf16":
                want = to_bf16(function(a.astype(np.float64), b.astype(np.float64)))
        same(got, want)

    def test_negate_and_abs(self, name):
        a = values(name)
        same(run("llvm.fneg %x0 : T", name, a), -a)
        same(run("llvm.intr.fabs(%x0) : (T) -> T", name, a), np.abs(a))

    def test_copysign(self, name):
        a, b = values(name), rng.permutation(values(name))
        same(run("llvm.intr.copysign(%x0, %x1) : (T, T) -> T", name, a, b), np.copysign(a, b))

    @pytest.mark.parametrize("op", ["floor", "ceil", "trunc", "rint", "roundeven", "nearbyint"])
    def test_rounding_to_integers(self, name, op):
        a = values(name)
        function = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}.get(op, np.rint)
        same(run(f"llvm.intr.{op}(%x0) : (T) -> T", name, a), function(a))

    def test_round_half_away(self, name):
        a = np.array([0.5, -0.5, 1.5, 2.5, -2.5, 0.25, 3.0, -0.0], np.float64)
        a = to_bf16(a) if name == "bf16" else a.astype(DTYPES[name])
        got = run("llvm.intr.round(%x0) : (T) -> T", name, a)
        np.testing.assert_array_equal(got, [1, -1, 2, 3, -3, 0, 3, -0.0])

    def test_extremes(self, name):
        a, b = values(name), rng.permutation(values(name))
        nan = np.isnan(a) | np.isnan(b)
        zeros = (a == 0) & (b == 0)
        low = np.where(zeros, np.where(np.signbit(a) | np.signbit(b), -0.0, 0.0), np.fmin(a, b))
        high = np.where(zeros, np.where(np.signbit(a) & np.signbit(b), -0.0, 0.0), np.fmax(a, b))
        same(run("llvm.intr.minnum(%x0, %x1) : (T, T) -> T", name, a, b), low)
        same(run("llvm.intr.maxnum(%x0, %x1) : (T, T) -> T", name, a, b), high)
        quiet = np.where(nan, np.nan, low), np.where(nan, np.nan, high)
        same(run("llvm.intr.minimum(%x0, %x1) : (T, T) -> T", name, a, b), quiet[0])
        same(run("llvm.intr.maximum(%x0, %x1) : (T, T) -> T", name, a, b), quiet[1])

    def test_square_root(self, name):
        a = np.abs(values(name))
        want = np.sqrt(a.astype(np.float64))
        want = to_bf16(want) if name == "bf16" else want.astype(DTYPES[name])
        same(run("llvm.intr.sqrt(%x0) : (T) -> T", name, a), want)

    def test_fused_multiply_add_rounds_once(self, name):
        digits = FORMATS[name][0]
        n = 400
        a, b = rng.integers(1 << (digits - 1), 1 << digits, (2, n)).astype(np.float64)
        # Products that the addend nearly cancels, and addends that tip a tie.
        c = np.where(np.arange(n) % 2, -np.round(a * b, -2), rng.standard_normal(n))
        arrays = [x * 2.0 ** (1 - digits) for x in (a, b)] + [c * 2.0 ** (2 - 2 * digits)]
        arrays = [to_bf16(x) if name == "bf16" else x.astype(DTYPES[name]) for x in arrays]
        got = fma(*arrays, name)
        exact = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
                 for x, y, z in zip(*arrays, strict=True)]  # fmt: skip
        np.testing.assert_array_equal(got, [rounded(value, name) for value in exact])
        same(run("llvm.intr.fma(%x0, %x1, %x2) : (T, T, T) -> T", name, *arrays), got)


def test_a_tie_that_a_second_rounding_gets_wrong():
    # 1 + 2^-24 lies between two float32; the last bit of the product decides.
    a, b = np.float32([1 + 2**-12]), np.float32([1 - 2**-12])
    c = np.float32([2**-23 + 2**-24 - 2**-47])
    exact = Fraction(float(a[0])) * Fraction(float(b[0])) + Fraction(float(c[0]))
    assert fma(a, b, c, "f32")[0] == rounded(exact, "f32")


def test_fma_of_double_far_from_one():
    a, b, c = (
        np.array([1e300, 1e-200, 5e-324, 1e308]),
        np.array([1e10, 1e-120, 0.5, 10.0]),
        (np.array([-1e300, 1e-320, 5e-324, -1e308])),
    )
    want = []
    for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True):
        try:
            want.append(float(Fraction(x) * Fraction(y) + Fraction(z)))
        except OverflowError:
            want.append(float("inf"))
    with np.errstate(all="ignore"):
        got = fma(a, b, c, "f64")
    np.testing.assert_array_equal(got, want)


RELATIONS = {
    "oeq": lambda a, b, n: (a == b) & ~n, "ogt": lambda a, b, n: (a > b) & ~n,
    "oge": lambda a, b, n: (a >= b) & ~n, "olt": lambda a, b, n: (a < b) & ~n,
    "ole": lambda a, b, n: (a <= b) & ~n, "one": lambda a, b, n: (a != b) & ~n,
    "ord": lambda a, b, n: ~n, "ueq": lambda a, b, n: (a == b) | n,
    "ugt": lambda a, b, n: (a > b) | n, "uge": lambda a, b, n: (a >= b) | n,
    "ult": lambda a, b, n: (a < b) | n, "ule": lambda a, b, n: (a <= b) | n,
    "une": lambda a, b, n: (a != b) | n, "uno": lambda a, b, n: n,
    "_true": lambda a, b, n: n | True, "_false": lambda a, b, n: n & False,
}  # fmt: skip


@pytest.mark.parametrize("name", RELATIONS)
def test_comparisons(name):
    a, b = values("f32"), rng.permutation(values("f32"))
    b[::3] = a[::3]
    got = apply(f'llvm.fcmp "{name}" %x0, %x1 : f32', [("f32", a), ("f32", b)], ("i1", bool))
    nan = np.isnan(a) | np.isnan(b)
    np.testing.assert_array_equal(got, RELATIONS[name](a, b, nan))


class TestConversions:
    @pytest.mark.parametrize("source,to", [("f64", "f32"), ("f64", "f16"), ("f32", "f16"),
                                           ("f32", "bf16"), ("f64", "bf16")])  # fmt: skip
    def test_narrowing_rounds_once(self, source, to):
        digits = FORMATS[to][0]
        some = values(source)
        ties = (1 + rng.integers(0, 1 << digits, 128) * 2.0 ** (1 - digits) + 2.0**-digits) + (
            rng.integers(-1, 2, 128) * 2.0 ** (-22 if source == "f32" else -50)
        )
        a = np.concatenate([some, ties.astype(DTYPES[source])])
        got = from_memory(
            apply(f"llvm.fptrunc %x0 : {source} to {to}", [(source, a)], (to, stored(to))), to
        )
        finite = np.isfinite(a)
        want = [rounded(Fraction(float(x)), to) for x in a[finite]]
        np.testing.assert_array_equal(got[finite], want)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(a))

    @pytest.mark.parametrize("source,to", [("f16", "f32"), ("bf16", "f32"), ("f32", "f64"),
                                           ("bf16", "f64"), ("f16", "f64")])  # fmt: skip
    def test_widening_is_exact(self, source, to):
        a = values(source)
        got = apply(
            f"llvm.fpext %x0 : {source} to {to}", [(source, in_memory(a, source))], (to, stored(to))
        )
        same(got, a.astype(DTYPES[to]))

    @pytest.mark.parametrize("bits", [8, 32, 64])
    @pytest.mark.parametrize("to", FORMATS)
    def test_from_integers(self, bits, to):
        a = rng.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1, 64, endpoint=True)
        if to == "f16":
            a >>= max(0, bits - 18)
        ints = [(f"i{bits}", a.astype(f"int{bits}"))]
        got = from_memory(apply(f"llvm.sitofp %x0 : i{bits} to {to}", ints, (to, stored(to))), to)
        np.testing.assert_array_equal(got, [rounded(Fraction(x), to) for x in a.tolist()])
        got = from_memory(apply(f"llvm.uitofp %x0 : i{bits} to {to}", ints, (to, stored(to))), to)
        plain = [x % (1 << bits) for x in a.tolist()]
        np.testing.assert_array_equal(got, [rounded(Fraction(x), to) for x in plain])

    @pytest.mark.parametrize("name", FORMATS)
    def test_to_integers(self, name):
        a = values(name)
        a = a[np.isfinite(a) & (np.abs(a) < 1e4)]
        ins = [(name, in_memory(a, name))]
        got = apply(f"llvm.fptosi %x0 : {name} to i32", ins, ("i32", np.int32))
        np.testing.assert_array_equal(got, np.trunc(a))
        got = apply(f"llvm.fptoui %x0 : {name} to i16", [(name, in_memory(np.abs(a), name))],
                    ("i16", np.uint16))  # fmt: skip
        np.testing.assert_array_equal(got, np.trunc(np.abs(a)))

    def test_saturation(self):
        a = np.array([1e10, -1e10, np.nan, 3.9, -3.9], np.float32)
        got = apply('"llvm.intr.fptosi.sat"(%x0) : (f32) -> i32', [("f32", a)], ("i32", np.int32))
        np.testing.assert_array_equal(got, [2**31 - 1, -(2**31), 0, 3, -3])


@pytest.mark.parametrize("op", ["exp", "exp2", "log", "log2", "sin", "cos", "tanh"])
def test_functions(op):
    a = np.abs(rng.standard_normal(64)).astype(np.float32)
    got = apply(f"llvm.intr.{op}(%x0) : (f32) -> f32", [("f32", a)], ("f32", np.float32))
    np.testing.assert_array_equal(got, getattr(np, op)(a.astype(np.float64)).astype(np.float32))


@pytest.mark.parametrize("bit,member", [(0x3, np.isnan), (0x204, np.isinf),
                                        (0x60, lambda a: a == 0)])  # fmt: skip
def test_classes(bit, member):
    a = values("f32")
    op = f'"llvm.intr.is.fpclass"(%x0) <{{bit = {bit} : i32}}> : (f32) -> i1'
    np.testing.assert_array_equal(apply(op, [("f32", a)], ("i1", bool)), member(a))


def test_a_reduction_adds_in_order():
    a = rng.standard_normal((32, 4)).astype(np.float32)
    op = (
        'llvm.mlir.constant(1.0 : f32) : f32\n%r = "llvm.intr.vector.reduce.fadd"(%one, %x0) '
        "<{fastmathFlags = #llvm.fastmath<none>}> : (f32, vector<4xf32>) -> f32"
    )
    got = apply(op, [("vector<4xf32>", a)], ("f32", np.float32), first="%one")
    want = np.float32(1) + a[:, 0]
    for i in range(1, 4):
        want = want + a[:, i]
    np.testing.assert_array_equal(got, want)
