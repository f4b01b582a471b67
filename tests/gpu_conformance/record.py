"""A plugin of pytest: tests run on a simulated GPU, and what becomes of each is written to a file.

Started by ``run.py``, which says by the environment: ``CONFORMANCE_ARCH``, the architecture;
``CONFORMANCE_LOG``, where a line of JSON per test goes, and which tests are done already;
``CONFORMANCE_EVERY``, to run every so many-th test only, from ``CONFORMANCE_FIRST`` on.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from simulated_chips import Seen, on_chip, options_of

from polyblocks.errors import FallbackError, UnsupportedError
from polyblocks.options import overriding

ROOT = Path(__file__).parent.parent.parent
ARCH = os.environ["CONFORMANCE_ARCH"]
LOG = Path(os.environ["CONFORMANCE_LOG"])
EVERY = int(os.environ.get("CONFORMANCE_EVERY", "1"))
FIRST = int(os.environ.get("CONFORMANCE_FIRST", "0"))


def pytest_configure(config: Any) -> None:
    """Choose the chip for what modules compile when they are imported."""
    stack = ExitStack()
    stack.enter_context(overriding(**options_of(ARCH)))
    config.add_cleanup(stack.close)


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out what the log has, and what differs from another test by the CPU's chip alone."""
    lines = LOG.read_text().splitlines() if LOG.exists() else []
    done = {json.loads(line)["test"] for line in lines}
    native = [item for item in items if _chip_of(item) == "native"]
    kept = [item for item in native[FIRST::EVERY] if item.nodeid not in done]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


def _chip_of(item: Any) -> str:
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    for name in ("chip", "target"):
        if parameters.get(name, "cpu") != "cpu":
            # It chooses a GPU itself.
            return str(parameters[name])
    return str(parameters.get("arch", "native"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: Any) -> Iterator[Any]:
    """Run one test on the chip; write down what became of it."""
    _say({"test": item.nodeid, "kind": "begun"})
    began = time.monotonic()
    row: dict[str, Any] = {"test": item.nodeid}
    with on_chip(ARCH) as seen:
        try:
            result = yield
            row |= _passed(seen)
        except BaseException as error:
            row |= _failed(error, seen)
            raise
        finally:
            row |= {"launches": seen.launches, "seconds": round(time.monotonic() - began, 2)}
            _say(row)
    return result


def _passed(seen: Seen) -> dict[str, Any]:
    if seen.findings:
        return {"kind": "findings", "reason": seen.findings[0]}
    if seen.fallbacks:
        return {"kind": "fallback", "reason": seen.fallbacks[0]}
    return {"kind": "right" if seen.launches else "none", "reason": ""}


def _failed(error: BaseException, seen: Seen) -> dict[str, Any]:
    text = " ".join(str(error).split())
    reason = f"{type(error).__name__}: {text}"[:400]
    if type(error).__name__ == "Skipped":
        return {"kind": "skipped", "reason": text}
    if seen.findings:
        return {"kind": "findings", "reason": seen.findings[0]}
    if "Timeout" in reason[:60]:
        return {"kind": "timeout", "reason": reason}
    if isinstance(error, (FallbackError, UnsupportedError)) or "to the framework:" in text:
        return {"kind": "fallback", "reason": seen.fallbacks[0] if seen.fallbacks else reason}
    return {"kind": "wrong", "reason": reason}


def _say(row: dict[str, Any]) -> None:
    if "reason" in row:
        row["reason"] = row["reason"].replace(f"{ROOT}{os.sep}", "")
    with LOG.open("a") as file:
        file.write(json.dumps(row) + "\n")
