"""Which higher-order operators are compiled, and what their arguments are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

# By name: the operators themselves are registered when something that uses them is imported.
COND, WHILE_LOOP, SCAN = "cond", "while_loop", "scan"


@dataclass(frozen=True)
class ControlFlow:
    """One higher-order operation, taken apart.

    Attributes:
        kind: :data:`COND`, :data:`WHILE_LOOP` or :data:`SCAN`.
        bodies: the nodes of its graphs: of ``cond`` what is done if true and if false, of
            ``while_loop`` condition and body, of ``scan`` the step.
        operands: what the operation reads, in order. Of ``cond``: the predicate, then the operands
            of both graphs; of ``while_loop``: what is carried, then what else its graphs read; of
            ``scan``: what is carried, what is scanned (along dimension 0), what else is read.
        carried: number of operands that are carried from one iteration to the next.
        scanned: number of operands that are passed slice by slice.
    """

    kind: str
    bodies: tuple[fx.Node, ...]
    operands: tuple[Any, ...]
    carried: int = 0
    scanned: int = 0

    @classmethod
    def of(cls, node: fx.Node) -> ControlFlow:
        """Take apart a node for which :func:`is_control_flow` holds."""
        kind = kind_of(node)
        if kind == COND:
            predicate, then, otherwise, operands = node.args
            return cls(kind, (then, otherwise), (predicate, *operands))  # type: ignore
        if kind == WHILE_LOOP:
            condition, body, carried, others = node.args
            return cls(kind, (condition, body), (*carried, *others), len(carried))  # type: ignore
        assert kind == SCAN, f"{node.target} is no control flow"
        step, carried, scanned, others = node.args
        operands = (*carried, *scanned, *others)  # type: ignore
        return cls(kind, (step,), operands, len(carried), len(scanned))  # type: ignore


def is_control_flow(node: fx.Node) -> bool:
    """Whether a node is an operation that :class:`ControlFlow` takes apart."""
    return kind_of(node) in (COND, WHILE_LOOP, SCAN)


def kind_of(node: fx.Node) -> str:
    """The name of a higher-order operator; empty for every other node."""
    target = node.target
    return target.name() if isinstance(target, torch._ops.HigherOrderOperator) else ""


def graphs_of(module: torch.nn.Module, node: fx.Node) -> Iterator[fx.GraphModule]:
    """The graphs of a control-flow node of ``module``."""
    for body in ControlFlow.of(node).bodies:
        found: Any = module
        for part in str(body.target).split("."):
            found = getattr(found, part)
        yield found
