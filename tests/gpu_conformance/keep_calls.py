"""A plugin of pytest: what the simulator computes is kept, to be computed again by a real GPU.

Started by ``run.py`` beside ``record``, which says by the environment: ``CONFORMANCE_CALLS``, the
folder. Each program that is compiled for the simulator is compiled for the device as well, and
gets there

- ``NAME.zip``: the device's artifact
- ``NAME-K.npz``: a call: ``before-R`` of each input, ``after-R`` of what it wrote, by the number of
  the manifest's row, and ``status``; ``NAME-K-preparation.npz`` is one of its preparation

``replay.py`` reads it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import simulated_chips

from polyblocks import driver
from polyblocks.artifact import PREPARATION, Artifact
from polyblocks.attributes import RESUME_ATTRIBUTE
from polyblocks.errors import ExecutionError, PolyBlocksError
from polyblocks.registry.honoured_options import describe_target

FOLDER = Path(os.environ["CONFORMANCE_CALLS"])
#: Calls of a program that are kept, and bytes of the arrays of one that is kept.
CALLS, BYTES = 2, 1 << 19
#: Key of a manifest: the name of the program's files.
NAME = "replayed_as"


def pytest_configure(config: Any) -> None:
    """Compile everything twice from now on, and watch the calls."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    driver.compile_module = _compiling(driver.compile_module)
    simulated_chips._entry = _watching(simulated_chips._entry)


def _compiling(compile_module: Any) -> Any:
    def both(module: Any, description: Any, options: Any, **keywords: Any) -> Artifact:
        operation = module.operation
        if not options.simulate or RESUME_ATTRIBUTE in operation.attributes:
            return compile_module(module, description, options, **keywords)
        text = operation.get_asm(enable_debug_info=False)
        made: Artifact = compile_module(module, description, options, **keywords)
        if made.manifest.get("kind", "program") != "program":
            return made
        name = hashlib.sha256((text + options.cache_key()).encode()).hexdigest()[:16]
        try:
            _keep(name, text, dataclasses.replace(options, simulate=False), compile_module)
        except PolyBlocksError as error:
            print(f"keep_calls: {name}: {error}", file=sys.stderr)
            return made
        made.manifest[NAME] = name
        if PREPARATION in made.manifest:
            made.manifest[PREPARATION][NAME] = f"{name} {PREPARATION}"
        return made

    return both


def _keep(name: str, text: str, options: Any, compile_module: Any) -> None:
    from polyblocks import mlir

    path = FOLDER / f"{name}.zip"
    if path.exists():
        return
    made = compile_module(mlir.parse(text), describe_target(options), options)
    path.write_bytes(made.to_bytes())


def _watching(entry: Any) -> Any:
    counts: dict[str, int] = {}

    def watched(self: Any, pointers: bytes, num_threads: int) -> int:
        name = self.manifest.get(NAME)
        if name is None or counts.get(name, -1) + 1 >= CALLS:
            return int(entry(self, pointers, num_threads))
        rows = self.manifest["arguments"]
        addresses = np.frombuffer(pointers, np.uint64).tolist()
        arrays = [view(at) for view, at in zip(self._views, addresses, strict=True)]
        if sum(array.nbytes for array in arrays) > BYTES:
            return int(entry(self, pointers, num_threads))
        call = counts[name] = counts.get(name, -1) + 1
        kept = {
            f"before-{number}": array.copy()
            for number, (row, array) in enumerate(zip(rows, arrays, strict=True))
            if row["role"] in ("input", "kept")
        }
        try:
            status = int(entry(self, pointers, num_threads))
        except ExecutionError:
            counts[name] = CALLS  # Of a program that is wrong on purpose.
            raise
        for number, (row, array) in enumerate(zip(rows, arrays, strict=True)):
            if row["role"] in ("output", "kept") or row["updates"] is not None:
                kept[f"after-{number}"] = array.copy()
        stem, _, part = name.partition(" ")
        file = "-".join(filter(None, [stem, str(call), part]))
        np.savez_compressed(FOLDER / f"{file}.npz", status=status, **kept)
        return status

    return watched
