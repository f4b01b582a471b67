"""Buffers and workspaces: used again when free, never while somebody can see them."""

from __future__ import annotations

import ctypes
import gc
import os
import random
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from polyblocks.runtime import buffers, pages
from polyblocks.runtime.buffers import BufferPool, WorkspacePool, size_class

MIB = 1 << 20


@pytest.fixture
def pool():
    pool = BufferPool(max_idle_bytes=64 * MIB, poisoned=False)
    yield pool
    gc.collect()
    pool.trim()


def array(pool: BufferPool, n: int) -> np.ndarray:
    return np.frombuffer(pool.acquire(n), dtype=np.uint8)


def test_buffer_is_exact_aligned_and_writable(pool):
    for n in (1, MIB, MIB + 1, 5 * MIB + 12345):
        buffer = pool.acquire(n)
        view = memoryview(buffer)
        assert view.nbytes == n
        assert not view.readonly
        assert buffer.address % pages.PAGE == 0
        assert buffer.address == ctypes.addressof(buffer)
        view.cast("B")[n - 1] = 7


def test_large_buffers_lie_on_huge_pages(pool):
    buffer = pool.acquire(3 * pages.HUGE_PAGE)
    assert buffer.address % pages.HUGE_PAGE == 0


def test_freed_buffer_comes_back_as_it_was(pool):
    first = array(pool, MIB)
    first[:] = 9
    address = first.ctypes.data
    del first
    again = array(pool, MIB)
    assert again.ctypes.data == address
    assert (again == 9).all()  # not cleared


def test_buffer_is_used_for_other_sizes_of_its_class(pool):
    address = pool.acquire(MIB).address
    assert pool.acquire(MIB - 5000).address == address
    assert pool.acquire(2 * MIB).address != address


def test_views_keep_the_buffer(pool):
    whole = array(pool, MIB)
    address = whole.ctypes.data
    part = whole[10:20]
    del whole
    assert array(pool, MIB).ctypes.data != address
    del part
    assert array(pool, MIB).ctypes.data == address


def test_results_kept_alive_are_never_overwritten(pool):
    generator = random.Random(3)
    kept: list[tuple[np.ndarray, int]] = []
    for step in range(400):
        result = array(pool, generator.choice((MIB, MIB + 1, 2 * MIB)))
        result[::4096] = step % 251
        kept.append((result, step % 251))
        while len(kept) > generator.randrange(1, 12):
            kept.pop(generator.randrange(len(kept)))
        for other, value in kept:
            assert (other[::4096] == value).all()
    assert len({r.ctypes.data for r, _ in kept}) == len(kept)


@pytest.mark.parametrize("n", [1, 4096, 4097, MIB, MIB + 1, 3 * MIB + 7, 50_000_000, 2**31 + 1])
def test_size_classes_waste_little(n):
    size = size_class(n)
    assert size >= n
    assert size % pages.PAGE == 0
    assert size <= max(n * 1.125, n + pages.PAGE)
    assert size_class(size) == size


def test_idle_memory_is_bounded_and_the_oldest_goes(pool):
    held = [pool.acquire(20 * MIB) for _ in range(5)]
    addresses = [b.address for b in held]
    for _ in range(5):
        del held[0]
    assert pool.idle_bytes == 60 * MIB
    again = {pool.acquire(20 * MIB).address for _ in range(1)}
    assert again == {addresses[-1]}
    assert set(pool._mapped) == set(addresses[-3:])


def test_block_larger_than_the_bound_is_unmapped(pool):
    pool.acquire(100 * MIB)
    assert pool.idle_bytes == 0
    assert pool._mapped == {}


def test_trim(pool):
    pool.acquire(MIB)
    assert pool.idle_bytes == MIB
    pool.trim()
    assert pool.idle_bytes == 0
    assert pool._mapped == {}


def test_no_room_is_an_error(pool):
    with pytest.raises(MemoryError, match=r"no room for \d+ bytes: Cannot allocate memory"):
        pool.acquire(1 << 60)


def test_idle_blocks_are_given_up_for_room(pool, monkeypatch):
    pool.acquire(MIB)
    real, calls = pages.map_pages, []

    def short(nbytes: int) -> tuple[int, int, int]:
        calls.append(pool.idle_bytes)
        if pool.idle_bytes:
            raise MemoryError("none left")
        return real(nbytes)

    monkeypatch.setattr(pages, "map_pages", short)
    pool.acquire(2 * MIB)
    assert calls == [MIB, 0]


def test_empty_buffer_is_refused(pool):
    with pytest.raises(ValueError, match=r"a buffer has at least one byte, not 0"):
        pool.acquire(0)


def test_types_are_bounded(pool, monkeypatch):
    monkeypatch.setattr(buffers, "_MAX_TYPES", 4)
    kept = [pool.acquire(n) for n in range(1, 20)]
    assert len(pool._types) <= 4
    assert len({b.address for b in kept}) == 19


def test_threads_never_share_a_buffer(pool):
    def work(seed: int) -> bool:
        generator = random.Random(seed)
        for step in range(150):
            result = array(pool, generator.choice((MIB, 2 * MIB)))
            value = (seed * 7 + step) % 251
            result[::4096] = value
            if not (result[::4096] == value).all():
                return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(8)))
    assert pool.idle_bytes <= pool.max_idle_bytes


def test_death_while_the_lock_is_held(pool):
    # As when garbage collection strikes inside of acquire(): must not wait for the lock.
    buffer = pool.acquire(MIB)
    address = buffer.address
    with pool._lock:
        del buffer
    assert pool.acquire(MIB).address == address


def test_death_in_a_cycle_and_on_another_thread(pool):
    cycle: dict = {"buffer": pool.acquire(MIB)}
    address = cycle["buffer"].address
    cycle["self"] = cycle
    del cycle
    thread = threading.Thread(target=gc.collect)
    thread.start()
    thread.join()
    assert pool.acquire(MIB).address == address


def test_fork_shares_nothing_that_is_written(pool):
    kept = array(pool, MIB)
    kept[:] = 1
    pool.acquire(2 * MIB)
    stop = threading.Event()

    def churn() -> None:  # a fork finds the lock taken every now and then
        while not stop.is_set():
            pool.acquire(3 * MIB)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(20):
            pid = os.fork()
            if pid == 0:
                kept[:] = 2
                mine = [pool.acquire(n * MIB) for n in (2, 2, 3, 3)]
                del mine
                os._exit(0 if pool.idle_bytes > 0 else 1)
            assert os.waitpid(pid, 0)[1] == 0
    finally:
        stop.set()
        thread.join()
    assert (kept == 1).all()


def test_repeated_use_maps_nothing_new(pool):
    array(pool, 50 * MIB)[:] = 1
    before = dict(pool._mapped)
    for _ in range(100):
        array(pool, 50 * MIB)[:: pages.PAGE] = 2
    assert pool._mapped == before


@pytest.mark.parametrize("keep", ["globals", "builtins", "thread", "cycle"])
def test_interpreter_exit_is_silent(keep):
    code = f"""
        import builtins, threading, time
        from polyblocks.runtime import buffers
        b = memoryview(buffers.outputs.acquire(5 << 20))
        w = buffers.workspaces.acquire(1 << 20)
        buffers.workspaces.acquire(1 << 20).release()
        keep = {keep!r}
        if keep == "builtins":
            builtins.kept = [b, w]
        elif keep == "cycle":
            cycle = [b, w]
            cycle.append(cycle)
            del b, w
        elif keep == "thread":
            def use(b, w):
                while True:
                    b.cast("B")[0] = 1
                    buffers.outputs.acquire(3 << 20)
                    buffers.workspaces.acquire(1 << 20).release()
            threading.Thread(target=use, args=(b, w), daemon=True).start()
            time.sleep(0.05)
    """
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_idle_bound_from_the_environment(monkeypatch):
    monkeypatch.setenv("POLYBLOCKS_BUFFER_POOL_BYTES", "12345")
    assert BufferPool().max_idle_bytes == 12345
    assert WorkspacePool().max_idle_bytes == 12345
    monkeypatch.setenv("POLYBLOCKS_BUFFER_POOL_BYTES", "much")
    assert 0 < BufferPool().max_idle_bytes <= 1 << 30


# --- workspaces ----------------------------------------------------------------------------------


def test_workspace_is_used_again():
    pool = WorkspacePool()
    first = pool.acquire(10_000)
    assert first.size >= 10_000
    assert first.address % pages.PAGE == 0
    ctypes.memset(first.address, 1, first.size)
    first.release()
    assert pool.acquire(5_000) is first
    second = pool.acquire(5_000)
    assert second.address != first.address


def test_workspace_grows_to_the_largest():
    pool = WorkspacePool()
    pool.acquire(10_000).release()
    large = pool.acquire(100_000)
    assert large.size >= 100_000
    assert pool.idle_bytes == 0
    large.release()
    assert pool.idle_bytes == large.size
    pool.trim()
    assert pool.idle_bytes == 0


def test_idle_workspaces_are_bounded_but_one_is_kept():
    pool = WorkspacePool(max_idle_bytes=4 * MIB)
    held = [pool.acquire(MIB) for _ in range(6)]
    for workspace in held:
        workspace.release()
    assert pool.idle_bytes == 4 * MIB
    pool.trim()
    pool.acquire(8 * MIB).release()
    assert pool.idle_bytes == 8 * MIB


def test_workspace_that_is_not_released_is_unmapped(monkeypatch):
    unmapped = []
    monkeypatch.setattr(pages, "unmap", lambda base, length: unmapped.append(base))
    pool = WorkspacePool()
    workspace = pool.acquire(10_000)
    base = workspace._base
    del workspace
    assert unmapped == [base]
    assert pool.idle_bytes == 0


def test_workspaces_of_threads_are_apart():
    pool = WorkspacePool()

    def work(seed: int) -> bool:
        for step in range(300):
            workspace = pool.acquire(8 + (seed * step) % 20_000)
            value = ctypes.c_int64.from_address(workspace.address)
            value.value = seed * 1000 + step
            same = value.value == seed * 1000 + step
            workspace.release()
            if not same:
                return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(8)))
    assert len(pool._idle) <= 8


def test_poisoned_memory_is_filled_each_time():
    pool, workspaces = BufferPool(poisoned=True), WorkspacePool(poisoned=True)
    for _ in range(2):
        buffer = memoryview(pool.acquire(3000)).cast("B")
        assert buffer.tobytes() == b"\xff" * 3000
        buffer[:] = bytes(3000)
        del buffer
        workspace = workspaces.acquire(3000)
        assert ctypes.string_at(workspace.address, 3000) == b"\xff" * 3000
        ctypes.memset(workspace.address, 0, 3000)
        workspace.release()
