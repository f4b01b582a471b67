"""The ceilings' kernels do the work that their rates are computed from."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from bench import ceiling_code, ceilings

from polyblocks.options import CompileOptions
from polyblocks_cpu.describe import describe

KERNELS = ceiling_code.kernels()
LANES = describe(CompileOptions()).vector_bits // 32


@pytest.fixture(scope="module")
def library() -> Any:
    return ceiling_code.link(KERNELS)


def run(library: Any, name: str, buffer: np.ndarray[Any, Any], steps: int) -> None:
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    prototype(library[name])(buffer.ctypes.data, buffer.nbytes, steps)


def test_multiply_adds_are_all_done(library: Any) -> None:
    buffer = ceilings.aligned(16384)
    # Both operands, one vector of any width each.
    buffer[:32] = 3.0
    run(library, "float32", buffer, 5)
    chains = int(KERNELS["float32"].work) // (2 * LANES)
    # Each accumulator took 5 times 3 * 3.
    assert np.all(buffer[: chains * LANES] == 45.0)
    assert np.all(buffer[chains * LANES :] == 1.0)


@pytest.mark.parametrize("name", [n for n in ("bfloat16", "int8") if n in KERNELS])
def test_dot_products_are_all_done(library: Any, name: str) -> None:
    dtype, one = {"bfloat16": (np.uint16, 0x3F80), "int8": (np.uint8, 1)}[name]
    buffer = ceilings.aligned(16384)
    buffer[:32].view(dtype)[:] = one
    run(library, name, buffer, 5)
    sums = buffer if name == "bfloat16" else buffer.view(np.int32)
    # Two or four products into each lane; a product and its sum are two operations.
    products = 4 // np.dtype(dtype).itemsize
    lanes = int(KERNELS[name].work) // (2 * products)
    assert np.all(sums[:lanes] == 5 * products)
    assert np.all(buffer[lanes:] == 1.0)


@pytest.mark.parametrize("name", ["copy", "stream"])
def test_copies_copy_one_half_to_the_other(library: Any, name: str) -> None:
    buffer = ceilings.aligned(8192)
    buffer[:1024] = np.arange(1024)
    run(library, name, buffer, 2)
    assert np.array_equal(buffer[1024:], np.arange(1024))


def test_reading_reads_all(library: Any) -> None:
    buffer = ceilings.aligned(8192)
    run(library, "read", buffer, 1)
    # Eight accumulators share the buffer; the last one is left at its start.
    assert np.all(buffer[:LANES] == 2048 / LANES / 8)
    assert np.all(buffer[LANES:] == 1.0)


def test_working_sets_fit_their_level_and_not_the_one_before() -> None:
    sets = ceiling_code.working_sets()
    sizes = {level.name: level.size for level in describe(CompileOptions()).memory}
    assert list(sets) == list(sizes)
    assert list(sets.values()) == sorted(sets.values())
    for name, nbytes in sets.items():
        assert nbytes % 8192 == 0
        assert nbytes <= sizes[name] or name == "main"


def test_rates_are_those_of_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ceilings, "SPAN_S", 1e-4)
    machine = ceilings.open_machine(2)
    steps = []
    monkeypatch.setattr(
        ceilings.Machine,
        "seconds",
        lambda self, name, count, nbytes=0: steps.append(count) or [3e-6, 1e-6, 2e-6],
    )
    assert machine.rate("read", 50.0) == pytest.approx(2 * 50.0 / 1e-6)
    assert machine.rate("read", 50.0, choose=max) == pytest.approx(2 * 50.0 / 3e-6)
    assert steps[0] == 1
    assert steps[-1] * 1e-6 >= 1e-4
    monkeypatch.setattr(ceilings, "open_machine", lambda threads: machine)
    # A copy that others are compared with: of the median attempt.
    nbytes = ceiling_code.working_sets()["main"]
    assert ceilings.copy_rate(2)["copy"] == pytest.approx(2 * nbytes / 2e-6)


def test_everything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ceilings, "SPAN_S", 1e-5)
    monkeypatch.setattr(ceilings, "ATTEMPTS", 1)
    monkeypatch.setattr(ceiling_code, "MAIN_BYTES", 1 << 20)
    found = ceilings.measure(1)
    assert list(found["peaks"]) == list(ceiling_code.PEAKS)
    assert found["peaks"]["float32"] > 1e5
    assert [name for name, rate in found["peaks"].items() if rate is None] == [
        name for name in ceiling_code.PEAKS if name not in KERNELS
    ]
    for rates in found["memory"].values():
        assert rates["read"] > 1e5
        assert rates["copy"] > 1e5
