"""Stages: nests in the form that slices are taken of, with what one iteration of them costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Set
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.analysis.dataflow import variables_of
from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    AffineAccess,
    Alloca,
    Buffer,
    Check,
    For,
    IndirectLoad,
    IndirectStore,
    Load,
    Nest,
    Node,
    Store,
    Value,
    walk,
    walk_with_trips,
)


@dataclass(frozen=True)
class Place:
    """How a store walks one dimension: ``step * var + at``, or ``at`` alone.

    With ``whole`` inner loops walk it, or several loops together: a slice takes all of it.
    """

    var: Var | None
    at: int
    whole: bool = False
    step: int = 1

    def range(self, extent: int) -> tuple[int, int]:
        """The first index that is walked and the one after the last, in so long a dimension."""
        if self.whole:
            return 0, extent
        return self.at, self.at + (1 if self.var is None else self.step * (self.var.extent - 1) + 1)

    def values(self, span: tuple[Expr, Expr]) -> tuple[Expr, Expr]:
        """The first and the last value of the variable with which it is within a span."""
        low, high = span
        return (low - self.at + (self.step - 1)) // self.step, (high - self.at) // self.step

    def reached(self, span: tuple[Expr, Expr]) -> tuple[Expr, Expr]:
        """The first and the last index that values of the variable from a span give."""
        low, high = span
        return low * self.step + self.at, high * self.step + self.at


@dataclass
class FusionStage:
    """A nest of independent outer loops that writes each element of a box once.

    Attributes:
        nest: the nest itself.
        loops: its outer parallel loops, nested perfectly.
        body: what is inside the innermost of them; reductions and scans are there.
        loads: all affine loads.
        gathered: buffers that are read at run-time indices.
        checked: whether some iteration may fail a check, so that all of them have to run.
        stores: all stores.
        slots: lanes of vector instructions that one iteration of ``loops`` takes, of a vector of
            elements of four bytes.
        seconds: of a contraction in register tiles, whose rows and columns share what they load,
            the predicted time. Tiles of its group then are parts of equal size.
    """

    nest: Nest
    loops: list[For]
    body: list[Node]
    loads: list[Load]
    gathered: set[Buffer]
    checked: bool
    stores: list[Store]
    slots: float
    seconds: float | None = None
    _places: dict[Store, list[Place] | None] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, nest: Nest, checks: bool = False) -> FusionStage | None:
        """The nest as a stage; None if no slice of it can be computed alone.

        Args:
            nest: the nest.
            checks: whether it may have some, of what differs along several loops. Places that
                count along one are a table's, which other passes make affine.
        """
        nodes = list(walk(nest.body))
        if any(isinstance(n, (IndirectStore, Alloca)) for n in nodes):
            return None
        checked = any(isinstance(n, Check) for n in nodes)
        if checked and not (checks and _checks_data(nodes)):
            return None
        if any(isinstance(n, For) and (n.bounded or n.level) for n in nodes):
            return None
        loops: list[For] = []
        body = nest.body
        while len(body) == 1 and isinstance(body[0], For) and not body[0].inits:
            if not is_parallel(body[0], nest.body):
                break
            loops.append(body[0])
            body = body[0].body
        stores = [n for n in nodes if isinstance(n, Store)]
        if not stores:
            return None
        loads = [n for n in nodes if isinstance(n, Load)]
        gathered = {n.buffer for n in nodes if isinstance(n, IndirectLoad)}
        stage = cls(nest, loops, body, loads, gathered, checked, stores, slots(body))
        if all(stage.walks_columns(store) for store in stores):
            return stage
        # Loops that together walk one dimension walk it as a whole: of these stages, rows.
        for count in range(len(loops), 0, -1):
            stage = cls(nest, loops[:count], body, loads, gathered, checked, stores, slots(body))
            if all(stage.places(store) is not None for store in stores):
                return stage
            body = [loops[count - 1]]
        body = loops[-1].body if loops else body
        return cls(nest, loops, body, loads, gathered, checked, stores, slots(body))

    def take(self, seconds: float, rate: float) -> None:
        """Let it take so long, on all threads, as a contraction in register tiles.

        Args:
            seconds: the predicted time.
            rate: lanes of vector instructions of four bytes that the threads do in a second.
        """
        self.seconds = seconds
        iterations = prod(v.extent for v in self.variables)
        self.slots = seconds * rate / max(iterations, 1) / self.width

    @cached_property
    def strided(self) -> bool:
        """Whether it leaves out elements between those that it stores."""
        places = (place for store in self.stores for place in self.places(store) or ())
        return any(place.step != 1 for place in places)

    @cached_property
    def width(self) -> float:
        """Lanes of four bytes that an element takes which it stores."""
        return max(max(n.buffer.bytes_per_element for n in self.stores) / 4, 0.25)

    @cached_property
    def accesses(self) -> list[AffineAccess]:
        """All loads and stores."""
        return [*self.loads, *self.stores]

    @cached_property
    def touched(self) -> dict[Buffer, int]:
        """How many loads and stores there are of each buffer, in order of the first."""
        return dict(Counter(n.buffer for n in self.accesses))

    def elements_loaded(self, buffers: Set[Buffer]) -> dict[Buffer, int]:
        """How many elements of each of some buffers an iteration of its outer loops loads."""
        found: Counter[Buffer] = Counter()
        for node, trips in walk_with_trips(self.body) if buffers else ():
            if isinstance(node, Load) and node.buffer in buffers:
                found[node.buffer] += trips
        return dict(found)

    @cached_property
    def body_is_flat(self) -> bool:
        """Whether its innermost outer loop is the innermost loop of all."""
        return not any(isinstance(n, For) for n in self.body)

    @cached_property
    def variables(self) -> list[Var]:
        """The variables of the outer loops."""
        return [loop.var for loop in self.loops]

    def places(self, store: Store) -> list[Place] | None:
        """For each dimension of what is stored how it is walked; None if not in such a way."""
        if store not in self._places:
            self._places[store] = self._walk(store)
        return self._places[store]

    def fills_rows(self, store: Store) -> bool:
        """Whether it stores to all elements of each row that it stores to."""
        places = self.places(store)
        if not places:
            return True
        columns = store.buffer.shape[-1]
        return places[-1].step == 1 and places[-1].range(columns) == (0, columns)

    def walks_columns(self, store: Store) -> bool:
        """Whether loops around the innermost one walk a dimension together, and that another one.

        From now on they walk it as a whole then, so that tiles are columns.
        """
        if store not in self._places and len(self.loops) > 2:
            places = self._walk(store, together=True)
            last = self.variables[-1]
            if places is not None and any(p.var is last and p.step == 1 for p in places):
                self._places[store] = places
        return self._places.get(store) is not None

    def _walk(self, store: Store, together: bool = False) -> list[Place] | None:
        found: list[Place] = []
        outer = set(self.variables)
        seen: set[Var] = set()
        for expr in store.index:
            if expr.is_constant:
                found.append(Place(None, expr.const))
                continue
            if not outer.intersection(expr.variables()) and all(
                v.value is None for v in expr.variables()
            ):
                found.append(Place(None, 0, whole=True))
                continue
            variables = outer.intersection(expr.variables())
            walked = together and all(v.value is None for v in expr.variables())
            if walked and len(variables) > 1 and variables.isdisjoint(seen):
                seen |= variables
                found.append(Place(None, 0, whole=True))
                continue
            if len(expr.terms) != 1:
                return None
            ((atom, coefficient),) = expr.terms
            if not isinstance(atom, Var) or coefficient < 1 or atom in seen:
                return None
            if atom.value is not None:
                # A place that a loop around the nest moves.
                return None
            seen.add(atom)
            found.append(Place(atom, expr.const, step=coefficient))
        # A loop of one iteration leaves no trace in an index.
        if any(v not in seen and v.extent != 1 for v in outer):
            return None
        return found


def _checks_data(nodes: list[Node]) -> bool:
    """Whether all checks are of values that differ along several loops."""
    along: dict[Value, set[Var]] = {}
    for node in nodes:
        if isinstance(node, Check):
            if len(along.get(node.condition, ())) < 2:
                return False
            continue
        found = variables_of([node]).union(*(along.get(value, ()) for value in node.uses))
        along.update(dict.fromkeys(node.defines, found))
    return True


def slots(nodes: list[Node], registers: Container[Buffer] = ()) -> float:
    """Lanes of vector instructions of one execution, all inner iterations together.

    Arithmetic, loads and stores overlap; a chip does about as many loads as operations at a time
    and half as many stores. Accesses of buffers in ``registers`` are none.
    """
    operations = float(cost.operations([n for n in nodes if not isinstance(n, For)]))
    accesses = 0.0
    inner = 0.0
    for node in nodes:
        if isinstance(node, For):
            inner += node.trips * slots(node.body, registers)
        elif isinstance(node, AffineAccess) and node.buffer not in registers:
            accesses += 1.0 if isinstance(node, Load) else 2.0
    return max(operations, accesses) + 0.25 * min(operations, accesses) + inner


def lifetimes(stages: list[FusionStage], local: set[Buffer]) -> dict[Buffer, tuple[int, int]]:
    """The first and the last stage that touches each local buffer, in order of the first."""
    found: dict[Buffer, tuple[int, int]] = {}
    for i, stage in enumerate(stages):
        for buffer in stage.touched:
            if buffer in local:
                found[buffer] = (found.get(buffer, (i, i))[0], i)
    return found


def full(var: Var) -> tuple[Expr, Expr]:
    """The span of all values of a variable."""
    return Expr(0), Expr(max(var.extent - 1, 0))


__all__ = ["FusionStage", "Place", "full", "lifetimes", "slots"]
