"""What LLVM leaves undefined has a value in programs for the CPU, also where LLVM could fold it."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_kernels import elementwise, run, runnable_levels

#: More than a vector, and a rest.
COUNT = 67


@pytest.mark.parametrize("arch", runnable_levels()[::3])
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_shifts_by_any_count(bits: int, arch: str) -> None:
    kind, dtype = f"i{bits}", np.dtype(f"int{bits}")
    random = np.random.default_rng(bits)
    x = random.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), COUNT, dtype)
    n = random.integers(0, 2 * bits, COUNT).astype(dtype)
    n[:4] = -1, bits, bits - 1, np.iinfo(dtype).min
    body = f"""
    %far = arith.constant {bits} : {kind}
    %ten = arith.constant 10 : {kind}
    %r0 = arith.shli %a0, %a1 : {kind}
    %r1 = arith.shrui %a0, %a1 : {kind}
    %r2 = arith.shrsi %a0, %a1 : {kind}
    %l = arith.shli %ten, %far : {kind}
    %s = arith.shrsi %a0, %far : {kind}
    %r3 = arith.ori %l, %s : {kind}
    """
    results = [np.full(COUNT, 77, dtype) for _ in range(4)]
    assert run(elementwise(body, [x, n], results), x, n, *results, arch=arch) == 0
    counts = n.view(f"uint{bits}").astype(object)
    fits = [int(c) < bits for c in counts]
    numbers, mask = [int(v) for v in x], 2**bits - 1

    def expect(values: list[int]) -> np.ndarray:
        wrapped = np.array([v & mask for v in values], np.uint64)
        return wrapped.astype(f"uint{bits}").view(dtype)

    rows = list(zip(numbers, counts, fits, strict=True))
    np.testing.assert_array_equal(results[0], expect([v << int(c) if f else 0 for v, c, f in rows]))
    logical = [(v & mask) >> int(c) if f else 0 for v, c, f in rows]
    np.testing.assert_array_equal(results[1], expect(logical))
    signs = expect([v >> bits for v in numbers])
    arithmetic = expect([v >> min(int(c), bits - 1) for v, c, _ in rows])
    np.testing.assert_array_equal(results[2], arithmetic)
    np.testing.assert_array_equal(results[3], signs)


@pytest.mark.parametrize("arch", runnable_levels())
@pytest.mark.parametrize("float_", ["float32", "float64"])
def test_conversions_of_constants_and_of_what_does_not_fit(float_: str, arch: str) -> None:
    kind = {"float32": "f32", "float64": "f64"}[float_]
    x = np.array([np.nan, np.inf, -np.inf, 2.0**31, 2.0**63, -1e30, -1.5, 300.0] * 9, float_)
    nan = {"f32": "0x7FC00000", "f64": "0x7FF8000000000000"}[kind]
    body = f"""
    %nan = arith.constant {nan} : {kind}
    %r0 = arith.fptosi %a0 : {kind} to i32
    %r1 = arith.fptosi %a0 : {kind} to i64
    %r2 = arith.fptosi %a0 : {kind} to i16
    %r3 = arith.fptosi %nan : {kind} to i32
    %r4 = arith.fptosi %nan : {kind} to i64
    %r5 = arith.fptoui %a0 : {kind} to i64
    """
    types = ("int32", "int64", "int16", "int32", "int64", "uint64")
    results = [np.full(len(x), 77, name) for name in types]
    signed = [r.view("int64") if r.dtype == np.uint64 else r for r in results]
    assert run(elementwise(body, [x], signed), x, *signed, arch=arch) == 0

    def expect(bits: int) -> np.ndarray:
        fits = np.abs(x) < 2.0 ** (bits - 1)
        return np.where(fits, np.where(fits, x, 0).astype(f"int{bits}"), -(2 ** (bits - 1)))

    np.testing.assert_array_equal(results[0], expect(32))
    np.testing.assert_array_equal(results[1], expect(64))
    np.testing.assert_array_equal(results[2], expect(32).astype("int32").astype("int16"))
    assert (results[3] == -(2**31)).all()
    assert (results[4] == -(2**63)).all()
    unsigned = (x > -1) & (x < 2.0**64)
    wanted = np.where(unsigned, np.where(unsigned, x, 0).astype("uint64"), np.uint64(2**63))
    np.testing.assert_array_equal(results[5], wanted)
