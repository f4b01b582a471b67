"""Elementwise StableHLO operations: what XLA defines where languages differ."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep
from tests.support.stablehlo_programs import binary, lowered, run, tensor, unary

from polyblocks.errors import ExecutionError

pytest.importorskip("polyblocks_cpu")

KINDS = {
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64,
}  # fmt: skip


@pytest.mark.parametrize("kind", sweep(KINDS, *list(KINDS)[1::2]))
def test_integer_division(kind):
    dtype = KINDS[kind]
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = np.array([7, high, low, low, 0, high], dtype)
    y = np.array([2, 3, 0, -1 if low else 1, 0, high], dtype)
    quotient = binary("stablehlo.divide", kind, x, y)
    rest = binary("stablehlo.remainder", kind, x, y)
    by_zero = np.array(-1).astype(dtype)
    np.testing.assert_array_equal(
        quotient, np.array([3, high // 3, by_zero, low, by_zero, 1], dtype)
    )
    np.testing.assert_array_equal(rest, np.array([1, high % 3, low, 0, 0, 0], dtype))


@pytest.mark.parametrize("kind", sweep(KINDS, *list(KINDS)[::2]))
def test_comparisons_know_the_sign(kind):
    dtype = KINDS[kind]
    limits = np.iinfo(dtype)
    x = np.array([limits.max, limits.min, 1, 0], dtype)
    y = np.array([1, limits.max, 1, limits.max], dtype)
    got = binary(
        "stablehlo.compare {comparison_direction = #stablehlo<comparison_direction GT>}",
        kind, x, y, "i1",
    )  # fmt: skip
    np.testing.assert_array_equal(got, x > y)
    np.testing.assert_array_equal(binary("stablehlo.maximum", kind, x, y), np.maximum(x, y))
    np.testing.assert_array_equal(binary("stablehlo.minimum", kind, x, y), np.minimum(x, y))


@pytest.mark.parametrize("kind", ["i8", "ui8", "i32", "ui64"])
def test_shifts_by_the_width_and_more(kind):
    dtype = KINDS[kind]
    width = np.iinfo(dtype).bits
    x = np.array([-77, -77, -77, 5, 5], np.int64).astype(dtype)
    count = np.array([1, width, width + 1, 2, width - 1], dtype)
    left = binary("stablehlo.shift_left", kind, x, count)
    logical = binary("stablehlo.shift_right_logical", kind, x, count)
    arithmetic = binary("stablehlo.shift_right_arithmetic", kind, x, count)
    raw = [int(v) & ((1 << width) - 1) for v in x]
    signed = [v - (1 << width) if v >> (width - 1) else v for v in raw]
    want = [(v << int(n)) & ((1 << width) - 1) for v, n in zip(raw, count, strict=True)]
    np.testing.assert_array_equal(left, np.array(want, np.uint64).astype(dtype))
    want = [v >> int(n) for v, n in zip(raw, count, strict=True)]
    np.testing.assert_array_equal(logical, np.array(want, np.uint64).astype(dtype))
    want = [v >> int(n) for v, n in zip(signed, count, strict=True)]
    np.testing.assert_array_equal(arithmetic, np.array(want).astype(dtype))


@pytest.mark.parametrize("kind", KINDS)
def test_floats_to_integers_saturate(kind):
    dtype = KINDS[kind]
    limits = np.iinfo(dtype)
    x = np.array([1.9, -1.9, np.nan, np.inf, -np.inf, 1e30, -1e30, 0.0], np.float32)
    low = 0 if limits.min == 0 else -1
    want = [1, low, 0, limits.max, limits.min, limits.max, limits.min, 0]
    np.testing.assert_array_equal(unary("stablehlo.convert", "f32", x, kind), np.array(want, dtype))


@pytest.mark.each_choice
@pytest.mark.parametrize("source", ["f16", "f32", "f64"])
@pytest.mark.parametrize("kind", KINDS)
def test_floats_to_integers_wrap_where_it_is_asked_for(kind, source):
    width = np.iinfo(KINDS[kind]).bits
    numbers = [1.9, -1.9, np.nan, np.inf, -np.inf, -300.0, 300.0, 2.0**31, -(2.0**31) - 0.5]
    x = np.array([*numbers, 3e9, 5e9, -3e9, 1e19, 3e19], np.float64)
    with np.errstate(over="ignore"):
        x = x.astype({"f16": "f2", "f32": "f4", "f64": "f8"}[source])
    got = unary("stablehlo.convert", source, x, kind, "{polyblocks.wraps}")
    np.testing.assert_array_equal(got, [_wrapped(float(v), width, kind) for v in x])


def _wrapped(value: float, width: int, kind: str):
    wide = max(width, 32)
    whole = int(value) if np.isfinite(value) else 2**70
    if kind.startswith("ui") and width == wide and 2 ** (wide - 1) <= whole < 2**wide:
        return whole
    number = whole if -(2 ** (wide - 1)) <= whole < 2 ** (wide - 1) else -(2 ** (wide - 1))
    limits = np.iinfo(KINDS[kind])
    return (
        number % 2**width
        if wide == width and not limits.min
        else int(np.clip(number, limits.min, limits.max))
    )


def test_unsigned_to_float_and_wider():
    x = np.array([200, 255, 3], np.uint8)
    np.testing.assert_array_equal(unary("stablehlo.convert", "ui8", x, "f32"), x.astype("f4"))
    np.testing.assert_array_equal(unary("stablehlo.convert", "ui8", x, "i32"), x.astype("i4"))
    y = np.array([2**64 - 1, 5], np.uint64)
    np.testing.assert_array_equal(unary("stablehlo.convert", "ui64", y, "f64"), y.astype("f8"))


def test_maximum_of_nan_is_nan():
    x = np.array([np.nan, 1, 2], np.float32)
    y = np.array([1, np.nan, 3], np.float32)
    np.testing.assert_array_equal(binary("stablehlo.maximum", "f32", x, y), [np.nan, np.nan, 3])


def test_integer_powers():
    x = np.array([3, -2, 1, -1, 5, -1], np.int32)
    y = np.array([4, 3, -7, -3, -1, -2], np.int32)
    got = binary("stablehlo.power", "i32", x, y)
    np.testing.assert_array_equal(got, [81, -8, 1, -1, 0, 1])


def test_round_half_to_even_and_away():
    x = np.array([0.5, 1.5, -2.5, 2.4], np.float32)
    np.testing.assert_array_equal(unary("stablehlo.round_nearest_even", "f32", x), [0, 2, -2, 2])
    np.testing.assert_array_equal(unary("stablehlo.round_nearest_afz", "f32", x), [1, 2, -3, 2])


def test_total_order():
    x = np.array([-np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan], np.float32)
    order = (
        "stablehlo.compare {comparison_direction = #stablehlo<comparison_direction LT>, "
        "compare_type = #stablehlo<comparison_type TOTALORDER>}"
    )
    assert binary(order, "f32", x[:-1].copy(), x[1:].copy(), "i1").all()


def test_complex_arithmetic_near_the_limits():
    x = np.array([1e38 + 1e38j, 1e-30 + 1e-30j, 1 + 2j], np.complex64)
    y = np.array([1e38 + 1e38j, 1e-30 - 1e-30j, 3 - 4j], np.complex64)
    want = x.astype(np.complex128) / y.astype(np.complex128)
    np.testing.assert_allclose(binary("stablehlo.divide", "complex<f32>", x, y), want, rtol=1e-6)
    size = unary("stablehlo.abs", "complex<f32>", x[1:], "f32")
    np.testing.assert_allclose(size, np.abs(x[1:].astype(np.complex128)), rtol=1e-6)


@pytest.mark.parametrize(
    ("operation", "reference"),
    [
        ("exponential", np.exp), ("log", np.log), ("sqrt", np.sqrt), ("tanh", np.tanh),
        ("sine", np.sin), ("cosine", np.cos), ("log_plus_one", np.log1p), ("tan", np.tan),
        ("exponential_minus_one", np.expm1), ("sign", lambda z: z / np.abs(z)),
    ],
)  # fmt: skip
def test_complex_functions(operation, reference):
    random = np.random.default_rng(1)
    x = random.uniform(-3, 3, 50) + 1j * random.uniform(-3, 3, 50)
    got = unary(f"stablehlo.{operation}", "complex<f64>", x)
    np.testing.assert_allclose(got, reference(x), rtol=1e-13)


def test_bits_of_wider_and_narrower_types():
    x = np.array([[1.5, -2.0], [0.0, 3.25]], np.float32)
    narrow = run(
        "func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2x4xui8> {\n"
        "%y = stablehlo.bitcast_convert %x : (tensor<2x2xf32>) -> tensor<2x2x4xui8>\n"
        "return %y : tensor<2x2x4xui8>\n}",
        x,
    )
    np.testing.assert_array_equal(narrow, x.view(np.uint8).reshape(2, 2, 4))
    wide = run(
        "func.func @main(%x: tensor<2x2x4xui8>) -> tensor<2x2xf32> {\n"
        "%y = stablehlo.bitcast_convert %x : (tensor<2x2x4xui8>) -> tensor<2x2xf32>\n"
        "return %y : tensor<2x2xf32>\n}",
        np.asarray(narrow),
    )
    np.testing.assert_array_equal(wide, x)


def test_reduce_precision_to_half():
    x = np.array([1.0001, 70000.0, 1e-9, -np.inf, np.nan, 2049.0], np.float32)
    text = (
        "func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {\n"
        "%y = stablehlo.reduce_precision %x, format = e5m10 : tensor<6xf32>\n"
        "return %y : tensor<6xf32>\n}"
    )
    want = [1.0, np.inf, 0.0, -np.inf, np.nan, 2048.0]
    np.testing.assert_array_equal(run(text, x), np.array(want, np.float32))


def test_known_integers_are_folded():
    text = lowered(
        """
        func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          %a = stablehlo.constant dense<[1, 2, 3, 0]> : tensor<4xi32>
          %b = stablehlo.constant dense<2> : tensor<4xi32>
          %c = stablehlo.compare LT, %a, %b : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
          %y = stablehlo.negate %x : tensor<4xf32>
          %z = stablehlo.select %c, %x, %y : tensor<4xi1>, tensor<4xf32>
          return %z : tensor<4xf32>
        }
        """
    )
    assert "dense<[true, false, false, true]>" in text
    assert "cmpi" not in text


def test_known_integers_are_divided_as_at_run_time():
    """What is folded, and the same with arguments instead of constants."""
    x = [7, -7, 7, -7, 5, 0, -(2**31)]
    y = [2, 2, -2, -2, 0, 0, -1]
    names = ("divide", "remainder")
    folded, computed = (
        run(
            "func.func @main(%a: tensor<7xi32>, %b: tensor<7xi32>)"
            " -> (tensor<7xi32>, tensor<7xi32>) {"
            f"%x = stablehlo.constant dense<{x}> : tensor<7xi32>\n"
            f"%y = stablehlo.constant dense<{y}> : tensor<7xi32>\n"
            + "\n".join(f"%{n} = stablehlo.{n} {names_} : tensor<7xi32>" for n in names)
            + "\nreturn %divide, %remainder : tensor<7xi32>, tensor<7xi32> }",
            np.array(x, np.int32),
            np.array(y, np.int32),
        )
        for names_ in ("%x, %y", "%a, %b")
    )
    for a, b in zip(folded, computed, strict=True):
        assert np.array_equal(a, b)


def test_complex_constants_of_the_same_and_of_other_bits():
    kind = "tensor<2xcomplex<f32>>"
    text = f"""
    func.func @main() -> ({kind}, {kind}) {{
      %n = stablehlo.constant dense<(0xFFC00000,0x7FC00000)> : tensor<complex<f32>>
      %a = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<complex<f32>>) -> {kind}
      %b = stablehlo.constant dense<[(0.0,1.0), (-0.0,1.0)]> : {kind}
      return %a, %b : {kind}, {kind}
    }}"""
    a, b = run(text)
    assert np.isnan(a.real).all()
    assert np.isnan(a.imag).all()
    np.testing.assert_array_equal(np.signbit(b.real), [False, True])


@pytest.mark.parametrize("shape", [(), (5,), (4, 3)])
def test_checks(shape):
    kind, truth = tensor(shape, "i32"), tensor(shape, "i1")
    text = f"""
    func.func @main(%x: {kind}, %y: {kind}) -> {kind} {{
      %c = stablehlo.compare NE, %y, %x : ({kind}, {kind}) -> {truth}
      %r = stablehlo.custom_call @polyblocks.check(%x, %c) {{backend_config = "they differ"}} :
        ({kind}, {truth}) -> {kind}
      %s = stablehlo.add %r, %r : {kind}
      return %s : {kind}
    }}"""
    x = np.full(shape, 7, np.int32)
    np.testing.assert_array_equal(run(text, x, x + 1), x * 2)
    y = np.array(x + 1)
    y.flat[-1] = 7
    with pytest.raises(ExecutionError, match="they differ"):
        run(text, x, y)


def test_check_that_is_known_to_hold_costs_nothing():
    text = """
    func.func @main(%x: tensor<3xi32>) -> tensor<3xi32> {
      %c = stablehlo.constant dense<true> : tensor<3xi1>
      %r = stablehlo.custom_call @polyblocks.check(%x, %c) {backend_config = "never"} :
        (tensor<3xi32>, tensor<3xi1>) -> tensor<3xi32>
      return %r : tensor<3xi32>
    }"""
    assert "cf.assert" not in lowered(text)


@pytest.mark.parametrize(("number", "name"), [("1.0", "math.atan "), ("2.0", "math.atan2 ")])
def test_arc_tangent_of_one_number(number, name):
    """What XLA makes of ``atan``."""
    text = lowered(f"""
    func.func @main(%y: tensor<3xf32>) -> tensor<3xf32> {{
      %x = stablehlo.constant dense<{number}> : tensor<3xf32>
      %r = stablehlo.atan2 %y, %x : tensor<3xf32>
      return %r : tensor<3xf32>
    }}""")
    assert name in text
