"""Memory for the arguments of an entry: kept from call to call, used by one call at a time."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from c_programs import Both, CountingArrays, CProgram, weighted
from manifest_rows import row

from polyblocks.errors import ExecutionError
from polyblocks.runtime.bound_weights import bind_weights

pytestmark = pytest.mark.cpu

ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32)


def full(value: float) -> np.ndarray:
    return np.full(6, value, np.float32)


def values(address: int) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_float * 6).from_address(address))


class Summing:
    """``out = x + w + v`` of weights that are stored or bound; it looks where its arguments are
    before and after ``inside`` has been called.
    """

    def __init__(self, bound: list[Any] | None = None, **settings: Any) -> None:
        self.inside: Callable[[], Any] = lambda: None
        self.status = 0
        self.places: list[int] = []
        rows = [row("input", name, (6,)) for name in "xwv"]
        if bound is None:
            rows = [rows[0], *({**each, "stored": each["name"]} for each in rows[1:])]
            settings["blobs"] = {"w": full(10).tobytes(), "v": full(20).tobytes()}
        program = CProgram([*rows, row("output", "out", (6,))], checks=["it fails"])
        program.manifest["weight_names"] = [["w"], ["v"]]
        program.entry = ENTRY(self.run)
        if bound is not None:
            settings["weights"] = bind_weights(
                program.manifest, {}, bound, lambda array: CountingArrays()
            )
        self.made = Both(program, CountingArrays(), [full(0)], **settings)

    def run(self, pointers: int, threads: int) -> int:
        self.places.append(pointers)
        before = ctypes.string_at(pointers, 32)
        self.inside()
        assert ctypes.string_at(pointers, 32) == before
        x, w, v, out = (ctypes.c_uint64 * 4).from_address(pointers)
        values(out)[:] = values(x) + values(w) + values(v)
        return self.status

    def __call__(self, x: float) -> float:
        assert self.made.is_fast(full(x))
        found = set(self.made.fast(full(x)).tolist())
        assert len(found) == 1
        return found.pop()


KINDS = {"stored": lambda: Summing(), "bound": lambda: Summing([full(10), full(20)])}


@pytest.fixture(params=KINDS)
def summing(request):
    return KINDS[request.param]()


def test_calls_use_the_same_memory(summing):
    summing.places.clear()
    assert [summing(k) for k in range(5)] == [30, 31, 32, 33, 34]
    assert len(set(summing.places)) == 1


def test_a_call_inside_of_a_call_has_memory_of_its_own(summing):
    summing(0)
    seen = []

    def inside() -> None:
        summing.inside = lambda: None
        seen.append(summing(7))

    summing.inside = inside
    summing.places.clear()
    assert summing(1) == 31
    assert seen == [37]
    outer, *inner = summing.places
    assert outer not in inner[:2]
    assert summing.places[-1] == outer  # once it has ended


def test_threads_that_are_inside_at_once(summing):
    barrier = threading.Barrier(4, timeout=30)
    found: dict[int, float] = {}
    summing(0)
    summing.places.clear()
    summing.inside = barrier.wait

    def work(k: int) -> None:
        for _ in range(20):
            result = summing.made.fast(full(k))
            assert (result == 30 + k).all()
        found[k] = result[0]

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert found == {0: 30, 1: 31, 2: 32, 3: 33}
    assert len(set(summing.places[:4])) == 4
    summing.inside = lambda: None
    place = summing.places[0]
    summing.places.clear()
    assert summing(5) == 35
    assert place in summing.places or len(set(summing.places)) == 1


def test_failures_give_it_back(summing):
    summing(0)
    place = summing.places[-1]
    summing.status = 1
    for _ in range(3):
        with pytest.raises(ExecutionError, match="it fails"):
            summing.made.fast(full(1))
    summing.status = 0
    assert summing(2) == 32
    assert set(summing.places[-5:]) == {place}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_child_of_a_process_where_a_thread_is_inside(summing):
    """The memory is in use there for good."""
    summing(0)
    inside, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        summing.inside = lambda: None
        inside.set()
        go_on.wait(30)

    summing.inside = wait
    worker = threading.Thread(target=lambda: summing.made.fast(full(1)))
    worker.start()
    assert inside.wait(30)
    child = os.fork()
    if child == 0:
        good = all((summing.made.fast(full(k)) == 30 + k).all() for k in range(3))
        os._exit(0 if good else 1)
    go_on.set()
    worker.join()
    assert os.waitpid(child, 0)[1] == 0


def test_programs_with_other_weights_do_not_share_it():
    pairs = [(full(k), full(2 * k)) for k in range(3)]
    made = [Summing(list(pair)) for pair in pairs]
    for _ in range(3):
        assert [each(1) for each in made] == [1, 4, 7]


def test_weights_that_have_moved_are_read_where_they_are():
    torch = pytest.importorskip("torch")
    from polyblocks_torch.launch.arrays import TorchArrays

    class Arrays(TorchArrays):
        described = 0

        def describe(self, array: Any) -> Any:
            type(self).described += 1
            return super().describe(array)

    def body(x: Any, w: Any, v: Any, out: Any) -> None:
        out[...] = x * w + v

    program = weighted(body)
    w, v = torch.full((2, 3), 2.0), torch.full((2, 3), 3.0)
    held = bind_weights(program.manifest, {}, [w, v], lambda array: Arrays())
    x = torch.full((2, 3), 5.0)
    made = Both(program, Arrays(), [x], weights=held)
    kept = []
    for turn in range(20):
        for _ in range(3):
            result = made.fast(x)
            assert (result == 5 * w + v).all(), turn
        before = Arrays.described
        assert (made.fast(x) == 5 * w + v).all()
        assert turn < 2 or Arrays.described == before  # machine code goes on
        kept.append(w.data)  # another address each time, and then one that was there before
        w.data = torch.full((2, 3), float(turn)) if turn < 15 else kept[turn - 15]
        v += 1
