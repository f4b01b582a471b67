"""A jaxpr as the planner of partitions sees it, and its execution in parts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any

from jax.extend.core import ClosedJaxpr, Literal, Var

from polyblocks import driver
from polyblocks.errors import PassError, UnsupportedError
from polyblocks.frontends import programs
from polyblocks.frontends.partition import UNSUPPORTED, Operations, Step, Why, run_probes, why
from polyblocks.options import CompileOptions
from polyblocks.registry.honoured_options import describe_target
from polyblocks_jax.capture import JaxCapture, capture_jaxpr
from polyblocks_jax.jaxprs.evaluate import evaluate
from polyblocks_jax.jaxprs.inline import Flat
from polyblocks_jax.location import source_location

#: The name under which the driver finds this frontend.
FRONTEND = "jax"


#: Primitives whose time does not follow from the size of what they read and give.
_HOLD_LOOPS = ("while", "scan", "cond")


class Equations(Operations):
    """The equations of a flat jaxpr; see :func:`polyblocks_jax.jaxprs.inline.flatten`."""

    def __init__(self, flat: Flat, name: str, options: CompileOptions) -> None:
        self.closed = closed = flat.closed
        self.sites = flat.sites
        self.name = name
        self.options = options
        self.eqns = closed.jaxpr.eqns
        self.producer = {v: i for i, eqn in enumerate(self.eqns) for v in eqn.outvars}
        self.constants = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))

    def __len__(self) -> int:
        return len(self.eqns)

    def operands(self, node: int) -> Collection[int]:
        """The equations whose results this one reads."""
        variables = (v for v in self.eqns[node].invars if isinstance(v, Var))
        return {self.producer[v] for v in variables if v in self.producer}

    def op_name(self, node: int) -> str:
        """The primitive's name, with that of the function where it is a call."""
        eqn = self.eqns[node]
        name = eqn.params.get("name")
        return f"{eqn.primitive.name} {name}" if isinstance(name, str) else eqn.primitive.name

    def location(self, node: int) -> str:
        """Where the user's source says so."""
        return source_location(self.eqns[node])

    def has_loops(self, nodes: Sequence[int] | None = None) -> bool:
        """Whether some of the equations, or all, hold a loop."""
        chosen = self.eqns if nodes is None else [self.eqns[node] for node in nodes]
        return any(eqn.primitive.name in _HOLD_LOOPS for eqn in chosen)

    def is_ordered(self, node: int) -> bool:
        """Whether it prints, calls back, or has another effect."""
        return bool(self.eqns[node].effects)

    def obvious(self) -> dict[int, Why]:
        """The equations with effects."""
        return {
            node: (_reason(self.eqns[node].effects), UNSUPPORTED)
            for node in range(len(self))
            if self.is_ordered(node)
        }

    def part(self, nodes: Sequence[int]) -> tuple[ClosedJaxpr, list[Var], list[Var]]:
        """Some equations as a function, the variables that it reads, and those that it gives."""
        jaxpr = self.closed.jaxpr
        inside = set(nodes)
        made = {v for node in nodes for v in self.eqns[node].outvars}
        read = dict.fromkeys(
            v
            for node in nodes
            for v in self.eqns[node].invars
            if isinstance(v, Var) and v not in made
        )
        constants = [v for v in read if v in self.constants]
        inputs = [v for v in read if v not in self.constants]
        needed = self._needed
        outputs = [
            v for node in nodes for v in self.eqns[node].outvars if needed.get(v, set()) - inside
        ]
        sub = jaxpr.replace(
            constvars=constants,
            invars=inputs,
            outvars=outputs,
            eqns=[self.eqns[node] for node in sorted(nodes)],
            debug_info=jaxpr.debug_info._replace(arg_names=None, result_paths=None),
        )
        return ClosedJaxpr(sub, [self.constants[v] for v in constants]), inputs, outputs

    @functools.cached_property
    def _needed(self) -> dict[Any, set[int]]:
        """Variable -> the equations that read it; -1 stands for the function's results."""
        users: dict[Any, set[int]] = {}
        for node, eqn in enumerate(self.eqns):
            for v in eqn.invars:
                if isinstance(v, Var):
                    users.setdefault(v, set()).add(node)
        for v in self.closed.jaxpr.outvars:
            if isinstance(v, Var):
                users.setdefault(v, set()).add(-1)
        return users

    def capture(self, nodes: Sequence[int]) -> JaxCapture:
        """The capture of a part."""
        return capture_jaxpr(self.part(nodes)[0], self.name)

    def compile(self, nodes: Sequence[int]) -> None:
        """Compile a part, so that it is in the cache."""
        programs.obtain_part(self.capture(nodes), FRONTEND, self.options)

    def probe(self, nodes: Sequence[int]) -> dict[int, Why]:
        """The equations that fail alone: first in the import, which is quick, else in all stages.

        Equal equations are probed once.
        """
        failed: dict[int, Why] = {}
        groups: dict[bytes, tuple[JaxCapture, list[int]]] = {}
        for node in nodes:
            try:
                capture = self.capture([node])
            except UnsupportedError as error:
                failed[node] = why(error)
                continue
            if capture.results:
                groups.setdefault(capture.digest, (capture, []))[1].append(node)
        if failed:
            return failed
        captures = [capture for capture, _ in groups.values()]
        if captures:
            captures[0].prepare_import()
        for attempt in (_import, functools.partial(_compile, options=self.options)):
            outcomes = run_probes(captures, attempt)
            for capture, outcome in zip(captures, outcomes, strict=True):
                if outcome is not None:
                    failed.update(dict.fromkeys(groups[capture.digest][1], outcome))
            if failed:
                break
        return failed

    def evaluate(
        self,
        steps: Sequence[Step],
        run_part: Callable[[Sequence[int], list[Any]], Sequence[Any]],
        args: Sequence[Any],
    ) -> list[Any]:
        """Run the steps in order, while JAX traces.

        Args:
            steps: see :func:`polyblocks.frontends.partition.order`.
            run_part: of the equations of a part and of what they read.
            args: the function's arguments.
        """
        values: dict[Any, Any] = dict(self.constants)
        values.update(zip(self.closed.jaxpr.invars, args, strict=True))
        for step in steps:
            part, inputs, outputs = self.part(step.nodes)
            operands = [values[v] for v in inputs]
            if step.compiled:
                results = run_part(step.nodes, operands)
            else:
                results = evaluate(part, *operands)
            values.update(zip(outputs, results, strict=True))
        return [v.val if isinstance(v, Literal) else values[v] for v in self.closed.jaxpr.outvars]


def _reason(effects: Collection[Any]) -> str:
    """Why only JAX can run what has these effects."""
    if all(type(effect).__name__ == "NamedAxisEffect" for effect in effects):
        return "it takes part in what several devices do"
    return "an effect that only JAX can have at run time"


def _import(capture: JaxCapture) -> None:
    from polyblocks_jax.importer import import_capture

    import_capture(capture)


def _compile(capture: JaxCapture, options: CompileOptions) -> None:
    from polyblocks_jax.importer import import_capture

    description = describe_target(options)
    try:
        driver.compile_program(import_capture(capture), description, options)
    except PassError as error:
        raise UnsupportedError(str(error)) from error
