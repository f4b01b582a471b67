"""Affine expressions: what is simplified keeps its value, and ranges hold."""

from __future__ import annotations

import itertools
import random

import pytest

from polyblocks.affine.access import digits_of_whole, join_parts
from polyblocks.affine.analysis.coverage import (
    all_same_for,
    digits,
    is_injective,
    iteration_at,
    same_for,
)
from polyblocks.affine.expr import Div, Expr, Mod, Var
from polyblocks.affine.model import Buffer


def random_expr(rng: random.Random, variables: list[Var], depth: int) -> tuple[Expr, object]:
    """An expression and a Python function that computes it without simplification."""
    if depth == 0:
        if rng.random() < 0.3:
            c = rng.randrange(-7, 8)
            return Expr(c), lambda v, c=c: c
        var = rng.choice(variables)
        return Expr.of(var), lambda v, var=var: v[var]
    kind = rng.choice(["add", "mul", "div", "mod", "sub"])
    a, fa = random_expr(rng, variables, depth - 1)
    if kind in ("add", "sub"):
        b, fb = random_expr(rng, variables, depth - 1)
        if kind == "add":
            return a + b, lambda v: fa(v) + fb(v)
        return a - b, lambda v: fa(v) - fb(v)
    k = rng.randrange(1, 9)
    if kind == "mul":
        k = rng.randrange(-4, 5)
        return a * k, lambda v: fa(v) * k
    if kind == "div":
        return a // k, lambda v: fa(v) // k
    return a % k, lambda v: fa(v) % k


def all_values(variables: list[Var]) -> list[dict[Var, int]]:
    ranges = [range(v.extent) for v in variables]
    return [dict(zip(variables, p, strict=True)) for p in itertools.product(*ranges)]


@pytest.mark.parametrize("seed", range(60))
def test_simplification_keeps_values_and_ranges(seed: int) -> None:
    rng = random.Random(seed)
    variables = [Var(rng.randrange(1, 6)) for _ in range(3)]
    for _ in range(20):
        expr, reference = random_expr(rng, variables, rng.randrange(1, 5))
        low, high = expr.range()
        for values in all_values(variables):
            expected = reference(values)  # type: ignore[operator]
            assert expr.evaluate(values) == expected
            assert low <= expected <= high


@pytest.mark.parametrize("seed", range(30))
def test_substitution(seed: int) -> None:
    rng = random.Random(seed)
    variables = [Var(rng.randrange(2, 6)) for _ in range(2)]
    joined = Var(variables[0].extent * variables[1].extent)
    inner = variables[1].extent
    values = {variables[0]: Expr.of(joined) // inner, variables[1]: Expr.of(joined) % inner}
    expr, _ = random_expr(rng, variables, 3)
    replaced = expr.substitute(values)
    for t in range(joined.extent):
        expected = expr.evaluate({variables[0]: t // inner, variables[1]: t % inner})
        assert replaced.evaluate({joined: t}) == expected


def test_delinearized_index_comes_back() -> None:
    i, j = Var(6), Var(10)
    linear = Expr.of(i) * 10 + j
    assert linear // 10 == Expr.of(i)
    assert linear % 10 == Expr.of(j)
    assert (linear // 5) // 2 == Expr.of(i)


def test_what_cannot_be_simplified_stays() -> None:
    i = Var(10)
    assert Expr.of(i) // 3 == Expr(0, {Div(Expr.of(i), 3): 1})
    assert Expr.of(i) % 3 == Expr(0, {Mod(Expr.of(i), 3): 1})
    assert (Expr.of(i) // 3).coefficient(i) is None
    assert Expr.of(Var(1)) == Expr(0)


def test_digits_of_a_dimension() -> None:
    i, j, k = Var(3), Var(4), Var(5)
    matrix = Buffer((12, 5), "f32", "alloc")
    index = (Expr.of(i) * 4 + j, Expr.of(k))
    assert digits(matrix, index, [i, j, k]) == {i: (0, 4), j: (0, 1), k: (1, 1)}
    assert digits(matrix, index, [i, j, k, Var(2)]) is None
    assert digits(matrix, (Expr.of(i) * 4 + j + 1, Expr.of(k)), [i, j, k]) is None
    assert digits(matrix, (Expr.of(i) * 5 + j, Expr.of(k)), [i, j, k]) is None
    assert digits(matrix, (Expr.of(i) * 4 + j, Expr.of(j)), [i, j]) is None
    assert digits(Buffer((1, 5), "f32", "alloc"), (Expr(0), Expr.of(k)), [k]) == {k: (1, 1)}
    assert is_injective(index, [i, j, k])
    assert not is_injective(index, [j]), "with another i it may be the same place"
    assert not is_injective((Expr.of(i) * 3 + j,), [i, j])
    at = (Expr.of(Var(12)), Expr.of(k))
    assert iteration_at({i: (0, 4), j: (0, 1)}, matrix.shape, at) == {i: at[0] // 4, j: at[0] % 4}


def test_what_moves_by_multiples_tells_nothing_apart() -> None:
    pixel, channel, lane = Var(9), Var(16), Var(16)
    place = Expr(3, {pixel: 256, channel: 16, lane: 1})
    assert same_for([place], [place + 512], channel)
    assert not same_for([place], [place + 520], channel)
    wide = Var(17)
    place = Expr(0, {pixel: 256, wide: 16, lane: 1})
    assert not same_for([place], [place], wide)
    # Pairs of numbers behind each other, of which others are any constant away.
    butterfly, pair = Var(8), Var(32)
    place = Expr(0, {butterfly: 64, pair: 2})
    assert same_for([place], [place + 513], pair, set())
    assert all_same_for([[place], [place + 1], [place + 512], [place + 513]], pair, set())
    assert not all_same_for([[place], [place + 2]], pair, set())


@pytest.mark.parametrize("seed", range(40))
def test_groups_of_accesses_are_apart_only_where_each_two_are(seed: int) -> None:
    rng = random.Random(seed)
    variables = [Var(rng.randrange(2, 5)) for _ in range(3)]
    told = 0
    for _ in range(60):
        factors = [rng.choice([1, 2, 3, 4, 6, 8, 12, 16, -1, -4]) for _ in variables]
        terms = dict(zip(variables, factors, strict=True))
        group = [[Expr(rng.choice([0, 0, 1, 16, 17, 48]), terms)] for _ in range(3)]
        inner = {v for v in variables[1:] if rng.random() < 0.8}
        if all_same_for(group, variables[0], inner):
            told += 1
            for one, other in itertools.product(group, group):
                assert same_for(one, other, variables[0], inner)
    assert told


def test_what_is_the_same_for_both_does_not_tell_them_apart() -> None:
    step, half, pair, lane = Var(9), Var(2), Var(2), Var(16)
    place = Expr(0, {step: 17, half: 16, pair: 32, lane: 1})
    assert same_for([place], [place], half, {pair, lane})
    assert not same_for([place], [place], half)
    assert not same_for([place], [place], half, {step, pair, lane})


@pytest.mark.parametrize("seed", range(40))
def test_flat_addresses_are_never_wrongly_told_apart(seed: int) -> None:
    rng = random.Random(seed)
    variables = [Var(rng.randrange(2, 5)) for _ in range(3)]
    values = all_values(variables)
    told = 0
    for _ in range(60):
        factors = [rng.choice([1, 2, 3, 4, 6, 8, 12, 16, -1, -4]) for _ in variables]
        one, other = (
            Expr(rng.randrange(-20, 20), dict(zip(variables, factors, strict=True)))
            for _ in range(2)
        )
        inner = {v for v in variables[1:] if rng.random() < 0.8}
        if same_for([one], [other], variables[0], inner):
            told += 1
            places = [(v, one.evaluate(v), other.evaluate(v)) for v in values]
            for (a, left, _), (b, _, right) in itertools.product(places, places):
                same = all(a[v] == b[v] for v in variables[1:] if v not in inner)
                assert left != right or a[variables[0]] == b[variables[0]] or not same
    assert told


@pytest.mark.parametrize("seed", range(40))
def test_digits_and_distinction_are_never_wrongly_affirmed(seed: int) -> None:
    rng = random.Random(seed)
    variables = [Var(rng.randrange(2, 5)) for _ in range(2)]
    values = all_values(variables)
    for _ in range(30):
        index = tuple(random_expr(rng, variables, rng.randrange(0, 3))[0] for _ in range(2))
        other = tuple(random_expr(rng, variables, rng.randrange(0, 3))[0] for _ in range(2))
        shape = (variables[0].extent, variables[1].extent)
        touched = [tuple(e.evaluate(v) for e in index) for v in values]
        if digits(Buffer(shape, "f32", "alloc"), index, variables) is not None:
            assert sorted(touched) == list(itertools.product(*map(range, shape)))
        counted = digits(Buffer((shape[0] * shape[1], 1), "f32", "alloc"), index, variables)
        if counted is not None:
            assert sorted(touched) == [(n, 0) for n in range(shape[0] * shape[1])]
            for v, place in zip(values, touched, strict=True):
                for var, (dimension, factor) in counted.items():
                    assert v[var] == place[dimension] // factor % var.extent
        for told in ([variables[0]], [variables[1]], variables):
            if is_injective(index, told):
                for a, b in itertools.product(values, values):
                    if any(a[v] != b[v] for v in told):
                        at = [tuple(e.evaluate(v) for e in index) for v in (a, b)]
                        assert at[0] != at[1]
        for var in variables:
            if same_for(index, other, var):
                for a, b in itertools.product(values, values):
                    if a[var] != b[var]:
                        left = tuple(e.evaluate(a) for e in index)
                        assert left != tuple(e.evaluate(b) for e in other)


def test_digits_are_joined() -> None:
    i, j = Var(40), Var(4096)
    n = Expr.of(i) * 4096 + j
    lower = ((n % 3136) // 56) * 56 + n % 56
    assert join_parts(lower) == n % 3136
    assert join_parts((n // 3136) * 3136 + lower) == n
    assert join_parts((n // 3136) * 6272 + lower * 2 + 5) == n * 2 + 5
    inner = n % 25088
    digits_of = (inner // 3136) * 3136 + lower + (n // 25088) * 25088
    assert join_parts(digits_of) == n
    # Another base, another number, another factor.
    for other in ((n // 3136) * 3135 + lower, ((n + 1) // 3136) * 3136 + lower):
        assert join_parts(other) != n
        assert (n % 3136).terms[0] in join_parts(other).terms


def test_lower_digits_do_not_matter_for_a_quotient() -> None:
    m, i, j = Var(64), Var(56), Var(56)
    n = Expr.of(m) * 3136 + Expr.of(i) * 56 + j
    assert n // 25088 == Expr.of(m) // 8
    assert n % 25088 == (Expr.of(m) % 8) * 3136 + Expr.of(i) * 56 + j
    assert (n + 5) // 25088 != Expr.of(m) // 8
    assert (Expr.of(m) * 6 + 4) // 12 == Expr.of(m) // 2
    assert (Expr.of(m) * 6 + 6) // 12 == (Expr.of(m) + 1) // 2
    assert (Expr.of(m) * 6 + 6) % 12 == ((Expr.of(m) + 1) % 2) * 6


@pytest.mark.parametrize("seed", range(30))
def test_what_is_joined_is_equal(seed: int) -> None:
    rng = random.Random(seed)
    i, j = Var(rng.randrange(2, 9)), Var(rng.randrange(2, 9))
    n = Expr.of(i) * rng.randrange(1, 12) + Expr.of(j) * rng.randrange(1, 5) + rng.randrange(3)
    small = rng.randrange(2, 5)
    big = small * rng.randrange(2, 4)
    parts = [n // big, (n % big) // small, n % small, n % big, n // small]
    expr = Expr(rng.randrange(3))
    for part in parts:
        expr = expr + part * rng.choice([0, 1, small, big, 2 * big])
    joined = join_parts(expr)
    for values in all_values([i, j]):
        assert joined.evaluate(values) == expr.evaluate(values)


@pytest.mark.parametrize("seed", range(20))
def test_rewritten_digits_keep_their_value(seed: int) -> None:
    rng = random.Random(seed)
    variables = [Var(rng.randrange(2, 9)) for _ in range(2)]
    for _ in range(30):
        expr, _ = random_expr(rng, variables, rng.randrange(1, 4))
        low, high = expr.tight_range()
        for values in all_values(variables):
            value = expr.evaluate(values)
            assert low <= value <= high
            assert expr.without_digits().evaluate(values) == value
            assert digits_of_whole(expr).evaluate(values) == value


def test_a_number_less_its_multiple_is_a_remainder() -> None:
    y = Expr.of(Var(64))
    assert (y - (y // 8) * 8).tight_range() == (0, 7)
    assert ((y // 8) * 8 + 7 - y).tight_range() == (0, 7)
    assert (y - (y // 8) * 8).range() == (-56, 63)


def test_digits_of_a_part_are_digits_of_the_whole() -> None:
    n = Expr.of(Var(25088))
    assert digits_of_whole((n % 3136) // 56) == (n // 56) % 56
    assert digits_of_whole((n % 3136) % 56) == n % 56


def test_quotients_of_neighbours_are_near_each_other():
    i, j = Var(100), Var(9)
    later, earlier = (Expr.of(i) + 1) // 4, Expr.of(i) // 4
    assert (later - earlier).tight_range() == (0, 1)
    assert (earlier - later).tight_range() == (-1, 0)
    assert (later * 3 - earlier * 3 + j + 5).tight_range() == (5, 16)
    # Other factors and divisors have nothing in common.
    assert (later * 2 - earlier).tight_range() == (later * 2 - earlier).range()
    assert (later - Expr.of(i) // 8).tight_range() == (later - Expr.of(i) // 8).range()
