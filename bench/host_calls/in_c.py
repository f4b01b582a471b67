"""Calls from C: the library of each file, and a program that calls its function 10⁵ times."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np

import polyblocks
from bench.host_calls import cases, files
from bench.host_calls.cases import ELEMENTS, Case
from polyblocks.artifact import Artifact
from polyblocks.c_library.c_compiler import find_any

Json = dict[str, Any]

NAME = "called"
CALLS = 100_000

_PROGRAM = """
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "called.h"
#define COUNT {elements}

static float inputs[{inputs}][COUNT] __attribute__((aligned(64)));
static float weights[{weights} + 1][COUNT] __attribute__((aligned(64)));
static float results[{results}][COUNT] __attribute__((aligned(64)));

static double seconds(void) {{
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}}

static int fill(float *values, size_t number, FILE *file) {{
  return fread(values, sizeof(float), number, file) == number;
}}

int main(int count, char **arguments) {{
  FILE *file = fopen("values.bin", "rb");
  if (count != 3 || !file || !fill(inputs[0], {inputs} * COUNT, file) ||
      !fill(weights[0], {weights} * COUNT, file))
    return 2;
  int rounds = atoi(arguments[1]), calls = atoi(arguments[2]);
  double least = 1e9;
  int32_t status = 0;
{bind}
  for (int round = 0; round < rounds && !status; ++round) {{
    double begin = seconds();
    for (int call = 0; call < calls && !status; ++call)
      status = {call};
    double passed = (seconds() - begin) / calls;
    if (passed < least) least = passed;
  }}
  if (status) {{
    fprintf(stderr, "status %d: %s\\n", (int)status, called_error());
    return 1;
  }}
  printf("%.9g\\n", least);
  for (int k = 0; k < {results} * COUNT; ++k) printf("%.9g\\n", results[0][k]);
  return 0;
}}
"""

_BIND = """
  const void *addresses[] = {{{addresses}}};
  size_t counts[] = {{{counts}}};
  struct called_bound *bound = NULL;
  status = called_bind(addresses, counts, &bound);
"""


def program(case: Case, weights: list[int]) -> str:
    """The text of the C program.

    Args:
        case: what it calls.
        weights: for each weight of the library, in its order, the number of the case's.
    """
    passed = [f"inputs[{k}]" for k in range(len(case.inputs))]
    passed += [f"results[{k}]" for k in range(len(case.expected))]
    arrays = ", ".join(f"{name}, COUNT" for name in passed)
    bind, call = "", f"called({arrays})"
    if weights:
        addresses = ", ".join(f"weights[{k}]" for k in weights)
        bind = _BIND.format(addresses=addresses, counts=", ".join(["COUNT"] * len(weights)))
        call = f"called_run(bound, {arrays})"
    return _PROGRAM.format(
        elements=ELEMENTS,
        inputs=len(case.inputs),
        weights=len(weights),
        results=len(case.expected),
        bind=bind,
        call=call,
    )


def rows(case: Case, folder: Path, rounds: int) -> list[Json]:
    """Build, run and check; one row, if the case can be called from C.

    Raises:
        TargetError: the C compiler is missing or fails.
        ValueError: a wrong result.
    """
    if case.kind == cases.KEYWORDS:
        return []
    from bench.host_calls.measure import check

    where = folder / f"{files.path(folder, case).stem}-c"
    artifact = Artifact.read(files.path(folder, case))
    polyblocks.write_library(artifact, where, NAME)
    names = [each[0] for each in artifact.manifest.get("weight_names", ())]
    known = {name: k for k, name in enumerate(files.weight_names(case))}
    (where / "main.c").write_text(program(case, [known[name] for name in names]))
    (where / "values.bin").write_bytes(np.stack([*case.inputs, *case.weights]).tobytes())
    link = ["-L.", f"-l{NAME}", "-Wl,-rpath,$ORIGIN", "-o", "main"]
    find_any().run(["-std=gnu11", "-O2", "main.c", *link], where)
    command = ["./main", str(rounds), str(max(1, CALLS // rounds))]
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError(f"the C program ended with {done.returncode}: {done.stderr.strip()}")
    seconds, *values = map(float, done.stdout.split())
    found = np.array(values, np.float32).reshape(len(case.expected), ELEMENTS)
    check(list(found), case.expected)
    return [{"peer": "library", "us": seconds * 1e6}]
