"""Where code came from: names and places in MLIR locations."""

from __future__ import annotations

import re
from collections.abc import Iterable

from polyblocks.affine.model import For, Nest, Node, Store, walk
from polyblocks.affine.ops import is_constant

# A NameLoc over a FileLineColLoc: "aten.add.Tensor"("model.py":12:0). The bindings offer no
# way to look into a location, so its text is read.
_NAMED = re.compile(r'"((?:[^"\\]|\\.)*)"\((?:[^"()]*\()*"((?:[^"\\]|\\.)*)":(\d+)')
_BARE = re.compile(r'loc\("((?:[^"\\]|\\.)*)"\)')


def sources(nodes: Iterable[Node]) -> list[tuple[str, str]]:
    """(op name, ``file:line``) of the framework's ops behind these nodes, in program order."""
    seen: dict[tuple[str, str], None] = {}
    done: set[str] = set()
    previous = None
    for node in walk(nodes):
        location = None if isinstance(node, For) else getattr(node, "location", None)
        # To print one takes longer than all else here, and neighbours mostly have the same.
        if location is None or (previous is not None and location == previous):
            continue
        previous = location
        text = str(location)
        if text not in done:
            done.add(text)
            for source in of_text(text):
                seen.setdefault(source)
    return list(seen)


def merged_sources(nests: Iterable[Nest]) -> list[str]:
    """Sources of what several nests become as one.

    Equal constants of a program are one, found where the first of them was: the sources of a nest
    that fills a buffer with a constant may be another line's, and count only if nothing else does.

    Args:
        nests: with their sources, in program order.

    Returns:
        The sources, each once.
    """
    named = [nest for nest in nests if nest.sources]
    own = [nest for nest in named if not is_constant_fill(nest)]
    return list(dict.fromkeys(s for nest in own or named for s in nest.sources))


def is_constant_fill(nest: Nest) -> bool:
    """Whether a nest reads and computes nothing, but stores constants."""
    return all(
        isinstance(n, Store) or (isinstance(n, For) and not n.inits) or is_constant(n)
        for n in walk(nest.body)
    )


def of_text(text: str) -> list[tuple[str, str]]:
    """(name, ``file:line``) pairs in the text of one location."""
    found = [(name, f"{file}:{line}") for name, file, line in _NAMED.findall(text)]
    return found or [(name, "") for name in _BARE.findall(text)]
