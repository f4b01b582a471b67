"""Whether nests are well formed: what passes may rely on, checked behind each of them in tests."""

from __future__ import annotations

from polyblocks.affine.buffers.copies import (
    RESULTS,
    SCOPES,
    USES,
    Barrier,
    BoxCopy,
    Commit,
    CopyError,
    Wait,
)
from polyblocks.affine.expr import Var
from polyblocks.affine.model import Access, Alloca, Buffer, For, Nest, Node, Value, walk
from polyblocks.affine.multiply import UnitSteps, UnitTile, UnitTileError, is_tile


class InvalidNestError(Exception):
    """A pass left a nest that is not well formed."""


def verify_nest(nest: Nest, *, again: bool = True) -> None:
    """Check a nest, and that what is remembered of it was derived from the body that it has.

    - A value is defined before it is used, in a body around the use, or outside of the nest; once.
    - A variable in an expression is that of a loop around, or of a loop of the program.
    - A loop hands on as many values as it carries, of the same types.
    - An access has one index for each dimension, and its buffer lives where it is.
    - Loops of a matrix unit are a product of tiles, or steps with operands in registers.
    - A copy moves a box from one memory space to another as the hardware can, with room for it.
    - Groups of copies that are waited for were formed before, and a barrier has a scope.

    Args:
        nest: what to check.
        again: check its body even if it was checked already and not replaced since.

    Raises:
        InvalidNestError: one of these does not hold.
    """
    try:
        if again:
            _check(nest.body)
        else:
            nest.derived(_check)
    except InvalidNestError as error:
        raise InvalidNestError(f"{nest.name or 'a nest'}: {error}") from None
    if nest.outdated():
        raise InvalidNestError(
            f"{nest.name!r} was changed and still has facts of its old body; expected a call of "
            "Nest.replace after the change"
        )


def _check(body: list[Node]) -> None:
    _Verifier().block(body, frozenset(), frozenset())
    _check_groups(body)


def _check_groups(body: list[Node]) -> None:
    """Check that nothing is waited for in front of the first group of its kind."""
    formed = {USES, RESULTS}
    for node in walk(body):
        if isinstance(node, Commit):
            formed.add(node.of)
        if isinstance(node, Wait) and (node.of not in formed or node.pending < 0):
            raise InvalidNestError(
                f"a Wait is wrong: expected a group of {node.of} before it, and at least 0 that "
                f"are pending, got {node.pending} and "
                f"{'one' if node.of in formed else 'no group'}"
            )


class _Verifier:
    def __init__(self) -> None:
        self._defined: set[Value] = set()
        self._local: set[Buffer] = set()
        self._around: list[For] = []

    def block(
        self, nodes: list[Node], variables: frozenset[Var], arguments: frozenset[Value]
    ) -> None:
        """Check the nodes of one body."""
        self._defined |= arguments
        local: set[Buffer] = set()
        for node in nodes:
            yields = node.yields if isinstance(node, For) else []
            self._visible(node, [v for v in node.uses if v not in yields])
            # Loops that bounds depend on are around; the own variable is not.
            unknown = [v for v in node.variables() if v not in variables and v.value is None]
            if unknown:
                self._fail(node, f"expected variables of loops around, got {unknown}")
            if isinstance(node, For):
                self._loop(node, variables)
            elif isinstance(node, Alloca):
                local.add(node.buffer)
                self._local.add(node.buffer)
            elif isinstance(node, Access):
                self._access(node)
            elif isinstance(node, Barrier) and node.scope not in SCOPES:
                self._fail(node, f"expected a scope of {', '.join(SCOPES)}, got '{node.scope}'")
            for value in node.defines:
                if value in self._defined:
                    self._fail(node, f"expected new results, got {value} again")
                self._defined.add(value)
        self._local -= local

    def _loop(self, loop: For, variables: frozenset[Var]) -> None:
        carried = (loop.inits, loop.arguments, loop.results, loop.yields)
        if len({len(values) for values in carried}) != 1:
            self._fail(loop, f"expected as many of each, got {[len(v) for v in carried]} carried")
        for values in zip(*carried, strict=True):
            if len({str(v.type) for v in values}) != 1:
                self._fail(loop, f"expected one type, got {[str(v.type) for v in values]} carried")
        try:
            if loop.unit:
                (UnitTile if is_tile(loop) else UnitSteps).of(loop)
            if loop.copy:
                BoxCopy.of(loop).check_box(self._around)
        except (UnitTileError, CopyError) as error:
            self._fail(loop, str(error))
        before = set(self._defined)
        self._around.append(loop)
        self.block(loop.body, variables | {loop.var}, frozenset(loop.arguments))
        self._around.pop()
        self._visible(loop, loop.yields)
        # Values defined inside are not visible behind the loop.
        self._defined = before

    def _access(self, node: Access) -> None:
        rank = len(node.buffer.shape)
        if len(node.index) != rank:
            self._fail(node, f"expected {rank} indices of {node.buffer}, got {len(node.index)}")
        if node.buffer.kind == "local" and node.buffer.base not in self._local:
            self._fail(node, f"expected a buffer that lives there, got {node.buffer}")

    def _visible(self, node: Node, values: list[Value]) -> None:
        unknown = [v for v in values if v.external is None and v not in self._defined]
        if unknown:
            self._fail(node, f"expected values that are defined before, got {unknown}")

    def _fail(self, node: Node, problem: str) -> None:
        raise InvalidNestError(f"a {type(node).__name__} is wrong: {problem}")
