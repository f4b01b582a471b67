"""Where an element that a graph of Dynamo gathers may be a copy, although eager mode has a view.

It may where no program sees the difference: neither it nor what it is taken from is updated
while the element is read, and no result shows it beside memory that lives on.
``x[k] += y`` updates the element and stores it again at once, which may be a copy as well.
"""

from __future__ import annotations

import operator
from typing import Any

from torch import fx

from polyblocks_torch.arguments.overlapping_updates import updated_by
from polyblocks_torch.elements.operators import element, store_element
from polyblocks_torch.specs import memory_key

#: In a node's ``meta``: how often what an element is taken from, and the element, were updated
#: when it was taken.
VERSION = "polyblocks_versions"


def version_of(node: fx.Node) -> int | None:
    """How often a node's value was updated so far; None where PyTorch does not count."""
    value: Any = node.meta.get("example_value")
    try:
        return int(value._version)
    except (AttributeError, RuntimeError):  # tensors of inference mode
        return None


def visible_copy(gm: fx.GraphModule) -> fx.Node | None:
    """An element of a graph, or of one inside, that must be a view."""
    for graph in (module.graph for module in _modules(gm)):
        found = [node for node in graph.nodes if node.target is element]
        looked = _Look(graph) if found else None
        for node in found:
            if looked is not None and looked.shows(node):
                return node
    return None


def views_again(gm: fx.GraphModule) -> None:
    """Index as Python does, which only PyTorch can run."""
    for module in _modules(gm):
        for node in module.graph.nodes:
            node.target = _OF_PYTHON.get(node.target, node.target)
        module.recompile()


_OF_PYTHON: dict[Any, Any] = {element: operator.getitem, store_element: operator.setitem}


def _modules(gm: fx.GraphModule) -> list[fx.GraphModule]:
    return [module for module in gm.modules() if isinstance(module, fx.GraphModule)]


class _Look:
    """One look at a graph of Dynamo.

    Args:
        graph: where elements are taken.
    """

    def __init__(self, graph: fx.Graph) -> None:
        self.nodes = list(graph.nodes)
        self.places = {node: i for i, node in enumerate(self.nodes)}
        #: A place in the graph -> the memories that its node reads or updates.
        self.read = [{_memory(n) for n in node.all_input_nodes} - {None} for node in self.nodes]
        self.updated = [{_memory(n) for n in _written(node)} - {None} for node in self.nodes]
        self.given = {_memory(n) for n in self.nodes if n.op in ("placeholder", "get_attr")}
        self.results = self.read[-1]

    def shows(self, node: fx.Node) -> bool:
        """Whether a program sees that an element is a copy."""
        base: Any = node.args[0]
        source, copy, place = _memory(base), _memory(node), self.places[node]
        if source is None or copy is None:
            return True
        if copy in self.results and source in self.given | self.results:
            return True
        after = range(place + 1, len(self.nodes))
        last = max((i for i in after if copy in self.read[i]), default=place)
        stored = self._stored(node, copy, source, last)
        if stored is not None:
            # The update of what it is taken from is the last that reads the element.
            last = stored
        updates = [i for i in after if i < last and self._reaches(i, source)]
        if stored is None and any(copy in self.updated[i] for i in after):
            return True
        if updates:
            return True
        return self._uncounted(node, base, source, copy)

    def _reaches(self, place: int, source: int) -> bool:
        """Whether a node may update a memory; two arguments may be one memory."""
        updated = self.updated[place]
        return source in updated or (source in self.given and bool(updated & self.given))

    def _stored(self, node: fx.Node, copy: int, source: int, last: int) -> int | None:
        """Where an updated element is stored at its place again, with nothing read between."""
        store = self.nodes[last]
        if store.target is not store_element or store.args[:2] != node.args[:2]:
            return None
        value = store.args[2]
        if not isinstance(value, fx.Node) or _memory(value) != copy:
            return None
        first = self.places[node] + 1
        whole = value.meta["example_value"].shape == node.meta["example_value"].shape
        if not whole or any(source in self.read[i] for i in range(first, last)):
            return None
        return last

    def _uncounted(self, node: fx.Node, base: fx.Node, source: int, copy: int) -> bool:
        """Whether PyTorch counts updates that no node of the graph shows."""
        later = self.updated[self.places[node] + 1 :]
        counted = node.meta.get(VERSION, (None, None))
        for before, now, memory in zip(
            counted, (version_of(base), version_of(node)), (source, copy), strict=True
        ):
            if before is None or now is None:
                return True
            if before != now and not any(memory in updated for updated in later):
                return True
        return False


#: Functions that update statistics among their operands without saying so.
_OF_STATISTICS = frozenset({"batch_norm", "instance_norm", "native_batch_norm"})


def _written(node: fx.Node) -> list[fx.Node]:
    """The nodes that a node may update."""
    schema = getattr(node.target, "_schema", None)
    if schema is not None and schema.is_mutable:
        return node.all_input_nodes
    if node.target is store_element:
        return node.all_input_nodes[:1]
    written = list(updated_by(node))
    if getattr(node.target, "__name__", "") in _OF_STATISTICS:
        written += node.all_input_nodes[1:]
    return written


def _memory(node: fx.Node) -> int | None:
    return memory_key(node.meta.get("example_value"))
