"""The expression builder: constants, conversions, rare branches."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from polyblocks import mlir
from polyblocks.codegen.builder import Builder, Val, bits_of
from polyblocks.mlir import ir


def _build(
    body: Callable[[Builder, Val], Val], type_: str = "f32", *, fma: bool = True
) -> tuple[str, str]:
    """The function ``f(x) = body(x)`` as text, and the type of its result."""
    module = mlir.parse(f"func.func @f(%x: {type_}) {{ return }}")
    function = module.body.operations[0]
    block = function.regions[0].blocks[0]
    argument = block.arguments[0]
    shape, element = None, type_
    if isinstance(argument.type, ir.VectorType):
        shape, element = argument.type.shape, str(argument.type.element_type)
    with module.context, ir.Location.unknown(), ir.InsertionPoint.at_block_terminator(block):
        b = Builder(shape, None, block, {}, fma)
        result = body(b, Val(b, argument, element))
    assert module.operation.verify()
    return str(module), str(result.value.type)


def test_equal_constants_of_a_block_are_one() -> None:
    text, _ = _build(lambda b, x: (x + 1.5) * 1.5 + 1.5)
    assert text.count("arith.constant") == 1


def test_zeros_of_both_signs_differ() -> None:
    text, _ = _build(lambda b, x: (x + 0.0) + -0.0)
    assert text.count("arith.constant") == 2
    assert "-0.000000e+00" in text


def test_integers_wrap_to_their_width() -> None:
    text, _ = _build(lambda b, x: x.bits() & 0xFFFFFFFF)
    assert "arith.constant -1 : i32" in text


def test_numbers_on_the_left() -> None:
    text, _ = _build(lambda b, x: 1.0 - (2.0 / (3.0 * (4.0 + x))))
    assert [op for op in ("addf", "mulf", "divf", "subf") if f"arith.{op}" in text] == [
        "addf",
        "mulf",
        "divf",
        "subf",
    ]


def test_fma_without_the_instruction_is_two_operations() -> None:
    def body(b: Builder, x: Val) -> Val:
        return b.fnma(x, 2.0, b.fma(x, x, 1.0))

    assert "math.fma" in _build(body)[0]
    text, _ = _build(body, fma=False)
    assert "math.fma" not in text
    assert text.count("arith.mulf") == 2


@pytest.mark.parametrize(
    ("source", "target", "operation"),
    [
        ("f32", "f64", "extf"),
        ("f64", "bf16", "truncf"),
        ("i32", "i64", "extsi"),
        ("i64", "i8", "trunci"),
        ("i32", "f64", "sitofp"),
        ("f64", "i32", "fptosi"),
    ],
)
def test_conversions(source: str, target: str, operation: str) -> None:
    text, type_ = _build(lambda b, x: x.to(target), source)
    assert f"arith.{operation}" in text
    assert type_ == target


def test_conversion_to_the_same_type_is_nothing() -> None:
    assert "arith" not in _build(lambda b, x: x.to("f32"))[0]


def test_vectors_get_splats() -> None:
    text, type_ = _build(lambda b, x: x + 2.0, "vector<3x4xf64>")
    assert "dense<2.000000e+00> : vector<3x4xf64>" in text
    assert type_ == "vector<3x4xf64>"


def test_rare_branch_of_a_scalar() -> None:
    text, _ = _build(lambda b, x: b.when_any(x > 9.0, lambda: [x * 2.0], [x])[0])
    assert "scf.if" in text
    assert "arith.select" not in text


def test_rare_branch_of_a_vector_keeps_the_other_lanes() -> None:
    text, _ = _build(lambda b, x: b.when_any(x > 9.0, lambda: [x * 2.0], [x])[0], "vector<8xf32>")
    assert "vector.reduction <or>" in text
    assert "arith.select" in text


@pytest.mark.parametrize(
    ("kind", "value", "bits"),
    [("f32", 1.0, 0x3F800000), ("f64", -2.0, 0xC000000000000000), ("f32", 2.0**-149, 1)],
)
def test_bits(kind: str, value: float, bits: int) -> None:
    assert bits_of(kind, value) == bits


@pytest.mark.parametrize(
    ("body", "negations"),
    [
        (lambda x: (-x).negated(), 1),
        (lambda x: (-x * x).negated(), 1),
        (lambda x: (x * -x).negated(), 1),
        (lambda x: (x * x).negated(), None),
        (lambda x: x.negated(), None),
        (lambda x: (x + -x).negated(), None),
    ],
)
def test_the_negated_is_known_without_computing(
    body: Callable[[Val], Val | None], negations: int | None
) -> None:
    """The negation itself stays for whoever else uses it; nothing new is negated."""
    found: list[Val | None] = []

    def build(b: Builder, x: Val) -> Val:
        del b
        found.append(body(x))
        return x if found[0] is None else found[0]

    text, _ = _build(build)
    assert (found[0] is None) == (negations is None)
    assert negations is None or text.count("arith.negf") == negations


def test_a_product_with_another_use_is_not_computed_twice() -> None:
    def build(b: Builder, x: Val) -> Val:
        del b
        product = -x * x
        _ = product + 1.0
        _ = product + 2.0
        assert product.negated() is None
        return product

    _build(build)
