"""What the pages and README.md take from the code: tables and lists between two marks.

What stands between ``<!-- generated: NAME -->`` and ``<!-- end of NAME -->`` is written by
``make tables`` (``python docs/_generate.py``), so that pages can be read without being built. A
test holds them to the code.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
import textwrap
from collections.abc import Callable
from difflib import SequenceMatcher
from importlib import import_module
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
PAGES = (DOCS.parent / "README.md", *sorted(DOCS.glob("*.md")))

MARKED = re.compile(r"<!-- generated: ([\w-]+) -->(.*?)<!-- end of \1 -->", re.DOTALL)
#: Architectures that tables of passes are made for: of a chip that lacks all that can be lacking,
#: and any of each GPU target.
CPU_ARCH, GPU_ARCHS = "x86-64", {"nvgpu": "sm_90a", "amdgpu": "gfx1100"}

_PIPELINES, _MEMORY = "image pipelines and simulations", "memory-bound functions"
_CONTRACTIONS = "matmuls, convolutions and models"
#: The page of single operations beside their framework and its compiler, and the chip.
SINGLE_OPERATIONS = ("2026-11-30-amd-epyc-znver4-cliffs", "Zen 4")
#: Files of ``bench/results`` whose tables are shown: what is in them, and the chip.
RESULTS = {
    "2026-11-27-amd-epyc-znver4-pipelines": (_PIPELINES, "Zen 4"),
    "2026-11-23-amd-epyc-znver5": (_MEMORY, "Zen 5"),
    "2026-11-23-amd-epyc-znver4": (_MEMORY, "Zen 4"),
    "2026-11-23-intel-r-xeon-r-processor-emeraldrapids": (_MEMORY, "Emerald Rapids"),
    "2026-11-25-amd-epyc-znver5-contractions": (_CONTRACTIONS, "Zen 5"),
    "2026-11-25-amd-epyc-znver4-contractions": (_CONTRACTIONS, "Zen 4"),
    "2026-11-25-intel-r-xeon-r-processor-rocketlake-contractions": (_CONTRACTIONS, "Rocket Lake"),
    "2026-11-29-amd-epyc-znver4-attention": ("attentions and sums over pairs", "Zen 4"),
    "2026-11-27-nvidia-h200-pipelines-inductor": (_PIPELINES, "H200"),
    "2026-11-26-nvidia-h100-80gb-hbm3": (_MEMORY, "H100"),
}
GPU_PEERS = ("eager", "inductor", "inductor-max-autotune")

#: Modules that users import themselves, besides ``polyblocks``.
PUBLIC_MODULES = ("polyblocks.common_utils", "polyblocks.device_helpers")
#: Module -> its public functions.
API = {
    "polyblocks.api": ("compile", "load", "targets", "frontends"),
    "polyblocks.ahead_of_time.function": ("aot",),
    "polyblocks.ahead_of_time.library": ("write_library",),
    "polyblocks.explanation.run": ("explain",),
    "polyblocks.common_utils": ("validate_outputs",),
    "polyblocks.device_helpers": ("cuda_synchronize",),
}


def up_to_date(page: str) -> str:
    """The text of a page, with what the code says now between its marks.

    Raises:
        KeyError: a mark names no generator.
    """

    def current(match: re.Match[str]) -> str:
        name, old = match[1], match[2]
        # Inside of a line, or in lines of its own.
        around = "\n\n" if old.startswith("\n") else ""
        return (
            f"<!-- generated: {name} -->{around}{GENERATORS[name]()}{around}<!-- end of {name} -->"
        )

    return MARKED.sub(current, page)


def main() -> None:
    """Write what is not up to date."""
    for path in PAGES:
        text = path.read_text()
        if (new := up_to_date(text)) != text:
            path.write_text(new)
            print(path)


def options() -> str:
    """Name, default and meaning of every compile option."""
    from polyblocks.options import CompileOptions

    texts = attributes(CompileOptions)
    lines = ["| option | default | meaning |", "|---|---|---|"]
    for field in dataclasses.fields(CompileOptions):
        lines.append(f"| `{field.name}` | `{field.default!r}` | {sentence(texts[field.name])} |")
    return "\n".join(lines)


def passes() -> str:
    """The passes of S1 to S3, in order, by stage, and the targets that have them."""
    from polyblocks.options import CompileOptions
    from polyblocks.passes.standard import standard_pipeline
    from polyblocks.stages import STAGES

    pipelines = {
        kind: standard_pipeline(description, CompileOptions()).stages
        for kind, description in {"CPUs": cpu(), "GPUs": gpu("nvgpu")}.items()
    }
    parts = []
    for stage in next(iter(pipelines.values())):
        table = pass_table({kind: stages[stage] for kind, stages in pipelines.items()})
        parts.append(f"### {stage}, {STAGES[stage]}\n\n{table}")
    return "\n\n".join(parts)


def facts() -> str:
    """The facts that passes need, and which ones establish and break them."""
    from polyblocks.options import CompileOptions
    from polyblocks.passes.facts import AT_START, FACTS, declared
    from polyblocks.passes.rules import steps
    from polyblocks.passes.standard import standard_pipeline

    members: dict[str, Any] = {}
    for description in (cpu(), gpu("nvgpu")):
        for stage in standard_pipeline(description, CompileOptions()).stages.values():
            members |= {p.name: p for p in steps(stage)}

    def those(what: str, fact: str) -> str:
        return ", ".join(f"`{n}`" for n, p in members.items() if fact in declared(p, what))

    lines = ["| fact | what it says | established by | broken by |", "|---|---|---|---|"]
    for fact, meaning in FACTS.items():
        makers = "the frontend" if fact in AT_START else those("establishes", fact)
        lines.append(f"| `{fact}` | {meaning} | {makers} | {those('breaks', fact)} |")
    return "\n".join(lines)


def cpu_passes() -> str:
    """The passes of the CPU target's S4, on a chip that lacks all that can be lacking."""
    from polyblocks_cpu.lower import stage_s4

    return pass_table({"cpu": stage_s4(cpu(), profile=True)})


def gpu_passes() -> str:
    """The passes of the GPU targets' S4, and which of them has which."""
    stages = {}
    for name in GPU_ARCHS:
        stages[name] = import_module(f"polyblocks_{name}.lower").stage_s4(gpu(name))
    return pass_table(stages)


def cpu() -> Any:
    """The description of a chip of the CPU target."""
    from polyblocks.options import CompileOptions
    from polyblocks_cpu.describe import describe

    return describe(CompileOptions(arch=CPU_ARCH))


def gpu(name: str) -> Any:
    """The description of a chip of a GPU target."""
    from polyblocks.options import CompileOptions

    describe = import_module(f"polyblocks_{name}.describe").describe
    return describe(CompileOptions(target=name, arch=GPU_ARCHS[name]))


def s3_operations() -> str:
    """Every operation that S3 may hand over, and where it may stand."""
    from polyblocks.s3.contract import GROUPS, Operation

    parts = []
    for title, members in GROUPS.items():
        alike: dict[Operation, list[str]] = {}
        for name, operation in members.items():
            alike.setdefault(operation, []).append(f"`{name}`")
        rows = [
            f"| {', '.join(names)} | {', '.join(o.places)} | {sentence(o.note) if o.note else ''} |"
            for o, names in alike.items()
        ]
        header = ["| operation | in | note |", "|---|---|---|"]
        parts.append("\n".join([f"### {title}", "", *header, *rows]))
    return "\n\n".join(parts)


def s3_attributes() -> str:
    """Every attribute of ours that S3 may hand over."""
    from polyblocks.s3.contract import ATTRIBUTES

    rows = [
        f"| `{name}` | {a.owner} | {a.type} | {sentence(a.meaning)} |"
        for name, a in ATTRIBUTES.items()
    ]
    return "\n".join(["| attribute | of | type | meaning |", "|---|---|---|---|", *rows])


def schedule_keys() -> str:
    """The keys of schedules of kernels of grids."""
    from polyblocks.affine.plan.keys import GRID, KEYS

    rows = []
    for name, key in KEYS.items():
        kinds = [kind.value for kind in GRID if kind in key.kinds]
        if kinds:
            of = "all" if len(kinds) == len(GRID) else ", ".join(kinds)
            rows.append(f"| `{name}` | {of} | {sentence(key.meaning)} |")
    return "\n".join(["| key | kernels | meaning |", "|---|---|---|", *rows])


def contraction_schedule_keys() -> str:
    """The keys of schedules of contractions on cores."""
    from polyblocks.affine.plan.keys import KEYS, PlanKind, keys_of

    rows = [f"| `{key}` | {sentence(KEYS[key].meaning)} |" for key in keys_of(PlanKind.CORES)]
    return "\n".join(["| key | meaning |", "|---|---|", *rows])


def s3_version() -> str:
    """The version of the contract."""
    from polyblocks.s3.contract import S3_VERSION

    return str(S3_VERSION)


def hooks() -> str:
    """Every hook: its signature and its docstring, in the order of the file."""
    from polyblocks import hookspecs

    parts = []
    for name in hookspecs.INTERFACES[hookspecs.API_VERSION]:
        function = getattr(hookspecs, name)
        text = docstring_to_markdown(inspect.getdoc(function) or "")
        parts.append(f"### {name}\n\n```python\n{signature(function)}\n```\n\n{text}")
    return "\n\n".join(parts)


def objects() -> str:
    """Every class whose objects plugins hand to the core: its docstring and its members."""
    parts = []
    for cls in plugin_classes():
        text = docstring_to_markdown(inspect.getdoc(cls) or "")
        lines = [f"### `{cls.__module__}.{cls.__name__}`", "", text, ""]
        names = attributes(cls) if "Attributes:" in (cls.__doc__ or "") else {}
        text = text.partition("Attributes:")[0].rstrip()
        lines[2] = text
        lines += ["| member | meaning |", "|---|---|"]
        lines += [f"| `{name}` | {sentence(meaning)} |" for name, meaning in names.items()]
        for name, member in plugin_members(cls).items():
            summary = (inspect.getdoc(member) or "").split("\n\n")[0].replace("\n", " ")
            shown = signature(member) if inspect.isfunction(member) else name
            lines.append(f"| `{shown}` | {inline(sentence(summary))} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def plugin_classes() -> list[type]:
    """The classes of :func:`objects`."""
    from polyblocks.hookspecs import Capture, CompiledFunction, HasOriginal
    from polyblocks.runtime.arrays import ArrayInterface
    from polyblocks.runtime.executable import Executable
    from polyblocks.runtime.native.reader import NativeReader

    return [Capture, CompiledFunction, HasOriginal, ArrayInterface, NativeReader, Executable]


def plugin_members(cls: type) -> dict[str, Any]:
    """Methods and properties that a class defines, by name."""
    return {
        name: member
        for name, member in vars(cls).items()
        if name[0] != "_" and (inspect.isfunction(member) or isinstance(member, property))
    }


def events() -> str:
    """Every kind of event and its data."""
    from polyblocks.events import KINDS

    lines = ["| kind | data |", "|---|---|"]
    return "\n".join([*lines, *(f"| `{kind}` | {data} |" for kind, data in KINDS.items())])


def errors() -> str:
    """Every class of error."""
    from polyblocks import errors as module

    lines = ["| class | also a | raised when |", "|---|---|---|"]
    for name, value in vars(module).items():
        if isinstance(value, type) and issubclass(value, module.PolyBlocksError):
            bases = [base.__name__ for base in value.__bases__]
            summary = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")
            lines.append(
                f"| `{name}` | {', '.join(f'`{b}`' for b in bases)} | {sentence(summary)} |"
            )
    return "\n".join(lines)


def archs() -> str:
    """Names that the CPU target takes as ``arch``."""
    from polyblocks_cpu.archs import ARCHS

    return ", ".join(f"`{name}`" for name in ARCHS)


def nvgpu_archs() -> str:
    """Architectures of the target nvgpu, and the chips of each."""
    from polyblocks_nvgpu.archs import ARCHS
    from polyblocks_nvgpu.chips import CHIPS

    rows = ["| arch | compute capability | chips |", "|---|---|---|"]
    for number in dict.fromkeys(arch.capability for arch in ARCHS.values()):
        names = [f"`{a.name}`" for a in ARCHS.values() if a.capability == number]
        chips = [f"`{c.name}`" for c in CHIPS.values() if c.capability == number]
        rows.append(f"| {', '.join(names)} | {number[0]}.{number[1]} | {', '.join(chips)} |")
    return "\n".join(rows)


def gpu_modes() -> str:
    """Which values of ``mm_conv_precision_mode`` each GPU takes, and by which instruction."""
    from polyblocks.options import PRECISION_MODES, CompileOptions
    from polyblocks.registry.honoured_options import describe_target
    from polyblocks_amdgpu.generations import ARCHS
    from polyblocks_nvgpu.archs import ARCHS as SM

    option = "mm_conv_precision_mode"
    alike: dict[tuple[str, ...], list[str]] = {}
    for target, names in (("nvgpu", SM), ("amdgpu", ARCHS)):
        for name in names:
            found = describe_target(CompileOptions(target=target, arch=name))
            row = tuple(mode for mode in PRECISION_MODES if mode in found.options[option])
            alike.setdefault(row, []).append(f"`{name}`")
    lines = [f"| chips | values of `{option}` |", "|---|---|"]
    lines += [
        f"| {', '.join(names)} | {', '.join(f'`{mode}`' for mode in row)} |"
        for row, names in alike.items()
    ]
    return "\n".join(lines)


def amdgpu_archs() -> str:
    """Architectures of the target amdgpu, and the chips of each."""
    from polyblocks_amdgpu.chips import CHIPS
    from polyblocks_amdgpu.generations import ARCHS

    rows = ["| arch | chips |", "|---|---|"]
    for name in ARCHS:
        chips = [f"`{c.name}`" for c in CHIPS.values() if c.arch == name]
        rows.append(f"| `{name}` | {', '.join(chips)} |")
    return "\n".join(rows)


def releases() -> str:
    """Releases of Python, which their classifiers list, and of others that distributions accept."""
    projects = {
        "PyTorch": ("torch", "plugins/frontend_torch"),
        "JAX": ("jax", "plugins/frontend_jax"),
        "TensorFlow": ("tensorflow", "plugins/frontend_tf"),
        "NumPy": ("numpy", "core"),
    }
    rows = ["| | releases |", "|---|---|"]
    for title, (name, project) in projects.items():
        text = (DOCS.parent / project / "pyproject.toml").read_text()
        (needed,) = re.findall(rf'^    "{name}>=([\d.]+)(?:,<([\d.]+))?",$', text, re.MULTILINE)
        rows.append(f"| {title} | {_from_to(*needed)} |")
    pythons = [_pythons(project) for project in ("core", projects["TensorFlow"][1])]
    rows.append("| Python | {}; with TensorFlow {} |".format(*pythons))
    return "\n".join(rows)


def _pythons(project: str) -> str:
    """``3.11 to 3.14``."""
    text = (DOCS.parent / project / "pyproject.toml").read_text()
    minors = re.findall(r'^    "Programming Language :: Python :: 3\.(\d+)",$', text, re.MULTILINE)
    return f"3.{minors[0]} to 3.{minors[-1]}"


def _from_to(low: str, below: str) -> str:
    """``2.13 to 2.15`` for ``>=2.13,<2.16``."""
    if not below:
        return f"{low} and newer"
    major, minor = below.split(".")
    assert int(minor) > 0, f"<{below} does not say which release is the last"
    return f"{low} to {major}.{int(minor) - 1}"


def api() -> str:
    """The public functions: signature and docstring of each."""
    parts = []
    for module, names in API.items():
        for name in names:
            function = getattr(import_module(module), name)
            shown = module if module in PUBLIC_MODULES else "polyblocks"
            text = docstring_to_markdown(inspect.getdoc(function) or "")
            mark = "<!-- fragment: the example of a docstring -->\n"
            text = text.replace("\n```python\n", f"\n{mark}```python\n")
            call = _wrapped(signature(function))
            parts.append(f"### `{shown}.{name}`\n\n```text\n{call}\n```\n\n{text}")
    return "\n\n".join(parts)


def _wrapped(call: str) -> str:
    """A signature with a parameter per line where one line is too long."""
    if len(call) <= 80:
        return call
    start, end = call.index("(") + 1, call.rindex(") ->")
    depth, lines = 0, [""]
    for character in call[start:end]:
        depth += (character in "([") - (character in ")]")
        if character == "," and not depth:
            lines.append("")
        else:
            lines[-1] += character
    inner = "".join(f"    {line.strip()},\n" for line in lines)
    return f"{call[:start]}\n{inner}{call[end:]}"


def speedups() -> str:
    """The geometric means of :data:`RESULTS` and of single operations, a row for each."""
    lines = ["| geometric mean of speedups | chip | best peer | Inductor |", "|---|---|--:|--:|"]
    name, chip = SINGLE_OPERATIONS
    all_ = re.search(r"^\| all \| (\d+) \| ([\d.]+)× \|", _result_text(name), re.MULTILINE)
    assert all_ is not None, name
    lines.append(f"| {int(all_[1]):,} single operations | {chip} | {all_[2]}x | |")
    for name, (title, chip) in RESULTS.items():
        text = _result_text(name)
        means = re.search(r"([\d.]+)× against Inductor and ([\d.]+)×", text)
        if means:
            count = len(_table(text, "Times, ms"))
            lines.append(f"| {count} {title} | {chip} | {means[2]}x | {means[1]}x |")
            continue
        # Those of a GPU have ratios of the fastest calls; matrix products are apart.
        table = _table(text, "Times, ms")
        products = {case for case in table if "@" in case}
        for cases, what in ((table.keys() - products, title), (products, "float16 matmuls")):
            ratios = [_ratios(table[case]) for case in cases]
            if ratios:
                best, inductor = (math.prod(r) ** (1 / len(r)) for r in zip(*ratios, strict=True))
                lines.append(f"| {len(ratios)} {what} | {chip} | {best:.2f}x | {inductor:.2f}x |")
    return "\n".join(lines)


def _ratios(row: dict[str, str]) -> tuple[float, float]:
    """Times of the fastest peer and of Inductor over ours."""
    ours = _number(row["polyblocks"])
    best = min(_number(row.get(peer, "")) for peer in GPU_PEERS)
    return best / ours, _number(row["inductor"]) / ours


def _result_text(name: str) -> str:
    return (DOCS.parent / "bench/results" / f"{name}.md").read_text()


def results() -> str:
    """A table for each of :data:`RESULTS`: our times, the best peer's and Inductor's over ours."""
    return "\n\n".join(_result(name) for name in RESULTS)


def gpu_models() -> str:
    """The newest page of whole models on GPUs: a table of predictions for each chip and batch."""
    page = max((DOCS.parent / "bench/results").glob("*-gpu-models.md"))
    lines = [f"`{page.stem}`.", ""]
    lines += [
        "| chip | model | batch | µs predicted | launches | of a layer | share of the floor |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    text = page.read_text()
    for chip, batch in re.findall(r"^## (\S+), batch (\d+)$", text, re.MULTILINE):
        for model, row in _table(text, f"{chip}, batch {batch}", first=True).items():
            number, share = row["launches"], f"{100 * float(row['reach']):.0f} %"
            of_layer = "" if row["of a layer"] == "–" else row["of a layer"]
            cells = (chip, model, batch, row["µs"], number, of_layer, share)
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _result(name: str) -> str:
    text = _result_text(name)
    title, chip = RESULTS[name]
    times, verdicts = _table(text, "Times, ms"), {}
    if "## Verdicts" in text:
        verdicts = _table(text, "Verdicts")
    lines = [f"## {title[0].upper()}{title[1:]}, {chip}", "", f"`{name}`, {name[:10]}.", ""]
    if means := re.search(
        r"^(\d+ of \d+ rows meet .*?best peer of each row)\.", text, re.MULTILINE
    ):
        lines += [f"{means[1].replace('their bars', 'their goals')}.", ""]
    lines += [
        "| case | ms | best peer | / ours | Inductor / ours | met |",
        "|---|--:|---|--:|--:|---|",
    ]
    for case, row in times.items():
        ours = min(_number(row.get(k, "")) for k in ("polyblocks", "polyblocks-frozen"))
        best = next((k for k, v in row.items() if v.startswith("**")), "")
        verdict = verdicts.get(case, {})
        if not verdicts:
            best = min(GPU_PEERS, key=lambda k: _number(row.get(k, "")))
        ratio = verdict.get("best / ours") or f"{_number(row[best]) / ours:.2f}"
        over = verdict.get("Inductor / ours") or f"{_number(row['inductor']) / ours:.2f}"
        met = verdict.get("met", "")
        lines.append(f"| {case} | {ours:.4g} | {best} | {ratio} | {over} | {met} |")
    return "\n".join(lines)


def _table(text: str, heading: str, *, first: bool = False) -> dict[str, dict[str, str]]:
    """The table below a heading, or the first of several: first cell of a row -> column -> cell."""
    block = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    if first:
        block = block.strip().split("\n\n")[0]
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in block.splitlines()
        if line.startswith("|")
    ]
    return {row[0]: dict(zip(rows[0], row, strict=True)) for row in rows[2:]}


def _number(cell: str) -> float:
    """A time in milliseconds; infinite where a peer has none."""
    try:
        return float(cell.strip("*"))
    except ValueError:
        return math.inf


GENERATORS: dict[str, Callable[[], str]] = {
    "options": options,
    "releases": releases,
    "passes": passes,
    "facts": facts,
    "cpu-passes": cpu_passes,
    "gpu-passes": gpu_passes,
    "s3-operations": s3_operations,
    "s3-attributes": s3_attributes,
    "schedule-keys": schedule_keys,
    "contraction-schedule-keys": contraction_schedule_keys,
    "s3-version": s3_version,
    "hooks": hooks,
    "objects": objects,
    "events": events,
    "errors": errors,
    "archs": archs,
    "nvgpu-archs": nvgpu_archs,
    "amdgpu-archs": amdgpu_archs,
    "gpu-modes": gpu_modes,
    "api": api,
    "results": results,
    "gpu-models": gpu_models,
    "speedups": speedups,
}


def pass_table(lists: dict[str, list[Any]]) -> str:
    """Name and purpose of each pass: an upstream pipeline, or the pass's module in a line.

    With several lists also which of them a pass is in; rows are in the order of every list.
    """
    rows: dict[tuple[str, str], list[str]] = {}
    for name, members in lists.items():
        row = [(name, purpose(step)) for member in members for name, step in labelled(member)]
        rows = merged(rows, {key: [name] for key in row})
    lines = ["| pass | what it does |", "|---|---|"]
    if len(lists) > 1:
        lines = ["| pass | what it does | targets |", "|---|---|---|"]
    for (pass_, text), owners in rows.items():
        whose = "all" if owners == list(lists) else ", ".join(owners)
        lines.append(f"| {pass_} | {text} |" + (f" {whose} |" if len(lists) > 1 else ""))
    return "\n".join(lines)


def labelled(member: Any) -> list[tuple[str, Any]]:
    """A pass, and the rules that it is made of, as the table shows their names."""
    from polyblocks.passes.rules import RulePass

    rules = member.rules if isinstance(member, RulePass) else ()
    return [(f"`{member.name}`", member), *((f"- `{rule.name}`", rule) for rule in rules)]


def merged(
    first: dict[tuple[str, str], list[str]], second: dict[tuple[str, str], list[str]]
) -> dict[tuple[str, str], list[str]]:
    """Rows of both, in the order of both; what only one has comes where it stands there."""
    left, right = list(first), list(second)
    rows: dict[tuple[str, str], list[str]] = {}
    for _, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        for key in dict.fromkeys([*left[a:b], *right[c:d]]):
            rows[key] = [*first.get(key, ()), *second.get(key, ())]
    return rows


def purpose(member: Any) -> str:
    """One line on a pass."""
    from polyblocks.codegen.only_with import MEMORY, OnlyWith, OnlyWithOps
    from polyblocks.passes.rules import RulePass
    from polyblocks.pipeline import FunctionPass, UpstreamPass

    if isinstance(member, RulePass):
        return sentence(member.purpose)
    if isinstance(member, OnlyWithOps):
        return purpose(member.inner)
    if isinstance(member, OnlyWith):
        kinds = [
            f"`{kind.removeprefix(MEMORY)}`" + " in memory" * kind.startswith(MEMORY)
            for kind in member.kinds
        ]
        text = purpose(member.inner).removesuffix(".")
        return f"{text}; for programs with {' or '.join(kinds)} only."
    if isinstance(member, UpstreamPass):
        # A place where the table may wrap the line.
        return f"MLIR's `{'`, `'.join(upstream_steps(member.textual))}`"
    if isinstance(member, FunctionPass):
        text = inspect.getdoc(member.function) or ""
        text = text or f"{member.name}: the core's generated {member.name.replace('expand-', '')}"
    else:
        text = inspect.getdoc(import_module(type(member).__module__)) or ""
        if not text.startswith(f"{member.name}: "):
            # One of several passes of a file.
            text = inspect.getdoc(type(member)) or ""
    return sentence(text.split("\n\n")[0].replace("\n", " ").removeprefix(f"{member.name}: "))


def upstream_steps(textual: str) -> list[str]:
    """The passes of a textual pipeline: what commas outside of brackets separate."""
    steps, depth = [""], 0
    for character in textual:
        depth += (character in "({") - (character in ")}")
        if character == "," and not depth:
            steps.append("")
        else:
            steps[-1] += character
    return steps


def attributes(cls: type) -> dict[str, str]:
    """The ``Attributes:`` of a class's docstring: name -> text."""
    block = (inspect.getdoc(cls) or "").split("Attributes:\n")[1].split("\n\n")[0]
    texts: dict[str, str] = {}
    for line in textwrap.dedent(block).splitlines():
        if not line.startswith(" "):
            name, _, line = line.partition(":")
            texts[name] = ""
        texts[name] = f"{texts[name]} {line.strip()}".strip()
    return texts


def sentence(text: str) -> str:
    """Docstring text for a cell: Markdown's back quotes, a capital, a full stop."""
    text = text.replace("``", "`").strip().replace("|", "\\|")
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def signature(function: Any) -> str:
    """``name(argument: Type, ...) -> Type``, with types as the source spells them."""
    return f"{function.__name__}{inspect.signature(function)}".replace("'", "")


def docstring_to_markdown(text: str) -> str:
    """Google style to Markdown: sections become bold words, their entries lists."""
    out: list[str] = []
    section = ""
    lines = text.splitlines()
    for index, line in enumerate(lines):
        if re.fullmatch(r"(Args|Returns|Raises):", line):
            section = line[:-1]
            out += [f"**{ {'Args': 'Arguments'}.get(section, section) }**", ""]
        elif line == "Example::":
            code = textwrap.dedent("\n".join(lines[index + 1 :])).strip()
            return inline("\n".join(out)) + f"\n**Example**\n\n```python\n{code}\n```"
        elif section and line.startswith("        "):
            # The continuation of an entry.
            out[-1] += f" {line.strip()}"
        elif section in ("Args", "Raises") and line.startswith("    "):
            name, _, rest = line.strip().partition(": ")
            out.append(f"- `{name}`: {rest}")
        elif section == "Returns" and line.startswith("    "):
            if out[-1] and not out[-1].startswith("**"):
                out[-1] += f" {line.strip()}"
            else:
                out.append(line.strip())
        else:
            section = "" if line and not line.startswith(" ") else section
            out.append(line)
    return inline("\n".join(out))


def inline(text: str) -> str:
    """Sphinx's roles and double back quotes as Markdown's back quotes."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
    return text.replace("``", "`")


if __name__ == "__main__":
    main()
