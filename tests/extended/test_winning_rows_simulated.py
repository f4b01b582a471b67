"""Rows stored at run-time places by GPUs' threads: of those to one place the last one stays."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.extended.test_kernels_simulated import simulate
from torch.nn import functional

pytestmark = [pytest.mark.cpu, pytest.mark.isolated]
ARCHS = ("sm_80", "gfx1100")


def places(count: int, below: int, seed: int = 0) -> torch.Tensor:
    """Some come several times."""
    return torch.randint(0, below, (count,), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("arch", ARCHS)
def test_two_caches_find_the_last_updates_once(arch: str) -> None:
    """Of 301 tokens at 41 places, in float16; a value is computed when it is stored."""

    def updated(
        keys: torch.Tensor, values: torch.Tensor, k: torch.Tensor, v: torch.Tensor, at: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return keys.index_copy(2, at, k * 2), values.index_copy(2, at, v)

    keys, values = (torch.randn(1, 3, 53, 24).half() for _ in range(2))
    k, v = (torch.randn(1, 3, 301, 24).half() for _ in range(2))
    at = places(301, 41)
    outputs, launches = simulate(updated, [keys, values, k, v, at], arch)
    for output, old, new in zip(outputs, (keys, values), (k * 2, v), strict=True):
        expected = old.numpy().copy()
        for step, place in enumerate(at.tolist()):
            expected[:, :, place] = new.numpy()[:, :, step]
        np.testing.assert_array_equal(output, expected)
    # Both are copied, the last updates are found, and their values taken.
    assert len(launches) <= 5, [launch.kernel for launch in launches]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("length", [1, 301])
def test_halves_of_rows_change_places_where_they_are_stored(arch: str, length: int) -> None:
    """As rotary embeddings have it: neither half is stored by a kernel of its own."""

    def updated(
        keys: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, at: torch.Tensor
    ) -> torch.Tensor:
        first, second = k.chunk(2, -1)
        return keys.index_copy(2, at, k * cos + torch.cat([-second, first], -1) * sin)

    keys, k = torch.randn(1, 3, 53, 24).half(), torch.randn(1, 3, length, 24).half()
    cos, sin = (torch.rand(length, 24).half() for _ in range(2))
    at = places(length, 41)
    (output,), launches = simulate(updated, [keys, k, cos, sin, at], arch)
    expected = keys.double()
    new = k.double() * cos.double()
    new += torch.cat([-k[..., 12:], k[..., :12]], -1).double() * sin.double()
    for step, place in enumerate(at.tolist()):
        expected[:, :, place] = new[:, :, step]
    np.testing.assert_allclose(output, expected, rtol=4e-3, atol=4e-3)
    # The cache is copied; of one row there is no other update to be told from.
    assert len(launches) <= (2 if length == 1 else 4), [launch.kernel for launch in launches]


@pytest.mark.parametrize("arch", ARCHS)
def test_rows_at_pairs_of_places_in_two_loops(arch: str) -> None:
    """The number of an update is taken apart into those of its loops."""

    def put(x: torch.Tensor, rows: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return x.index_put((a, b), rows)

    x, rows = torch.randn(5, 7, 19).half(), torch.randn(27, 11, 19).half()
    a, b = places(297, 5).view(27, 11), places(297, 7, 1).view(27, 11)
    (output,), _ = simulate(put, [x, rows, a, b], arch)
    expected = x.numpy().copy()
    for i in range(27):
        for j in range(11):
            expected[a[i, j], b[i, j]] = rows.numpy()[i, j]
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("arch", ARCHS)
def test_rows_that_are_gathered(arch: str) -> None:
    """What is stored is itself at run-time places, which are checked."""

    def moved(
        x: torch.Tensor, table: torch.Tensor, a: torch.Tensor, b: torch.Tensor
    ) -> torch.Tensor:
        return x.index_put((a,), table[b])

    x, table = torch.randn(31, 40), torch.randn(17, 40)
    a, b = places(330, 31), places(330, 17, 1)
    (output,), _ = simulate(moved, [x, table, a, b], arch)
    expected = x.numpy().copy()
    for i, j in zip(a.tolist(), b.tolist(), strict=True):
        expected[i] = table.numpy()[j]
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("arch", ARCHS)
def test_a_single_number_is_put_by_a_kernel_with_a_name(arch: str) -> None:
    def put(x: torch.Tensor, at: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x).scatter(1, at, value)

    x, at, value = torch.randn(1, 1000), torch.tensor([[7]]), torch.randn(1, 1)
    (output,), launches = simulate(put, [x, at, value], arch)
    expected = np.zeros((1, 1000), np.float32)
    expected[0, 7] = value.item()
    np.testing.assert_array_equal(output, expected)
    assert [launch.kernel for launch in launches] == ["full_like", "scatter"]


@pytest.mark.parametrize("arch", ["sm_90a", "gfx1100"])
def test_places_computed_of_counters_are_stored_as_by_a_loop(arch: str) -> None:
    """No two updates meet: where their tables are part of the store, loops count their digits."""

    def stored(x: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
        at = (torch.arange(3) * 180)[:, None] + (torch.arange(9) * 20)[None] + 3
        at = (at[:, :, None] + torch.arange(6) * 2).flatten()
        return (x * 2).flatten().index_put((at,), part.flatten()).view(x.shape)

    x, part = torch.randn(3, 9, 20), torch.randn(3, 9, 6)
    (output,), _ = simulate(stored, [x, part], arch)
    expected = x * 2
    expected[:, :, 3:15:2] = part
    np.testing.assert_array_equal(output, expected.numpy())


@pytest.mark.parametrize("arch", ["sm_90a", "gfx1100"])
def test_gradients_of_circular_pads_store_no_updates(arch: str) -> None:
    def gradients(x: torch.Tensor, given: torch.Tensor) -> torch.Tensor:
        _, back = torch.func.vjp(lambda x: functional.pad(x, (2, 1, 1, 3), "circular"), x)
        return back(given)[0] + x

    x, given = torch.randn(2, 3, 7, 9), torch.randn(2, 3, 11, 12)
    (output,), launches = simulate(torch.func.functionalize(gradients), [x, given], arch)
    leaf = x.double().requires_grad_()
    functional.pad(leaf, (2, 1, 1, 3), "circular").backward(given.double())
    np.testing.assert_allclose(output, (leaf.grad + x).numpy(), rtol=1e-5, atol=1e-5)
    assert not any("index" in launch.kernel for launch in launches), launches
