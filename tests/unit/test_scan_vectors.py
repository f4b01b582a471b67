"""Which loops are scans whose lanes can be combined in vectors."""

from __future__ import annotations

import pytest

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, For, Load, Node, Op, Store, Value
from polyblocks.affine.vectors.scan_vectors import scan_combiners

X = Buffer((8,), "f64", "input")
OUT = Buffer((8,), "f64", "output")


def scan(name: str, flags: str = "reassoc", extra: str = "") -> For:
    """``out[k] = running``; ``extra`` says what else uses the running value."""
    k = Var(8)
    argument, x, new, result = (Value("f64") for _ in range(4))
    term = x
    body: list[Node] = [Load(x, X, (Expr.of(k),))]
    if extra == "term":
        term = Value("f64")
        body.append(Op("arith.mulf", [x, argument], {}, [term]))
    if extra == "widened":
        term = Value("f64")
        body.append(Op("arith.extf", [x], {}, [term]))
    body.append(Op(name, [argument, term], {"fastmath": flags}, [new]))
    body.append(Store(argument if extra == "exclusive" else new, OUT, (Expr.of(k),)))
    return For(k, body, [Value("f64")], [argument], [result], [new])


@pytest.mark.parametrize("name", ["arith.addf", "arith.maximumf", "arith.addi", "arith.minsi"])
def test_running_values_of_commutative_ops(name: str) -> None:
    found = scan_combiners(scan(name))
    assert found is not None
    assert [op.name for op in found] == [name]


@pytest.mark.parametrize(
    "loop",
    [
        scan("arith.subf"),
        scan("arith.addf", flags=""),
        scan("arith.addf", extra="term"),
        scan("arith.addf", extra="exclusive"),
        scan("arith.mulf"),
    ],
    ids=["no such op", "no leave", "term depends on it", "value before", "product"],
)
def test_what_stays_in_order(loop: For) -> None:
    assert scan_combiners(loop) is None


def test_product_of_narrower_factors() -> None:
    assert scan_combiners(scan("arith.mulf", extra="widened")) is not None


def test_running_value_that_depends_on_another_one() -> None:
    loop = scan("arith.addf")
    argument, new = Value("f64"), Value("f64")
    loop.body.append(Op("arith.addf", [argument, loop.yields[0]], {"fastmath": "reassoc"}, [new]))
    loop.inits.append(Value("f64"))
    loop.arguments.append(argument)
    loop.results.append(Value("f64"))
    loop.yields.append(new)
    assert scan_combiners(loop) is None
