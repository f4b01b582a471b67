"""Frozen weights: what depends on them alone is computed once, as long as they are the same.

That they are the same is checked at each call: the same tensors, at the same addresses, with the
same versions. PyTorch counts a tensor's version up with every in-place operation, also under
``no_grad`` and in inference mode; optimizers and ``load_state_dict`` are such operations. Writes
through ``.data`` or NumPy are not detected, which is why freezing weights is an option and not the
default.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import torch
from torch import fx, nn

from polyblocks.errors import InputError
from polyblocks.runtime.kept.memory import Kept
from polyblocks.runtime.kept.preparer import Preparer
from polyblocks_torch.launch.memory_of import has_memory
from polyblocks_torch.threads import thread_count

#: Both run without Python code of ours for each of the tensors: 0.055 µs apiece.
_address_of = torch.Tensor.data_ptr
_version_of: Callable[[torch.Tensor], int] = attrgetter("_version")


def weights_of(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> tuple[bool, ...]:
    """Which arguments of Dynamo's graph are parameters, or tensors that modules hold.

    Running statistics are none: normalizations that train write to them without counting their
    versions.
    """
    nodes = [n for n in gm.graph.nodes if n.op == "placeholder"]
    return tuple(
        isinstance(value, nn.Parameter)
        or (isinstance(value, torch.Tensor) and _is_held(node) and not _is_statistic(node))
        for node, value in zip(nodes, example_inputs, strict=False)
    )


def _is_held(node: fx.Node) -> bool:
    source = getattr(node.meta.get("grapharg"), "source", None)
    place = getattr(source, "guard_source", None)
    return "NN_MODULE" in getattr(place, "name", "")


def _is_statistic(node: fx.Node) -> bool:
    """Whether a buffer is called so, or is an operand of a normalization."""
    return "running_" in node.name or any("_norm" in str(user.target) for user in node.users)


@dataclass(eq=False)
class _Prepared:
    """The prepared arrays of one set of weights, and the weights' state at that time."""

    addresses: list[int]
    versions: list[int]
    kept: Kept
    watched: list[weakref.ref[torch.Tensor]]


class FrozenWeights:
    """Prepared arrays of one compiled function, for each set of weights that it is called with.

    A module that is compiled once may run with the weights of several: each has its own. With the
    first of its weights that dies, what was prepared of a set is freed.

    Args:
        preparer: of the program.
        num_threads: threads of a preparation; None for those of a call.
    """

    def __init__(self, preparer: Preparer, num_threads: int | None) -> None:
        self._preparer = preparer
        self._num_threads = num_threads
        self._sets: dict[tuple[int, ...], _Prepared] = {}

    def find(self) -> Callable[[tuple[torch.Tensor, ...]], Kept]:
        """A function from the weights that the preparation reads, in order, to what is kept."""
        sets, prepare = self._sets, self._prepare
        address_of, version_of = _address_of, _version_of

        def find(weights: tuple[torch.Tensor, ...]) -> Kept:
            # By identity: none of the tensors has died since, or the set would be gone.
            found = sets.get(tuple(map(id, weights)))
            if (
                found is None
                or [*map(address_of, weights)] != found.addresses
                or [*map(version_of, weights)] != found.versions
            ):
                return prepare(weights)
            return found.kept

        return find

    def _prepare(self, weights: tuple[torch.Tensor, ...]) -> Kept:
        addresses = [*map(_address_of, weights)]
        if not all(map(has_memory, weights)):
            raise InputError("a frozen weight has no memory; expected tensors with data")
        try:
            # Before their contents are read: a change in between then counts as one.
            versions = [*map(_version_of, weights)]
        except RuntimeError:
            # Tensors made in inference mode have no version; nothing is known of the next call.
            versions = None
        # A new one: another thread may be running with what was kept before.
        kept = self._preparer(addresses, self._num_threads or thread_count())
        key = tuple(map(id, weights))
        if versions is None:
            return kept
        # A function of these alone: the dictionary must not keep itself alive.
        sets = self._sets

        def forget(_: Any) -> None:
            sets.pop(key, None)

        watched = [weakref.ref(weight, forget) for weight in weights]
        self._sets[key] = _Prepared(addresses, versions, kept, watched)
        return kept
