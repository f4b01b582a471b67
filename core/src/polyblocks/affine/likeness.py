"""Whether two pieces of code are the same but for the names in them.

Programs repeat themselves: the layers of a network, the steps of a simulation. A pass reuses its
decision for code that is equal up to renaming.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

from polyblocks.affine.access import strides
from polyblocks.affine.expr import Expr, Mod, Var
from polyblocks.affine.model import Access, Alloca, Buffer, For, Load, Nest, Node, Value, walk

T = TypeVar("T")


def likeness(nodes: list[Node], *, anywhere: bool = False) -> Hashable:
    """A key that is equal for equal code, whatever its variables, values and buffers are.

    Buffers that stand for each other have the same shape, layout, kind and memory; what is in them
    is left out, and so are the program's places.

    Args:
        nodes: the code.
        anywhere: leave out, too, where in a buffer that it does not store to the first load begins,
            as each step of a recurrence has another part of its input; others count from there.
    """
    written: set[Buffer] = set()
    if anywhere:
        written = {n.buffer.base for n in walk(nodes) if isinstance(n, Access) and n.writes}
    return _Names(written if anywhere else None).nodes(nodes)


class Remembered(Generic[T]):
    """A memo of results for pieces of code of some nests.

    Keys are asked for only where nests have as many nodes and the same loops as another one.

    Args:
        nests: all that the code is of.
        anywhere: of :func:`likeness`.
    """

    def __init__(self, nests: Iterable[Nest], *, anywhere: bool = False) -> None:
        self._anywhere = anywhere
        self._repeated = of_equal_size(nests)
        self._found: dict[Hashable, T] = {}

    def get(self, nest: Nest, nodes: list[Node], find: Callable[[], T], *also: Hashable) -> T:
        """The result of ``find`` for code of a nest, or for equal code before.

        Args:
            nest: as it was when it was passed to the constructor.
            nodes: code of it.
            find: is called where nothing is known.
            also: what the result depends on besides.
        """
        if nest not in self._repeated:
            return find()
        key = likeness(nodes, anywhere=self._anywhere), also
        if key not in self._found:
            self._found[key] = find()
        return self._found[key]


def of_equal_size(nests: Iterable[Nest]) -> set[Nest]:
    """The nests that have as many nodes and the same loops as another one."""
    alike: dict[Hashable, list[Nest]] = {}
    for nest in nests:
        nodes = list(walk(nest.body))
        extents = tuple([node.var.extent for node in nodes if isinstance(node, For)])
        alike.setdefault((len(nodes), extents), []).append(nest)
    return {n for group in alike.values() if len(group) > 1 for n in group}


class _Names:
    """Numbers for variables, values and buffers, as they are met.

    Args:
        written: the buffers whose accesses count with their beginnings; None: all.
    """

    def __init__(self, written: set[Buffer] | None) -> None:
        self._written = written
        self._origins: dict[Buffer, tuple[int, ...]] = {}
        self._variables: dict[Var, int] = {}
        self._values: dict[Value, int] = {}
        self._buffers: dict[Buffer, int] = {}
        self._said: list[Hashable] = []

    def nodes(self, nodes: list[Node]) -> Hashable:
        """The key of code, and of the buffers in it."""
        code = tuple([self._node(node) for node in nodes])
        return code, tuple(self._said)

    def _node(self, node: Node) -> Hashable:
        if isinstance(node, For):
            return self._loop(node)
        buffer = node.buffer if isinstance(node, (Access, Alloca)) else None
        return (
            *(type(node), node.marks, len(node.exprs)),
            *map(self._value, node.uses),
            *map(self._expr, node.exprs if self._written is None else self._moved(node)),
            *map(self._value, node.defines),
            None if buffer is None else self._buffer(buffer),
        )

    def _loop(self, loop: For) -> Hashable:
        self._variables[loop.var] = len(self._variables)
        fetched = [
            (self._buffer(f.buffer), self._exprs(f.index), f.write, f.level)
            for f in loop.prefetches
        ]
        head = loop.var.extent, self._exprs(loop.exprs), loop.marks, tuple(fetched)
        before = tuple([self._value(v) for v in (*loop.inits, *loop.arguments)])
        body = tuple([self._node(node) for node in loop.body])
        after = tuple([self._value(v) for v in (*loop.yields, *loop.results)])
        return head, before, body, after

    def _value(self, value: Value) -> int:
        found = self._values.get(value)
        if found is None:
            found = self._values[value] = len(self._values)
            self._said.append(hash(value.type))
        return found

    def _buffer(self, buffer: Buffer) -> int:
        found = self._buffers.get(buffer)
        if found is None:
            base = None if buffer.viewed is None else self._buffer(buffer.base)
            found = self._buffers[buffer] = len(self._buffers)
            layout = strides(buffer)
            self._said.append(
                (
                    *(buffer.shape, layout, hash(buffer.element), buffer.bytes_per_element),
                    *(buffer.kind, base, buffer.lasting, buffer.outer is None),
                    *(buffer.constant is None, buffer.base.kind, buffer.space, buffer.layout),
                )
            )
        return found

    def _exprs(self, exprs: tuple[Expr, ...]) -> tuple[Hashable, ...]:
        return tuple([self._expr(e) for e in exprs])

    def _moved(self, node: Node) -> Iterable[Expr]:
        """The expressions of a node, from where the first load of its buffer begins."""
        assert self._written is not None
        if not isinstance(node, Load) or node.where or node.buffer.base in self._written:
            return node.exprs
        if any(map(_wraps, node.index)):
            return node.exprs
        origin = self._origins.setdefault(node.buffer, tuple([e.const for e in node.index]))
        return [e - first for e, first in zip(node.index, origin, strict=True)]

    def _expr(self, expr: Expr) -> Hashable:
        terms: list[Any] = [expr.const]
        for atom, factor in expr.terms:
            if isinstance(atom, Var):
                found = self._variables.get(atom)
                if found is None:
                    # A loop around: what it is matters no more than how far it runs.
                    found = self._variables[atom] = len(self._variables)
                    self._said.append(atom.extent)
                terms.append((found, factor))
            else:
                kind = isinstance(atom, Mod)
                terms.append((kind, self._expr(atom.dividend), atom.divisor, factor))
        return tuple(terms)


def _wraps(expr: Expr) -> bool:
    """Whether an index is not the same but for a constant wherever it begins."""
    return not all(isinstance(atom, Var) for atom, _ in expr.terms)
