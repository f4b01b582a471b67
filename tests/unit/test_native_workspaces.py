"""The pool of workspaces in native code."""

from __future__ import annotations

import ctypes
import os
import threading
from functools import partial

import pytest

from polyblocks.codegen import workspace_pool
from polyblocks.runtime.native import native_workspaces

MIB = 1 << 20


class Pool:
    """A pool of its own, and its functions."""

    def __init__(self, limit: int) -> None:
        made = native_workspaces.make(limit)
        self.state = made.state
        take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        give = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        place = ctypes.addressof(self.state)
        self.acquire = partial(take(made.acquire), place)
        self.release = partial(give(made.release), place)


def mapped(address: int) -> bool:
    """Whether the process has memory there."""
    with open("/proc/self/maps") as file:
        ranges = [line.split()[0].split("-") for line in file]
    return any(int(begin, 16) <= address < int(end, 16) for begin, end in ranges)


def test_a_block_that_came_back_is_handed_out_again():
    pool = Pool(8 * MIB)
    one, two = pool.acquire(MIB), pool.acquire(MIB)
    assert one != two
    ctypes.memset(one, 7, MIB)
    pool.release(one, MIB)
    assert pool.state.idle == MIB
    assert pool.acquire(2 * MIB) != one  # of another size
    assert pool.acquire(MIB) == one
    assert pool.state.idle == 0


@pytest.mark.parametrize("size", [4096, MIB, 2 * MIB, 5 * MIB])
def test_large_blocks_lie_on_huge_pages_and_nothing_around_them_stays(size):
    pool = Pool(0)
    before = sum(1 for _ in open("/proc/self/maps"))  # noqa: SIM115
    block = pool.acquire(size)
    assert block % (2 * MIB if size >= 2 * MIB else 4096) == 0
    ctypes.memset(block, 1, size)
    pool.release(block, size)  # nothing may be idle
    assert pool.state.idle == 0
    assert not mapped(block)
    assert sum(1 for _ in open("/proc/self/maps")) <= before + 1  # noqa: SIM115


def test_idle_memory_is_bounded():
    pool = Pool(3 * MIB)
    blocks = [pool.acquire(MIB) for _ in range(5)]
    for block in blocks:
        pool.release(block, MIB)
    assert pool.state.idle == 3 * MIB
    assert [mapped(block) for block in blocks] == [False, False, True, True, True]
    pool.release(pool.acquire(4 * MIB), 4 * MIB)  # larger than the limit: gives up all
    assert pool.state.idle == 0


def test_there_are_more_blocks_than_slots():
    count = workspace_pool.SLOTS + 5
    pool = Pool(1 << 40)
    blocks = [pool.acquire(4096) for _ in range(count)]
    assert len(set(blocks)) == count
    for block in blocks:
        pool.release(block, 4096)
    assert pool.state.idle == workspace_pool.SLOTS * 4096
    assert sum(map(mapped, blocks)) >= workspace_pool.SLOTS


def test_no_room_is_null():
    assert Pool(MIB).acquire(1 << 60) is None


def test_threads_never_share_a_block():
    pool, wrong = Pool(MIB), []

    def work(mark):
        for _ in range(2000):
            block = pool.acquire(4096)
            word = ctypes.c_int64.from_address(block)
            word.value = mark
            for _ in range(3):
                if word.value != mark:
                    wrong.append(mark)
            pool.release(block, 4096)

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert 0 < pool.state.idle <= 8 * 4096


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_child_of_a_process_whose_pool_is_locked_begins_anew():
    made = native_workspaces.pool()
    take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(made.acquire)
    give = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(made.release)
    place = ctypes.addressof(made.state)
    give(place, take(place, MIB), MIB)
    idle = made.state.idle
    made.state.lock = 1  # as another thread would hold it
    try:
        child = os.fork()
        if child == 0:
            block = take(place, MIB)  # hangs if it is still locked
            give(place, block, MIB)
            os._exit(0 if made.state.idle == MIB else 1)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        made.state.lock = 0
    assert made.state.idle == idle
