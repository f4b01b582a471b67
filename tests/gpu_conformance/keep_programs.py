"""A plugin of pytest: every program that a test compiles is kept, as a frontend hands it over.

Started by ``run.py``, which says by the environment: ``CONFORMANCE_PROGRAMS``, the folder, which
gets a file for each program, named by its hash.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from polyblocks import driver
from polyblocks.attributes import RESUME_ATTRIBUTE

FOLDER = Path(os.environ["CONFORMANCE_PROGRAMS"])


def pytest_configure(config: Any) -> None:
    """Write down what is compiled from now on."""
    compile_module = driver.compile_module
    FOLDER.mkdir(parents=True, exist_ok=True)

    def kept(module: Any, *arguments: Any, **keywords: Any) -> Any:
        # Dumps of later stages, which `bisect` goes on from, are for one target.
        if RESUME_ATTRIBUTE not in module.operation.attributes:
            text = module.operation.get_asm(enable_debug_info=False)
            name = hashlib.sha256(text.encode()).hexdigest()[:16]
            (FOLDER / f"{name}.mlir").write_text(text)
        return compile_module(module, *arguments, **keywords)

    driver.compile_module = kept
