"""A team of threads that run one at a time: what OpenMP's runtime does for generated code.

Only what has a meaning in that order: a region that shares its work by thread numbers, and waits
at barriers. Code that calls anything else of the runtime cannot be linked, and its module counts
as not runnable.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

#: How many threads a region has: odd, so that the pieces of most ranges differ in size.
SIZE = 3

_Region = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_Outlined = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class SerialTeam:
    """The functions of the runtime, by name.

    Each thread runs until the next barrier, then the next one does. Data that a thread reads and
    that another one must write first, or has overwritten too early, is wrong in one order or the
    other: a barrier that is missing shows.

    Attributes:
        backwards: the last thread comes first.
    """

    def __init__(self) -> None:
        self.backwards = False
        self._thread = 0
        self._size = 1
        self._limit = ctypes.c_int32(SIZE)
        #: Where each thread of a region waits for its turn.
        self._turns: list[threading.Semaphore] = []
        self._back = threading.Semaphore(0)
        int_ = ctypes.c_int32
        pointer = ctypes.c_void_p
        self._functions: dict[str, Any] = {
            # The entry for outlined regions. MLIR's own lowering calls the three after it.
            "GOMP_parallel": _callback(self._parallel, None, pointer, pointer, int_, int_),
            # Variadic in C. The arguments of a region come as one pointer to a struct, which is
            # passed as any other pointer where variadic arguments are not treated apart.
            "__kmpc_fork_call": _callback(self._fork, None, pointer, int_, pointer, pointer),
            "__kmpc_global_thread_num": _callback(lambda _: self._thread, int_, pointer),
            "__kmpc_push_num_threads": _callback(lambda *_: None, None, pointer, int_, int_),
            "GOMP_barrier": _callback(self._barrier, None),
            "omp_get_thread_num": _callback(lambda: self._thread, int_),
            "omp_get_num_threads": _callback(lambda: self._size, int_),
        }

    def symbols(self) -> dict[str, int]:
        """Addresses by name; alive as long as this object."""
        functions = {name: address_of(function) for name, function in self._functions.items()}
        return {**functions, "polyblocks_thread_limit": ctypes.addressof(self._limit)}

    def _parallel(self, region: int, argument: int, count: int, flags: int) -> None:
        del count, flags
        run = _Outlined(region)
        self._each(lambda thread: run(argument))

    def _fork(self, where: int, count: int, region: int, argument: int) -> None:
        del where, count
        run = _Region(region)

        def one(thread: int) -> None:
            number = ctypes.c_int32(thread)
            run(ctypes.addressof(number), ctypes.addressof(number), argument)

        self._each(one)

    def _each(self, run: Callable[[int], None]) -> None:
        self._size = SIZE
        self._turns = [threading.Semaphore(0) for _ in range(SIZE)]
        running = set(range(SIZE))

        def one(thread: int) -> None:
            self._turns[thread].acquire()
            run(thread)
            running.remove(thread)
            self._back.release()

        threads = [threading.Thread(target=one, args=(number,)) for number in range(SIZE)]
        for started in threads:
            started.start()
        while running:
            for thread in sorted(running, reverse=self.backwards):
                self._thread = thread
                self._turns[thread].release()
                self._back.acquire()
        for started in threads:
            started.join()
        self._thread, self._size = 0, 1

    def _barrier(self) -> None:
        """Let the others run, until all have come here."""
        if self._size == 1:
            return
        thread = self._thread
        self._back.release()
        self._turns[thread].acquire()


def _callback(function: Callable[..., Any], result: Any, *arguments: Any) -> Any:
    return ctypes.CFUNCTYPE(result, *arguments)(function)


def address_of(function: Any) -> int:
    """The address of a ctypes function."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0
