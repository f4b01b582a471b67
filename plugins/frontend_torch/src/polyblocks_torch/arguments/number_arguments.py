"""Python numbers that change become arguments: what computes with them computes with tensors.

Dynamo passes a changed float as a 0-dimensional tensor, and the graph takes its
number; AOTAutograd then has a pass that replaces operations on the number by operations on the
tensor. PyTorch's pass knows five operations, and where one is left it compiles for the value. The
one here takes its place while a graph is compiled for this package, and knows more.

An integer that has changed is passed as a symbol, which PyTorch means for shapes. Where it is only
computed with, it becomes an argument in the same way.

So does a number that the program computes and takes out of a tensor (``item()``), which PyTorch
knows as an unbacked symbol. Python's assertions about it become checks of the program
(:mod:`polyblocks_torch.importing.checks`).

A number is held as PyTorch holds it, with 64 bits, and rounded where an operation rounds it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
import torch._inductor.inductor_prims  # registers fma
from torch import fx
from torch._dynamo.exc import TensorifyScalarRestartAnalysis
from torch._dynamo.symbolic_convert import TensorifyState
from torch._functorch._aot_autograd import graph_compile
from torch._prims_common import get_computation_dtype
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, ShapeEnv
from torch.utils._sympy.symbol import SymT, symbol_is_type

from polyblocks_torch.importing.checks import CHECK, STATIC_CHECKS, overflow_message

aten = torch.ops.aten

_active: ContextVar[bool] = ContextVar("polyblocks_number_arguments", default=False)

_theirs = graph_compile.tensorify_python_scalars


@contextmanager
def numbers_as_tensors() -> Iterator[None]:
    """Graphs that AOTAutograd captures inside are treated as said above."""
    token = _active.set(True)
    try:
        yield
    finally:
        _active.reset(token)


def _dispatch(gm: fx.GraphModule, shape_env: ShapeEnv, fake_mode: FakeTensorMode) -> None:
    if not _active.get():
        _theirs(gm, shape_env, fake_mode)
        return
    with torch._C._EnableTorchFunction():
        _Numbers(gm.graph, shape_env, fake_mode).run()


graph_compile.tensorify_python_scalars = _dispatch


def are_all_numbers(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> bool:
    """Whether the symbols of a graph of Dynamo are integers that no shape depends on."""
    return not any(_has_symbols(value) for value in example_inputs) and not any(
        _has_symbols(node.meta.get("example_value")) for node in gm.graph.nodes
    )


#: Types of integers that do not hold each one of 64 bits.
_NARROW = frozenset({torch.uint8, torch.int8, torch.int16, torch.int32})


#: Python operations on integers that return integers.
_GIVE_INTEGERS = frozenset(
    {
        *(operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.pow),
        *(operator.neg, operator.pos, operator.abs, torch.sym_max, torch.sym_min),
    }
)


def is_integer(node: fx.Node) -> bool:
    """Whether a node is an integer argument, or what Python computes of such, numbers alone."""
    if not isinstance(node.meta.get("val"), torch.SymInt):
        return False
    return node.op == "placeholder" or (
        node.target in _GIVE_INTEGERS and all(map(is_integer, node.all_input_nodes))
    )


class NumbersLeft(Exception):
    """Integers of a graph say more than what is computed with: shapes, places, loops."""


class _Reads(Exception):
    """An operation reads a number in a way that no tensor can take the place of."""


class _Unknown(_Reads):
    """A number that nothing is known of before the program has run."""


class _Numbers:
    """One run over a graph.

    Args:
        graph: of ATen operations; changed in place.
        shape_env: of its symbols.
        fake_mode: of its values.
    """

    def __init__(self, graph: fx.Graph, shape_env: ShapeEnv, fake_mode: FakeTensorMode) -> None:
        self.graph = graph
        self.shape_env = shape_env
        self.fake_mode = fake_mode
        #: A number's node -> the node of a tensor without dimensions, float64 or int64.
        self.tensors: dict[fx.Node, fx.Node] = {}
        #: Nodes that were added.
        self.made: list[fx.Node] = []
        self.node: fx.Node

    def run(self) -> None:
        """Replace what can be; PyTorch starts again with the values of the other floats.

        Raises:
            TensorifyScalarRestartAnalysis: some float is still read.
            NumbersLeft: some integer is still read.
        """
        self._integers()
        self._conditions()
        for node in list(self.graph.nodes):
            if node.op != "call_function" or node in self.tensors.values():
                continue
            self.node = node
            with self.graph.inserting_before(node):
                self._visit(node)
        self._assertions()
        for node in reversed(list(self.tensors)):
            if not node.users and node.op != "placeholder":
                self.graph.erase_node(node)
                del self.tensors[node]
        for node in reversed(self.made):
            if not node.users and not node.is_impure():
                self.graph.erase_node(node)
        left = {
            s
            for node in self.tensors
            if not isinstance(node.meta["val"], bool)
            for s in node.meta["val"].node.expr.free_symbols
        }
        # Asked for its value, a symbol is that value everywhere.
        left |= set(self.shape_env.replacements)
        names = {str(s) for s in left if symbol_is_type(s, SymT.FLOAT)}
        new = {name for name in names if not TensorifyState.should_specialize(name)}
        for name in new:
            TensorifyState.specialize(name)
        if new:
            raise TensorifyScalarRestartAnalysis
        self._known_integers()
        has_integers = any(node.op == "placeholder" for node in self.tensors)
        if has_integers and any(self._reads_integers(node) for node in self.graph.nodes):
            raise NumbersLeft

    def _integers(self) -> None:
        """Tensors of the integers among the arguments."""
        self._known_integers()
        placeholders = [node for node in self.graph.nodes if node.op == "placeholder"]
        for node in placeholders:
            if isinstance(node.meta.get("val"), torch.SymInt) and node.users:
                self.node = node
                with self.graph.inserting_before(placeholders[-1].next):
                    self.tensors[node] = self.call(
                        aten.scalar_tensor.default, node, dtype=torch.int64
                    )

    def _conditions(self) -> None:
        """Replace conditions on numbers by constants, with a guard for each."""
        for node in reversed(self.graph.nodes):
            value = node.meta.get("val")
            if not isinstance(value, torch.SymBool) or any(map(_asserts, node.users)):
                continue
            try:
                node.replace_all_uses_with(self.ask(value))
                self.graph.erase_node(node)
            except _Unknown:
                continue

    def _known_integers(self) -> None:
        """Integers that were asked for their values are these values."""
        for node in reversed(self.graph.nodes):
            value = node.meta.get("val")
            known = value.node.maybe_as_int() if isinstance(value, torch.SymInt) else None
            if known is not None:
                node.replace_all_uses_with(known)

    def _reads_integers(self, node: fx.Node) -> bool:
        """Whether something that is no tensor of a number depends on an integer."""
        if node.op == "placeholder" or node in self.tensors.values() or is_integer(node):
            return False
        read = {n for n in node.all_input_nodes if isinstance(n.meta.get("val"), torch.SymInt)}
        if node.op == "output":
            # Python computes these, see integer_arguments.py.
            return not all(is_integer(n) for n in read)
        return bool(read) or _has_symbols(node.meta.get("val"))

    def _visit(self, node: fx.Node) -> None:
        if node.target is aten._local_scalar_dense.default:
            self._leaf(node)
        elif not isinstance(node.target, torch._ops.OpOverload):
            self._computed(node)
        elif any(n in self.tensors for n in node.all_input_nodes) and all(
            n in self.tensors or isinstance(n.meta.get("val"), torch.Tensor)
            for n in node.all_input_nodes
        ):
            rule = _RULES.get(node.target)
            try:
                made = None if rule is None else rule(self, *node.args, **node.kwargs)
            except _Reads:
                return
            if made is not None:
                self._replace(node, made)

    def _leaf(self, node: fx.Node) -> None:
        value, source = node.meta.get("val"), node.args[0]
        if not isinstance(source, fx.Node):
            return
        if node.meta.get("unbacked_bindings"):
            self._item(node, source)
            return
        if not isinstance(value, torch.SymFloat):
            return
        # A number that the graph was specialized for is no symbol any more.
        if value.node.expr.is_symbol and symbol_is_type(value.node.expr, SymT.FLOAT):
            self.tensors[node] = self.to(self.call(aten.view.default, source, []), torch.float64)

    def _item(self, node: fx.Node, source: fx.Node) -> None:
        """A number that is taken out of a tensor which the program computes."""
        dtype = source.meta["val"].dtype
        if dtype.is_complex:
            return
        if dtype.is_floating_point:
            dtype = torch.float64
        elif dtype is not torch.bool:
            dtype = torch.int64
        self.tensors[node] = self.to(self.call(aten.view.default, source, []), dtype)

    def _computed(self, node: fx.Node) -> None:
        value, operands = node.meta.get("val"), node.all_input_nodes
        if not operands or any(n not in self.tensors for n in operands):
            return
        if isinstance(value, (torch.SymBool, bool)):
            rule = _TRUTHS.get(node.target)
        else:
            whole = isinstance(value, (torch.SymInt, int))
            rule = (_OF_INTEGERS if whole else _ARITHMETIC).get(node.target)
        if rule is None:
            return
        try:
            made = rule(self, *node.args)
        except _Reads:
            return
        if made is not None:
            self.tensors[node] = made

    def _assertions(self) -> None:
        """Turn assertions about numbers into checks; leave out those that tracing proved.

        Conditions that PyTorch derived come last: the user's own messages say what is wrong.
        """
        derived = []
        for node in list(self.graph.nodes):
            if node.target not in STATIC_CHECKS:
                continue
            holds = node.args[0]
            if (
                isinstance(holds, fx.Node)
                and not holds.all_input_nodes
                and holds.op != "placeholder"
            ):
                holds = holds.target(*holds.args, **holds.kwargs)  # type: ignore[operator]
            if isinstance(holds, fx.Node) and holds not in self.tensors:
                continue
            if isinstance(holds, fx.Node):
                own = node.target is aten._assert_scalar.default
                if not own or str(node.args[1]).startswith(_DERIVED):
                    derived.append(node)
                    continue
                with self.graph.inserting_before(node):
                    self._check(node)
            self.graph.erase_node(node)
        with self.graph.inserting_before(self.graph.output_node()):
            for node in derived:
                self._check(node)
                self.graph.erase_node(node)

    def _check(self, node: fx.Node) -> None:
        """Add the check that an assertion is."""
        self.node = node
        number: Any = node.args[0]
        if node.target is aten._assert_scalar.default:
            self.call(CHECK, self.number(number, torch.bool), str(node.args[1]))
            return
        low, high = (node.kwargs.get(name) for name in ("min", "max"))
        if node.target is aten.sym_constrain_range_for_size.default and low is None:
            low = 0
        for limit, compare, word in ((low, aten.ge.Scalar, ">="), (high, aten.le.Scalar, "<=")):
            if limit is not None:
                holds = self.call(compare, self.tensors[number], limit)
                self.call(CHECK, holds, f"Invalid value range: a number must be {word} {limit}")

    def _replace(self, node: fx.Node, made: fx.Node) -> None:
        value = node.meta["val"]
        made = self.to(made, value.dtype)
        if tuple(made.meta["val"].shape) != tuple(value.shape):
            made = self.call(aten.expand.default, made, list(value.shape))
        if made.meta["val"].stride() != value.stride() or made.op != "call_function":
            made = self.call(aten.clone.default, made, memory_format=torch.contiguous_format)
        if made.meta["val"].stride() != value.stride():
            return
        node.replace_all_uses_with(made)
        self.graph.erase_node(node)

    def call(self, op: Any, *args: Any, **kwargs: Any) -> fx.Node:
        """Add an operation where the replaced one is."""
        new = self.graph.call_function(op, args, kwargs)
        new.meta = {k: v for k, v in self.node.meta.items() if k not in ("val", "tensor_meta")}
        values = fx.map_arg((args, kwargs), lambda n: n.meta["val"])
        with self.fake_mode:
            new.meta["val"] = op(*values[0], **values[1])
        self.made.append(new)
        return new

    def ask(self, condition: Any) -> bool:
        """The truth of a condition in this call, guarded from here on.

        Raises:
            _Unknown: the program computes it.
        """
        try:
            return bool(condition)
        except GuardOnDataDependentSymNode:
            raise _Unknown from None

    def to(self, node: fx.Node, dtype: torch.dtype) -> fx.Node:
        """A tensor in a type."""
        if node.meta["val"].dtype == dtype:
            return node
        return self.call(aten._to_copy.default, node, dtype=dtype)

    def number(self, value: Any, dtype: torch.dtype = torch.float64) -> fx.Node:
        """A number as a tensor."""
        if isinstance(value, fx.Node):
            return self.to(self.tensors[value], dtype)
        if dtype.is_floating_point:
            value = float(value)
        return self.call(aten.scalar_tensor.default, value, dtype=dtype)

    def operand(self, value: Any, dtype: torch.dtype) -> Any:
        """A tensor, or a number, in a type; what is no number of a graph stays as it is.

        Raises:
            _Reads: the type cannot hold an integer; eager mode raises an error.
        """
        if not isinstance(value, fx.Node):
            return value
        number = value.meta["val"]
        if isinstance(number, torch.SymInt) and dtype in _NARROW:
            self._fit(value, dtype)
        return self.to(self.tensors.get(value, value), dtype)

    def _fit(self, value: fx.Node, dtype: torch.dtype) -> None:
        """An integer is guarded, or checked where the program computes it, to fit into a type."""
        limits, number = torch.iinfo(dtype), value.meta["val"]
        try:
            if not (self.ask(number >= limits.min) and self.ask(number <= limits.max)):
                raise _Reads
        except _Unknown:
            for compare, limit in ((aten.ge.Scalar, limits.min), (aten.le.Scalar, limits.max)):
                holds = self.call(compare, self.tensors[value], limit)
                self.call(CHECK, holds, overflow_message(dtype))

    def kind(self, *values: Any) -> float | int:
        """A number of the kind that decides what type tensors and these numbers are promoted to."""
        numbers = [value for value in values if value in self.tensors]
        whole = all(isinstance(number.meta["val"], torch.SymInt) for number in numbers)
        return 1 if whole else 1.0

    def dtype(self) -> torch.dtype:
        """Of the result of the replaced operation."""
        dtype: torch.dtype = self.node.meta["val"].dtype
        return dtype

    def wide(self) -> torch.dtype:
        """The dtype of the replaced operation's arithmetic."""
        return get_computation_dtype(self.dtype())


def _asserts(node: fx.Node) -> bool:
    return "assert" in str(node.target)


def _has_symbols(value: Any) -> bool:
    """Whether a value of a graph has a shape or a place that is not known."""
    if isinstance(value, (list, tuple)):
        return any(map(_has_symbols, value))
    if not isinstance(value, torch.Tensor):
        return False
    numbers = (*value.shape, *value.stride(), value.storage_offset())
    return any(not isinstance(n, int) and n.node.maybe_as_int() is None for n in numbers)


# --- numbers ------------------------------------------------------------------------------------


def _of_numbers(op: Any, dtype: torch.dtype = torch.float64) -> Callable[..., fx.Node]:
    def rule(self: _Numbers, *args: Any) -> fx.Node:
        return self.call(op, *(self.number(value, dtype) for value in args))

    return rule


def _divided(op: Any, dtype: torch.dtype = torch.float64, **options: Any) -> Callable[..., fx.Node]:
    def rule(self: _Numbers, a: Any, b: Any) -> fx.Node:
        if isinstance(b, fx.Node):
            # Python raises an error where tensors give some number. A guard, asked for here.
            self.ask(b.meta["val"] != 0)
        return self.call(op, self.number(a, dtype), self.number(b, dtype), **options)

    return rule


def _whole_power(self: _Numbers, a: Any, b: Any) -> fx.Node | None:
    exponent = b.meta["val"] if isinstance(b, fx.Node) else b
    if not self.ask(exponent >= 0):
        return None
    a, b = (self.number(value, torch.int64) for value in (a, b))
    return self.call(aten.pow.Tensor_Tensor, a, b)


def _added_up(self: _Numbers, terms: Sequence[Any]) -> fx.Node:
    total, *rest = (self.number(term, torch.int64) for term in terms)
    for term in rest:
        total = self.call(aten.add.Tensor, total, term)
    return total


def _root(self: _Numbers, a: Any) -> fx.Node:
    self.ask(a.meta["val"] >= 0)
    return self.call(aten.sqrt.default, self.number(a))


def _power(self: _Numbers, a: Any, b: Any) -> fx.Node | None:
    base = a.meta["val"] if isinstance(a, fx.Node) else a
    if not self.ask(base > 0):
        return None
    return self.call(aten.pow.Tensor_Tensor, self.number(a), self.number(b))


#: Arithmetic that integers and floats have in common.
_COMMON: dict[Any, Any] = {
    operator.add: aten.add.Tensor,
    operator.sub: aten.sub.Tensor,
    operator.mul: aten.mul.Tensor,
    operator.neg: aten.neg.default,
    operator.abs: aten.abs.default,
    torch.sym_max: aten.maximum.default,
    torch.sym_min: aten.minimum.default,
}

_ARITHMETIC: dict[Any, Callable[..., fx.Node | None]] = {
    **{function: _of_numbers(op) for function, op in _COMMON.items()},
    operator.truediv: _divided(aten.div.Tensor),
    operator.pow: _power,
    torch._sym_sqrt: _root,  # type: ignore[attr-defined]
    torch.sym_float: lambda self, a: self.number(a),
}

_OF_INTEGERS: dict[Any, Callable[..., fx.Node | None]] = {
    **{function: _of_numbers(op, torch.int64) for function, op in _COMMON.items()},
    operator.floordiv: _divided(aten.div.Tensor_mode, torch.int64, rounding_mode="floor"),
    operator.mod: _divided(aten.remainder.Tensor, torch.int64),
    operator.pow: _whole_power,
    torch.sym_sum: _added_up,
}


def _compared(op: Any) -> Callable[..., fx.Node]:
    def rule(self: _Numbers, a: Any, b: Any) -> fx.Node:
        values = [self.tensors[v].meta["val"] if isinstance(v, fx.Node) else v for v in (a, b)]
        dtype = torch.result_type(
            *(v if isinstance(v, torch.Tensor) else torch.tensor(v) for v in values)
        )
        wide = torch.float64 if dtype.is_floating_point else torch.int64
        return self.call(op, self.number(a, wide), self.number(b, wide))

    return rule


def _logical(op: Any) -> Callable[..., fx.Node]:
    def rule(self: _Numbers, *args: Any) -> fx.Node:
        return self.call(op, *(self.number(value, torch.bool) for value in args))

    return rule


def _chosen(dtype: torch.dtype) -> Callable[..., fx.Node]:
    def rule(self: _Numbers, holds: Any, a: Any, b: Any) -> fx.Node:
        truth = self.number(holds, torch.bool)
        return self.call(aten.where.self, truth, self.number(a, dtype), self.number(b, dtype))

    return rule


_ARITHMETIC[torch.sym_ite] = _chosen(torch.float64)
_OF_INTEGERS[torch.sym_ite] = _chosen(torch.int64)

#: Of numbers, with true or false for the result.
_TRUTHS: dict[Any, Callable[..., fx.Node | None]] = {
    **{
        getattr(operator, name): _compared(getattr(aten, name).Tensor)
        for name in ("lt", "le", "gt", "ge", "eq", "ne")
    },
    operator.and_: _logical(aten.logical_and.default),
    operator.or_: _logical(aten.logical_or.default),
    operator.not_: _logical(aten.logical_not.default),
    torch.sym_not: _logical(aten.logical_not.default),
}

#: How the message of an assertion begins that PyTorch has made itself.
_DERIVED = "Runtime assertion failed for expression"


# --- operations ---------------------------------------------------------------------------------

Rule = Callable[..., fx.Node | None]


def _arithmetic(op: Any) -> Rule:
    """Numbers and narrow tensors in the wide type, as eager mode's kernels have them."""

    def rule(self: _Numbers, a: Any, b: Any, *, alpha: Any = 1, **options: Any) -> fx.Node:
        a, b = (self.operand(value, self.wide()) for value in (a, b))
        if not (isinstance(alpha, int) and alpha == 1):
            b = self.call(aten.mul.Tensor, b, self.operand(alpha, self.wide()))
        return self.call(op, a, b, **options)

    return rule


def _reverse_sub(self: _Numbers, a: Any, b: Any, alpha: Any = 1) -> fx.Node:
    return _arithmetic(aten.sub.Tensor)(self, b, a, alpha=alpha)  # type: ignore[return-value]


def _pairwise(op: Any) -> Rule:
    """In the type that the operands are promoted to."""

    def rule(self: _Numbers, a: Any, b: Any) -> fx.Node:
        tensor = a if isinstance(a, fx.Node) and a not in self.tensors else b
        dtype = torch.result_type(tensor.meta["val"], self.kind(a, b))
        return self.call(op, *(self.operand(value, dtype) for value in (a, b)))

    return rule


def _raised(self: _Numbers, a: Any, b: Any) -> fx.Node:
    if b in self.tensors and not self.dtype().is_floating_point:
        # A negative exponent is an error in eager mode. A guard, asked for here.
        self.ask(b.meta["val"] >= 0)
    return _pairwise(aten.pow.Tensor_Tensor)(self, a, b)  # type: ignore[return-value]


def _clamp(self: _Numbers, x: Any, low: Any = None, high: Any = None) -> fx.Node:
    dtype = self.dtype()
    if not dtype.is_floating_point:
        low, high = _near(self, low, high, dtype)
    limits = [
        self.operand(limit, dtype)
        if limit is None or isinstance(limit, fx.Node)
        else self.number(limit, dtype)
        for limit in (low, high)
    ]
    return self.call(aten.clamp.Tensor, self.to(x, dtype), *limits)


def _near(self: _Numbers, low: Any, high: Any, dtype: torch.dtype) -> tuple[Any, Any]:
    """Limits of integers without those that PyTorch leaves out, see ``numbers.near``."""
    # Here: it imports MLIR, which a start from the cache does without.
    from polyblocks_torch.decomp.numbers import near

    least, most = (None if isinstance(limit, fx.Node) else limit for limit in (low, high))
    least, most = near(least, most, dtype)
    return (
        low if isinstance(low, fx.Node) else least,
        high if isinstance(high, fx.Node) else most,
    )


def _filled(position: int) -> Rule:
    def rule(self: _Numbers, *args: Any, **options: Any) -> fx.Node | None:
        if len(args) <= position or args[position] not in self.tensors:
            return None
        shape = list(self.node.meta["val"].shape)
        number = self.operand(args[position], self.dtype())
        return self.call(
            aten.clone.default,
            self.call(aten.expand.default, number, shape),
            memory_format=torch.contiguous_format,
        )

    return rule


def _masked_fill(self: _Numbers, x: Any, mask: Any, value: Any) -> fx.Node:
    return self.call(aten.where.self, mask, self.operand(value, self.dtype()), x)


def _lerp(self: _Numbers, x: Any, end: Any, weight: Any) -> fx.Node:
    wide = self.wide()
    x, end = self.to(x, wide), self.to(end, wide)
    weight = self.operand(weight, wide)
    way = self.call(aten.sub.Tensor, end, x)
    rest = self.call(aten.rsub.Scalar, weight, 1)
    near = self.call(aten.add.Tensor, x, self.call(aten.mul.Tensor, weight, way))
    far = self.call(aten.sub.Tensor, end, self.call(aten.mul.Tensor, way, rest))
    small = self.call(aten.lt.Scalar, self.call(aten.abs.default, weight), 0.5)
    return self.call(aten.where.self, small, near, far)


def _leaky(self: _Numbers, x: Any, slope: Any) -> fx.Node:
    positive = self.call(aten.gt.Scalar, x, 0)
    scaled = _arithmetic(aten.mul.Tensor)(self, x, slope)
    return self.call(aten.where.self, positive, self.to(x, self.wide()), scaled)


def _leaky_backward(self: _Numbers, grad: Any, x: Any, slope: Any, self_is_result: bool) -> fx.Node:
    positive = self.call(aten.gt.Scalar, x, 0)
    scaled = _arithmetic(aten.mul.Tensor)(self, grad, slope)
    return self.call(aten.where.self, positive, self.to(grad, self.wide()), scaled)


def _added(op: Any) -> Rule:
    """``x + value * op(a, b)``."""

    def rule(self: _Numbers, x: Any, a: Any, b: Any, *, value: Any = 1) -> fx.Node:
        x, a, b, value = (self.operand(v, self.wide()) for v in (x, a, b, value))
        scaled = self.call(op, self.call(aten.mul.Tensor, a, value), b)
        return self.call(aten.add.Tensor, x, scaled)

    return rule


def _product(op: Any) -> Rule:
    """``beta * x + alpha * op(a, b)``."""

    def rule(self: _Numbers, x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        wide = self.wide()
        product = self.to(self.call(op, a, b), wide)
        x = self.to(x, wide)
        if isinstance(alpha, fx.Node) or alpha != 1:
            product = self.call(aten.mul.Tensor, product, self.operand(alpha, wide))
        if isinstance(beta, fx.Node):
            # With 0 the summand does not count, whatever it holds.
            self.ask(beta.meta["val"] != 0)
        elif beta == 0:
            return product
        if isinstance(beta, fx.Node) or beta != 1:
            x = self.call(aten.mul.Tensor, x, self.operand(beta, wide))
        return self.call(aten.add.Tensor, x, product)

    return rule


def _fma(self: _Numbers, a: Any, b: Any, c: Any) -> fx.Node:
    a, b, c = (self.operand(value, self.wide()) for value in (a, b, c))
    return self.call(aten.add.Tensor, self.call(aten.mul.Tensor, a, b), c)


_RULES: dict[Any, Rule] = {
    **{
        overload: _arithmetic(packet.Tensor)
        for packet in (aten.add, aten.sub, aten.mul, aten.div)
        for overload in (packet.Tensor, packet.Scalar)
    },
    aten.div.Tensor_mode: _arithmetic(aten.div.Tensor_mode),
    aten.floor_divide.default: _pairwise(aten.floor_divide.default),
    aten.rsub.Scalar: _reverse_sub,
    **{
        getattr(aten, name).Scalar: _pairwise(getattr(aten, name).Tensor)
        for name in ("gt", "ge", "lt", "le", "eq", "ne", "fmod", "remainder")
    },
    **{
        overload: _pairwise(getattr(aten, name).Tensor)
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor")
        for overload in (getattr(aten, name).Scalar, getattr(aten, name).Tensor)
    },
    **dict.fromkeys((aten.pow.Tensor_Scalar, aten.pow.Tensor_Tensor, aten.pow.Scalar), _raised),
    aten.clamp.default: _clamp,
    aten.clamp_min.default: _clamp,
    aten.clamp_max.default: lambda self, x, high: _clamp(self, x, None, high),
    aten.hardtanh.default: _clamp,
    aten.scalar_tensor.default: _filled(0),
    aten.full.default: _filled(1),
    aten.full_like.default: _filled(1),
    aten.fill.Scalar: _filled(1),
    aten.masked_fill.Scalar: _masked_fill,
    aten.lerp.Scalar: _lerp,
    aten.leaky_relu.default: _leaky,
    aten.leaky_relu_backward.default: _leaky_backward,
    aten.addcmul.default: _added(aten.mul.Tensor),
    aten.addcdiv.default: _added(aten.div.Tensor),
    aten.addmm.default: _product(aten.mm.default),
    aten.baddbmm.default: _product(aten.bmm.default),
    torch.ops.prims.fma.default: _fma,
}
