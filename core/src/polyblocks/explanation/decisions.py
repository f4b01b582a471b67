"""Decisions in words, and the kernels that they ended up in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from polyblocks.explanation import units

Decision = dict[str, Any]

#: Keys of a decision that are not its numbers.
NAMES = ("pass", "nest", "what")
#: Decisions that say yes or no to something; the others just happened.
VERDICTS = {
    "fused": True,
    "epilogue": True,
    "merged": True,
    "forwarded": True,
    "split": True,
    "team": True,
    "vectors": True,
    "kept apart": False,
    "left whole": False,
    "serial": False,
    "scalar": False,
}
#: Keys whose values are names of other nests.
_PARTNERS = ("consumers", "with_")
#: What the passes tell the machinery and not the reader.
INTERNAL = ("renamed", "estimate")


def sentence(decision: Decision) -> str:
    """One decision for somebody who does not know the pass; all its numbers have a meaning."""
    make = _SENTENCES.get(decision.get("what", ""), _plain)
    return make(decision)


def _fused(d: Decision) -> str:
    if "fused_seconds" in d:
        return _tiled(d)
    if "consumers" not in d:
        return _plain(d)
    redundancy = d.get("redundancy", 1.0)
    text = f"fused {d['nest']} into {_list(d['consumers'])}: {_saved(d)} saved"
    if redundancy <= 1:
        return f"{text}, nothing is computed twice"
    text += f", but every element is computed {units.three(redundancy)} times"
    return text + _price(d)


def _apart(d: Decision) -> str:
    if "fused_seconds" in d:
        return _tiled(d)
    if "consumers" not in d:
        return _plain(d)
    text = (
        f"kept {d['nest']} and {_list(d['consumers'])} apart: fused, every element of "
        f"{_buffer(d)} would be computed {units.three(d.get('redundancy', 1.0))} times"
    )
    return text + _price(d)


def _price(d: Decision) -> str:
    """What computing again costs, beside what storing and loading does."""
    if "recompute_seconds" in d and "traffic_seconds" in d:
        recompute, traffic = d["recompute_seconds"], d["traffic_seconds"]
        return (
            f"; that costs {units.seconds(recompute)}, the way through memory "
            f"{units.seconds(traffic)}"
        )
    if "slots_anew" in d and "slots_stored" in d:
        return (
            f"; that takes {units.three(d['slots_anew'])} instructions per element, storing it "
            f"and loading it {units.three(d['slots_stored'])}"
        )
    return ""


def _tiled(d: Decision) -> str:
    accepted = d["what"] == "fused"
    others = _list(d.get("with_", ()))
    apart, fused = d["apart_seconds"], d["fused_seconds"]
    tile = units.shape(d.get("tile", ()))
    extra = max(0.0, d.get("redundancy", 1.0) - 1)
    again = f", computes {units.percent(extra)} again where tiles overlap" if extra else ""
    if accepted:
        kept = (
            f"; {units.nbytes(d['tile_bytes'])} per tile stay in cache" if d["tile_bytes"] else ""
        )
        return (
            f"fused {others} into {d['nest']} at tile {tile}: {_saved(d)} saved, "
            f"{units.seconds(fused)} instead of {units.seconds(apart)}{again}{kept}"
        )
    return (
        f"kept {others} and {d['nest']} apart: at the best tile, {tile}, it would take "
        f"{units.seconds(fused)}, apart {units.seconds(apart)}"
    )


def _epilogue(d: Decision) -> str:
    text = (
        f"moved {_list(d.get('consumers', ['its consumer']))} behind {d['nest']}, in the same loop"
    )
    if d.get("kept"):
        return f"{text}: {_buffer(d)} is written, but not read again"
    return f"{text}: {_saved(d)} saved"


def _merged(d: Decision) -> str:
    if "with_" in d:
        return f"merged {_list(d['with_'])} into {d['nest']}: what both read is read once"
    if "loops" not in d:
        return _plain(d)
    loops = units.several(d["loops"], "loop")
    return f"merged {loops} of {d['nest']} with those before: what is there is not loaded again"


def _saved(d: Decision) -> str:
    """Writing and reading a buffer."""
    if "buffer_bytes" not in d:
        return f"writing and reading {_buffer(d)}"
    times = 1 + max(1, len(d.get("consumers", (0,))))
    return f"{units.nbytes(times * d['buffer_bytes'])} of traffic through {_buffer(d)}"


def _buffer(d: Decision) -> str:
    return f"the buffer {units.shape(d['buffer'])}" if "buffer" in d else "the buffer between"


def _team(d: Decision) -> str:
    text = f"{units.several(d['iterations'], 'iteration')} of {d['nest']} are shared among threads"
    return f"{text}: {_worth(d)}"


def _repeats(d: Decision) -> str:
    times = units.several(d["trips"], "time") if "trips" in d else "as often as its data say"
    return f"the body of {d['nest']} runs {times}"


def _serial(d: Decision) -> str:
    return f"{d['nest']} runs on one thread: {_worth(d)}"


def _worth(d: Decision) -> str:
    return (
        f"about {units.seconds(d['predicted_seconds'])} of work, starting threads takes "
        f"{units.seconds(d['overhead_seconds'])}"
    )


def _vectors(d: Decision) -> str:
    text = f"the innermost loop of {d['nest']} runs in vectors of {d['width']} elements"
    if (count := d.get("accumulators", 1) * d.get("interleaved", 1)) > 1:
        text += f", {count} of them at once"
    return text


def _scalar(d: Decision) -> str:
    return f"a loop of {d['nest']} is not written in vectors: {d.get('reason', 'unknown')}"


def _workspace(d: Decision) -> str:
    return (
        f"{units.several(d['buffers'], 'intermediate buffer')} share "
        f"{units.nbytes(d['bytes'])}; side by side they would take "
        f"{units.nbytes(d['without_sharing'])}"
    )


def _classified(d: Decision) -> str:
    return f"{d['nest']} is a {d['what']}"


def _plain(d: Decision) -> str:
    """Any other decision: what, and its numbers by their names."""
    facts = [f"{_words(k)} {_number(k, v)}" for k, v in d.items() if k not in NAMES]
    text = f"{d.get('nest', '')}: {d.get('what', '')}"
    return f"{text} ({', '.join(facts)})" if facts else text


def _words(key: str) -> str:
    return key.removesuffix("_seconds").removesuffix("_bytes").strip("_").replace("_", " ")


def _number(key: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        if isinstance(value, (list, tuple)) and all(isinstance(v, int) for v in value):
            return units.shape(value)
        return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    if key.endswith("seconds"):
        return units.seconds(value)
    if key.endswith("bytes"):
        return units.nbytes(value)
    return units.three(value) if isinstance(value, float) else str(value)


def _list(names: Sequence[str]) -> str:
    if len(names) > 4:
        return f"{', '.join(names[:3])} and {len(names) - 3} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]])) or "others"


_SENTENCES: dict[str, Callable[[Decision], str]] = {
    "fused": _fused,
    "kept apart": _apart,
    "epilogue": _epilogue,
    "merged": _merged,
    "team": _team,
    "serial": _serial,
    "vectors": _vectors,
    "scalar": _scalar,
    "repeats": _repeats,
    "workspace": _workspace,
    **dict.fromkeys(
        ("pointwise", "stencil", "reduction", "contraction", "copy", "gather", "scatter", "scan"),
        _classified,
    ),
}


def follow(decisions: Sequence[Decision], kernels: dict[str, str]) -> list[list[str]]:
    """The kernels that each decision ended up in.

    Nests get new names when they are fused; a pass that names them reports ``renamed``.

    Args:
        decisions: in the order in which they were made.
        kernels: final name of each nest -> its kernel.

    Returns:
        Per decision the names of its kernels, sorted; none if the nest is in no kernel.
    """
    homes: dict[str, frozenset[str]] = {n: frozenset([k]) for n, k in kernels.items()}
    found: list[list[str]] = []
    for decision in reversed(decisions):
        if decision.get("what") == "renamed":
            names: dict[str, str] = decision.get("names", {})
            earlier = {old: homes[new] for old, new in names.items() if new in homes}
            kept = {n: h for n, h in homes.items() if n not in names.values()}
            homes = kept | earlier
            found.append([])
            continue
        involved = list(_involved(decision))
        together = frozenset[str]().union(*(homes.get(n, frozenset()) for n in involved))
        if VERDICTS.get(decision.get("what", "")) and len(involved) > 1:
            # From here back, what was fused is wherever the result went.
            homes |= dict.fromkeys(involved, together)
        found.append(sorted(together))
    return found[::-1]


def grouped(rows: Iterable[Decision]) -> list[tuple[Decision, int]]:
    """Rows of the document that differ in names only as one, with how many there are.

    The layers of a network are mostly the same few decisions over and over.
    """
    first: dict[str, Decision] = {}
    counts: dict[str, int] = {}
    for row in rows:
        numbers = {k: v for k, v in row["numbers"].items() if k not in _PARTNERS}
        key = json.dumps([row["pass"], row["what"], numbers], sort_keys=True, default=str)
        first.setdefault(key, row)
        counts[key] = counts.get(key, 0) + 1
    return [(row, counts[key]) for key, row in first.items()]


def _involved(decision: Decision) -> Iterable[str]:
    yield decision.get("nest", "")
    for key in _PARTNERS:
        yield from decision.get(key, ())
