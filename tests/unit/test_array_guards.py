"""Guards of arrays: machine code that sees each word change."""

from __future__ import annotations

import ctypes
import mmap
import random

import pytest

from polyblocks.codegen import array_guards
from polyblocks.codegen.array_layout import ArrayLayout, Word
from polyblocks.runtime.native.guards import Guards, guards
from polyblocks.runtime.native.memory_probe import MemoryProbe

pytestmark = pytest.mark.cpu

_UNMOVED = ctypes.CFUNCTYPE(ctypes.c_int32, *(ctypes.c_void_p,) * 4, ctypes.c_int64)


def made(layout: ArrayLayout) -> Guards:
    found = guards(layout)
    assert found is not None
    return found


def snapshot(of: Guards, array: ctypes.Array, rank: int, lies: bool = True) -> tuple | None:
    """The words of an array."""
    cell = ctypes.c_void_p(ctypes.addressof(array))
    unmoved = _UNMOVED(lambda *_: lies)
    function = ctypes.cast(unmoved, ctypes.c_void_p).value
    return of.words_of(rank, function, 0, ctypes.addressof(cell), 0, 0)


def holds(of: Guards, arrays: list[ctypes.Array], rank: int) -> ctypes.Array:
    """A guard of arrays whose shared words are those of the first one."""
    own = array_guards.row_words(of.layout) - 1
    words = [snapshot(of, array, rank) for array in arrays]
    rows = [
        w
        for a, found in zip(arrays, words, strict=True)
        for w in (ctypes.addressof(a), *found[:own])
    ]
    group = [len(arrays), rank, *words[0][own:]]
    group += [0] * (array_guards.group_words(of.layout) - len(group))
    groups, lines = (ctypes.c_uint64 * len(group))(*group), (ctypes.c_uint64 * len(rows))(*rows)
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)(
        of.guard
    )
    return lambda: function(ctypes.addressof(groups), 1, ctypes.addressof(lines))


def test_each_word_of_random_layouts():
    chance = random.Random(3)
    for _ in range(12):
        spots = chance.sample(range(1, 16), 10)
        layout = ArrayLayout(
            pointers=(Word(0, 8 * spots[0]), Word(1, 0))[: chance.randrange(3)],
            own=tuple(Word(0, 8 * at) for at in spots[1 : chance.randrange(1, 4)]),
            shared=tuple(Word(0, 8 * at) for at in spots[4 : chance.randrange(4, 8)]),
            of_rank=((), (Word(0, 8 * spots[7]),), tuple(Word(0, 8 * at) for at in spots[7:])),
        )
        of = made(layout)
        deepest = (ctypes.c_uint64 * 4)(1, 2, 3, 4)
        middle = (ctypes.c_uint64 * 4)(ctypes.addressof(deepest), 6, 7, 8)
        arrays = [(ctypes.c_uint64 * 16)(*range(100, 116)) for _ in range(3)]
        for each in arrays:
            each[spots[0]] = ctypes.addressof(middle)
        for rank in range(3):
            stay = holds(of, arrays, rank)
            assert stay()
            words = layout.words(rank)
            for array in arrays:
                for at in range(16):
                    before = array[at]
                    array[at] = before ^ (1 << chance.randrange(64))
                    assert stay() == (Word(0, 8 * at) not in words)
                    array[at] = before
            assert stay()
            middle[0] += 8
            assert stay() == (Word(1, 0) not in words)
            middle[0] -= 8


def test_no_snapshot_of_what_does_not_lie_as_it_should():
    layout = ArrayLayout((), (Word(0, 8),), (), ((), (Word(0, 16),)))
    array = (ctypes.c_uint64 * 4)(5, 6, 7, 8)
    of = made(layout)
    assert snapshot(of, array, 0) == (6,)
    assert snapshot(of, array, 1) == (6, 7)
    assert snapshot(of, array, 1, lies=False) is None
    assert snapshot(of, array, 2) is None


def test_memory_that_is_not_there():
    pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    pages[mmap.PAGESIZE - 8 : mmap.PAGESIZE] = (77).to_bytes(8, "little")
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    assert not protect(start + mmap.PAGESIZE, mmap.PAGESIZE, 0)
    end = start + mmap.PAGESIZE
    with MemoryProbe() as memory:
        assert memory.word(end - 8) == 77
        assert memory.words(end - 24, 256) == [(16, 77)]
        assert memory.word(end) is None
        assert memory.word(end - 4) is None  # not where words are
        assert memory.word(0) is None
        assert memory.contents(1 << 62, 8) == b""
    assert not protect(start + mmap.PAGESIZE, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE)
