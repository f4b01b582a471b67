"""What the pages take from the code: tables and lists between ``<!-- generated: NAME -->`` marks.

mkdocs calls :func:`on_page_markdown` for every page. ``python docs/_generate.py`` refreshes the
options table of README.md.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

README = Path(__file__).resolve().parents[1] / "README.md"

MARK = re.compile(r"<!-- generated: ([\w-]+) -->")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace every mark by what its generator makes; called by mkdocs."""
    return MARK.sub(lambda match: GENERATORS[match[1]](), markdown)


def options() -> str:
    """Name, default and meaning of every compile option."""
    from polyblocks.options import CompileOptions

    texts = attributes(CompileOptions)
    lines = ["| option | default | meaning |", "|---|---|---|"]
    for field in dataclasses.fields(CompileOptions):
        lines.append(f"| `{field.name}` | `{field.default!r}` | {sentence(texts[field.name])} |")
    return "\n".join(lines)


def passes() -> str:
    """The passes of S1 to S3, in order, by stage."""
    from polyblocks.options import CompileOptions
    from polyblocks.passes.standard import standard_pipeline
    from polyblocks.stages import STAGES
    from polyblocks.target import TargetDescription

    pipeline = standard_pipeline(TargetDescription("cpu", "", (), ()), CompileOptions())
    parts = []
    for stage, members in pipeline.stages.items():
        parts.append(f"### {stage}, {STAGES[stage]}\n\n{pass_table(members)}")
    return "\n\n".join(parts)


def cpu_passes() -> str:
    """The passes of the CPU target's S4, on a chip that lacks all that can be lacking."""
    from polyblocks.options import CompileOptions
    from polyblocks_cpu.describe import describe
    from polyblocks_cpu.lower import stage_s4

    return pass_table(stage_s4(describe(CompileOptions(arch="x86-64")), profile=True))


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

    return [Capture, CompiledFunction, HasOriginal, ArrayInterface, Executable]


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


def amdgpu_archs() -> str:
    """Architectures of the target amdgpu, and the chips of each."""
    from polyblocks_amdgpu.chips import CHIPS
    from polyblocks_amdgpu.generations import ARCHS

    rows = ["| arch | chips |", "|---|---|"]
    for name in ARCHS:
        chips = [f"`{c.name}`" for c in CHIPS.values() if c.arch == name]
        rows.append(f"| `{name}` | {', '.join(chips)} |")
    return "\n".join(rows)


def update_readme() -> None:
    """Write the options table into README.md, which is read without being built."""
    README.write_text(with_options(README.read_text()))


def with_options(readme: str) -> str:
    """README.md with the options table of today between its marks."""
    head, begin, rest = readme.partition("<!-- options -->\n")
    _, end, tail = rest.partition("<!-- end of options -->")
    return f"{head}{begin}{options()}\n{end}{tail}"


GENERATORS: dict[str, Callable[[], str]] = {
    "options": options,
    "passes": passes,
    "cpu-passes": cpu_passes,
    "hooks": hooks,
    "objects": objects,
    "events": events,
    "errors": errors,
    "archs": archs,
    "nvgpu-archs": nvgpu_archs,
    "amdgpu-archs": amdgpu_archs,
}


def pass_table(members: list[Any]) -> str:
    """Name and purpose of each pass: an upstream pipeline, or the pass's module in a line."""
    rows = [f"| `{member.name}` | {purpose(member)} |" for member in members]
    return "\n".join(["| pass | what it does |", "|---|---|", *rows])


def purpose(member: Any) -> str:
    """One line on a pass."""
    from polyblocks.pipeline import FunctionPass, UpstreamPass

    if isinstance(member, UpstreamPass):
        # A place where the table may wrap the line.
        steps = "`, `".join(re.split(r",(?![^{]*\})(?![^(]*\))", member.textual))
        return f"MLIR's `{steps}`"
    if isinstance(member, FunctionPass):
        text = inspect.getdoc(member.function) or ""
        text = text or f"{member.name}: the core's generated {member.name.replace('expand-', '')}"
    else:
        text = inspect.getdoc(import_module(type(member).__module__)) or ""
    return sentence(text.split("\n\n")[0].replace("\n", " ").removeprefix(f"{member.name}: "))


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
    update_readme()
