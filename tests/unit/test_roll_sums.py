"""roll-sums on the model: what it makes computes what was there before, or it leaves it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from tests.support.nest_interpreter import Machine
from tests.support.nests import Context, buffer, innermost

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, For, Load, Nest, Node, Op, Store, Value, walk
from polyblocks.affine.model import Sequence as Items
from polyblocks.passes.fuse.roll_sums import RollSumsPass

#: Makes code of loaded values; returns it with what it results in.
Compute = Callable[[list[Value]], tuple[list[Node], Value]]


def element_wise(target: Buffer, loads: Sequence[tuple[Buffer, int]], compute: Compute) -> Nest:
    """``target[i] = compute(source[i + offset], ...)``."""
    i = Var(target.shape[0])
    values = [Value("f32") for _ in loads]
    body: list[Node] = [
        Load(v, source, (Expr.of(i) + offset,))
        for v, (source, offset) in zip(values, loads, strict=True)
    ]
    code, result = compute(values)
    return Nest([For(i, [*body, *code, Store(result, target, (Expr.of(i),))])], [], changed=True)


def apply(name: str, *constants: float) -> Compute:
    """An operation on what is loaded, and then on constants."""

    def compute(values: list[Value]) -> tuple[list[Node], Value]:
        operands, code = list(values), []
        for number in constants:
            operands.append(Value("f32"))
            code.append(Op("arith.constant", [], {"value": number}, [operands[-1]]))
        result = Value("f32")
        return [*code, Op(name, operands, {}, [result])], result

    return compute


class Program:
    """Sums of terms, which are exponentials of differences of shifts of an array."""

    def __init__(self, shifts: Sequence[int], length: int = 12) -> None:
        self.image = buffer(length + max(shifts), kind="input")
        self.length = length
        self.nests: list[Nest] = []
        self.terms: list[Buffer] = []
        for shift in shifts:
            apart, term = buffer(length), buffer(length)
            self.nests += [
                element_wise(apart, [(self.image, shift), (self.image, 0)], apply("arith.subf")),
                element_wise(term, [(apart, 0)], apply("math.exp")),
            ]
            self.terms.append(term)

    def sum(self, terms: Sequence[Buffer], start: float = 0.5) -> Buffer:
        """Add a sum of these terms; what it is stored in."""
        total = buffer(self.length)
        self.nests.append(element_wise(total, [(terms[0], 0)], apply("arith.addf", start)))
        for term in terms[1:]:
            total, before = buffer(self.length), total
            self.nests.append(element_wise(total, [(before, 0), (term, 0)], apply("arith.addf")))
        return total

    def result(self, *sources: Buffer) -> Buffer:
        """Store the product of two buffers, or a copy of one, as a result of the program."""
        out = buffer(self.length, kind="output")
        code = apply("arith.mulf", *([1.0] if len(sources) == 1 else []))
        self.nests.append(element_wise(out, [(s, 0) for s in sources], code))
        return out

    def check(self, out: Buffer, rolled: int, **options: int) -> list[Nest]:
        """The pass makes so many loops of sums, and the result is the same."""
        values = {self.image: np.random.default_rng(1).random(self.image.shape)}
        before = Machine(dict(values))
        before.run(Items(self.nests, []))
        sequence, context = Items(list(self.nests), []), Context()
        RollSumsPass(**{"min_terms": 3, "max_nodes": 12} | options).transform(sequence, context)
        assert [what for what, _ in context.decisions] == ["rolled"] * rolled
        nests = sequence.nests()
        for node in walk([n for nest in nests for n in nest.body]):
            if isinstance(node, Load) and node.buffer.constant is not None:
                values[node.buffer] = np.reshape(node.buffer.constant, node.buffer.shape)
        after = Machine(values)
        after.run(sequence)
        np.testing.assert_allclose(after.array(out), before.array(out), rtol=1e-14)
        return nests


def carried(nests: list[Nest]) -> int:
    """Loops that carry a value."""
    return sum(isinstance(n, For) and bool(n.inits) for nest in nests for n in walk(nest.body))


@pytest.mark.parametrize(
    ("shifts", "loops"),
    [((0, 1, 2, 3, 4), 1), ((7, 5, 3, 1), 1), ((0, 1, 2, 10, 11, 12, 20, 21, 22), 2)],
)
def test_shifts_are_counted_by_one_loop_or_two(shifts: tuple[int, ...], loops: int) -> None:
    program = Program(shifts)
    nests = program.check(program.result(program.sum(program.terms)), rolled=1)
    assert len(nests) == 4
    assert carried(nests) == loops
    assert len(innermost(nests[0].body)) == 1


def test_sums_of_the_same_terms_are_rolled_together() -> None:
    program = Program(range(5))
    weighted = []
    for shift, term in enumerate(program.terms):
        product = buffer(program.length)
        loads = [(term, 0), (program.image, shift)]
        program.nests.append(element_wise(product, loads, apply("arith.mulf")))
        weighted.append(product)
    one, other = program.sum(weighted), program.sum(program.terms)
    nests = program.check(program.result(one, other), rolled=2)
    # Differences, exponentials, products, two sums, and the result.
    assert len(nests) == 6


def test_a_constant_that_differs_comes_out_of_a_table() -> None:
    program = Program(range(6))
    scaled = []
    for number, term in enumerate(program.terms):
        scaled.append(buffer(program.length))
        code = apply("arith.mulf", 0.5 + number * number)
        program.nests.append(element_wise(scaled[-1], [(term, 0)], code))
    nests = program.check(program.result(program.sum(scaled)), rolled=1)
    loads = [n for nest in nests for n in walk(nest.body) if isinstance(n, Load)]
    (table,) = {n.buffer for n in loads if n.buffer.kind == "global"}
    assert table.shape == (6,)
    assert table.constant == [0.5 + number * number for number in range(6)]


def windows(length: int) -> tuple[Program, Buffer]:
    """A sum of sums of neighbours."""
    program = Program(range(20), length + 2)
    program.length = length
    blurred = []
    for term in program.terms:
        blurred.append(buffer(length))
        code = apply("arith.addf")
        program.nests.append(element_wise(blurred[-1], [(term, 0), (term, 2)], code))
    return program, program.result(program.sum(blurred))


def test_what_windows_read_is_rolled_where_no_cache_holds_it() -> None:
    """Caches of the target have 8 KiB; twenty rows of 128 elements are 10."""
    program, out = windows(128)
    program.check(out, rolled=1, max_nodes=100)
    program, out = windows(64)
    program.check(out, rolled=0, max_nodes=100)


def test_what_windows_read_is_not_rolled_if_it_is_dear() -> None:
    program, out = windows(128)
    program.check(out, rolled=0, max_nodes=100, max_operations=8)


def test_sums_that_one_body_holds_stay_straight_line_code() -> None:
    program = Program(range(5))
    program.check(program.result(program.sum(program.terms)), rolled=0, max_nodes=100)


def test_short_sums_stay() -> None:
    program = Program(range(5))
    program.check(program.result(program.sum(program.terms)), rolled=0, min_terms=6)


def test_shifts_that_no_loop_counts_stay() -> None:
    program = Program((0, 1, 2, 5, 4))
    program.check(program.result(program.sum(program.terms)), rolled=0)


def test_terms_that_something_else_reads_stay() -> None:
    program = Program(range(5))
    total = program.sum(program.terms)
    program.check(program.result(total, program.terms[2]), rolled=0)


def test_other_operations_in_a_term_stay() -> None:
    program = Program(range(5))
    other = buffer(program.length)
    code = apply("math.sin")
    (apart,) = [n.buffer for n in walk(program.nests[5].body) if isinstance(n, Load)]
    program.nests[5] = element_wise(other, [(apart, 0)], code)
    program.terms[2] = other
    program.check(program.result(program.sum(program.terms)), rolled=0)


def test_an_array_that_changes_between_terms_stays() -> None:
    program = Program(range(5))
    change = element_wise(program.image, [], lambda _: apply("arith.addf", 1.0, 2.0)([]))
    program.nests.insert(6, change)
    program.check(program.result(program.sum(program.terms)), rolled=0)


def test_a_sum_that_is_written_over_what_its_terms_read_stays() -> None:
    program = Program((0, 0, 0, 0, 0))
    program.sum(program.terms)
    for node in walk(program.nests[-1].body):
        if isinstance(node, Store):
            node.buffer = program.image
    program.check(program.image, rolled=0)


def test_a_sum_of_what_another_one_results_in_is_rolled_by_itself() -> None:
    program = Program(range(5))
    first = program.sum(program.terms)
    again = []
    for number in range(5):
        again.append(buffer(program.length))
        code = apply("arith.mulf", 1.5 + number)
        program.nests.append(element_wise(again[-1], [(first, 0)], code))
    program.check(program.result(program.sum(again), first), rolled=2, max_nodes=9)


def test_a_sum_of_a_sum_and_its_neighbours_stays() -> None:
    """Every step reads what the step before has made of other elements."""
    program = Program((0, 1, 2))
    total = program.terms[0]
    for _ in range(5):
        total, before = buffer(program.length - 1), total
        program.length -= 1
        loads = [(before, 0), (before, 1)]
        program.nests.append(element_wise(total, loads, apply("arith.addf")))
    program.check(program.result(total), rolled=0)


def test_a_sum_that_is_doubled_stays() -> None:
    program = Program((0, 1, 2))
    total = program.terms[0]
    for _ in range(5):
        total, before = buffer(program.length), total

        def twice(values: list[Value]) -> tuple[list[Node], Value]:
            return apply("arith.addf")([values[0], values[0]])

        program.nests.append(element_wise(total, [(before, 0)], twice))
    program.check(program.result(total), rolled=0)


def test_nothing_is_rolled_without_fusion() -> None:
    program = Program(range(5))
    program.result(program.sum(program.terms))
    sequence, context = Items(list(program.nests), []), Context()
    context.options.polyblocks_disable_affine_fusion = True
    RollSumsPass(min_terms=3, max_nodes=12).transform(sequence, context)
    assert sequence.nests() == program.nests
