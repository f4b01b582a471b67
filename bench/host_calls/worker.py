"""``python -m bench.host_calls.worker WHERE FOLDER ROUNDS ANSWER CASE…``: a process of the group.

It writes the rows of its cases as a list of JSON into the file ANSWER, anew after each case, so
that a process that dies leaves what it has. FOLDER is where the compiled files are.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from bench.host_calls import cases, measure
from bench.host_calls.cases import Case
from bench.orders import in_one_line

Json = dict[str, Any]


def rows_of(where: str, case: Case, folder: Path, rounds: int) -> list[Json]:
    """What one process measures of one case; a failure is a row that says why."""
    try:
        module = importlib.import_module(f"bench.host_calls.in_{where}")
        if hasattr(module, "rows"):
            found: list[Json] = module.rows(case, folder, rounds)
            return found
        peers = module.peers(case, folder)
        return measure.compare(peers, case.expected, module.arrays_of, module.wait, rounds)
    except Exception as error:
        return [{"peer": where, "problem": in_one_line(error)}]


def main() -> None:
    """Measure the cases."""
    where, folder, rounds, answer, *names = sys.argv[1:]
    found: list[Json] = []
    for case in cases.CASES:
        if case.name in names:
            rows = rows_of(where, case, Path(folder), int(rounds))
            found += [{"case": case.name, **row} for row in rows]
            Path(answer).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
