"""The documentation agrees with the code, builds without a network and loads nothing from there."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from polyblocks import events, hookspecs
from polyblocks.options import PRECISION_MODES, CompileOptions

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
ENVIRONMENT = re.compile(r"\bPOLYBLOCKS_[A-Z_]+\b")
#: Of plugins, and looks alike.
IN_PLUGINS = {"POLYBLOCKS_API"}


def load_generator() -> Any:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "_generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = load_generator()


def page(name: str) -> str:
    """The text of a page."""
    return (DOCS / name).read_text()


def first_cells(markdown: str) -> list[str]:
    """The code in the first cell of every row."""
    return re.findall(r"^\| `([^`]+)` \|", markdown, re.MULTILINE)


def test_the_marks_and_the_generators_are_the_same() -> None:
    begun, ended = (
        [m for p in generate.PAGES for m in re.findall(rf"<!-- {word} ([\w-]+) -->", p.read_text())]
        for word in ("generated:", "end of")
    )
    assert begun == ended
    assert set(begun) == set(generate.GENERATORS)


@pytest.mark.parametrize("path", generate.PAGES, ids=lambda p: p.name)
def test_what_is_generated_is_up_to_date(path: Path) -> None:
    text = path.read_text()
    assert generate.up_to_date(text) == text, "run: make tables"


def test_what_is_not_up_to_date_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(generate.GENERATORS, "x", lambda: "new")
    lines = "a\n<!-- generated: x -->\n\nold\n\n<!-- end of x -->\nb"
    assert generate.up_to_date(lines) == lines.replace("old", "new")
    inside = "a <!-- generated: x -->old<!-- end of x -->, b"
    assert generate.up_to_date(inside) == inside.replace("old", "new")


def test_a_mark_without_a_generator_is_an_error() -> None:
    with pytest.raises(KeyError, match="nonsense"):
        generate.up_to_date("<!-- generated: nonsense -->\n<!-- end of nonsense -->")


def test_every_option_is_listed_with_its_default() -> None:
    text = page("options.md")
    for field in dataclasses.fields(CompileOptions):
        row = re.search(rf"^\| `{field.name}` \| `(.*?)` \| (.+) \|$", text, re.MULTILINE)
        assert row is not None, field.name
        assert row[1] == repr(field.default)
        assert len(row[2]) > 10


def test_every_value_of_the_precision_mode_is_named() -> None:
    assert all(f"`{mode}`" in page("options.md") for mode in PRECISION_MODES)


def rows_for(listed: str, targets: str) -> list[str]:
    """The passes of a table that are for all targets, or for these."""
    rows = re.findall(r"^\| `([^`]+)` \|.*\| ([\w, ]+) \|$", listed, re.MULTILINE)
    return [name for name, whose in rows if whose in ("all", targets)]


@pytest.mark.parametrize("chip", ["cpu", "gpu"])
def test_every_pass_is_listed_in_order(chip: str) -> None:
    from polyblocks.passes.standard import standard_pipeline

    target = generate.cpu() if chip == "cpu" else generate.gpu("amdgpu")
    pipeline = standard_pipeline(target, CompileOptions())
    text = page("how-it-works.md")
    listed = text[text.index("## The passes") : text.index("## The CPU target")]
    assert rows_for(listed, f"{chip.upper()}s") == pipeline.names()
    for line in listed.splitlines():
        if line.startswith("| `"):
            assert len(line.split("|")[2].strip()) > 10, f"says nothing: {line}"


def test_every_pass_of_the_cpu_is_listed() -> None:
    from polyblocks_cpu.describe import describe
    from polyblocks_cpu.lower import stage_s4

    text = page("how-it-works.md")
    listed = text[text.index("## The CPU target") : text.index("## The GPU targets")]
    passes = stage_s4(describe(CompileOptions(arch="x86-64")), profile=True)
    assert first_cells(listed) == [p.name for p in passes]


@pytest.mark.parametrize("target", ["nvgpu", "amdgpu"])
def test_every_pass_of_a_gpu_is_listed(target: str) -> None:
    lower = importlib.import_module(f"polyblocks_{target}.lower")
    text = page("how-it-works.md")
    listed = text[text.index("## The GPU targets") : text.index("## What passes between")]
    assert rows_for(listed, target) == [p.name for p in lower.stage_s4(generate.gpu(target))]


def test_a_pass_of_some_targets_says_of_which() -> None:
    from polyblocks.codegen.only_with import MEMORY, Contents, OnlyWith
    from polyblocks.pipeline import UpstreamPass

    both, one = UpstreamPass("both", "cse"), UpstreamPass("one", "canonicalize{a=b,c=d},cse")
    rare = OnlyWith(UpstreamPass("rare", "cse"), ("f16", f"{MEMORY}i1"), Contents())
    table = generate.pass_table({"x": [both, rare], "y": [one, both]})
    assert table.splitlines()[2:] == [
        "| `one` | MLIR's `canonicalize{a=b,c=d}`, `cse` | y |",
        "| `both` | MLIR's `cse` | all |",
        "| `rare` | MLIR's `cse`; for programs with `f16` or `i1` in memory only. | x |",
    ]


@pytest.mark.parametrize("name", sorted(hookspecs.INTERFACES[hookspecs.API_VERSION]))
def test_every_hook_is_documented_with_its_signature(name: str) -> None:
    text = page("plugins.md")
    function = getattr(hookspecs, name)
    section = text.split(f"\n### {name}\n")[1].split("\n### ")[0]
    parameters = inspect.signature(function).parameters
    spelt = ", ".join(f"{p.name}: {p.annotation}" for p in parameters.values())
    assert f"{name}({spelt}) -> {inspect.signature(function).return_annotation}\n" in section
    for parameter in parameters:
        assert f"- `{parameter}`: " in section
    assert "@hookimpl" in section, "no example"
    assert "``" not in section.replace("```", "")


def test_every_required_hook_is_named_for_its_kind() -> None:
    from polyblocks.registry.plugin import GROUPS, REQUIRED_HOOKS

    text = page("plugins.md")
    for group, kind in GROUPS.items():
        (row,) = re.findall(rf"^\| `{group}` \|.*$", text, re.MULTILINE)
        assert all(f"`{hook}`" in row for hook in REQUIRED_HOOKS[kind])


def test_every_kind_of_event_is_listed() -> None:
    text = page("plugins.md")
    assert first_cells(text[text.index("## Events") :]) == list(events.KINDS)


def test_every_error_is_listed() -> None:
    from polyblocks import errors

    classes = [n for n, v in vars(errors).items() if isinstance(v, type) and "Error" in n]
    assert first_cells(page("api.md"))[-len(classes) :] == classes


def test_every_environment_variable_is_listed() -> None:
    sources = [*(ROOT / "core/src").rglob("*.py"), *(ROOT / "plugins").glob("*/src/**/*.py")]
    used = {n for s in sources for n in ENVIRONMENT.findall(s.read_text())} - IN_PLUGINS
    listed = first_cells(page("environment.md"))
    assert used <= set(listed)
    assert {name for name in listed if name.startswith("POLYBLOCKS_")} <= used


def test_variables_named_on_other_pages_exist() -> None:
    listed = {*first_cells(page("environment.md")), *IN_PLUGINS}
    named = {n for p in PAGES for n in ENVIRONMENT.findall(p.read_text())}
    assert named <= listed


def test_every_public_name_is_listed() -> None:
    import polyblocks

    listed = re.findall(r"`polyblocks\.(\w+)`", page("api.md"))
    assert set(polyblocks.__all__) <= set(listed)
    assert all(hasattr(polyblocks, name) for name in listed)


def test_every_public_function_has_its_docstring() -> None:
    text = page("api.md")
    for module, names in generate.API.items():
        for name in names:
            function = getattr(importlib.import_module(module), name)
            section = text.split(f".{name}`\n\n```text\n")[1].split("\n### ")[0]
            assert (inspect.getdoc(function) or "").splitlines()[0].split("``")[0] in section


def test_speedups_are_those_of_the_results() -> None:
    text, result = generate.speedups(), generate.results()
    assert "| 20 image pipelines and simulations | Zen 4 | 1.95x | 29.55x |" in text
    assert "29.55× against Inductor and 1.95× against the best peer" in result
    # 0.48, 0.51, 0.43, 0.36 and 0.37 by the table of the GPU's products.
    assert "| 5 float16 matmuls | H100 | 0.42x |" in text
    for name, (_, chip) in generate.RESULTS.items():
        assert f"| {chip} |" in text, name
    # The count and the mean of all rows, as the page says them.
    name, chip = generate.SINGLE_OPERATIONS
    page = (ROOT / "bench/results" / f"{name}.md").read_text()
    (row,) = re.findall(r"^\| all \| (\d+) \| ([\d.]+)×", page, re.MULTILINE)
    assert f"| {int(row[0]):,} single operations | {chip} | {row[1]}x | |" in text


def test_every_page_is_in_the_navigation_once() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    assert sorted(re.findall(r": ([\w-]+\.md)$", navigation, re.MULTILINE)) == [
        p.name for p in PAGES
    ]


def test_every_command_is_in_the_readme() -> None:
    from polyblocks import cli

    readme = (ROOT / "README.md").read_text()
    for command in cli.app.registered_commands:
        name = command.name or command.callback.__name__  # type: ignore[union-attr]
        assert f"polyblocks {name}" in readme
    for command in cli.cache_app.registered_commands:
        assert command.name is not None
        assert re.search(rf"polyblocks cache [\w|]*\b{command.name}\b", readme)


def texts() -> list[Path]:
    return [ROOT / "README.md", *PAGES]


@pytest.mark.parametrize("path", texts(), ids=lambda p: p.name)
def test_files_named_in_the_text_exist(path: Path) -> None:
    text = path.read_text()
    for link in re.findall(r"\]\(([^)#:]+\.md|LICENSE)(?:#[\w-]+)?\)", text):
        assert (path.parent / link).is_file(), link
    for name in re.findall(r"`((?:examples|tests|bench|docs|plugins|core)/[\w./-]+)`", text):
        assert (ROOT / name).exists(), name


def test_the_pass_that_contributors_are_shown_does_what_the_text_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from polyblocks import mlir
    from polyblocks.pipeline import PassContext, run_stage

    blocks = re.findall(r"^    ```\w*\n(.*?)^    ```", page("contributing.md"), re.M | re.S)
    code, checks = map(textwrap.dedent, blocks[:2])
    (tmp_path / "count_stores.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    written = importlib.import_module("count_stores")
    shown = written.CountStoresPass()
    assert (written.__doc__ or "").startswith(f"{shown.name}: ")
    assert checks.startswith(f"// PASSES: {shown.name}\n")
    counts = []

    def listen(event: events.Event) -> None:
        if event.kind == "decision":
            counts.append((event.data["pass"], event.data["count"]))

    module = mlir.parse(checks)
    with events.listening(listen):
        run_stage("S3", [shown], module, PassContext(generate.cpu(), CompileOptions()))
    assert counts == [("count-stores", 1)]
    assert "affine.store %cst, %arg0[%arg1]" in str(module)


def test_targets_of_make_named_in_the_text_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for path in texts():
        for target in re.findall(r"(?:^|`)make ([\w-]+)", path.read_text(), re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{path.name}: make {target}"


def test_docs_build_without_a_network_and_load_nothing_from_one(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    nowhere = "http://127.0.0.1:9"
    environment = {**os.environ, "http_proxy": nowhere, "https_proxy": nowhere}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    built = list(tmp_path.rglob("*.html"))
    assert {p.stem for p in PAGES} <= {p.stem for p in built}
    for html in built:
        loaded = re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", html.read_text())
        assert loaded, html
        assert not [tag for tag in loaded if re.search(r"(src|href)=[\"']?(https?:)?//", tag)]
    assert not list(tmp_path.glob("*.py"))
