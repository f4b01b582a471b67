"""Record ATen operations as nodes of a graph while they run on fake tensors.

This is what ``make_fx`` does, without what it does for code that is not known to be functional,
static and of plain tensors: proxies, a copy of every value, a Python stack for every node. Where
that is known (see :mod:`polyblocks_torch.recording.direct` and
:mod:`polyblocks_torch.recording.retrace`), recording an operation costs a tenth of tracing it.
"""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode, autograd_would_have_decomposed

from polyblocks_torch.importing.checks import CHECK
from polyblocks_torch.importing.opmath import is_narrow
from polyblocks_torch.recording.fake_results import result_of
from polyblocks_torch.recording.result_strides import as_in_eager
from polyblocks_torch.specs import memory_key, storage_key

aten = torch.ops.aten

_NUMBERS_AND_NAMES = (
    int, float, bool, complex, str, torch.dtype, torch.device, torch.layout, torch.memory_format,
)  # fmt: skip


class CannotRecord(Exception):
    """The code does something that a functional graph of static shapes cannot hold."""


class Writes(CannotRecord):
    """It changes a tensor in place."""


class Recorder(TorchDispatchMode):
    """While active, every ATen operation becomes a node with ``meta["val"]``.

    Tensors that are not fake (``torch.tensor([1.0])`` makes one) become constants of the graph.

    Args:
        graph: receives the nodes.
        mode: the fake tensor mode; active outside of this one.
        table: operations to run as something else, as in ``make_fx``'s ``decomposition_table``.
        attributes: receives the constants, under the names of their ``get_attr`` nodes.
        functionalize: whether an update in place becomes a new value (``relu_`` becomes ``relu``)
            where what it changes was recorded and shares its memory with nothing else.
    """

    def __init__(
        self,
        graph: fx.Graph,
        mode: FakeTensorMode,
        table: Mapping[Any, Callable[..., Any]],
        attributes: dict[str, Any],
        functionalize: bool = False,
    ) -> None:
        super().__init__()
        self.graph = graph
        self.mode = mode
        self.table = table
        self.attributes = attributes
        self.functionalize = functionalize
        self._stack_trace: str | None = None
        #: Nodes recorded since the last :meth:`begin`.
        self.made: set[fx.Node] = set()
        #: Results of operations that are deterministic and never updated.
        self._results: dict[Any, tuple[torch.Tensor, fx.Node]] = {}
        # By identity; the tensor is held, so that no other one gets its number.
        self._nodes: dict[int, tuple[torch.Tensor, fx.Node]] = {}
        #: How many of these tensors are in a memory.
        self._sharers: Counter[int | None] = Counter()

    def begin(self, origin: fx.Node) -> None:
        """Record replacements of ``origin`` from here on, with its ``stack_trace``."""
        self._stack_trace = origin.meta.get("stack_trace")
        self.made.clear()

    def track(self, value: torch.Tensor, node: fx.Node) -> None:
        """From here on ``value`` stands for ``node``."""
        if id(value) not in self._nodes:
            self._sharers[memory_key(value)] += 1
        self._nodes[id(value)] = value, node

    def node_for(self, value: torch.Tensor) -> fx.Node | None:
        """The node of a tensor, or None."""
        found = self._nodes.get(id(value))
        return found[1] if found is not None else None

    def node_of(self, value: torch.Tensor) -> fx.Node:
        """The node of a tensor.

        Raises:
            CannotRecord: a fake tensor that nothing recorded has made.
        """
        node = self.node_for(value)
        if node is not None:
            return node
        if isinstance(value, FakeTensor):
            raise CannotRecord("a fake tensor of unknown origin")
        return self._constant(value)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.prim.device.default and isinstance(args[0], FakeTensor):
            return args[0].fake_device  # PyTorch's bindings ask it of every operand
        if func.namespace == "prim":  # a question, too
            return func(*args, **kwargs)
        replacement = self.table.get(func)
        if replacement is not None:
            with self:
                result = replacement(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if is_composite(func) and autograd_would_have_decomposed(func, [*args, *kwargs.values()]):
            # Without the autograd keys (inference mode) it arrives here whole.
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if func._schema.is_mutable:
            return self._updated(func, args, kwargs)
        if torch.Tag.data_dependent_output in func.tags:
            raise CannotRecord(f"{func} gives a number that depends on data")
        if func is aten.detach.default and self.node_for(args[0]) in self.made:
            # PyTorch's bindings of functions that make a tensor do this to what they have made.
            result = func(*args)
            self.track(result, self.node_of(args[0]))
            return result
        if func is aten.lift_fresh.default:
            # Its operand is a constant now, which must not be updated, and is not.
            func = aten.lift_fresh_copy.default
        recorded = [self._recorded(value) for value in args]
        options = {name: self._recorded(value) for name, value in kwargs.items()}
        key = None if self.functionalize else (func, _key(recorded), _key(options))
        known = self._results.get(key)
        if known is not None:
            self.made.add(known[1])
            return known[0]
        result = result_of(self.mode, func, args, kwargs)
        if result is None:
            result = func(*args, **kwargs)
        if self.functionalize:
            result = as_in_eager(func, args, result)
        # Named as make_fx names it.
        node = self.graph.create_node(
            "call_function", func, tuple(recorded), options, name=func.overloadpacket.__name__
        )
        self._remember(node)
        self._bind(result, node)
        if key is not None and _is_repeatable(func, result, node):
            self._results[key] = result, node
        return result

    def _updated(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
        """Record an update in place as a new value; the updated tensor stands for that from now on.

        Raises:
            Writes: it cannot be said so.
        """
        functional = functional_of(func) if self.functionalize else None
        target = args[0] if args else None
        old = self.node_for(target) if isinstance(target, FakeTensor) else None
        if (
            functional is None
            or target is None
            or old is None
            or old.op != "call_function"
            or not self._is_alone(target)
        ):
            raise Writes(f"{func} changes its operand")
        with self:
            result = functional(*args, **kwargs)
        if result is target:
            return result
        if _layout(result) != _layout(target) or not self._is_alone(result):
            raise Writes(f"{func} changes its operand to something of another kind")
        new = self.node_of(result)
        # Views of it that come later share its memory, and their nodes must share the new value's.
        _set_value(old, result)
        _set_value(new, target)
        self.track(target, new)
        return target

    def _is_alone(self, value: torch.Tensor) -> bool:
        key = storage_key(value)
        return key is not None and self._sharers[key] == 1

    def _recorded(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.node_of(value)
        if value is None or type(value) in _NUMBERS_AND_NAMES or isinstance(value, torch.dtype):
            return value
        if isinstance(value, (list, tuple)):
            return [self._recorded(item) for item in value]
        raise CannotRecord(f"an operand of type {type(value).__name__}")

    def _bind(self, result: Any, node: fx.Node) -> None:
        if isinstance(result, FakeTensor):
            _check(result)
            node.meta["val"] = result
            self.track(result, node)
            return
        if result is None and node.target is CHECK:
            node.meta["val"] = None
            return
        if not isinstance(result, (list, tuple)) or not any(
            isinstance(item, FakeTensor) for item in result
        ):
            raise CannotRecord(f"{node.target} gives no tensor")
        node.meta["val"] = tuple(result) if type(result) is tuple else list(result)
        for index, item in enumerate(result):
            if isinstance(item, FakeTensor):
                _check(item)
                element = self.graph.call_function(operator.getitem, (node, index))
                self._remember(element)
                element.meta["val"] = item
                self.track(item, element)
            elif item is not None:
                raise CannotRecord(f"{node.target} gives a {type(item).__name__}")

    def _constant(self, value: torch.Tensor) -> fx.Node:
        if type(value) not in (torch.Tensor, torch.nn.Parameter):
            raise CannotRecord(f"a tensor of type {type(value).__name__}")
        node = self.attribute("_tensor_constant", value)
        node.meta["val"] = like(self.mode, value)
        self.track(value, node)
        return node

    def attribute(self, kind: str, value: Any) -> fx.Node:
        """A node for a constant or a graph, under a name that begins with ``kind``."""
        name = f"{kind}{len(self.attributes)}"
        while name in self.attributes:
            name += "_"
        self.attributes[name] = value
        node = self.graph.create_node("get_attr", name, name=name)
        self._remember(node)
        return node

    def append(self, function: Any, operands: tuple[Any, ...], result: Any) -> None:
        """Record a call with these operands, nodes among them, and its result."""
        node = self.graph.call_function(function, operands)
        self._remember(node)
        self._bind(result, node)

    def _remember(self, node: fx.Node) -> None:
        self.made.add(node)
        if self._stack_trace is not None:
            node.meta["stack_trace"] = self._stack_trace


def like(mode: FakeTensorMode, value: torch.Tensor) -> FakeTensor:
    """A fake tensor with memory of its own that looks as ``value`` does, and is no lazy view."""
    # As the mode makes it from a real tensor. To run a factory under the mode takes ten times as
    # long, and a network has hundreds of parameters.
    with torch._C._DisableTorchDispatch():
        empty = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
        return FakeTensor(mode, empty, value.device)


def _key(value: Any) -> Any:
    """A key that only equal operands share: 0, 0.0, -0.0 and False differ."""
    if isinstance(value, (list, tuple)):
        return tuple([_key(item) for item in value])
    if isinstance(value, dict):
        return tuple([(name, _key(item)) for name, item in value.items()])
    if isinstance(value, fx.Node):
        return value
    return type(value), repr(value) if isinstance(value, (float, complex)) else value


def _is_repeatable(func: Any, result: Any, node: fx.Node) -> bool:
    """Whether an operation that is recorded again may be the same node.

    Not a view: PyTorch takes note in each of what it is a view of. Not where numbers are rounded to
    16 bits: whether that may be left out depends on what a conversion is part of (see
    :func:`polyblocks_torch.importing.opmath.need_not_round`).
    """
    return (
        isinstance(result, FakeTensor)
        and not func.is_view
        and torch.Tag.nondeterministic_seeded not in func.tags
        and not is_narrow(result)
        and not any(is_narrow(operand.meta["val"]) for operand in node.all_input_nodes)
    )


def _layout(value: torch.Tensor) -> tuple[Any, ...]:
    return value.dtype, value.device, value.shape, value.stride(), value.storage_offset()


def _set_value(node: fx.Node, value: torch.Tensor) -> None:
    """Make ``value`` what a node has for its value, also as a part of what it was taken out of."""
    node.meta["val"] = value
    if node.target is operator.getitem:
        whole, index = node.args
        values = list(whole.meta["val"])  # type: ignore[union-attr]
        values[index] = value  # type: ignore[index]
        whole.meta["val"] = type(whole.meta["val"])(values)  # type: ignore[union-attr]


def _check(value: torch.Tensor) -> None:
    if value.requires_grad:
        raise CannotRecord("a tensor that requires a gradient")


@functools.cache
def is_composite(func: Any) -> bool:
    """Whether an op is implemented by others that PyTorch differentiates one by one."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")


@functools.cache
def functional_of(func: Any) -> Any:
    """The op that returns what ``func`` writes into its first operand and returns; None without.

    There is none where random numbers are drawn, or the operand would get another shape.
    """
    schema = func._schema
    base = func.overloadpacket.__name__.removesuffix("_")
    written = [a for a in schema.arguments if a.alias_info is not None]
    if (
        not func.overloadpacket.__name__.endswith("_")
        or written != schema.arguments[:1]
        or not written[0].alias_info.is_write
        or len(schema.returns) != 1
        or torch.Tag.inplace_view in func.tags
        or torch.Tag.nondeterministic_seeded in func.tags
    ):
        return None
    packet = getattr(getattr(torch.ops, func.namespace), base, None)
    found = getattr(packet, func._overloadname, None)
    if found is None or found._schema.is_mutable:
        return None
    kinds = [[(a.name, str(a.type)) for a in s.arguments] for s in (schema, found._schema)]
    return found if kinds[0] == kinds[1] else None
