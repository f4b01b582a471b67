"""Programs for GPUs in C: the cases of ``c_library_gpu_cases.py``, in a process of their own.

They load a stand-in for a vendor's driver, which whatever runs later in the process would find.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sweeps import sweep

CASES = Path(__file__).parent / "c_library_gpu_cases.py"


@pytest.mark.cpu
@pytest.mark.parametrize("which", sweep(["not slow", "slow"], "not slow"))
def test_c_libraries_for_gpus(which: str) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        which,
        str(CASES),
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
