"""From MLIR to the model: reads ``@main`` after bufferization into nests and opaque operations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeGuard

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.mlir.affine_maps import UnreadableError
from polyblocks.affine.mlir.constant_elements import global_elements
from polyblocks.affine.mlir.nest_reader import SCALAR_DIALECTS, NestReader
from polyblocks.affine.mlir.scope import Scope
from polyblocks.affine.mlir.views import VIEWS, view_index
from polyblocks.affine.model import (
    Buffer,
    ControlFlow,
    For,
    Load,
    Nest,
    Node,
    Opaque,
    Sequence,
    Store,
    Value,
    around,
)
from polyblocks.attributes import (
    ESTIMATE_ATTRIBUTE,
    KERNEL_ATTRIBUTE,
    KIND_ATTRIBUTE,
    REGION_ATTRIBUTE,
    SOURCES_ATTRIBUTE,
)
from polyblocks.mlir import ir

#: Further operations allowed at the top of ``@main`` without a loop around them.
STRAIGHT_LINE = {
    "affine.apply",
    "affine.load",
    "affine.store",
    "cf.assert",
    "memref.load",
    "memref.store",
}
#: Terminators of blocks.
TERMINATORS = {"affine.yield", "func.return", "scf.condition", "scf.yield"}


def read(module: Any, *, chains: bool = False) -> Sequence:
    """Read the body of ``@main``.

    Scalars that say where views begin, or that several nests use, are part of no nest.

    Args:
        module: the program.
        chains: whether chains of products are nests; passes that change nests leave them as they
            are, so that they are opaque to these.
    """
    from polyblocks import signature

    rows = signature_rows(module)
    block = signature.main_of(module).body.blocks[0]
    reader = _BlockReader(block, Scope(module), chains=chains)
    for i, argument in enumerate(block.arguments):
        if isinstance(argument.type, ir.MemRefType):
            # A hand-written module may have no signature; nothing is assumed of its arguments.
            row = rows[i] if rows else {"role": "input", "constant": False}
            lasts = row["role"] == "input" and row["constant"] and row["updates"] is None
            buffer = reader.argument(argument, str(row["role"]))
            buffer.lasting = bool(lasts)
    return reader.read()


class _BlockReader:
    """Reads one block.

    Args:
        block: the block.
        scope: of its values.
        name: what names of its nests begin with.
        chains: see :func:`read`.
    """

    def __init__(self, block: Any, scope: Scope, name: str = "", chains: bool = False) -> None:
        self.block = block
        self.chains = chains
        self.scope = scope
        self.name = name
        self.items: list[Nest | Opaque] = []
        #: Straight-line operations that are not part of an item yet.
        self.run: list[Any] = []

    def argument(self, value: Any, kind: str) -> Buffer:
        """Take note of a buffer that the block's function is called with."""
        return self.scope.declare(value, kind)

    def read(self) -> Sequence:
        """The block as a sequence."""
        for op in self.block.operations:
            self._top(op.operation)
        self._flush()
        sequence = Sequence(self.items, list(self.scope.buffers.values()), self.block, self.name)
        for item in self.items:
            if isinstance(item, ControlFlow):
                for body in item.bodies:
                    sequence.contains(body)
        return sequence

    # Top-level operations

    def _top(self, op: Any) -> None:
        name = op.name
        if name in ("memref.alloc", "memref.alloca"):
            self.scope.declare(op.results[0], "alloc")
        elif name == "memref.get_global":
            buffer = self.scope.declare(op.results[0], "global")
            buffer.constant = global_elements(self.scope.module, op, buffer)
        elif name in VIEWS and self.scope.find(op.operands[0]) is not None:
            self.scope.declare(op.results[0], "other", base=self.scope.find(op.operands[0]))
            resolve = view_index(op, self.scope.exprs)
            if resolve is not None:
                self.scope.views[op.results[0]] = (op.operands[0], resolve)
        elif name == "arith.constant":
            self.scope.constants[op.results[0]] = op
        elif REGION_ATTRIBUTE in op.attributes:
            self._flush()
            self._region(op)
        elif name == "affine.apply" and self._apply(op):
            # Its value is an expression from here on; the operation stays for others.
            pass
        elif name == "affine.for" and len(op.results):
            # The operations behind it store its results.
            self.run.append(op)
        elif name in ("affine.for", "affine.parallel"):
            self._flush()
            self._nest([op])
            nest = self.items[-1]
            if not self.chains and _is_chain(nest):
                outer = ({b for b in each if b.kind != "local"} for each in nest.effects())
                self.items[-1] = Opaque(op, *outer)
        elif name == "memref.copy":
            self._flush()
            self.items.append(self._copy(op))
        elif name in TERMINATORS:
            self._flush()
        elif _is_straight_line(op):
            self.run.append(op)
        else:
            self._flush()
            self._opaque(op)

    def _flush(self) -> None:
        """End a run of straight-line operations: nests, cut where no value is carried on."""
        run, self.run = self.run, []
        segment: list[Any] = []
        # Operations of the segment whose users have not all been seen yet.
        missing: set[Any] = set()
        apart = self._live_out(run)
        # Loads for others that come behind a store of the segment, by what they load from.
        behind: dict[Buffer, Any] = {}
        for op in run:
            if op in apart:
                source = self._loaded_from(op)
                if source is not None and source in self._stored_by(segment):
                    behind[source] = op
                elif source is not None:
                    self._opaque(op)
                continue
            if behind and behind.keys() & self._stored_by([op]):
                # The load is neither before nor behind the nest that this would be.
                self._opaque_all([*segment, *behind.values()])
                segment, missing, behind = [], set(), {}
            segment.append(op)
            missing.discard(op)
            missing.update(
                owner
                for result in op.results
                for use in result.uses
                if (owner := _owner_at_top(use.owner, self.block)) not in segment
            )
            ends = op.name.endswith(".store") or op.name in ("affine.for", "cf.assert")
            if ends and not missing:
                self._nest(segment)
                self._opaque_all(behind.values())
                segment, behind = [], {}
        # The remainder stores nothing, or hands values to operations that no nest describes.
        self._opaque_all([*segment, *behind.values()])

    def _opaque_all(self, ops: Iterable[Any]) -> None:
        """Operations that are part of no nest, as far as they touch memory, as they stand."""
        chosen = set(ops)
        for op in self.block.operations if chosen else ():
            if op.operation in chosen and op.operation.name.split(".")[0] in ("affine", "memref"):
                self._opaque(op.operation)

    def _loaded_from(self, op: Any) -> Buffer | None:
        """The memory that a load reads; None of other operations, and of memory that is unknown."""
        if op.name not in ("affine.load", "memref.load"):
            return None
        found = self.scope.find(op.operands[0])
        return None if found is None else found.base

    def _stored_by(self, ops: Iterable[Any]) -> set[Buffer]:
        """The memory that operations store to, those inside of them included."""
        found: set[Buffer] = set()

        def visit(op: Any) -> Any:
            if op.name.endswith(".store"):
                buffer = self.scope.find(op.operands[1])
                if buffer is not None:
                    found.add(buffer.base)
            return ir.WalkResult.ADVANCE

        for op in ops:
            op.walk(visit)
        return found

    def _live_out(self, run: list[Any]) -> set[Any]:
        """The operations of a run that compute where views begin, or what users behind it need."""
        found: set[Any] = set()
        inside = set(run)
        for op in reversed(run):
            users = [use.owner.operation for result in op.results for use in result.uses]
            if any(user.name in VIEWS or user in found for user in users) or (
                not len(op.regions)
                and any(_owner_at_top(user, self.block) not in inside for user in users)
            ):
                found.add(op)
        return found

    def _nest(self, ops: list[Any]) -> None:
        try:
            body: list[Node] = []
            nest_reader = NestReader(self.scope)
            for op in ops:
                nest_reader.node(op, body)
        except UnreadableError:
            for op in ops:
                self._opaque(op)
            return
        nest = Nest(body, list(ops))
        named = [op.attributes for op in ops if KERNEL_ATTRIBUTE in op.attributes]
        if len(named) == 1:
            (attributes,) = named
            nest.name = attributes[KERNEL_ATTRIBUTE].value
            nest.kind = attributes[KIND_ATTRIBUTE].value
            nest.sources = [s.value for s in attributes[SOURCES_ATTRIBUTE]]
            if ESTIMATE_ATTRIBUTE in attributes:
                nest.estimate = attributes[ESTIMATE_ATTRIBUTE]
        self.items.append(nest)

    def _apply(self, op: Any) -> bool:
        """Learn what an ``affine.apply`` of variables of loops around is; whether it is one."""
        if not len(op.operands) or not all(v in self.scope.exprs for v in op.operands):
            return False
        (expr,) = NestReader(self.scope).map(op.attributes["map"], list(op.operands))
        self.scope.exprs[op.results[0]] = expr
        return True

    def _region(self, op: Any) -> None:
        """A loop or branch: a sequence for each of its blocks."""
        if any(isinstance(v.type, ir.MemRefType) for v in (*op.operands, *op.results)):
            self._opaque(op)
            return
        bodies = []
        name = f"{op.attributes[REGION_ATTRIBUTE].value}_"
        for block in (block for region in op.regions for block in region.blocks):
            scope = Scope(self.scope.module, self.scope)
            inner = _BlockReader(block, scope, name, self.chains)
            if op.name == "affine.for":
                variable = block.arguments[0]
                loop, first = NestReader(self.scope).bounds(op)
                if first == Expr.of(loop.var):
                    loop.var.value = variable
                    inner.scope.exprs[variable] = first
            bodies.append(inner.read())
        self.items.append(ControlFlow(op, set(), set(), bodies))

    def _copy(self, op: Any) -> Nest | Opaque:
        source, target = (self.scope.find(v) for v in op.operands)
        if source is None or target is None or any(e < 0 for e in source.shape):
            return self._as_opaque(op)
        loops = [Var(e) for e in source.shape]
        index = tuple(Expr.of(v) for v in loops)
        value = Value(source.element)
        places = [self.scope.resolve(v, index) for v in op.operands]
        if places[0] == places[1]:
            # A part of a tensor that was made in its place.
            return Nest([], [op], changed=True)
        body: list[Node] = [
            Load(value, *places[0], op.location),
            Store(value, *places[1], op.location),
        ]
        return Nest(around(loops, body), [op], changed=True)

    def _opaque(self, op: Any) -> None:
        self.items.append(self._as_opaque(op))

    def _as_opaque(self, op: Any) -> Opaque:
        touched: set[Buffer] = set()

        def visit(inner: Any) -> Any:
            for operand in inner.operands:
                buffer = self.scope.find(operand)
                if buffer is not None:
                    touched.add(buffer)
                touched.update(self.scope.aliases.get(operand, ()))
            return ir.WalkResult.ADVANCE

        op.walk(visit)
        for result in op.results:
            if isinstance(result.type, ir.MemRefType):
                # It may be any of them.
                self.scope.aliases[result] = set(touched)
        name = op.name
        if name in ("affine.load", "memref.load"):
            return Opaque(op, touched, set())
        return Opaque(op, set(touched), set(touched))


def signature_rows(module: Any) -> list[dict[str, Any]]:
    """The rows of ``@main``'s arguments."""
    from polyblocks import signature

    return signature.rows(module)


def _is_chain(item: Nest | Opaque) -> TypeGuard[Nest]:
    """Whether an item is a chain of products with its schedule."""
    loop = item.body[0] if isinstance(item, Nest) and item.body else None
    return isinstance(loop, For) and bool((loop.schedule or {}).get("chained"))


def _is_straight_line(op: Any) -> bool:
    name = op.name
    if len(op.regions) or any(isinstance(r.type, ir.MemRefType) for r in op.results):
        return False
    return name in STRAIGHT_LINE or bool(name.startswith(SCALAR_DIALECTS))


def _owner_at_top(op: Any, block: Any) -> Any:
    """The operation of the block that contains ``op``."""
    op = op.operation
    while op.block != block:
        op = op.parent.operation
    return op
