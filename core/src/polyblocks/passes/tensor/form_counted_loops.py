"""form-counted-loops: a ``while`` that counts to a constant becomes a ``for``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.mlir import constant_integer
from polyblocks.passes import facts
from polyblocks.passes.tensor.control_flow import (
    control_flow_of,
    is_argument,
    set_operands,
    terminator,
)

#: Predicates of ``arith.cmpi`` by number.
_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_SWAPPED = {"slt": "sgt", "sle": "sge", "sgt": "slt", "sge": "sle", "ne": "ne"}


@dataclass(frozen=True)
class FormCountedLoopsPass:
    """Make ``scf.for`` of ``scf.while`` loops that run a number of times known now.

    Such a loop carries an integer that begins with a constant, grows or shrinks by a constant in
    every iteration, and is compared with a constant; nothing else decides when it ends, but others
    of this kind: frameworks count iterations up to the most that are allowed, besides. Other
    integers that a loop counts on in constant steps are computed from its variable.

    Before::

        %r:2 = scf.while (%i = %c0, %x = %a) : (i32, tensor<4xf32>) -> (i32, tensor<4xf32>) {
          %go = arith.cmpi slt, %i, %c10 : i32
          scf.condition(%go) %i, %x : i32, tensor<4xf32>
        } do {
        ^bb0(%i: i32, %x: tensor<4xf32>):
          ...
          %n = arith.addi %i, %c1 : i32
          scf.yield %n, %y : i32, tensor<4xf32>
        }

    After::

        %r = scf.for %k = %c0 to %c10 step %c1 iter_args(%x = %a) -> (tensor<4xf32>) {
          %i = arith.index_cast %k : index to i32
          ...
          scf.yield %y : tensor<4xf32>
        }
    """

    name: ClassVar[str] = "form-counted-loops"
    needs: ClassVar[frozenset[str]] = frozenset({facts.TENSORS})

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite in place; returns whether there was such a loop."""
        from polyblocks import mlir

        del context
        changed = False
        with module.context:
            # How often one loop runs may be the end of another one.
            while _form(module):
                changed = True
                mlir.run_textual(module, "canonicalize,cse")
        return changed


def _form(module: Any) -> bool:
    """Rewrite all loops once; returns whether there was one to rewrite."""
    changed = False
    # Inner ones first: what is around them is written anew afterwards.
    for op in reversed(control_flow_of(module)):
        if op.name != "scf.while":
            continue
        counted = _Counted.of(op)
        if counted is not None:
            with op.location:
                counted.write()
            changed = True
    for op in control_flow_of(module):
        if op.name == "scf.for":
            with op.location:
                changed = _compute_counters(op) or changed
    return changed


@dataclass
class _Counted:
    """A ``while`` loop that counts.

    Attributes:
        op: the loop.
        position: of the counter among what is carried.
        start: its first value.
        step: what is added to it in every iteration.
        trips: how often the body runs.
    """

    op: Any
    position: int
    start: int
    step: int
    trips: int

    @classmethod
    def of(cls, op: Any) -> _Counted | None:
        before, after = (region.blocks[0] for region in op.regions)
        condition = terminator(before)
        inner = [o.operation for o in before.operations][:-1]
        comparisons = _conjuncts(condition.operands[0], inner)
        if comparisons is None or any(
            v.owner.operation in inner for v in list(condition.operands)[1:] if not is_argument(v)
        ):
            return None
        # As long as all hold: until the first one ends.
        counted = []
        for compare in comparisons:
            until = cls._until(op, before, after, compare)
            if until is None:
                return None
            counted.append(until)
        return min(counted, key=lambda c: c.trips)

    @classmethod
    def _until(cls, op: Any, before: Any, after: Any, compare: Any) -> _Counted | None:
        """The loop if this comparison alone decided."""
        arguments = list(before.arguments)
        left, right = compare.operands
        name = _PREDICATES[_integer_of(compare.attributes["predicate"])]
        if left not in arguments:
            left, right, name = right, left, _SWAPPED.get(name, "")
        if left not in arguments or name not in _SWAPPED:
            return None
        position = arguments.index(left)
        passed = list(terminator(before).operands)[1:]
        # The counter in the body is any argument that the condition hands it to.
        counters = [a for a, v in zip(after.arguments, passed, strict=True) if v == left]
        start, end = constant_integer(op.operands[position]), constant_integer(right)
        step = _increment(terminator(after).operands[position], counters)
        bits = left.type.width if hasattr(left.type, "width") else 64
        if start is None or end is None or not step:
            return None
        trips = _trips(name, start, end, step)
        last = 0 if trips is None else start + trips * step
        if trips is None or not -(1 << (bits - 1)) <= last < 1 << (bits - 1):
            return None
        return cls(op, position, start, step, trips)

    def write(self) -> None:
        """Replace the ``while`` by the ``for``."""
        from polyblocks.mlir import dialect, ir

        op = self.op
        arith, scf = dialect("arith"), dialect("scf")
        before, after = (region.blocks[0] for region in op.regions)
        type_ = before.arguments[self.position].type
        index = ir.IndexType.get()
        others = [i for i in range(len(op.operands)) if i != self.position]
        with ir.InsertionPoint(op):
            low, high, one = (arith.ConstantOp(index, n).result for n in (0, self.trips, 1))
            loop = scf.ForOp(low, high, one, [op.operands[i] for i in others])
            end = arith.ConstantOp(type_, self.start + self.trips * self.step).result
        inside = dict(zip(others, loop.inner_iter_args, strict=True))
        outside = dict(zip(others, loop.results, strict=True))
        outside[self.position] = end
        body = loop.body
        with ir.InsertionPoint(body):
            inside[self.position] = self._counter(loop.induction_variable, type_)
        passed = list(terminator(before).operands)[1:]
        arguments = list(before.arguments)
        for argument, result, value in zip(after.arguments, op.results, passed, strict=True):
            known = value in arguments
            new = inside[arguments.index(value)] if known else value
            argument.replace_all_uses_with(new)
            result.replace_all_uses_with(outside[arguments.index(value)] if known else value)
        for each in list(after.operations):
            body.append(each.operation)
        old = terminator(body)
        set_operands(old, [old.operands[i] for i in others])
        op.erase()

    def _counter(self, variable: Any, type_: Any) -> Any:
        """The counter's value in an iteration."""
        from polyblocks.mlir import dialect, ir

        arith = dialect("arith")
        value = variable
        if not isinstance(type_, ir.IndexType):
            value = arith.IndexCastOp(type_, value).result
        if self.step != 1:
            value = arith.MulIOp(value, arith.ConstantOp(type_, self.step).result).result
        if self.start:
            value = arith.AddIOp(value, arith.ConstantOp(type_, self.start).result).result
        return value


def _compute_counters(op: Any) -> bool:
    """Compute what a loop from 0 in steps of 1 counts on; whether there was such a counter."""
    from polyblocks.mlir import dialect, ir

    low, high, one = (constant_integer(v) for v in list(op.operands)[:3])
    if low != 0 or high is None or one != 1:
        return False
    arith = dialect("arith")
    block = op.regions[0].blocks[0]
    yields = list(terminator(block).operands)
    found = False
    for i, argument in enumerate(list(block.arguments)[1:]):
        if not isinstance(argument.type, ir.IntegerType) or argument.type.width == 1:
            continue
        start, step = op.operands[3 + i], _increment(yields[i], [argument])
        if constant_integer(start) is None or not step:
            continue
        type_ = argument.type

        def number(n: int, type_: Any = type_) -> Any:
            return arith.ConstantOp(type_, n).result

        with ir.InsertionPoint.at_block_begin(block):
            value = arith.IndexCastOp(type_, block.arguments[0]).result
            value = arith.MulIOp(value, number(step)).result
            value = arith.AddIOp(value, start).result
        argument.replace_all_uses_with(value)
        with ir.InsertionPoint(op):
            # As the counter does, this wraps around.
            moved = arith.MulIOp(number(step), number(_wrapped(high, type_.width))).result
            end = arith.AddIOp(start, moved).result
        op.results[i].replace_all_uses_with(end)
        found = True
    return found


def _conjuncts(value: Any, inside: list[Any]) -> list[Any] | None:
    """The comparisons of integers that a condition is the conjunction of, if it is nothing else.

    Args:
        value: the condition.
        inside: the operations that compute it; nothing else may be among them but constants.
    """
    found, used, pending = [], [], [value]
    while pending:
        value = pending.pop()
        op = None if is_argument(value) else value.owner.operation
        if op is None or op not in inside or op.name not in ("arith.cmpi", "arith.andi"):
            return None
        used.append(op)
        if op.name == "arith.andi":
            pending += op.operands
        else:
            found.append(op)
    rest = [op for op in inside if op.name != "arith.constant" and op not in used]
    return None if rest else found


def _wrapped(number: int, bits: int) -> int:
    """The signed number of ``bits`` bits with the same low bits."""
    return (number + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def _integer_of(attribute: Any) -> int:
    from polyblocks.mlir import ir

    return int(ir.IntegerAttr(attribute).value)


def _increment(value: Any, counters: list[Any]) -> int | None:
    """The constant that is added to the counter to give ``value``, or None."""
    if is_argument(value):
        return None
    op = value.owner.operation
    if op.name not in ("arith.addi", "arith.subi"):
        return None
    left, right = op.operands
    if left not in counters and op.name == "arith.addi":
        left, right = right, left
    if left not in counters:
        return None
    step = constant_integer(right)
    return -step if step is not None and op.name == "arith.subi" else step


def _trips(name: str, start: int, end: int, step: int) -> int | None:
    """How often ``start, start + step, ...`` is in the relation to ``end``; None for ever."""
    if name == "ne":
        trips, rest = divmod(end - start, step)
        return trips if rest == 0 and trips >= 0 else None
    if name in ("slt", "sle"):
        if step < 0:
            return 0 if not (start < end or (name == "sle" and start == end)) else None
        return max(0, -((start - end - (name == "sle")) // step))
    if step > 0:
        return 0 if not (start > end or (name == "sge" and start == end)) else None
    return max(0, -((end - start - (name == "sge")) // -step))
