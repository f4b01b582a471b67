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
    "kept apart": "not fused",
    "epilogue": "fused as epilogues",
    "forwarded": "copies avoided",
    "team": "parallel",
    "vectors": "vectorized",
    "left whole": "not split",
    "serial": "serial",
    "scalar": "not vectorized",
}
#: Keys whose values are names of other nests.
_PARTNERS = ("consumers", "with_")
#: Decisions for the machinery, not for readers.
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
        return f"{text}, no recomputation"
    text += f", each element computed {units.three(redundancy)} times"
    return text + _price(d)


def _not_fused(d: Decision) -> str:
    if "with_" in d:
        return _tiled(d)
    if "consumers" not in d:
        return _plain(d)
    text = (
        f"did not fuse {d['nest']} and {_list(d['consumers'])}: each element of {_buffer(d)} "
        f"would be computed {units.three(d.get('redundancy', 1.0))} times"
    )
    return text + _price(d)


def _price(d: Decision) -> str:
    """The cost of recomputing, beside that of storing and reloading."""
    if "recompute_seconds" in d and "traffic_seconds" in d:
        recompute, traffic = d["recompute_seconds"], d["traffic_seconds"]
        return f"; recompute {_compared(recompute, traffic, 'store and reload')}"
    if "slots_anew" in d and "slots_stored" in d:
        return (
            f"; recompute {units.three(d['slots_anew'])} instructions per element, store and "
            f"reload {units.three(d['slots_stored'])}"
        )
    return ""


def _compared(seconds: float, other: float, name: str) -> str:
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
    again = f", {units.percent(extra)} recomputed in halos" if extra else ""
    if accepted:
        kept = f"; working set {units.nbytes(d['tile_bytes'])} per tile" if d["tile_bytes"] else ""
        gain = f"{units.seconds(fused)} instead of {units.seconds(apart)}"
        if units.seconds(fused) == units.seconds(apart):
            gain = f"{units.seconds(apart - fused)} less than {units.seconds(apart)}"
        text = f"fused {others} into {d['nest']} at tile {tile}: {_saved(d)} saved"
        return f"{text}, {gain}{again}{kept}"
    text = f"did not fuse {others} and {d['nest']}"
    reason = d.get("reason")
    if reason == "option":
        return f"{text}: polyblocks_disable_reduce_reduce_fusion separates dependent reductions"
    if reason == "order":
        return f"{text}: code between them uses their buffers"
    if reason == "several products":
        return f"{text}: each is a contraction, with register tiles of its own"
    if reason == "computed again":
        return f"{text}: a contraction would be recomputed in halos"
    if reason == "thin tiles":
        return f"{text}: the best tile, {tile}, is too thin for register tiles of a contraction"
    if reason == "idle":
        return f"{text}: tiles of {tile} would leave multiprocessors idle"
    if reason == "room":
        size = units.nbytes(d["tile_bytes"])
        return f"{text}: working set {size} at best tile {tile} exceeds fast memory"
    return f"{text}: fused at best tile {tile} {_compared(fused, apart, 'not fused')}"


def _epilogue(d: Decision) -> str:
    text = f"fused {_list(d.get('consumers', ['its consumer']))} into {d['nest']} as epilogue"
    if d.get("kept"):
        return f"{text}: {_buffer(d)} is stored but not reloaded"
    return f"{text}: {_saved(d)} saved"


def _merged(d: Decision) -> str:
    if "with_" in d and "buffer_bytes" in d:
        return f"fused siblings {_list(d['with_'])} and {d['nest']}: {_saved(d)} saved"
    if "with_" in d:
        return f"fused siblings {_list(d['with_'])} and {d['nest']}: shared inputs are read once"
    if "loops" not in d:
        return _plain(d)
    loops = units.several(d["loops"], "loop")
    return f"fused {loops} of {d['nest']} with earlier ones: shared values are not reloaded"


def _rolled(d: Decision) -> str:
    if "terms" in d:
        terms = " x ".join(map(str, d["terms"]))
        return f"rolled the sum of {terms} terms in {d['nest']} into a loop"
    return f"made {_list(d.get('with_', []))} iterations of {d['nest']}: one launch for all"


def _saved(d: Decision) -> str:
    """The traffic of storing and reloading a buffer."""
    if "buffer_bytes" not in d:
        return f"writing and reading {_buffer(d)}"
    times = 1 + max(1, len(d.get("consumers", (0,))))
    return f"{units.nbytes(times * d['buffer_bytes'])} of traffic through {_buffer(d)}"


def _buffer(d: Decision) -> str:
    return f"the buffer {units.shape(d['buffer'])}" if "buffer" in d else "the buffer between"


def _team(d: Decision) -> str:
    text = f"parallelized {units.several(d['iterations'], 'iteration')} of {d['nest']}"
    return f"{text}: {_worth(d)}"


def _repeats(d: Decision) -> str:
    times = (
        units.several(d["trips"], "time") if "trips" in d else "a data-dependent number of times"
    )
    return f"the body of {d['nest']} runs {times}"


def _serial(d: Decision) -> str:
    if "overhead_seconds" not in d:
        return f"the updates of {d['nest']} run serially on one thread"
    return f"{d['nest']} stays serial: {_worth(d)}"


def _worth(d: Decision) -> str:
    """The time on one thread, beside that of starting threads."""
    if d["predicted_seconds"] is None:
        return "its time is unknown"
    return (
        f"{units.seconds(d['predicted_seconds'])} on one thread; "
        f"starting threads takes {units.seconds(d['overhead_seconds'])}"
    )


def _vectors(d: Decision) -> str:
    text = f"vectorized the innermost loop of {d['nest']}: {d['width']} lanes"
    if (count := d.get("accumulators", 1) * d.get("interleaved", 1)) > 1:
        text += f", {count} vectors interleaved"
    return text


def _register_tiles(d: Decision) -> str:
    """The tile sizes that ``tile-contractions`` chose."""
    text = f"{d['nest']}: register tile {d['rows']}x{d['lanes']} (MxN)"
    text += f", cache block {d['row_block']}x{d['column_block']}, K block {d['depth']}"
    if d["chain"] < d["depth"]:
        text += f", accumulated {d['chain']} by {d['chain']}"
    if d["threads"] > 1:
        text += f"; {d['threads']} threads, {d['row_pieces']}x{d['column_pieces']} chunks"
    sides = {"M": "pack_rows", "N": "pack_columns"}
    packed = [side for side, key in sides.items() if d[key]]
    text += f"; {_list(packed)} side packed" if packed else ""
    text += "; output staged" if d["waits"] else ""
    if (seconds := d.get("predicted_seconds")) is not None:
        text += f"; predicted {units.seconds(seconds)}"
    return text


def _untiled(d: Decision) -> str:
    return f"no register tiles for {d['nest']}: {d['reason']}"


def _register_vectors(d: Decision) -> str:
    text = f"N of {d['nest']}'s register tiles is vectorized: {d['width']} lanes"
    return text + (f", {d['interleaved']} vectors" if d["interleaved"] > 1 else "")


def _scalar(d: Decision) -> str:
    return f"did not vectorize a loop of {d['nest']}: {d.get('reason', 'unknown')}"


def _workspace(d: Decision) -> str:
    return (
        f"{units.several(d['buffers'], 'intermediate buffer')} share "
        f"{units.nbytes(d['bytes'])}; without sharing {units.nbytes(d['without_sharing'])}"
    )


def _prepared(d: Decision) -> str:
    return (
        f"{d['nest']} depends on constant arguments only: computed once, "
        f"{units.nbytes(d['bytes'])} kept"
    )


def _kept(d: Decision) -> str:
    return (
        f"{units.several(d['buffers'], 'buffer')} of {units.nbytes(d['bytes'])}, computed from "
        "constant arguments, persist between calls"
    )


def _classified(d: Decision) -> str:
    what = "pointwise" if d["what"] == "pointwise" else f"a {d['what']}"
    return f"{d['nest']} is {what}"


def _forwarded(d: Decision) -> str:
    return f"avoided a copy of {_buffer(d)}: its producer writes to the destination"


def _split(d: Decision) -> str:
    """Fills that are partly overwritten, polyphase components, reductions and scans."""
    nest = d["nest"]
    if "pieces" in d:
        pieces = units.several(d["pieces"], "piece")
        saved = f"{units.nbytes(d['saved_bytes'])} of overwritten stores removed"
        if d["saved_seconds"] is None:
            if d["what"] == "split":
                return f"split {nest} into {pieces}: {saved}"
            return f"did not split {nest} into {pieces}: the time is unknown"
        gain = (
            f"saves {units.seconds(d['saved_seconds'])}, more loops cost "
            f"{units.seconds(d['overhead_seconds'])}"
        )
        if d["what"] == "split":
            return f"split {nest} into {pieces}: {saved}; {gain}"
        return (
            f"did not split {nest} into {pieces} to remove overwritten stores: "
            f"{gain.replace('saves', 'would save', 1)}"
        )
    if "nests" in d:
        nests = units.several(d["nests"], "nest")
        gain = f"{d['saved_steps']:.4g} of {units.several(d['steps'], 'product')} per result"
        if d["what"] == "split":
            return f"split {nest} into {nests}, without products with zeros: saves {gain}"
        return f"did not split {nest} into {nests}: would save {gain}"
    if "parts" not in d:
        return _plain(d)
    parts = units.several(d["parts"], "part")
    if "split_seconds" not in d:
        text = f"split the reduction of {nest} into {parts} for threads"
        serial = d.get("serial_seconds")
        return text if serial is None else f"{text}: one thread would take {units.seconds(serial)}"
    split, serial = d["split_seconds"], d["serial_seconds"]
    if split is None or serial is None:
        return f"did not split {nest}: the time of {parts} is unknown"
    if d["what"] == "split":
        return f"split {nest} into {parts}: {_compared(split, serial, 'unsplit')}"
    return f"did not split {nest}: {parts} {_compared(split, serial, 'unsplit')}"


def _sorted(d: Decision) -> str:
    if d["how"] == "blocks":
        return (
            f"selected the first {d['count']} of {d['extent']} elements: those of the "
            f"{d['count']} blocks of {d['block']} whose least keys come first"
        )
    how = {"alone": "found the first", "rank": "sorted by rank", "digits": "sorted by digits"}
    way = how.get(d["how"], "sorted by a network of comparisons")
    return f"{way}: rows of {units.several(d['extent'], 'element')}, {d['count']} of them read"


def _layout(d: Decision) -> str:
    return (
        f"intermediate array {units.shape(d['buffer'])}: dimension {d['order'][-1]} innermost in "
        "memory, as in the arrays used with it"
    )


def _packed(d: Decision) -> str:
    return (
        f"packed argument {units.shape(d['buffer'])} for {d['nest']}, dimension "
        f"{d['order'][-1]} innermost"
    )


def _absorbed(d: Decision) -> str:
    times = units.several(d["trips"], "iteration")
    return f"absorbed an outer loop of {times} without dependences into {d['nest']}"


def _interleaved(d: Decision) -> str:
    return (
        f"interleaved {d['slices']} slices of an array of {d['elements']} elements for "
        f"{d['nest']}, which indexes all of them alike"
    )


def _interchanged(d: Decision) -> str:
    order = "x".join(map(str, d["order"]))
    return f"interchanged the loops of {d['nest']} for unit-stride stores, {order}"


def _shared(d: Decision) -> str:
    return f"computed the indices of {d['nest']} once for {d['trips']} iterations of another loop"


def _straightened(d: Decision) -> str:
    return (
        f"{d['nest']} copies into {units.shape(d['buffer'])} without reversing it; readers "
        "reverse the index"
    )


def _innermost(d: Decision) -> str:
    times = units.several(d["extent"], "iteration")
    return f"innermost loop of {d['nest']}: {times}, unit stride"


def _margins_merged(d: Decision) -> str:
    buffer, padded = (units.shape(d[name]) for name in ("buffer", "padded"))
    copies = "1 copy" if d["copies"] == 1 else f"{d['copies']} copies"
    return f"{buffer} elements and their padding are one array of {padded}: {copies} removed"


def _in_place(d: Decision) -> str:
    return f"{d['nest']} updates {units.shape(d['buffer'])} elements in place"


def _rows_jammed(d: Decision) -> str:
    factors = sorted(set(d["unroll_factors"]))
    return f"jammed {_either(factors)} rows of {d['nest']}, which share loads"


def _cut_masks(d: Decision) -> str:
    return f"{d['loops']} loops of {d['nest']} end where an affine mask leaves out the rest"


def _either(numbers: list[int]) -> str:
    *some, last = map(str, numbers)
    return f"{', '.join(some)} or {last}" if some else last


def _jammed(d: Decision) -> str:
    return f"jammed {d['unroll_factor']} rows of reduction {d['nest']} to keep memory busy"


def _squares(d: Decision) -> str:
    side = d["width"]
    return f"tiled transpose {d['nest']} of {units.shape(d['extents'])}: squares of {side}x{side}"


def _transposed(d: Decision) -> str:
    return f"{d['nest']} transposes squares of {d['width']}x{d['width']} in registers"


def _reciprocals(d: Decision) -> str:
    count = units.several(d["divisions"], "division")
    return f"{count} in {d['nest']} by loop invariants became multiplications"


def _raised(d: Decision) -> str:
    if "comparisons" in d:
        return f"{units.several(d['comparisons'], 'comparison')} in {d['nest']} proved affine"
    count = "1 indirect access" if d["nodes"] == 1 else f"{d['nodes']} indirect accesses"
    return f"{count} in {d['nest']} proved affine"


def _joined(d: Decision) -> str:
    return f"joined {d['parts']} copies into {units.shape(d['buffer'])} in {d['nest']}"


def _cut(d: Decision) -> str:
    return f"split {d['nest']} at index breakpoints into {d['loops']} loops"


def _selected(d: Decision) -> str:
    count = units.several(d["loads"], "load")
    return f"{count} with a run-time layer index in {d['nest']} load all layers and select"


def _hoisted(d: Decision) -> str:
    count = units.several(d["nodes"], "operation")
    return f"hoisted {count} of {d['nest']} out of loops"


def _formed(d: Decision) -> str:
    carried = units.several(d["carried"], "value")
    return f"formed one scan {d['nest']} over {d['extent']} elements, carrying {carried}"


def _widened(d: Decision) -> str:
    count = units.several(d["accumulators"], "sum")
    return f"{count} of {d['nest']} accumulated in float32, then rounded"


def _version(d: Decision) -> str:
    part = units.percent(d["part"])
    return (
        f"renamed the output of {d['nest']}, which overwrites {part} of {_buffer(d)}: the old "
        "contents stay readable"
    )


def _cascaded(d: Decision) -> str:
    return f"the sums of {d['nest']} use partial sums, for accuracy"


def _narrowed(d: Decision) -> str:
    return f"narrowed indices of {d['nest']} from 64 to 32 bits"


def _values(d: Decision) -> str:
    done = [
        f"{d[key]} {what}"
        for key, what in (
            ("folded", "conditions or checks with one outcome removed"),
            ("flat", "loads reduced to one address"),
            ("narrowed", "integers narrowed to 32 bits"),
        )
        if d[key]
    ]
    return f"value ranges of {d['nest']} are known: {', '.join(done)}"


def _parts(d: Decision) -> str:
    shape = "x".join(map(str, d["buffer"]))
    return f"split an array of {shape} into arrays along dimension {d['dimension']}"


def _atomic(d: Decision) -> str:
    return f"the updates of {d['nest']} are atomic"


def _numbered(d: Decision) -> str:
    return f"of the stores of {d['nest']} to one element the one with the highest number stays"


def _columns(d: Decision) -> str:
    return f"partitioned the updates of {d['nest']} among threads by columns{_instead(d)}"


def _copies(d: Decision) -> str:
    return f"privatized the result of {d['nest']} per thread{_instead(d)}"


def _instead(d: Decision) -> str:
    """The time of the chosen way to scatter, beside that of one thread."""
    seconds: dict[str, float] = d.get("seconds", {})
    if d["what"] not in seconds or "serial" not in seconds:
        return ""
    return f": {_compared(seconds[d['what']], seconds['serial'], 'one thread')}"


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
        "and decisions that need them keep their defaults"
    )


def _unknown_caches(d: Decision) -> str:
    return (
        f"no bandwidth of {_list(d['missing'])} in the description of target '{d['target']}': "
        "it counts as fast as the next level"
    )


def _one_block(d: Decision) -> str:
    return (
        f"{d['nest']} runs in one block of {units.several(d['threads'], 'thread')}: its trip "
        "count is data-dependent"
    )


def _inputs(d: Decision) -> str:
    """Copies of inputs in the fast memory of a block of threads."""
    shapes = " and ".join(units.shape(b) for b in d["buffers"])
    times = _compared(d["seconds"], d["seconds_before"], "without")
    if d["what"] == "inputs copied":
        return f"staged {shapes} in shared memory for {d['nest']}: {times}"
    return f"did not stage {shapes} in shared memory for {d['nest']}: {times}"


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
    "kept apart": _not_fused,
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
    "shared": _shared,
    "straightened": _straightened,
    "layout": _layout,
    "sorted": _sorted,
    "packed": _packed,
    "interleaved": _interleaved,
    "absorbed": _absorbed,
    "jammed": _jammed,
    "rows jammed": _rows_jammed,
    "bounds of masks": _cut_masks,
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
    "numbered": _numbered,
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
