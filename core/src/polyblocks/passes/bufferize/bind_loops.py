"""bind-loops: what loops carry and branches give are buffers, one for each tensor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from polyblocks.passes import facts
from polyblocks.passes.bufferize.destinations import (
    alloc,
    ancestor,
    destination,
    fill,
    is_tensor,
    materialize,
    root,
    users,
)
from polyblocks.passes.tensor.control_flow import (
    LOOPS,
    control_flow_of,
    rebuild,
    set_operands,
    terminator,
)


@dataclass(frozen=True)
class BindLoopsPass:
    """Give every tensor that control flow hands on a buffer, which each iteration updates.

    Bufferization then sees straight-line code only: it need not find out which buffers an
    iteration may reuse, and no pointer is handed from one iteration to the next. A new value is
    made in a buffer of its own and copied at the end of the body, since the old one may be read
    until then; only what updates the old value itself is made in place. Later passes see whether
    the copy is needed.

    Before::

        %r = scf.for %i = ... iter_args(%x = %a) -> (tensor<4xf32>) {
          %y = linalg.generic ... ins(%x) ...
          scf.yield %y : tensor<4xf32> }

    After::

        %b = memref.alloc() : memref<4xf32>
        bufferization.materialize_in_destination %a in restrict writable %b
        scf.for %i = ... {
          %x = bufferization.to_tensor %b restrict writable
          %y = linalg.generic ... ins(%x) ...
          %own = memref.alloc() : memref<4xf32>
          bufferization.materialize_in_destination %y in restrict writable %own
          memref.copy %own, %b }
        %r = bufferization.to_tensor %b restrict writable

    The result of the program, or of a loop around, lends its buffer where nothing else needs it.
    """

    name: ClassVar[str] = "bind-loops"
    needs: ClassVar[frozenset[str]] = frozenset({facts.TENSORS, facts.BOUND_ARGUMENTS})

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite in place; returns whether there was anything to bind."""
        from polyblocks.mlir import ir

        del context
        found = control_flow_of(module)
        with module.context, ir.Location.unknown():
            binder = _Binder()
            for op in found:
                binder.bind(op)
        return bool(found)


@dataclass
class _Binder:
    """Rewrites the operations of one module, outer before inner."""

    #: The buffers of the tensors that were made here.
    buffers: dict[Any, Any] = field(default_factory=dict)

    def bind(self, op: Any) -> None:
        """Bind what one loop or branch carries."""
        types = [v.type for v in (*_carried(op), *op.results)]
        types += [v.type for block in _blocks(op) for v in block.arguments]
        if not any(map(is_tensor, types)):
            return
        with op.location:
            if op.name == "scf.for":
                self._for(op)
            elif op.name == "scf.while":
                self._while(op)
            else:
                self._branch(op)

    # Loops

    def _for(self, op: Any) -> None:
        carried = _carried(op)
        (block,) = _blocks(op)
        places = {
            i: self._loop_buffer(op, value, op.results[i])
            for i, value in enumerate(carried)
            if is_tensor(value.type)
        }
        kept = [i for i in range(len(carried)) if i not in places]
        old = list(block.arguments)
        new = rebuild(
            op,
            [*list(op.operands)[:3], *(carried[i] for i in kept)],
            [carried[i].type for i in kept],
            [[old[0].type, *(carried[i].type for i in kept)]],
        )
        body = new.regions[0].blocks[0]
        tensors = self._read(body, places)
        arguments = {0: body.arguments[0]}
        arguments |= {i + 1: v for i, v in zip(kept, list(body.arguments)[1:], strict=True)}
        arguments |= {i + 1: tensors[i] for i in places}
        for i, argument in enumerate(old):
            argument.replace_all_uses_with(arguments[i])
        self._yield(body, places, tensors)
        results = dict(zip(kept, new.results, strict=True))
        self._replace(op, results, places)

    def _while(self, op: Any) -> None:
        from polyblocks.mlir import ir

        carried = _carried(op)
        before, after = _blocks(op)
        condition = terminator(before)
        passed = list(condition.operands)[1:]
        # Which argument of the first region a result is, if it is one.
        arguments = list(before.arguments)
        source = {
            j: arguments.index(v) if v in arguments else None
            for j, v in enumerate(passed)
            if is_tensor(v.type)
        }
        places: dict[int, Any] = {}
        for i, value in enumerate(carried):
            if is_tensor(value.type):
                result = next((op.results[j] for j, k in source.items() if k == i), None)
                places[i] = self._loop_buffer(op, value, result)
        given: dict[int, Any] = {}
        for j, k in source.items():
            if k is None:
                with ir.InsertionPoint(op):
                    given[j] = alloc(passed[j].type)
            else:
                given[j] = places[k]
        kept = [i for i in range(len(carried)) if i not in places]
        kept_out = [j for j in range(len(passed)) if j not in given]
        old_before, old_after = list(before.arguments), list(after.arguments)
        new = rebuild(
            op,
            [carried[i] for i in kept],
            [passed[j].type for j in kept_out],
            [[carried[i].type for i in kept], [passed[j].type for j in kept_out]],
        )
        first, second = _blocks(new)
        tensors = self._read(first, places)
        self._substitute(old_before, first, kept, tensors)
        condition = terminator(first)
        with ir.InsertionPoint(condition):
            for j, k in source.items():
                if k is None:
                    fill(condition.operands[j + 1], given[j])
        set_operands(
            condition, [condition.operands[0], *(condition.operands[j + 1] for j in kept_out)]
        )
        read = self._read(second, given)
        self._substitute(old_after, second, kept_out, read)
        # The body updates in place the buffer that it reads at the same position.
        own = {i: read[j] for j, k in source.items() if k is not None for i in (k,)}
        self._yield(second, places, own)
        results = dict(zip(kept_out, new.results, strict=True))
        self._replace(op, results, given)

    def _loop_buffer(self, op: Any, start: Any, result: Any) -> Any:
        """The buffer of a carried tensor, which holds ``start`` where the loop begins."""
        from polyblocks.mlir import ir

        lent = self.buffers.get(start)
        alone = len(list(start.uses)) == 1
        if lent is not None and alone and start.owner.operation.block == op.block:
            return lent
        buffer = None if result is None else destination(op, result)
        with ir.InsertionPoint(op):
            if buffer is None:
                buffer = alloc(start.type)
            fill(start, buffer)
        return buffer

    def _yield(self, block: Any, places: dict[int, Any], tensors: dict[int, Any]) -> None:
        """Put the values at the end of a body into the buffers of what they replace."""
        from polyblocks import mlir

        ir = mlir.ir
        end = terminator(block)
        copies: list[tuple[Any, Any]] = []
        direct: list[tuple[Any, Any]] = []
        with ir.InsertionPoint(end):
            for i, place in places.items():
                value = end.operands[i]
                if i in tensors and value == tensors[i]:
                    continue
                if i in tensors and root(value) == tensors[i]:
                    direct.append((value, place))
                    continue
                made = self.buffers.get(value)
                single = len(list(value.uses)) == 1
                if made is None or not single or made in places.values():
                    made = alloc(value.type)
                    materialize(value, made)
                copies.append((made, place))
            for value, place in direct:
                materialize(value, place)
            for made, place in copies:
                mlir.dialect("memref").CopyOp(made, place)
        set_operands(end, [v for i, v in enumerate(end.operands) if i not in places])

    # Branches

    def _branch(self, op: Any) -> None:
        from polyblocks import mlir

        ir = mlir.ir
        blocks = _blocks(op)
        places: dict[int, Any] = {}
        #: The tensors that results are updates of.
        olds: dict[int, Any] = {}
        for i, result in enumerate(op.results):
            if not is_tensor(result.type):
                continue
            old = self._updated(op, [terminator(b).operands[i] for b in blocks])
            # One result is what a tensor was updated to; another one that may be the tensor, in
            # this branch or in another, is a copy.
            if old is not None and old not in olds.values():
                olds[i], places[i] = old, self.buffers[old]
                continue
            buffer = destination(op, result)
            if buffer is None:
                with ir.InsertionPoint(op):
                    buffer = alloc(result.type)
            places[i] = buffer
        kept = [i for i in range(len(op.results)) if i not in places]
        new = rebuild(op, list(op.operands), [op.results[i].type for i in kept], [[]] * len(blocks))
        for block in _blocks(new):
            fresh = {i: p for i, p in places.items() if i not in olds}
            end = terminator(block)
            with ir.InsertionPoint(end):
                for i, place in fresh.items():
                    fill(end.operands[i], place)
            values = list(end.operands)
            numbers = [i for i in range(len(values)) if i not in fresh]
            set_operands(end, [values[i] for i in numbers])
            position = {i: n for n, i in enumerate(numbers)}
            self._yield(
                block,
                {position[i]: places[i] for i in olds},
                {position[i]: t for i, t in olds.items()},
            )
        self._replace(op, dict(zip(kept, new.results, strict=True)), places)

    def _updated(self, op: Any, values: list[Any]) -> Any:
        """A tensor of ours that a branch gives or updates, and nothing needs behind it."""
        for value in values:
            old = root(value)
            if old not in self.buffers or old.owner.operation.block != op.block:
                continue
            operations = [o.operation for o in op.block.operations]
            position = operations.index(op)
            if all(operations.index(ancestor(user, op.block)) <= position for user in users(old)):
                return old
        return None

    # Both

    def _read(self, block: Any, places: dict[int, Any]) -> dict[int, Any]:
        """Tensors of what buffers hold where a block begins, one for each buffer."""
        from polyblocks.mlir import ir

        known: dict[Any, Any] = {}
        with ir.InsertionPoint.at_block_begin(block):
            for place in places.values():
                if place not in known:
                    known[place] = self._to_tensor(place)
        return {i: known[place] for i, place in places.items()}

    def _to_tensor(self, buffer: Any) -> Any:
        from polyblocks.mlir import dialect, ir

        type_ = ir.RankedTensorType.get(buffer.type.shape, buffer.type.element_type)
        bufferization = dialect("bufferization")
        tensor = bufferization.ToTensorOp(type_, buffer, restrict=True, writable=True).result
        self.buffers[tensor] = buffer
        return tensor

    def _substitute(
        self, old: list[Any], block: Any, kept: list[int], tensors: dict[int, Any]
    ) -> None:
        new = dict(zip(kept, block.arguments, strict=True)) | tensors
        for i, argument in enumerate(old):
            argument.replace_all_uses_with(new[i])

    def _replace(self, op: Any, results: dict[int, Any], places: dict[int, Any]) -> None:
        """Use the new results, and what the buffers hold behind the operation, then erase it."""
        from polyblocks.mlir import ir

        known: dict[Any, Any] = {}
        with ir.InsertionPoint(op):
            for i, result in enumerate(op.results):
                if i in results:
                    result.replace_all_uses_with(results[i])
                elif any(True for _ in result.uses):
                    place = places[i]
                    if place not in known:
                        known[place] = self._to_tensor(place)
                    result.replace_all_uses_with(known[place])
        op.erase()


def _carried(op: Any) -> list[Any]:
    return list(op.operands)[3 if op.name == "scf.for" else 0 :] if op.name in LOOPS else []


def _blocks(op: Any) -> list[Any]:
    return [region.blocks[0] for region in op.regions if len(region.blocks)]
