"""The progress line of a real compilation, in a pseudo-terminal."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.cpu, pytest.mark.isolated]

pty = pytest.importorskip("pty")

SLOW = """
import time
from polyblocks.hookspecs import hookimpl
from polyblocks.pipeline import FunctionPass

POLYBLOCKS_API = 2

@hookimpl
def configure_pipeline(pipeline):
    pipeline.append("S3", FunctionPass("take-a-nap", lambda module, context: time.sleep({seconds})))
"""
COPY = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a: tensor<2xf32> }"


def run_in_terminal(arguments: list[str], environment: dict[str, str]) -> str:
    """Everything that a command writes to stderr while that is a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        arguments, stderr=theirs, stdout=subprocess.DEVNULL, env={**os.environ, **environment}
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            data = os.read(ours, 4096)
        except OSError:  # Linux: the other end is closed
            break
        if not data:
            break
        written += data
    os.close(ours)
    assert process.wait(60) == 0, written
    return written.decode()


@pytest.mark.parametrize("seconds, shown", [(2.0, True), (0.0, False)])
def test_a_long_compilation_shows_its_pass(seconds, shown, fake_plugin, tmp_path):
    fake_plugin("slow", group="polyblocks.extensions", source=SLOW.format(seconds=seconds))
    file = tmp_path / "copy.mlir"
    file.write_text(COPY)
    written = run_in_terminal(
        [sys.executable, "-m", "polyblocks.cli", "compile", str(file)],
        {"PYTHONPATH": str(tmp_path), "TERM": "xterm", "COLUMNS": "120"},
    )
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", written)
    assert ("compiling main for cpu: stage S3, pass take-a-nap" in text) == shown, text


def test_a_crash_takes_the_line_away(fake_plugin, tmp_path):
    crash = SLOW.format(seconds=1.5).replace("pass take", "take")
    crash += (
        "    import os\n    pipeline.append('S3', FunctionPass('die', lambda m, c: os.abort()))\n"
    )
    fake_plugin("slow", group="polyblocks.extensions", source=crash)
    file = tmp_path / "copy.mlir"
    file.write_text(COPY)
    code = """
import sys
from polyblocks import errors
from polyblocks.api import compile_file
from pathlib import Path
import polyblocks
try:
    compile_file(Path(sys.argv[1]), polyblocks.CompileOptions())
except errors.NativeCrashError as error:
    print("caught:", error, file=sys.stderr)
"""
    written = run_in_terminal(
        [sys.executable, "-c", code, str(file)],
        {"PYTHONPATH": str(tmp_path), "TERM": "xterm", "COLUMNS": "120"},
    )
    caught = written.index("caught:")
    assert "pass 'die'" in written[caught:]
    assert "compiling main" in written[:caught]
    assert "compiling main" not in written[caught:]
