"""Wordings that readers stumble over, counted where the project writes English.

    python -m tests.support.words                # the counts, and how they differ from the file
    python -m tests.support.words --show told    # each place that a pattern matches
    python -m tests.support.words --write        # write tests/words.json

Three kinds of text are counted: pages (README.md, CHANGELOG.md, ``docs``, READMEs of packages),
code (docstrings and comments of the packages) and strings (messages, help, reports). Quoted code
does not count.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.support.syntax import tree

ROOT = Path(__file__).resolve().parents[2]
COUNTS = ROOT / "tests/words.json"
SOURCES = ("core/src", *(f"{p.relative_to(ROOT)}/src" for p in sorted(ROOT.glob("plugins/*"))))
KINDS = ("pages", "code", "strings")

#: Name -> what is counted. The project's guide to wording prefers a noun of the field, a subject
#: that comes first, and code that is not a person.
PATTERNS = {
    "anybody": r"\b(?:no|some|any|every)body\b|\b[Ww]hoever\b",
    "so many": r"\bso many(?:th)?\b(?! that\b)",
    "of which": r"(?<![Ee]ach )(?<!one )\bof which\b",
    "none for none": r"\bNone for none\b|\b(?:there|it|that|one) is none\b",
    "others'": r"\bothers'",
    "no matter": r"\bno matter\b",
    "and the like": r"\band the like\b",
    "for want of": r"\bfor want of\b",
    "told": r"\b(?:is|are|was) told\b|\bcan(?:not)? be told\b",
    "is to be": r"\b(?:is|are) to be\b",
    "in the place of": r"\bin the place of\b",
    "is none of": r"\b(?:is|are) none of\b",
    "where it took": r"\bwhere (?:it|they) took\b",
    "sees to it": r"\bsees? to (?:it|that)\b",
    # A sentence that is no sentence: "What a step takes besides". A question is one.
    "What": r"(?:^|(?<=[.:] ))What (?![^.?]*\?)",
}
#: Only counted in code: pages and questions use it well.
ONLY_IN_CODE = ("What",)
#: Names of functions that say nothing of what they compute.
VAGUE_NAME = re.compile(
    r"_?(?:found|made|left|rest|others?|mine|least|told|met|apart|together|beside|behind|alike)"
)

STRING_OR_COMMENT = re.compile(
    r"\"{3}(?:\\.|.)*?\"{3}|'{3}(?:\\.|.)*?'{3}"
    r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|(?P<comment>#[^\n]*)",
    re.DOTALL,
)


class Text(NamedTuple):
    """A paragraph of prose and the line where it begins."""

    path: Path
    line: int
    prose: str


class Hit(NamedTuple):
    """A place that a pattern matches."""

    path: Path
    line: int
    excerpt: str


def pages() -> Iterator[Text]:
    """Paragraphs of the pages, without blocks and spans of code."""
    packages = (*ROOT.glob("core/README.md"), *sorted(ROOT.glob("plugins/*/README.md")))
    for path in (
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        *sorted(ROOT.glob("docs/*.md")),
        *packages,
    ):
        text = re.sub(
            r"^ *```.*?^ *```$|<!--.*?-->",
            lambda m: "\n" * m[0].count("\n"),
            path.read_text(),
            flags=re.MULTILINE | re.DOTALL,
        )
        yield from _paragraphs(path, 1, text)


def code() -> Iterator[Text]:
    """Paragraphs of docstrings and comments."""
    for source in _sources():
        for line, text in source.docstrings:
            yield from _paragraphs(source.path, line, text)
        yield from _comments(source.path, source.text)


def strings() -> Iterator[Text]:
    """Strings that are no docstrings, and templates; what an f-string inserts is ``X``."""
    for source in _sources():
        for line, text in source.strings:
            yield Text(source.path, line, " ".join(text.split()))
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.jinja")):
            yield from _paragraphs(path, 1, path.read_text())


def vague_names() -> list[Hit]:
    """Functions whose name says nothing."""
    return [
        Hit(source.path, line, name)
        for source in _sources()
        for line, name in source.functions
        if VAGUE_NAME.fullmatch(name)
    ]


def hits(pattern: str, texts: list[Text]) -> list[Hit]:
    """The places in some texts that a pattern matches."""
    return [
        Hit(t.path, t.line, t.prose[max(m.start() - 50, 0) : m.end() + 60])
        for t in texts
        for m in re.finditer(PATTERNS[pattern], t.prose)
    ]


def count() -> dict[str, dict[str, int]]:
    """Hits by pattern and kind of text, and of vague names."""
    texts = {"pages": [*pages()], "code": [*code()], "strings": [*strings()]}
    counts = {
        name: {
            kind: len(hits(name, texts[kind]))
            for kind in (("code",) if name in ONLY_IN_CODE else KINDS)
        }
        for name in PATTERNS
    }
    return {**counts, "vague names": {"code": len(vague_names())}}


def recorded() -> dict[str, dict[str, int]]:
    """The counts in the file."""
    result: dict[str, dict[str, int]] = json.loads(COUNTS.read_text())
    return result


def differences(now: dict[str, dict[str, int]], before: dict[str, dict[str, int]]) -> list[str]:
    """A line for each count that is not the one in the file, with what to do about it."""
    lines = []
    for name in sorted({*now, *before}):
        for kind in KINDS:
            new, old = (counts.get(name, {}).get(kind, 0) for counts in (now, before))
            if new > old:
                lines.append(
                    f"'{name}' in {kind}: {old} -> {new}; reword: "
                    f'python -m tests.support.words --show "{name}"'
                )
            elif new < old:
                lines.append(
                    f"'{name}' in {kind}: {old} -> {new}; record it: "
                    "python -m tests.support.words --write"
                )
    return lines


@dataclass
class _Source:
    """A file and, each with its line, its docstrings, other strings and functions."""

    path: Path
    text: str
    docstrings: list[tuple[int, str]] = field(default_factory=list)
    strings: list[tuple[int, str]] = field(default_factory=list)
    functions: list[tuple[int, str]] = field(default_factory=list)


@cache
def _sources() -> list[_Source]:
    """The files of the packages."""
    paths = [path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*.py"))]
    sources = [_Source(path, path.read_text()) for path in paths]
    for source in sources:
        _collect(tree(source.text), source)
    return sources


def _collect(node: ast.AST, source: _Source) -> None:
    """Add the strings and functions below a node."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            source.strings.append((node.lineno, node.value))
        return
    if isinstance(node, ast.JoinedStr):
        pieces = (str(v.value) if isinstance(v, ast.Constant) else "X" for v in node.values)
        source.strings.append((node.lineno, "".join(pieces)))
        return
    children = [*ast.iter_child_nodes(node)]
    if isinstance(node, ast.FunctionDef):
        source.functions.append((node.lineno, node.name))
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        first = node.body[0] if node.body else None
        value = first.value if isinstance(first, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            source.docstrings.append((value.lineno, value.value))
            children.remove(node.body[0])
    for child in children:
        if not isinstance(child, ast.Name | ast.expr_context | ast.operator):
            _collect(child, source)


def _comments(path: Path, source: str) -> Iterator[Text]:
    """Comments; those that fill lines which follow each other are one."""
    block: list[str] = []
    start = last = 0
    line = position = 0
    for match in STRING_OR_COMMENT.finditer(source):
        if match["comment"] is None:
            continue
        line += source.count("\n", position, match.start())
        position = match.start()
        fills = not source[source.rfind("\n", 0, position) + 1 : position].strip()
        if block and not (fills and line == last + 1):
            yield Text(path, start + 1, _prose(" ".join(block)))
            block = []
        if not block:
            start = line
        block.append(match["comment"].lstrip("#: "))
        last = line if fills else -1
    if block:
        yield Text(path, start + 1, _prose(" ".join(block)))


def _paragraphs(path: Path, line: int, text: str) -> Iterator[Text]:
    """What blank lines, items of lists and entries of sections separate."""
    offset = 0
    for part in re.split(r"(\n\s*\n|\n(?=\s*(?:[-*|] |\d+\. |\w+: )))", text):
        if part.strip():
            start = offset + len(part) - len(part.lstrip())
            yield Text(path, line + text[:start].count("\n"), _prose(part))
        offset += len(part)


def _prose(text: str) -> str:
    """One line without code in it."""
    text = re.sub(r"``[^`]*``|`[^`]*`", "X", text)
    return " ".join(text.split())


def main() -> None:
    """Print or write the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--show", metavar="PATTERN", help="print each place that it matches")
    parser.add_argument("--kind", choices=KINDS, help="with --show: in this kind of text only")
    parser.add_argument("--write", action="store_true", help=f"write {COUNTS.relative_to(ROOT)}")
    arguments = parser.parse_args()
    if arguments.show:
        for hit in _shown(arguments.show, arguments.kind):
            print(f"{hit.path.relative_to(ROOT)}:{hit.line}: {hit.excerpt}")
        return
    counts = count()
    if arguments.write:
        COUNTS.write_text(json.dumps(counts, indent=1) + "\n")
    for name, by_kind in counts.items():
        print(f"{name:18}", *(f"{kind} {number:4}" for kind, number in by_kind.items()))
    print(*differences(counts, recorded()), sep="\n")


def _shown(name: str, kind: str | None) -> list[Hit]:
    if name == "vague names":
        return vague_names()
    texts = {"pages": pages, "code": code, "strings": strings}
    kinds = [kind] if kind else ["code"] if name in ONLY_IN_CODE else KINDS
    return [hit for k in kinds for hit in hits(name, [*texts[k]()])]


if __name__ == "__main__":
    main()
