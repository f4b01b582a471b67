"""Programs for GPUs in C: the cases of ``c_library_gpu_cases.py``, in a process of their own.

They load a stand-in for a vendor's driver, which whatever runs later in the process would find.
"""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from c_libraries import quick_compiler
from sweeps import sweep

CASES = Path(__file__).parent / "c_library_gpu_cases.py"
RUN = """
import os, sys
for name in [name for name in os.environ if name.startswith("PYTEST_")]:
    del os.environ[name]
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""


@pytest.mark.cpu
@pytest.mark.parametrize("which", sweep(["not slow", "slow"], "not slow"))
def test_c_libraries_for_gpus(
    run_python: Callable[..., CompletedProcess[str]],
    which: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    quick = {"CC": quick_compiler(tmp_path)} if request.config.option.markexpr == "not slow" else {}
    done = run_python(RUN, "-m", which, str(CASES), preloaded="torch", limit=800, **quick)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
