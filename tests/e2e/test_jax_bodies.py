"""JAX: compiled functions as bodies of loops and branches, and inside of transformations there.

They run in a process with a limit: XLA once moved such a body out of its loop, which then did not
end.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("jax")

import jax_bodies

LIMIT_S = 500


@pytest.fixture(scope="module")
def outcomes():
    """Name of a way -> ``right``, or what is wrong; ends with the way that did not end."""
    command = [sys.executable, jax_bodies.__file__]
    try:
        # It is a process of its own already.
        environment = {**os.environ, "POLYBLOCKS_ISOLATE": "0"}
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT_S, env=environment
        )
        text = done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        text = (error.stdout or b"").decode() + f"not done after {LIMIT_S} s"
    return dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)


@pytest.mark.parametrize("way", jax_bodies.WAYS)
def test_results_are_those_of_jax(outcomes, way):
    assert outcomes.get(way, f"not reached after {list(outcomes.items())[-1:]}") == "right"
