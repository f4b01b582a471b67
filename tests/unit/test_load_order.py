"""Straight-line code in the order of what it loads: few values at once, the same result."""

from tests.support.nests import buffer

from polyblocks.affine.cleanup.load_order import in_order_of_loads
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import AnyLoad, Buffer, Check, Load, Node, Op, Store, Value
from polyblocks.affine.operation_cost import alive

ROWS, WINDOW = 3, 5


def windows(x: Var) -> list[Node]:
    """Weighted sums of windows of neighbouring rows, one after the other."""
    image, weights, out = buffer(9, 64), buffer(WINDOW, WINDOW), buffer(ROWS, 64)
    nodes: list[Node] = []
    loaded: dict[object, Value] = {}

    def load(source: Buffer, *index: Expr) -> Value:
        key = source, *map(str, index)
        if key not in loaded:
            loaded[key] = Value("f32")
            nodes.append(Load(loaded[key], source, index))
        return loaded[key]

    for row in range(ROWS):
        total = None
        for i in range(WINDOW):
            for j in range(WINDOW):
                product, sum_ = Value("f32"), Value("f32")
                pixel = load(image, Expr(row + i), Expr.of(x) + j)
                weight = load(weights, Expr(i), Expr(j))
                nodes.append(Op("arith.mulf", [pixel, weight], {}, [product]))
                if total is not None:
                    nodes.append(Op("arith.addf", [total, product], {}, [sum_]))
                total = product if total is None else sum_
        nodes.append(Store(total, out, (Expr(row), Expr.of(x))))
    return nodes


def test_windows_advance_together() -> None:
    x = Var(60)
    nodes = windows(x)
    found = in_order_of_loads(nodes, x)
    assert sorted(map(id, found)) == sorted(map(id, nodes))
    made: set[Value] = set()
    for node in found:
        assert made.issuperset(node.uses)
        made.update(node.defines)
    pixels = [n.index[0].const for n in found if isinstance(n, Load) and x in n.variables()]
    assert pixels == sorted(pixels)
    assert all(isinstance(n, Store) for n in found[-ROWS:])
    assert alive(nodes) > 40
    assert alive(found) < 20


def test_code_with_checks_stays_as_it_is() -> None:
    x = Var(60)
    nodes = windows(x)
    first = next(n for n in nodes if isinstance(n, AnyLoad))
    nodes.insert(1, Check(first.result, "no"))
    assert in_order_of_loads(nodes, x) is nodes
