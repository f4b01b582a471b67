"""`make gpu-conformance` says when it ran nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).parents[1] / "gpu_conformance/run.py"


def test_tests_that_cannot_be_collected_are_an_error(tmp_path):
    broken = tmp_path / "test_broken.py"
    broken.write_text("raise RuntimeError('while it is collected')\n")
    command = [sys.executable, str(RUN), "--arch", "sm_90a", str(broken)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout
    assert "expected pytest to run tests, but it ended with status 2" in done.stderr
