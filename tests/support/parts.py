"""Parts of the suite, a process each: files of tests that import the same frameworks.

To import PyTorch, JAX and TensorFlow takes longer than most files of tests, and their modules stay
in memory, so no process imports a framework that none of its tests needs.
"""

from __future__ import annotations

import ast
import functools
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

SUPPORT = Path(__file__).parent
ROOT = SUPPORT.parents[1]
#: Framework -> words in names of modules that import it, and its names as a frontend.
FRAMEWORKS = {
    "torch": {"torch", "polyblocks_torch", "torch_polyblocks_compiler", "transformers"},
    "jax": {"jax", "polyblocks_jax", "jax_polyblocks_compiler", "flax", "equinox", "optax"},
    "tensorflow": {"tensorflow", "tf", "keras", "polyblocks_tf", "tf_polyblocks_compiler"},
}
#: Seconds of a file that has no recorded duration.
GUESS = 0.5
#: Seconds below which files go with others that import more frameworks than they do: to import two
#: of them takes about as long.
FEW = 25.0
#: CPU seconds of a part beside its tests: imports, and the collection of tests.
START = 5.0
#: Parts for each process that are tried, if all take equally long.
PARTS_PER_PROCESS = (2, 3, 4, 5)


@dataclass(frozen=True)
class Part:
    """What one process runs.

    Attributes:
        frameworks: that its files import, sorted.
        files: of tests.
        seconds: sum of their durations.
    """

    frameworks: tuple[str, ...]
    files: tuple[str, ...]
    seconds: float

    @property
    def label(self) -> str:
        return "+".join(self.frameworks) or "core"


def frameworks_of(path: Path) -> frozenset[str]:
    """Frameworks that a file imports or names.

    Itself, or through modules of tests/support, or by imports of those of bench.
    """
    words: set[str] = set()
    todo = [path.resolve()]
    seen = set()
    while todo:
        seen.add(file := todo.pop())
        modules, strings = _words(file)
        imported = {word for name in modules for word in name.split(".")}
        # Those of bench name each framework, and import those that they are of.
        words |= imported if file.is_relative_to(ROOT / "bench") else imported | strings
        inside = {SUPPORT / f"{word}.py" for word in imported}
        inside |= {
            ROOT / f"{name.replace('.', '/')}.py" for name in modules if name.startswith("bench.")
        }
        todo += [other for other in inside - seen if other.is_file()]
    return frozenset(name for name, known in FRAMEWORKS.items() if known & words)


def plan(files: Collection[str], durations: Mapping[str, float], processes: int) -> list[Part]:
    """The parts of which the last one ends first, if they are started in their order."""
    total = sum(durations.get(file, GUESS) for file in files)
    return min(
        (split(files, durations, max(1.0, total / (processes * n))) for n in PARTS_PER_PROCESS),
        key=lambda parts: end(parts, processes),
    )


def end(parts: Iterable[Part], processes: int) -> float:
    """Seconds until all parts have ended, each taken by the process that is free first."""
    free = [0.0] * processes
    for part in parts:
        free[free.index(min(free))] += part.seconds + START
    return max(free)


def split(files: Iterable[str], durations: Mapping[str, float], longest: float) -> list[Part]:
    """Distribute files over parts; the longest part first.

    Args:
        files: of tests, relative to the root of the project, which is the current folder.
        durations: file -> seconds.
        longest: seconds that a part may take, unless it is one file.
    """
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for file in files:
        groups[tuple(sorted(frameworks_of(Path(file))))].append(file)
    for frameworks in sorted(groups, key=len):
        wider = [other for other in groups if frameworks and set(frameworks) < set(other)]
        if wider and sum(durations.get(file, GUESS) for file in groups[frameworks]) < FEW:
            groups[min(wider)] += groups.pop(frameworks)
    parts = []
    for frameworks, members in groups.items():
        seconds = {file: durations.get(file, GUESS) for file in members}
        bins: list[list[str]] = [
            [] for _ in range(max(1, math.ceil(sum(seconds.values()) / longest)))
        ]
        for file in sorted(members, key=lambda file: (-seconds[file], file)):
            min(bins, key=lambda some: sum(seconds[f] for f in some)).append(file)
        parts += [
            Part(frameworks, tuple(sorted(some)), sum(seconds[file] for file in some))
            for some in bins
            if some
        ]
    return sorted(parts, key=lambda part: (-part.seconds, part.files))


@functools.cache
def _words(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Modules that a file imports anywhere, with what it takes of them; strings that are a word."""
    modules, strings = set(), set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                modules |= {alias.name for alias in names}
            case ast.ImportFrom(module=str(module), names=names):
                modules |= {module, *(f"{module}.{alias.name}" for alias in names)}
            case ast.Constant(value=str(text)) if text.isidentifier():
                strings.add(text)
    return frozenset(modules), frozenset(strings)
