"""Decisions in words, and the kernels that they ended up in."""

from __future__ import annotations

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
#: The same in words, for counts of them.
VERDICT_WORDS = {
    "epilogue": "moved behind another",
    "forwarded": "spared a copy",
    "team": "shared among threads",
    "vectors": "in vectors",
    "left whole": "not split",
    "serial": "on one thread",
    "scalar": "not in vectors",
}
#: Keys whose values are names of other nests.
_PARTNERS = ("consumers", "with_")
#: What the passes tell the machinery and not the reader.
INTERNAL = ("renamed", "estimate")


def sentence(decision: Decision) -> str:
    """One decision for a reader who does not know the pass; all its numbers have a meaning."""
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
    if "with_" in d:
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
        return f"; that costs {_beside(recompute, traffic, 'the way through memory')}"
    if "slots_anew" in d and "slots_stored" in d:
        return (
            f"; that takes {units.three(d['slots_anew'])} instructions per element, storing it "
            f"and loading it {units.three(d['slots_stored'])}"
        )
    return ""


def _beside(seconds: float, other: float, name: str) -> str:
    """``5 ms, apart 6 ms``; the difference where both would read alike."""
    here, there = units.seconds(seconds), units.seconds(other)
    if here != there:
        return f"{here}, {name} {there}"
    if seconds == other:
        return f"{here}, {name} the same"
    word = "less" if other < seconds else "more"
    return f"{here}, {name} {units.seconds(abs(other - seconds))} {word}"


def _tiled(d: Decision) -> str:
    accepted = d["what"] == "fused"
    others = _list(d.get("with_", ()))
    # A pair that stays apart whatever the tile has none.
    apart, fused = d.get("apart_seconds", 0.0), d.get("fused_seconds", 0.0)
    tile = units.shape(d.get("tile", ()))
    extra = max(0.0, d.get("redundancy", 1.0) - 1)
    again = f", computes {units.percent(extra)} again where tiles overlap" if extra else ""
    if accepted:
        kept = (
            f"; {units.nbytes(d['tile_bytes'])} per tile stay in cache" if d["tile_bytes"] else ""
        )
        gain = f"{units.seconds(fused)} instead of {units.seconds(apart)}"
        if units.seconds(fused) == units.seconds(apart):
            gain = f"{units.seconds(apart - fused)} less than {units.seconds(apart)}"
        text = f"fused {others} into {d['nest']} at tile {tile}: {_saved(d)} saved"
        return f"{text}, {gain}{again}{kept}"
    text = f"kept {others} and {d['nest']} apart"
    reason = d.get("reason")
    if reason == "option":
        return f"{text}: polyblocks_disable_reduce_reduce_fusion separates dependent reductions"
    if reason == "order":
        return f"{text}: what lies between them in the program uses what they read or write"
    if reason == "several products":
        return f"{text}: each is a contraction, with register tiles of its own"
    if reason == "computed again":
        return f"{text}: where tiles overlap, a contraction would be computed again"
    if reason == "thin tiles":
        return f"{text}: the best tile, {tile}, is too thin for register tiles of a contraction"
    if reason == "room":
        size = units.nbytes(d["tile_bytes"])
        return f"{text}: even the best tile, {tile}, touches {size}, too much for fast memory"
    return f"{text}: at the best tile, {tile}, it would take {_beside(fused, apart, 'apart')}"


def _epilogue(d: Decision) -> str:
    text = (
        f"moved {_list(d.get('consumers', ['its consumer']))} behind {d['nest']}, in the same loop"
    )
    if d.get("kept"):
        return f"{text}: {_buffer(d)} is written, but not read again"
    return f"{text}: {_saved(d)} saved"


def _merged(d: Decision) -> str:
    if "with_" in d and "buffer_bytes" in d:
        return f"merged {_list(d['with_'])} into {d['nest']}: {_saved(d)} saved"
    if "with_" in d:
        return f"merged {_list(d['with_'])} into {d['nest']}: what both read is read once"
    if "loops" not in d:
        return _plain(d)
    loops = units.several(d["loops"], "loop")
    return f"merged {loops} of {d['nest']} with those before: what is there is not loaded again"


def _rolled(d: Decision) -> str:
    if "terms" in d:
        terms = " x ".join(map(str, d["terms"]))
        return f"made the sum of {terms} terms in {d['nest']} a loop over them"
    return f"made {_list(d.get('with_', []))} iterations of {d['nest']}: all are launched together"


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
    if "overhead_seconds" not in d:
        return f"the updates of {d['nest']} run on one thread, one after the other"
    return f"{d['nest']} is not shared among threads: {_worth(d)}"


def _worth(d: Decision) -> str:
    """What one thread would take, beside what starting threads does.

    Most of these times are bounds that leave out vectors and caches, and not to be mistaken for
    the prediction of the kernel.
    """
    if d["predicted_seconds"] is None:
        return "how long it takes is unknown"
    time = f"{units.seconds(d['predicted_seconds'])} on one thread"
    if not d.get("vectors"):
        time = f"at most about {time}, without vectors"
    return f"{time}; starting threads takes {units.seconds(d['overhead_seconds'])}"


def _vectors(d: Decision) -> str:
    text = f"the innermost loop of {d['nest']} runs in vectors of {d['width']} elements"
    if (count := d.get("accumulators", 1) * d.get("interleaved", 1)) > 1:
        text += f", {count} of them at once"
    return text


def _register_tiles(d: Decision) -> str:
    """How ``tile-contractions`` has cut a contraction."""
    text = f"{d['nest']} is computed in tiles of {d['rows']} rows by {d['lanes']} columns"
    text += f", blocks of {d['row_block']} by {d['column_block']}"
    text += f" and {units.several(d['depth'], 'step')} at a time"
    if d["chain"] < d["depth"]:
        text += f", added up {d['chain']} by {d['chain']}"
    if d["threads"] > 1:
        pieces = f"{d['row_pieces']} by {d['column_pieces']} pieces"
        text += f"; {d['threads']} threads share {pieces}"
    sides = ("rows", "columns")
    copied = [side for side in sides if d[f"pack_{side}"]]
    text += f"; {_list(copied)} are copied in the order of their use" if copied else ""
    text += "; results wait in a buffer until they can be stored in order" if d["waits"] else ""
    if (seconds := d.get("predicted_seconds")) is not None:
        text += f"; predicted {units.seconds(seconds)}"
    return text


def _untiled(d: Decision) -> str:
    return f"{d['nest']} is not computed in register tiles: {d['reason']}"


def _register_vectors(d: Decision) -> str:
    text = f"the columns of {d['nest']}'s register tiles are vectors of {d['width']} elements"
    return text + (f", {d['interleaved']} side by side" if d["interleaved"] > 1 else "")


def _scalar(d: Decision) -> str:
    return f"a loop of {d['nest']} is not written in vectors: {d.get('reason', 'unknown')}"


def _workspace(d: Decision) -> str:
    return (
        f"{units.several(d['buffers'], 'intermediate buffer')} share "
        f"{units.nbytes(d['bytes'])}; side by side they would take "
        f"{units.nbytes(d['without_sharing'])}"
    )


def _prepared(d: Decision) -> str:
    return (
        f"{d['nest']} depends on constant arguments alone: it is computed once, and its "
        f"{units.nbytes(d['bytes'])} are kept"
    )


def _kept(d: Decision) -> str:
    return (
        f"{units.several(d['buffers'], 'buffer')} of {units.nbytes(d['bytes'])} are made of "
        "constant arguments and kept between calls"
    )


def _classified(d: Decision) -> str:
    what = "pointwise" if d["what"] == "pointwise" else f"a {d['what']}"
    return f"{d['nest']} is {what}"


def _forwarded(d: Decision) -> str:
    return f"a copy of {_buffer(d)} is spared: it is computed right where it belongs"


def _split(d: Decision) -> str:
    """Fills that are partly overwritten, phases, reductions and scans: each has other numbers."""
    nest = d["nest"]
    if "pieces" in d:
        pieces = units.several(d["pieces"], "piece")
        saved = f"{units.nbytes(d['saved_bytes'])} are not written twice"
        if d["saved_seconds"] is None:
            if d["what"] == "split":
                return f"split {nest} into {pieces}, without what is overwritten: {saved}"
            return f"left {nest} whole: how long {pieces} instead would take is unknown"
        cost = f"{units.seconds(d['saved_seconds'])}, more loops cost"
        gain = f"that saves {cost} {units.seconds(d['overhead_seconds'])}"
        if d["what"] == "split":
            return f"split {nest} into {pieces}, without what is overwritten: {saved}; {gain}"
        return (
            f"left {nest} whole: without what is overwritten it is {pieces}; "
            f"{gain.replace('saves', 'would save', 1)}"
        )
    if "nests" in d:
        nests = units.several(d["nests"], "nest")
        gain = f"{d['saved_steps']:.4g} of {units.several(d['steps'], 'step')} per result"
        if d["what"] == "split":
            return f"{nest} is {nests}, without products with zeros between elements: {gain} less"
        return f"left {nest} whole: without products with zeros it is {nests} and takes {gain} less"
    if "parts" not in d:
        return _plain(d)
    parts = units.several(d["parts"], "part")
    if "split_seconds" not in d:
        text = f"split the reduction of {nest} into {parts} that threads share"
        serial = d.get("serial_seconds")
        return text if serial is None else f"{text}: one thread would take {units.seconds(serial)}"
    split, serial = d["split_seconds"], d["serial_seconds"]
    if split is None or serial is None:
        return f"left {nest} whole: how long {parts} would take is unknown"
    if d["what"] == "split":
        return f"split {nest} into {parts}: {_beside(split, serial, 'in one')}"
    return f"left {nest} whole: in {parts} it would take {_beside(split, serial, 'in one')}"


def _layout(d: Decision) -> str:
    return (
        f"dimension {d['order'][-1]} of an intermediate array of {units.shape(d['buffer'])} comes "
        "last in memory, as in what it is used with"
    )


def _packed(d: Decision) -> str:
    return (
        f"an argument of {units.shape(d['buffer'])} is copied for {d['nest']}, with dimension "
        f"{d['order'][-1]} last"
    )


def _absorbed(d: Decision) -> str:
    times = units.several(d["trips"], "iteration")
    return f"a loop of the program of {times} that do not need each other is part of {d['nest']}"


def _interleaved(d: Decision) -> str:
    return (
        f"{d['slices']} slices of an array of {d['elements']} elements lie side by side for "
        f"{d['nest']}, which looks all of them up at one place"
    )


def _interchanged(d: Decision) -> str:
    order = "x".join(map(str, d["order"]))
    return f"the loops of {d['nest']} run in the order of the memory that is stored to, {order}"


def _straightened(d: Decision) -> str:
    return (
        f"what {d['nest']} copies into {units.shape(d['buffer'])} keeps its order, and is read "
        "backwards"
    )


def _innermost(d: Decision) -> str:
    times = units.several(d["extent"], "iteration")
    return f"the innermost loop of {d['nest']} is the one of {times} that walks memory in order"


def _margins_merged(d: Decision) -> str:
    buffer, padded = (units.shape(d[name]) for name in ("buffer", "padded"))
    return f"{buffer} elements and their margins are one array of {padded}: {d['copies']} less"


def _in_place(d: Decision) -> str:
    return f"{d['nest']} stores {units.shape(d['buffer'])} elements over what it has read"


def _rows_jammed(d: Decision) -> str:
    factors = sorted(set(d["unroll_factors"]))
    return f"{d['nest']} computes {_either(factors)} rows together, which share what they read"


def _either(numbers: list[int]) -> str:
    *some, last = map(str, numbers)
    return f"{', '.join(some)} or {last}" if some else last


def _jammed(d: Decision) -> str:
    return f"{d['nest']} reduces {d['unroll_factor']} rows at once, which keeps the memory busy"


def _squares(d: Decision) -> str:
    side = d["width"]
    return (
        f"{d['nest']} reads along one side of {units.shape(d['extents'])} and writes along the "
        f"other: it is done in squares of {side}x{side}"
    )


def _transposed(d: Decision) -> str:
    return f"{d['nest']} transposes squares of {d['width']}x{d['width']} in registers"


def _reciprocals(d: Decision) -> str:
    count = units.several(d["divisions"], "division")
    return f"{count} in {d['nest']} by what a loop does not change became multiplications"


def _raised(d: Decision) -> str:
    count = "1 access" if d["nodes"] == 1 else f"{d['nodes']} accesses"
    return f"{count} of {d['nest']} at computed places turned out to be at known ones"


def _joined(d: Decision) -> str:
    return f"{d['parts']} copies into {units.shape(d['buffer'])} are one, {d['nest']}"


def _cut(d: Decision) -> str:
    return f"rows of {d['nest']} are cut where places in them jump: {d['loops']} loops"


def _selected(d: Decision) -> str:
    count = units.several(d["loads"], "load")
    return f"{count} of one layer of a few in {d['nest']} load all layers and select"


def _hoisted(d: Decision) -> str:
    count = units.several(d["nodes"], "operation")
    return f"{count} of {d['nest']} moved in front of the loops that do not change the result"


def _formed(d: Decision) -> str:
    carried = units.several(d["carried"], "value")
    return f"{d['nest']} became one scan over {d['extent']} elements that carries {carried}"


def _widened(d: Decision) -> str:
    count = units.several(d["accumulators"], "sum")
    return f"{count} of {d['nest']} in float32 until the end, not in the type of the elements"


def _version(d: Decision) -> str:
    part = units.percent(d["part"])
    return (
        f"{d['nest']}, which overwrites {part} of {_buffer(d)}, writes another one instead: "
        "the old contents stay readable"
    )


def _cascaded(d: Decision) -> str:
    return f"the sums of {d['nest']} are sums of partial sums, which loses fewer digits"


def _narrowed(d: Decision) -> str:
    return f"{d['nest']} counts places in 32 bits, not in 64"


def _values(d: Decision) -> str:
    done = [
        f"{d[key]} {what}"
        for key, what in (
            ("folded", "conditions or checks with one outcome are gone"),
            ("flat", "loads have one address"),
            ("narrowed", "integers take 32 bits"),
        )
        if d[key]
    ]
    return f"in {d['nest']}, of which the range of numbers is known, {', '.join(done)}"


def _parts(d: Decision) -> str:
    shape = "x".join(map(str, d["buffer"]))
    return f"the parts of an array of {shape} along dimension {d['dimension']} are arrays"


def _atomic(d: Decision) -> str:
    return f"the updates of {d['nest']} are atomic operations of many threads"


def _columns(d: Decision) -> str:
    return f"each thread makes the updates of {d['nest']} to some columns{_instead(d)}"


def _copies(d: Decision) -> str:
    return f"each thread makes its updates of {d['nest']} to a copy of the result{_instead(d)}"


def _instead(d: Decision) -> str:
    """The time of the chosen way to scatter, beside that of one thread."""
    seconds: dict[str, float] = d.get("seconds", {})
    if d["what"] not in seconds or "serial" not in seconds:
        return ""
    return f": {_beside(seconds[d['what']], seconds['serial'], 'one thread')}"


def _mapped(d: Decision) -> str:
    text = f"{d['nest']} runs in {units.several(d['blocks'], 'block')} of {d['threads']} threads"
    if d.get("tile"):
        text += f", tile {units.shape(d['tile'])}"
    if d.get("unit"):
        text += f", products of {d['operands']} by the matrix unit {d['unit']}"
    if d["predicted_seconds"] is None:
        return text
    return f"{text}; predicted {units.seconds(d['predicted_seconds'])}"


def _unknown_times(d: Decision) -> str:
    rates = " and no ".join(filter(None, [", no ".join(d["missing"][:-1]), d["missing"][-1]]))
    return (
        f"no {rates} in the description of target '{d['target']}': predicted times are unknown, "
        "and what they would decide is left at its default"
    )


def _unknown_caches(d: Decision) -> str:
    return (
        f"no bandwidth of {_list(d['missing'])} in the description of target '{d['target']}': "
        "such a cache counts as no faster than what is behind it"
    )


def _one_block(d: Decision) -> str:
    return (
        f"{d['nest']} runs in one block of {units.several(d['threads'], 'thread')}: what is in "
        "memory decides how often it runs"
    )


def _inputs(d: Decision) -> str:
    """Copies of inputs in the fast memory of a block of threads."""
    shapes = " and ".join(units.shape(b) for b in d["buffers"])
    times = _beside(d["seconds"], d["seconds_before"], "without")
    if d["what"] == "inputs copied":
        return f"the tiles of {d['nest']} have copies of their parts of {shapes}: {times}"
    return f"the tiles of {d['nest']} have no copies of their parts of {shapes}: {times}"


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
    "rolled": _rolled,
    "team": _team,
    "serial": _serial,
    "vectors": _vectors,
    "register tiles": _register_tiles,
    "no register tiles": _untiled,
    "vectors of tiles": _register_vectors,
    "scalar": _scalar,
    "repeats": _repeats,
    "forwarded": _forwarded,
    "split": _split,
    "left whole": _split,
    "innermost": _innermost,
    "interchanged": _interchanged,
    "straightened": _straightened,
    "layout": _layout,
    "packed": _packed,
    "interleaved": _interleaved,
    "absorbed": _absorbed,
    "jammed": _jammed,
    "rows jammed": _rows_jammed,
    "margins merged": _margins_merged,
    "in place": _in_place,
    "squares": _squares,
    "transposed": _transposed,
    "reciprocals": _reciprocals,
    "raised": _raised,
    "copies joined": _joined,
    "rows cut": _cut,
    "layers selected": _selected,
    "hoisted": _hoisted,
    "formed": _formed,
    "widened": _widened,
    "new version": _version,
    "cascaded": _cascaded,
    "narrowed": _narrowed,
    "ranges used": _values,
    "parts": _parts,
    "atomic": _atomic,
    "columns": _columns,
    "copies": _copies,
    "mapped": _mapped,
    "one block": _one_block,
    "inputs copied": _inputs,
    "inputs left": _inputs,
    "workspace": _workspace,
    "prepared": _prepared,
    "kept": _kept,
    "unknown times": _unknown_times,
    "unknown caches": _unknown_caches,
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
    """Rows of the document that read the same but for names as one, with how many there are.

    The layers of a network are mostly the same few decisions over and over.
    """
    first: dict[tuple[str, str], Decision] = {}
    counts: dict[tuple[str, str], int] = {}
    for row in rows:
        key = row["pass"], sentence(_nameless(row))
        first.setdefault(key, row)
        counts[key] = counts.get(key, 0) + 1
    return [(row, counts[key]) for key, row in first.items()]


def _nameless(row: Decision) -> Decision:
    """The decision of a row with the same word for every nest."""
    decision = {"what": row["what"], "nest": "nest"} | row["numbers"]
    named = {key: ["nest"] * len(decision[key]) for key in _PARTNERS if key in decision}
    return decision | named


def _involved(decision: Decision) -> Iterable[str]:
    yield decision.get("nest", "")
    for key in _PARTNERS:
        yield from decision.get(key, ())
