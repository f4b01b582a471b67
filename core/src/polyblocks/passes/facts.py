"""Facts about a module that passes need, establish and break: why a pipeline has its order.

A pass says so in three class attributes, each a set of names of :data:`FACTS`::

    class RollSumsPass(NestPass):
        name = "roll-sums"
        needs = frozenset({facts.NESTS, facts.UNFUSED})

A pipeline is checked by walking its passes from the first to the last, with the facts that hold;
see :func:`check`. A pass that says nothing needs nothing and breaks nothing. Facts of a plugin's
own are called ``plugin.fact``, with a dot.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

TENSORS = "tensors"
OWN_EMPTIES = "own-empties"
BOUND_ARGUMENTS = "bound-arguments"
BUFFERS = "buffers"
PROGRAM_LOOPS = "program-loops"
AFFINE_LOOPS = "affine-loops"
NESTS = "nests"
REDUCTIONS = "reductions"
ROLLED_REDUCTIONS = "rolled-reductions"
UNFUSED = "unfused"
PADDING = "padding"
KINDS = "kinds"
UNTILED = "untiled"
PLANS = "plans"
WHOLE_LOOPS = "whole-loops"
KERNELS = "kernels"
PLAIN_LOOPS = "plain-loops"
STAGED_OPERANDS = "staged-operands"

#: Every fact of the core, and what it says of the module.
FACTS: Mapping[str, str] = {
    TENSORS: "values are tensors, which operations take and return",
    OWN_EMPTIES: "every destination of an operation is a `tensor.empty` of its own",
    BOUND_ARGUMENTS: "results are written to arguments, which say where they come from",
    BUFFERS: "values are buffers, which operations read and write",
    PROGRAM_LOOPS: "all loops are the program's own",
    AFFINE_LOOPS: "operations on arrays are loops with affine bounds",
    NESTS: "the model of nests can be read: scalar code in loops, none of which runs just once",
    REDUCTIONS: "a reduction carries its values from iteration to iteration, not through memory",
    ROLLED_REDUCTIONS: "all reductions are loops, the short ones among them",
    UNFUSED: "a nest computes what one operation of the program does; copies may be part of it",
    PADDING: "all padding of operations is stored as zeros, which loads and stores say",
    KINDS: "every nest has a kind and a name",
    UNTILED: "no nest runs in tiles",
    PLANS: "contractions to tile have a schedule",
    WHOLE_LOOPS: "no loop was cut into parts",
    KERNELS: "every nest says how a grid of threads runs it",
    PLAIN_LOOPS: "copies into panels are loops like others",
    STAGED_OPERANDS: "contractions in tiles say how their operands are copied and waited for",
}
_NAMES = frozenset(FACTS)
#: Facts about a program as a frontend hands it over.
AT_START = frozenset({TENSORS})
#: Passes of upstream -> what they break, in whichever textual pipeline they are.
UPSTREAM_BREAKS: Mapping[str, frozenset[str]] = {"cse": frozenset({OWN_EMPTIES})}


def declared(p: Any, what: str) -> frozenset[str]:
    """The facts that a pass ``needs``, ``establishes`` or ``breaks``.

    Raises:
        ValueError: a name is no fact, or the attribute is no set of names.
    """
    names: Any = getattr(p, what, frozenset())
    if isinstance(names, frozenset) and names <= _NAMES:
        return names
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ValueError(
            f"'{what}' of pass '{p.name}': expected a set of names of facts, got {names!r}"
        )
    for name in (found := frozenset(names)):
        if name in FACTS or "." in name:
            continue
        near = difflib.get_close_matches(name, FACTS, 1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise ValueError(
            f"'{what}' of pass '{p.name}': '{name}' is no fact; {hint}the facts are "
            f"{', '.join(FACTS)}; one of a plugin is called plugin.fact"
        )
    return found


def check(passes: Sequence[tuple[str, Any]], former: Sequence[Any] = ()) -> None:
    """Check that what each pass needs holds where it stands.

    Args:
        passes: stage and pass, in order.
        former: passes that were in the pipeline before; an error names those that help.

    Raises:
        ValueError: names the pass, the missing fact, and the pass that would establish it.
    """
    holding = set(AT_START)
    broken_by: dict[str, str] = {}
    for position, (stage, p) in enumerate(passes):
        for fact in sorted(declared(p, "needs") - holding):
            meaning = f" ({FACTS[fact]})" if fact in FACTS else ""
            raise ValueError(
                f"pass '{p.name}' (stage {stage}) needs '{fact}'{meaning}, which does not hold "
                f"there: {_advice(passes, position, fact, broken_by.get(fact), former)}"
            )
        breaks, establishes = declared(p, "breaks"), declared(p, "establishes")
        broken_by |= dict.fromkeys(breaks & holding, p.name)
        holding = holding - breaks | establishes


def _advice(
    passes: Sequence[tuple[str, Any]],
    position: int,
    fact: str,
    breaker: str | None,
    former: Sequence[Any],
) -> str:
    """The reason why a fact does not hold at a pass, and where to put that."""
    name = passes[position][1].name

    def establishing(candidates: Iterable[Any]) -> str:
        found = (p.name for p in candidates if fact in declared(p, "establishes"))
        return next(found, "")

    earlier = establishing(p for _, p in passes[:position])
    later = establishing(p for _, p in passes[position + 1 :])
    gone = establishing(former)
    if breaker is not None:
        after = f"after '{earlier}' and " if earlier else ""
        return f"'{breaker}' has broken it; put '{name}' {after}before '{breaker}'"
    if later:
        return f"'{later}' establishes it later; put '{name}' after '{later}'"
    if gone:
        return f"'{gone}' would establish it, which was taken out; take '{name}' out as well"
    return f"no pass of this pipeline establishes it; put one that does before '{name}'"
