"""The number of threads of a call means the same in every frontend."""

from __future__ import annotations

import os

import pytest
from sweeps import sweep

#: Counts the threads that a call is made with, where the loaded program takes them.
CODE = """
import os, sys
import numpy as np
import polyblocks
from polyblocks.runtime import threads, xla_call
from polyblocks_cpu import load

threads.available_cpus = lambda: 8
seen = []
made = load.CpuExecutable.__init__

def watched(self, manifest, library, entry, times=None):
    made(self, manifest, library, lambda pointers, count: seen.append(count) or entry(pointers, 1),
         times)

load.CpuExecutable.__init__ = watched
of_xla = xla_call.XlaCall.__init__

def watched_xla(self, executable, *, threads, **others):
    seen.append(threads)
    executable.entry = executable.entry.__closure__ and load_entry(executable)
    of_xla(self, executable, threads=1, **others)

def load_entry(executable):
    for cell in executable.entry.__closure__:
        if hasattr(cell.cell_contents, "library"):
            return cell.cell_contents

xla_call.XlaCall.__init__ = watched_xla

frontend, option, setting = sys.argv[1:]
options = {"strict_target": True} | ({"num_threads": int(option)} if option else {})
values = np.ones((64, 64), np.float32)
if frontend == "torch":
    import torch
    if setting:
        torch.set_num_threads(int(setting))
    x = torch.from_numpy(values)
elif frontend == "jax":
    import jax.numpy as jnp
    x = jnp.asarray(values)
else:
    import tensorflow as tf
    if setting:
        tf.config.threading.set_intra_op_parallelism_threads(int(setting))
    x = tf.constant(values)
f = polyblocks.compile(lambda a: a * 2 + 1, frontend=frontend, compile_options=options)
assert (np.asarray(f(x)) == 3).all()
print(seen[-1])
"""

CASES = [
    # option, framework's setting, OMP_NUM_THREADS, threads
    pytest.param(64, 4, 1, 64, id="the option comes first, as it is"),
    pytest.param("", 4, 1, 4, id="then the framework's setting"),
    pytest.param("", 64, 1, 8, id="cut to the CPUs", marks=pytest.mark.slow),
    pytest.param("", "", 1, 1, id="then the environment", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("frontend", sweep(["torch", "jax", "tf"], "torch"))
@pytest.mark.parametrize(("option", "setting", "environment", "expected"), CASES)
def test_threads_of_a_call(run_python, frontend, option, setting, environment, expected):
    if frontend == "jax" and setting:
        # It has no such setting: what comes next counts.
        expected = expected if option else min(environment, 8)
    # What comes before the environment does not need it to be there from the start.
    decided = frontend == "torch" and (option or setting == 4)
    done = run_python(
        CODE,
        *(frontend, str(option), str(setting)),
        preloaded="torch" if decided else "",
        **os.environ | {"OMP_NUM_THREADS": environment},
    )
    assert done.stdout.split()[-1:] == [str(expected)], done.stderr
