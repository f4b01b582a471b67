"""``python -m bench.worker PEER THREADS``: one peer in a process of its own.

It obeys lines of JSON on its standard input and answers each with one on what was its standard
output; whatever libraries print goes to standard error. Between orders it waits in a read, so
that its threads go to sleep.

========== =============================== ======================================================
order      arguments                       answer
========== =============================== ======================================================
describe                                   ``outputs``, ``versions``
prepare    ``program``, ``folder``         ``first_call`` and :attr:`Prepared.facts`; the result
                                           is in ``folder/PEER.npy``
turn       ``seconds``                     ``samples``: seconds of each call
drop                                       nothing
========== =============================== ======================================================

An order that fails is answered with ``problem``.
"""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench import arrays
from bench.calls import timed
from bench.engines import ENGINES, FACES, Prepared
from bench.memory import empty_at
from bench.orders import answers, in_one_line, serve

#: Bytes of a cache line, and of the widest vectors.
CACHE_LINE = 64


class Worker:
    """One peer, and the case that it works on."""

    def __init__(self, name: str, threads: int) -> None:
        self.name = name
        self.engine = importlib.import_module((ENGINES | FACES)[name])
        self.engine.warm_up(name, threads)
        self.prepared: Prepared | None = None

    def describe(self) -> dict[str, Any]:
        """How it returns results, and what it is made of."""
        version = importlib.metadata.version
        versions = {name: version(name) for name in self.engine.DISTRIBUTIONS[self.name]}
        return {"outputs": self.engine.OUTPUTS[self.name], "versions": versions}

    def prepare(self, program: str, folder: str) -> dict[str, Any]:
        """Load the inputs, make the first call, leave its result in the folder."""
        self.drop()
        files = sorted(Path(folder).glob("input*.npy"))
        inputs = tuple(_on_cache_line(arrays.load(file)) for file in files)
        prepared = self.engine.prepare(self.name, program, inputs)
        begin = time.perf_counter()
        result = prepared.call()
        first_call = time.perf_counter() - begin
        np.save(Path(folder) / f"{self.name}.npy", prepared.to_numpy(result))
        del result
        self.prepared = prepared
        return {"first_call": first_call, **prepared.facts()}

    def turn(self, seconds: float) -> dict[str, Any]:
        """Call again and again for so many seconds; see :func:`bench.calls.timed`."""
        if self.prepared is None:
            raise RuntimeError("there is no case to run")
        return {"samples": timed(self.prepared.call, seconds)}

    def drop(self) -> dict[str, Any]:
        """Forget the case."""
        self.prepared = None
        gc.collect()
        return {}

    def obey(self, order: dict[str, Any]) -> dict[str, Any]:
        """Carry out one order; a failure is an answer, too."""
        try:
            return getattr(self, order.pop("do"))(**order)
        except Exception as error:
            return {"problem": self.explain(error)}

    def explain(self, error: Exception) -> str:
        """Why an order failed, in one line."""
        known = getattr(self.engine, "explain", None)
        return known(self.name, error) if known else in_one_line(error)


def _on_cache_line(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy that begins where a cache line does.

    That is where all frameworks allocate; NumPy's begin 16 bytes behind it. Vectors of such an
    array lie in two lines each, and some peers would read them so and others copy them first.
    """
    copy = empty_at(array.nbytes, CACHE_LINE).view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def main() -> None:
    """Serve until the standard input ends."""
    file = answers()
    worker = Worker(sys.argv[1], int(sys.argv[2]))
    serve(file, worker.obey)
    # Some of the frameworks crash when they are taken down; nothing is left to be saved.
    os._exit(0)


if __name__ == "__main__":
    main()
