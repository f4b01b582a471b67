"""PyTorch and the runtime: tensors on pooled buffers, and PyTorch in forked compilations."""

from __future__ import annotations

import gc
import io
import threading

import pytest

from polyblocks.isolation.isolation import run_isolated
from polyblocks.runtime import pages
from polyblocks.runtime.buffers import BufferPool

pytestmark = [pytest.mark.cpu, pytest.mark.isolated]

torch = pytest.importorskip("torch")

MIB = 1 << 20


@pytest.fixture
def pool():
    pool = BufferPool(max_idle_bytes=64 * MIB)
    yield pool
    gc.collect()
    pool.trim()


def tensor(pool: BufferPool, n: int = MIB) -> torch.Tensor:
    """As the frontend makes its results: on the buffer's storage, and not a view."""
    memory = torch.frombuffer(pool.acquire(n), dtype=torch.uint8)
    return torch.empty(0, dtype=torch.uint8).set_(memory.untyped_storage(), 0, (n,), (1,))


def is_free(pool: BufferPool, address: int) -> bool:
    """Whether the next request gets that memory (which gives it back at once)."""
    return pool.acquire(MIB).address == address


def test_buffer_returns_with_the_tensor(pool):
    t = tensor(pool)
    address = t.data_ptr()
    assert t.untyped_storage().nbytes() == MIB
    assert not t._is_view()
    assert not is_free(pool, address)
    del t
    assert is_free(pool, address)


@pytest.mark.parametrize(
    "other",
    [
        lambda t: t[10:20],
        lambda t: t.view(torch.float32),
        lambda t: t.detach(),
        lambda t: t.numpy(),
        lambda t: memoryview(t.numpy()),
        lambda t: t.untyped_storage(),
        lambda t: torch.from_dlpack(t),
        lambda t: torch.nn.Parameter(t.view(torch.float32)),
        lambda t: t.as_strided((4, 4), (1, 2)),
    ],
    ids=["slice", "view", "detach", "numpy", "memoryview", "storage", "dlpack", "param", "strided"],
)
def test_whatever_shares_the_memory_keeps_it(pool, other):
    t = tensor(pool)
    address = t.data_ptr()
    alias = other(t)
    del t
    assert not is_free(pool, address)
    del alias
    gc.collect()
    assert is_free(pool, address)


def test_what_autograd_saved_keeps_the_memory(pool):
    t = tensor(pool).view(torch.float32)
    t.fill_(2)
    address = t.data_ptr()
    weight = torch.ones(t.shape, requires_grad=True)
    loss = (t * weight).sum()
    del t
    assert not is_free(pool, address)
    loss.backward()
    assert (weight.grad == 2).all()
    assert is_free(pool, address)


def test_tensor_that_dies_on_another_thread(pool):
    held = [tensor(pool)]
    address = held[0].data_ptr()
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert is_free(pool, address)


def test_saved_file_holds_the_tensor_only(pool):
    t = tensor(pool, MIB + 1)
    file = io.BytesIO()
    torch.save(t, file)
    assert file.tell() < MIB + 8192


def test_large_tensors_are_on_huge_pages(pool):
    assert tensor(pool, 50 * MIB).data_ptr() % pages.HUGE_PAGE == 0


def test_interpreter_exit_with_live_tensors_is_silent(run_python):
    code = """
        import torch
        from polyblocks.runtime import buffers
        torch.kept = torch.frombuffer(buffers.outputs.acquire(5 << 20), dtype=torch.uint8)
        also = torch.frombuffer(buffers.outputs.acquire(5 << 20), dtype=torch.uint8)
    """
    done = run_python(code, preloaded="torch", limit=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_torch_works_in_an_isolated_child():
    import polyblocks_torch.threads  # noqa: F401 - registers what is tested

    torch.set_num_threads(max(2, torch.get_num_threads()))
    a = torch.ones(1500, 1500)
    assert (a @ a).sum() > 0  # the threads of this process exist now

    def job() -> bytes:
        return repr([torch.get_num_threads(), (a @ a)[0, 0].item(), (a + a).sum().item()]).encode()

    # Without the frontend's initializer this waits for threads that are not there.
    assert run_isolated(job, timeout_s=60) == repr([1, 1500.0, 2 * 1500.0**2]).encode()
