"""Python in the pages of the documentation, and what is to be done with it.

Blocks that begin with three backticks and ``python`` are run in the order of the page, in one
namespace. A comment right before a block, which readers do not see, says what differs:

``<!-- before: CODE -->``
    Code to run first: what the text leaves out.
``<!-- raises: ERROR -->``
    The block ends in this error.
``<!-- fragment: REASON -->``
    The block is part of something and cannot run; a block that can is not to be marked.

A block that is one line ``name(parameters) -> type`` is a signature, and not run.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

FENCE = re.compile(
    r"(?P<comments>(?:^[ ]*<!--(?:(?!-->)[^`])*-->\n\s*)*)"
    r"^(?P<indent>[ ]*)```python[^\n]*\n(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
COMMENT = re.compile(r"<!-- (before|raises|fragment):(.*?)-->", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A block of Python: the number of its first line, its code, and what its comments say."""

    line: int
    code: str
    before: str = ""
    raises: str = ""
    fragment: str = ""

    @property
    def signature(self) -> bool:
        """Whether it is the signature of a function alone."""
        if "\n" in self.code.strip() or "->" not in self.code:
            return False
        try:
            ast.parse(f"def {self.code.strip()}: ...")
        except SyntaxError:
            return False
        return True


def blocks(text: str) -> list[Block]:
    """The blocks of Python in a page, in order.

    Raises:
        ValueError: a comment says twice what differs.
    """
    found = []
    for match in FENCE.finditer(text):
        marks: dict[str, str] = {}
        for kind, content in COMMENT.findall(match["comments"]):
            if kind in marks:
                raise ValueError(f"two comments say {kind!r}: {content.strip()!r}")
            marks[kind] = textwrap.dedent(content).strip()
        line = text.count("\n", 0, match.start("code")) + 1
        found.append(Block(line, textwrap.dedent(match["code"]), **marks))
    return found


def run_page(path: Path, folder: Path) -> int:
    """Run the blocks of a page; returns how many were run.

    Args:
        path: the page.
        folder: where to write what is run, since frameworks read the source of functions.

    Raises:
        AssertionError: a block failed, or did not although a comment says so; names page and line.
    """
    module = ModuleType(f"page_{path.stem.replace('-', '_')}")
    sys.modules[module.__name__] = module  # Dataclasses look there.
    namespace = vars(module)
    count = 0
    for block in blocks(path.read_text()):
        if block.signature:
            continue
        place = f"{path.name}:{block.line}"
        if block.before:
            run(block.before, folder / f"{path.stem}-before-{block.line}.py", 0, namespace)
        error: Exception | None = None
        try:
            # As far down in its file as in the page, so that a traceback names the page's line.
            run(block.code, folder / f"{path.stem}-{block.line}.py", block.line - 1, namespace)
        except Exception as caught:
            error = caught
        name = type(error).__name__ if error else "no error"
        if block.fragment:
            assert error, f"{place} runs: take the mark `fragment` away"
            continue
        if block.raises:
            assert name == block.raises, f"{place}: {name} instead of {block.raises}: {error}"
        elif error:
            raise AssertionError(
                f"{place} does not run: {name}: {error}\nAdd what it lacks, or <!-- before: CODE "
                "--> before the block; see tests/support/doc_blocks.py"
            ) from error
        count += 1
    return count


def run(code: str, file: Path, lines: int, namespace: dict[str, Any]) -> None:
    """Run code from a file that begins with some empty lines."""
    file.write_text("\n" * lines + code)
    exec(compile(file.read_text(), file, "exec", dont_inherit=True), namespace)
