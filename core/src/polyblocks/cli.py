"""The command ``polyblocks``: plugins, targets, compile, explain, cache."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from rich.console import Console
from rich.table import Table

from polyblocks.errors import InputError, PolyBlocksError
from polyblocks.files import write_file
from polyblocks.options import CompileOptions

if TYPE_CHECKING:
    from polyblocks.reports.report import Report

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Its tables cut off what does not fit into a narrow terminal.
    rich_markup_mode=None,
)
cache_app = typer.Typer(
    help="The on-disk cache of compiled programs.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(cache_app, name="cache")


def main() -> None:
    """Entry point of the command: an error is one line on stderr.

    The exit status is 2 for a command that is misspelt, and 1 for what it cannot do.
    """
    try:
        status = app(standalone_mode=False)
    except (PolyBlocksError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except Exception as error:
        # Typer's come from click, or from a copy of it in newer releases.
        kinds = {kind.__name__ for kind in type(error).__mro__}
        if "NoArgsIsHelpError" in kinds:
            error.show()  # type: ignore[attr-defined]
        elif "ClickException" in kinds:
            text = " ".join(error.format_message().split())  # type: ignore[attr-defined]
            print(f"error: {text}", file=sys.stderr)
        elif "Abort" in kinds:
            print("aborted", file=sys.stderr)
        else:
            raise
        sys.exit(getattr(error, "exit_code", 1))
    sys.exit(status if isinstance(status, int) else 0)


def _print_version(wanted: bool) -> None:
    if wanted:
        _print(f"polyblocks-compiler {version('polyblocks-compiler')}")
        raise typer.Exit


@app.callback()
def root(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Compile tensor programs for CPUs and GPUs."""
    del show_version


@app.command()
def plugins(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List all plugins: where they come from, their API, and whether they work."""
    from polyblocks.hookspecs import API_VERSION
    from polyblocks.namesake import conflict
    from polyblocks.registry.registry import get_registry

    if problem := conflict():
        print(f"warning: {problem}", file=sys.stderr)
    providers = get_registry().providers(load=True)
    if as_json:
        _print_json([dataclasses.asdict(provider) for provider in providers])
        return
    table = Table("plugin", "name", "distribution", "version", "API", "status", box=None)
    for p in providers:
        colour = "green" if p.status == "loaded" else "red" if p.error else "yellow"
        status = f"[{colour}]{p.status}[/]"
        table.add_row(p.kind, p.name, p.distribution, p.version, p.api or "-", status)
    _print(table)
    for p in providers:
        if p.error:
            _print(f"{p.status}: {p.error}")
    _print(f"this polyblocks speaks API {API_VERSION}")


@app.command()
def targets(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List targets and the chip each detects."""
    from polyblocks.registry.honoured_options import describe_target
    from polyblocks.registry.registry import TARGETS, get_registry

    registry = get_registry()
    rows: dict[str, Any] = {}
    for name in registry.names(TARGETS):
        try:
            described = describe_target(CompileOptions(target=name))
            rows[name] = dataclasses.asdict(described)
        except PolyBlocksError as error:
            rows[name] = {"error": str(error)}
    if as_json:
        _print_json(rows)
        return
    if not rows:
        _print("no target is installed; pip install polyblocks-cpu")
    table = Table("target", "arch", "vector", "parallel", "memory", box=None)
    for name, row in rows.items():
        if "error" in row:
            table.add_row(name, f"[red]{row['error']}[/]")
            continue
        parallel = ", ".join(f"{level['name']} {level['size']}" for level in row["parallel"])
        memory = ", ".join(
            f"{level['name']} {_bytes(level['size'])}" for level in row["memory"] if level["size"]
        )
        vector = f"{row['vector_bits']} bits" if row["vector_bits"] else "-"
        table.add_row(name, row["arch"], vector, parallel, memory)
    _print(table)


def compile_command(
    file: Annotated[
        str,
        typer.Argument(
            help="An .mlir file (tensors, loops over memrefs, or a dump), or FILE.py:FUNCTION."
        ),
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", help="An argument of FUNCTION: float32[3,224,224]."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write the artifact (default FILE.zip) or library folder (default FILE's folder).",
        ),
    ] = None,
    emit: Annotated[
        str,
        typer.Option(
            help="Emit an 'artifact', a file for polyblocks.load, or a 'library' for C and C++: "
            "shared object, header and CMake file, named after FUNCTION or FILE."
        ),
    ] = "artifact",
    after: Annotated[
        str | None,
        typer.Option(
            help="Resume after this stage or stage:pass (S2, S3:fuse-slices); default: what the "
            "dump says."
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            help="Stop after this stage or stage:pass and write the module instead of an artifact; "
            "default name: FILE with .after.mlir."
        ),
    ] = None,
    **options: Any,
) -> None:
    """Compile an MLIR file, a dump, or a function of a framework into an artifact (.zip).

    With several names in --arch, separated by commas, the artifact has code for all of them.
    """
    from polyblocks.ahead_of_time.architectures import options_by_arch
    from polyblocks.ahead_of_time.library import write_library
    from polyblocks.api import compile_file, compile_until
    from polyblocks.cache.artifact_variants import join
    from polyblocks.reports.report import Report

    if emit not in ("artifact", "library"):
        raise InputError(f"--emit is one of artifact and library, not '{emit}'")
    given = {name: value for name, value in options.items() if value is not None}
    path, colon, function = file.rpartition(":")
    if colon and path.endswith(".py"):
        from polyblocks.ahead_of_time.python_file import compile_function

        artifact = compile_function(Path(path), function, inputs or [], given)
        source = Path(path)
    else:
        source = Path(file)
        if until is not None:
            text = compile_until(source, CompileOptions.from_dict(given), until, after)
            place = output or source.with_suffix(".after.mlir")
            _write(place, text.encode())
            _print(str(place))
            return
        artifact = join([compile_file(source, each, after) for each in options_by_arch(given)])
    if emit == "library":
        name = function if colon else source.stem
        written = write_library(artifact, output or source.parent, name)
    else:
        written = [output or source.with_suffix(".zip")]
        _write(written[0], artifact.to_bytes())
    report = Report()
    report.add_artifact(artifact)
    _print("\n".join([*map(str, written), str(report)]))


def explain_command(
    context: typer.Context,
    what: Annotated[
        str,
        typer.Argument(
            help="A Python script with its arguments, FILE.py:FUNCTION, an .mlir file, an artifact "
            "(.zip), or the key of a cache entry."
        ),
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", help="An argument of FUNCTION: float32[3,224,224]."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page to this file as well.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON; what a script prints goes to stderr.")
    ] = False,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Show all kernels, decisions and passes, not only the largest."),
    ] = False,
    measure: Annotated[
        bool, typer.Option("--measure/--no-measure", help="Measure the time of every kernel.")
    ] = True,
    **options: Any,
) -> None:
    """Show kernels, decisions, times, fallbacks.

    A script is run with the arguments that follow it; a function and an .mlir file are run with
    random inputs. To measure, they are compiled with the option 'profile'. The options of the
    compiler are for files and functions that are not decorated; a script has its own.
    """
    from polyblocks.explanation.document import document
    from polyblocks.explanation.page import page
    from polyblocks.explanation.tree import tree

    given = {name: value for name, value in options.items() if value is not None}
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        report = _explained(what, context.args, inputs or [], given, measure)
    data = document(report)
    if html is not None:
        _write(html, page(data).encode())
    if as_json:
        _print_json(data)
        return
    _print_tree(tree(data, everything))
    if html is not None:
        _print(f"wrote {html}")


def _explained(
    what: str, arguments: list[str], inputs: list[str], options: dict[str, Any], measure: bool
) -> Report:
    from polyblocks.explanation import run

    file, colon, function = what.rpartition(":")
    if colon and file.endswith(".py"):
        return run.explain_function(Path(file), function, inputs, options, measure)
    path = Path(what)
    if path.suffix == ".py":
        return run.explain_script(path, arguments, measure)
    if path.suffix == ".mlir":
        checked = CompileOptions.from_dict(options | {"profile": measure})
        return run.explain_module(path, checked, measure=measure)
    return _explain_stored(what)


def _explain_stored(what: str) -> Report:
    from polyblocks.artifact import Artifact
    from polyblocks.cache.cache import default_cache
    from polyblocks.reports.report import Report

    report = Report()
    path = Path(what)
    if path.is_file():
        report.add_artifact(Artifact.from_bytes(path.read_bytes()))
        return report
    entries = [e for e in default_cache().entries() if e.key.startswith(what)]
    if len(entries) != 1:
        found = f"no file or cache entry '{what}'"
        if entries:
            found = f"{len(entries)} cache entries begin with '{what}', expected one"
        raise InputError(f"{found}; run: polyblocks cache list")
    report.add_artifact(entries[0].read(), cached=True, key=entries[0].key)
    return report


def bisect_command(
    context: typer.Context,
    what: Annotated[
        str,
        typer.Argument(
            help="An .mlir file (linalg on tensors, a dump, a reproducer), a folder of dumps, a "
            "Python script with its arguments, or FILE.py:FUNCTION."
        ),
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", help="An argument of FUNCTION: float32[3,224,224]."),
    ] = None,
    after: Annotated[
        str | None, typer.Option(help="Resume after this stage or stage:pass, as for compile.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Stop after this stage:pass.")] = None,
    rounds: Annotated[int, typer.Option(help="Run with this many sets of random inputs.")] = 3,
    seed: Annotated[int, typer.Option(help="Set the random seed.")] = 0,
    limit: Annotated[float, typer.Option(help="Limit each run to this many seconds.")] = 60.0,
    all_passes: Annotated[
        bool,
        typer.Option("--all", help="Run every module instead of searching."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    **options: Any,
) -> None:
    """Find the first pass that changes what a program computes.

    The module after each pass is lowered by upstream passes alone and run with random inputs. Exit
    status 1 if a pass changes a result. The options of the compiler are for files and functions
    that are not decorated; a script has its own.
    """
    from polyblocks.bisect import command
    from polyblocks.bisect.search import Settings

    given = {name: value for name, value in options.items() if value is not None}
    settings = Settings(rounds, seed, limit, until, all_passes)
    results = command.run(what, context.args, given, settings, after, inputs or [])
    if as_json:
        _print_json(command.to_json(results))
    for result in results if not as_json else ():
        _print(command.table_of(result))
        _print(command.verdict(result))
    if any(result.suspects for result in results):
        raise typer.Exit(1)


@cache_app.command("list")
def cache_list(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the entries, the last used first."""
    from polyblocks.cache.cache import default_cache

    cache = default_cache()
    rows = []
    for entry in cache.entries():
        row: dict[str, Any] = {"key": entry.key, "size": entry.size, "used": entry.used}
        try:
            manifest = entry.read().manifest
            row |= {name: manifest.get(name, "") for name in ("kind", "name", "target", "arch")}
        except PolyBlocksError as error:
            row |= {"kind": "damaged", "name": str(error), "target": "", "arch": ""}
        rows.append(row)
    if as_json:
        _print_json(rows)
        return
    table = Table("key", "kind", "name", "target", "arch", "size", "used", box=None)
    for row in rows:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(row["used"]))
        table.add_row(
            row["key"][:16],
            *(row[name] for name in ("kind", "name", "target", "arch")),
            _bytes(row["size"]),
            used,
        )
    _print(table)
    total = _bytes(sum(row["size"] for row in rows))
    _print(f"{len(rows)} entries, {total} of {_bytes(cache.max_bytes)}, in {cache.root}")


@cache_app.command("clear")
def cache_clear() -> None:
    """Remove all entries."""
    from polyblocks.cache.cache import default_cache

    cache = default_cache()
    _print(f"{cache.clear()} entries removed from {cache.root}")


@cache_app.command("verify")
def cache_verify() -> None:
    """Read and check every entry; exit status 1 if one is damaged."""
    from polyblocks.cache.cache import default_cache

    cache = default_cache()
    bad = cache.verify()
    for entry in bad:
        _print(f"damaged: {entry.path}: {entry.reason}")
    _print(f"{len(cache.entries())} entries checked, {len(bad)} damaged")
    if bad:
        raise typer.Exit(1)


# --- the options of CompileOptions as options of `polyblocks compile` -----------------------------


#: Options that are switches although something else is their default.
_SWITCHES = ("use_graph",)
#: Options that are neither switches nor text.
_OPTION_TYPES: dict[str, Any] = {
    "num_threads": int,
    "num_iters": int,
    "compile_timeout": float,
    "static_argnums": list[int],
    "static_argnames": list[str],
}


def _with_compile_options(command: Any) -> Any:
    """Give ``command`` an option per field of CompileOptions: the same names, with hyphens."""
    hints = get_type_hints(command, include_extras=True)
    fixed = [
        p.replace(annotation=hints[p.name])
        for p in inspect.signature(command).parameters.values()
        if p.kind is not p.VAR_KEYWORD
    ]
    texts = _option_texts()
    for field in dataclasses.fields(CompileOptions):
        flag = "--" + field.name.replace("_", "-")
        switch = isinstance(field.default, bool) and field.name != "debug"
        switch = switch or field.name in _SWITCHES
        # Switches that are on by default need a way to turn them off.
        names = [f"{flag}/--no-{flag[2:]}"] if switch and field.default else [flag]
        kind: Any = bool if switch else _OPTION_TYPES.get(field.name, str)
        text = f"{texts[field.name]} Default: {field.default}."
        option = typer.Option(*names, help=text, show_default=False)
        fixed.append(
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=Annotated[kind | None, option],
            )
        )
    command.__signature__ = inspect.Signature(fixed)
    command.__annotations__ = {p.name: p.annotation for p in fixed}
    return command


def _option_texts() -> dict[str, str]:
    """Option -> its text in the docstring of CompileOptions."""
    texts: dict[str, str] = {}
    name = ""
    for line in inspect.getdoc(CompileOptions).split("Attributes:")[1].splitlines():  # type: ignore[union-attr]
        head, colon, rest = line.strip().partition(":")
        if colon and line.startswith("    ") and not line.startswith("     "):
            name = head
            texts[name] = rest.strip()
        elif name and line.strip():
            texts[name] += " " + line.strip()
    return {name: text.replace("``", "'") for name, text in texts.items()}


app.command("compile")(_with_compile_options(compile_command))
app.command("explain", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(
    _with_compile_options(explain_command)
)
app.command("bisect", context_settings={"allow_extra_args": True})(
    _with_compile_options(bisect_command)
)


for registered in (*app.registered_commands, *cache_app.registered_commands):
    # Whole, where others would be cut to the width of the terminal.
    registered.short_help = (inspect.getdoc(registered.callback) or "").splitlines()[0]


# --- printing -------------------------------------------------------------------------------------


def _print(what: Any) -> None:
    # Wide enough for a table wherever the output goes to a file or a pipe.
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console = Console(highlight=False, soft_wrap=True, width=200)
    console.print(what, markup=False) if isinstance(what, str) else console.print(what)


def _write(place: Path, data: bytes) -> None:
    try:
        write_file(place, data)
    except OSError as error:
        raise InputError(f"cannot write {place}: {error.strerror}") from None


def _print_tree(what: Any) -> None:
    # Wrapped in a terminal; in a file or a pipe every node is one line.
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=10_000)
    console.print(what)


def _print_json(what: Any) -> None:
    print(json.dumps(what, indent=2, default=str))


def _bytes(size: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} GiB"


if __name__ == "__main__":
    main()
