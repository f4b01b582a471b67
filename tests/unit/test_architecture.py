"""Who may import whom, and which words the core may not know (DESIGN: The house)."""

from __future__ import annotations

import ast
import functools
import itertools
import re
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from offenders import offenders
from tests.support.syntax import tree

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "core/src/polyblocks"
PLUGINS = {p.name: p for p in ROOT.glob("plugins/*/src/polyblocks_*")}
FRAMEWORKS = {"torch", "torchvision", "jax", "jaxlib", "tensorflow", "flax", "functorch"}
VENDORS = {"cuda", "cupy", "hip", "triton", "intel_openmp", "mkl", "pycuda"}
MLIR = {"torch_mlir", "mlir", "jaxlib.mlir"}
LLVM_ROOMS = ("codegen", "runtime")

#: Of a vendor or an architecture. What is let through is listed below, each with its reason.
VENDOR_WORDS = re.compile(
    r"cuda|cublas|cudnn|cutlass|nvvm|nvptx|nvidia|\bptx\b|\bsm_\d|wgmma|(?<![a-z])hip(?![a-z])|rocdl|"
    r"rocm|hsaco|\bgfx\d|amdgcn|\bamdgpu|\bnvgpu|\bavx|\bsse\d?\b|\bneon\b|\bsve\b|x86|aarch64|"
    r"intel\b",
    re.IGNORECASE,
)
FRAMEWORK_WORDS = re.compile(r"\b(?:torch|tensorflow|jax|aten)\b", re.IGNORECASE)
#: Distributions to install or to read versions of; their names hold a framework's.
DISTRIBUTIONS = re.compile(r"polyblocks-torch|polyblocks-jax|polyblocks-tf|torch-mlir")

#: Distributions that are not named like the package that they bring.
DISTRIBUTION_OF = {
    "polyblocks": "polyblocks-compiler",
    "cuda": "cuda-bindings",
    "hip": "hip-python",
}

#: The documented import paths, and the plugins that they import.
DOCUMENTED = {
    "torch_polyblocks_compiler.py": "polyblocks_torch",
    "jax_polyblocks_compiler.py": "polyblocks_jax",
    "tf_polyblocks_compiler.py": "polyblocks_tf",
}

#: File of the core -> words that it may hold.
ALLOWED_WORDS: dict[str, set[str]] = {
    # The documented import paths.
    "device_helpers.py": {"cuda"},
    "torch_polyblocks_compiler.py": {"torch"},
    "jax_polyblocks_compiler.py": {"jax"},
    "tf_polyblocks_compiler.py": {"tensorflow"},
    # Names of official plugins, to say what to install.
    "registry.py": {"nvgpu", "amdgpu", "torch", "jax"},
}


def sources(folder: Path) -> list[Path]:
    files = sorted(folder.rglob("*.py"))
    assert files, f"nothing below {folder}"
    return files


#: Nodes that are statements or hold some. Expressions, which hold none, are most of a tree.
HOLD_STATEMENTS = (ast.stmt, ast.ExceptHandler, ast.match_case)


@functools.cache
def imports(path: Path) -> list[tuple[str, bool]]:
    """Modules that a file imports, and whether the import runs (not for type checkers only)."""
    return imports_of(path.read_text())


def imports_of(source: str) -> list[tuple[str, bool]]:
    """The same of a module's text: at its top, in functions and under ``TYPE_CHECKING``."""
    found: list[tuple[str, bool]] = []

    def visit(node: ast.AST, runs: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend((alias.name, runs) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module, "relative import"
            assert node.level == 0, "relative import"
            # `from polyblocks import mlir` imports polyblocks.mlir.
            found.append((node.module, runs))
            found.extend((f"{node.module}.{alias.name}", runs) for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.body:
                visit(child, False)
            for child in node.orelse:
                visit(child, runs)
            return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, HOLD_STATEMENTS):
                visit(child, runs)

    visit(tree(source), True)
    return found


def tops(path: Path) -> set[str]:
    return {name.partition(".")[0] for name, _ in imports(path)}


def test_imports_are_seen_wherever_they_are() -> None:
    source = """
import a.b
def f():
    from c import d
class C:
    if TYPE_CHECKING:
        import e
    else:
        import f
"""
    assert imports_of(source) == [
        ("a.b", True), ("c", True), ("c.d", True), ("e", False), ("f", True),
    ]  # fmt: skip
    with pytest.raises(AssertionError, match="relative import"):
        imports_of("from . import a")


def test_every_offender_is_named() -> None:
    files = [CORE / "mlir.py", CORE / "driver.py"]
    names = {"mlir.py": ["b", "a"], "driver.py": []}
    assert offenders(files, lambda p: names[p.name]) == ["core/src/polyblocks/mlir.py: a, b"]


def test_the_core_imports_no_framework_no_vendor_library_and_no_plugin() -> None:
    def foreign(path: Path) -> set[str]:
        return (tops(path) & (FRAMEWORKS | VENDORS | set(PLUGINS))) - {DOCUMENTED.get(path.name)}

    assert offenders(sources(CORE), foreign) == []


def test_the_mlir_binding_is_imported_in_one_file() -> None:
    assert offenders(sources(CORE), lambda path: tops(path) & MLIR) == [
        "core/src/polyblocks/mlir.py: torch_mlir"
    ]


def test_llvm_is_imported_only_where_code_is_generated_or_linked() -> None:
    elsewhere = [p for p in sources(CORE) if p.relative_to(CORE).parts[0] not in LLVM_ROOMS]
    assert offenders(elsewhere, lambda path: tops(path) & {"llvmlite"}) == []
    for room in LLVM_ROOMS:
        assert offenders(sources(CORE / room), lambda path: tops(path) & {"llvmlite"}), room


def test_the_core_knows_no_vendor() -> None:
    def words(path: Path) -> set[str]:
        found = {m.group().lower() for m in VENDOR_WORDS.finditer(path.read_text())}
        return found - ALLOWED_WORDS.get(path.name, set())

    assert offenders(sources(CORE), words) == []


def test_the_core_knows_no_framework() -> None:
    def words(path: Path) -> set[str]:
        source = path.read_text()
        # Most files have no such word, not even where two literals meet, and need not be parsed.
        if not FRAMEWORK_WORDS.search(source + re.sub(r"""["']\s*\w?["']""", "", source)):
            return set()
        # In code; docstrings and comments may give examples.
        text = DISTRIBUTIONS.sub("", _code_only(path))
        found = {m.group().lower() for m in FRAMEWORK_WORDS.finditer(text)}
        return found - ALLOWED_WORDS.get(path.name, set())

    assert offenders(sources(CORE), words) == []


def test_the_words_are_recognized():
    text = "cuda_module NVVM sm_90 avx512f x86-64 __hip_x hip gfx1100 AArch64 ptx sse2"
    assert len(VENDOR_WORDS.findall(text)) == 11
    assert not VENDOR_WORDS.findall("a chip, prism_9, dissent, sieve, intelligible")


def _code_only(path: Path) -> str:
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            node.body = [
                child
                for child in node.body
                if not (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant))
            ] or [ast.Pass()]
    return ast.unparse(tree)


def test_the_runtime_runs_without_mlir() -> None:
    banned = ("polyblocks.mlir", "polyblocks.pipeline", "polyblocks.passes", "polyblocks.affine")

    def needed(path: Path) -> list[str]:
        running = [name for name, runs in imports(path) if runs]
        return [name for name in running if name.startswith(banned) or name in MLIR]

    assert offenders(sources(CORE / "runtime"), needed) == []


def module_level(path: Path) -> list[str]:
    """What is imported as soon as the file is."""
    names = []
    for node in tree(path.read_text()).body:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


#: What a process imports that finds its program in the cache.
WARM_START = (
    *("artifact", "driver", "options", "events", "target"),
    *("cache/cache", "registry/registry", "isolation/isolation"),
)


def test_what_a_warm_start_imports_does_not_import_mlir() -> None:
    banned = ("polyblocks.mlir", "polyblocks.passes", "torch_mlir", "llvmlite")

    def needed(path: Path) -> list[str]:
        return [name for name in module_level(path) if name.startswith(banned)]

    assert offenders([CORE / f"{name}.py" for name in WARM_START], needed) == []


#: Rooms of the core, and the rooms that their files import from besides the top and themselves. A
#: program passes through them from top to bottom.
ROOMS: dict[str, str] = {
    "registry": "isolation",
    "targets": "",
    "cache": "isolation",
    "isolation": "",
    "frontends": "isolation reports",
    "ahead_of_time": "cache explanation frontends registry runtime runtime/device",
    "stablehlo": "affine/padding algorithms/factorizations algorithms/fourier algorithms/sorting",
    "algorithms": "affine affine/mlir algorithms/factorizations passes/tensor",
    "algorithms/factorizations": "affine algorithms algorithms/factorizations/grid",
    "algorithms/factorizations/grid": "affine algorithms",
    "passes": "affine affine/mlir "
    "passes/tensor passes/bufferize passes/normalize passes/padding passes/layout passes/fuse "
    "passes/contraction passes/schedule passes/map",
    "algorithms/fourier": "",
    "algorithms/sorting": "",
    "passes/tensor": "affine algorithms/sorting passes",
    "passes/bufferize": "affine affine/analysis affine/mlir algorithms/sorting passes/tensor",
    "passes/normalize": "affine affine/analysis affine/buffers affine/cleanup affine/cost "
    "affine/fusion affine/mlir affine/naming affine/rewrites affine/tiles "
    "passes",
    "passes/padding": "affine affine/analysis affine/cleanup affine/cost affine/fusion "
    "affine/masks affine/naming affine/padding affine/rewrites passes",
    "passes/layout": "affine affine/analysis affine/buffers affine/cleanup affine/rewrites "
    "affine/vectors passes",
    "passes/fuse": "affine affine/analysis affine/cleanup affine/contraction/products "
    "affine/contraction/tilings affine/cost affine/fusion affine/gpu affine/masks affine/mlir "
    "affine/naming affine/padding affine/rewrites affine/tiles affine/vectors passes "
    "passes/normalize",
    "passes/contraction": "affine affine/analysis affine/buffers affine/cleanup affine/contraction "
    "affine/contraction/products affine/contraction/tilings affine/cost affine/fusion/chains "
    "affine/gpu affine/gpu/plans affine/gpu/tiles affine/mlir affine/naming affine/padding "
    "affine/plan affine/rewrites affine/vectors "
    "passes",
    "passes/schedule": "affine affine/analysis affine/cleanup affine/cost affine/mlir "
    "affine/rewrites affine/scatters affine/vectors affine/gpu passes",
    "passes/map": "affine affine/analysis affine/contraction/products affine/cost affine/fusion "
    "affine/masks affine/mlir affine/naming affine/rewrites affine/vectors affine/gpu "
    "affine/gpu/mapping affine/gpu/plans affine/gpu/staged affine/gpu/tiles affine/plan "
    "codegen/gpu/emission passes",
    "affine": "",
    "affine/cleanup": "affine",
    "affine/buffers": "affine affine/analysis affine/rewrites",
    "affine/naming": "affine affine/analysis affine/cost affine/mlir",
    "affine/fusion": "affine affine/analysis affine/cleanup affine/contraction/products "
    "affine/contraction/tilings affine/cost affine/mlir affine/naming "
    "affine/rewrites affine/tiles",
    "affine/fusion/chains": "affine affine/analysis affine/contraction/products affine/fusion "
    "affine/masks",
    "affine/contraction": "affine affine/analysis affine/buffers affine/contraction/products "
    "affine/cost affine/padding affine/plan",
    "affine/contraction/products": "affine affine/analysis",
    "affine/contraction/tilings": "affine affine/analysis affine/contraction "
    "affine/contraction/products affine/cost affine/plan",
    "affine/analysis": "affine",
    "affine/padding": "affine affine/analysis",
    "affine/masks": "affine affine/analysis affine/rewrites",
    "affine/vectors": "affine affine/analysis",
    "affine/mlir": "affine affine/buffers affine/vectors",
    "affine/rewrites": "affine affine/analysis affine/cleanup affine/vectors",
    "affine/scatters": "affine affine/analysis affine/cost affine/gpu affine/mlir affine/rewrites "
    "affine/vectors",
    "affine/tiles": "affine affine/analysis",
    "affine/cost": "affine affine/analysis affine/tiles affine/vectors",
    "affine/plan": "",
    "affine/gpu": "affine affine/analysis affine/buffers affine/cost affine/gpu/mapping "
    "affine/gpu/plans affine/gpu/staged affine/gpu/tiles affine/mlir affine/plan affine/rewrites "
    "affine/contraction/products",
    "affine/gpu/plans": "affine affine/analysis affine/contraction/products affine/cost "
    "affine/plan affine/vectors",
    "affine/gpu/mapping": "affine affine/analysis affine/cost affine/gpu/plans affine/tiles "
    "affine/vectors",
    "affine/gpu/tiles": "affine affine/analysis affine/cost affine/gpu/plans affine/plan",
    "affine/gpu/staged": "affine affine/analysis affine/buffers affine/gpu/plans",
    "codegen": "isolation",
    "codegen/units": "affine affine/mlir codegen",
    "codegen/vector_math": "codegen",
    "codegen/gpu": "affine/cost affine/mlir codegen codegen/gpu/passes codegen/vector_math",
    "codegen/gpu/emission": "affine affine/analysis affine/buffers affine/gpu affine/gpu/mapping "
    "affine/gpu/plans affine/mlir affine/vectors codegen codegen/gpu/matrix_emission "
    "codegen/gpu/matrix_emission/chains",
    "codegen/gpu/accesses": "affine codegen/gpu/emission",
    "codegen/gpu/matrix_emission": "affine affine/analysis affine/buffers affine/gpu/plans "
    "affine/gpu/staged "
    "codegen/gpu/accesses codegen/gpu/emission",
    "codegen/gpu/matrix_emission/chains": "affine affine/analysis affine/gpu/plans "
    "affine/vectors codegen/gpu/accesses codegen/gpu/emission codegen/gpu/matrix_emission",
    "codegen/gpu/passes": "affine affine/mlir codegen codegen/gpu",
    "s3": "affine affine/buffers affine/mlir",
    "runtime": "codegen isolation runtime/device/calls runtime/kept runtime/native",
    "runtime/foreign": "registry runtime runtime/device runtime/native",
    "runtime/native": "cache codegen isolation runtime",
    "runtime/kept": "isolation runtime",
    "runtime/device": "cache isolation runtime runtime/device/calls runtime/device/launches simt",
    "runtime/device/calls": "codegen runtime runtime/device runtime/device/launches runtime/native",
    "runtime/device/launches": "codegen isolation runtime/device runtime/native",
    "c_library": "runtime",
    "c_library/device": "c_library cache runtime runtime/device",
    "simt": "isolation registry runtime runtime/device simt/llvm_ir",
    "simt/llvm_ir": "simt",
    "failures": "",
    "reports": "cache explanation",
    "explanation": "registry reports runtime",
    "bisect": "codegen explanation failures isolation registry",
    "testing": "registry",
}
#: Rooms -> rooms from which they take names for annotations only. May only become fewer.
TYPES_FROM: dict[str, str] = {"frontends": "runtime", "reports": "runtime"}
#: Files -> files that import them, from which they take names for annotations only; a protocol, or
#: a class in a file of its own, would do. May only become fewer.
TYPES_FROM_USERS: dict[str, set[str]] = {
    "affine/analysis/outcomes.py": {"affine/analysis/intervals.py"},
    "explanation/document.py": {"reports/report.py"},
    "frontends/units.py": {"frontends/partition.py"},
    "runtime/arrays.py": {"runtime/binding.py", "runtime/native/reader.py"},
    "simt/bulk_copies.py": {"simt/accesses.py"},
    "simt/copies.py": {"simt/accesses.py"},
    "simt/group_units.py": {"simt/accesses.py"},
    "simt/plan.py": {"simt/simulator.py"},
    "stablehlo/expand.py": {"stablehlo/lowering.py"},
    "stablehlo/rules.py": {"stablehlo/lowering.py"},
    "stablehlo/shapes.py": {"stablehlo/lowering.py"},
}
#: Each of these is one thing, however many files it takes.
LARGE_ROOMS = {"simt", "stablehlo", "codegen"}
#: The same in plugins: a table of decompositions, by kinds of operations.
LARGE_PLUGIN_ROOMS = {"polyblocks_torch/decomp"}


def rooms_imported(room: str, running: bool) -> set[str]:
    """Rooms that the files of a room import from, the room itself and the top left out.

    Args:
        room: a folder of the core.
        running: whether of imports that run, or of those for type checkers only.
    """
    found = set()
    for path in sorted((CORE / room).glob("*.py")):
        for name, runs in imports(path):
            parts = name.split(".")
            folder = CORE.joinpath(*parts[1:])
            if runs != running or parts[0] != "polyblocks":
                continue
            if not folder.is_dir():
                folder = folder.parent
            # `from room import name` of something that is no module.
            while not folder.is_dir():
                folder = folder.parent
            found.add(str(folder.relative_to(CORE)))
    return found - {room, "."}


def files_imported(path: Path) -> set[Path]:
    """Files of the core that a file imports, also inside of functions and for type checkers."""
    found = set()
    for name, _ in imports(path):
        parts = name.split(".")
        file = CORE.joinpath(*parts[1:]).with_suffix(".py")
        if parts[0] == "polyblocks" and len(parts) > 1 and file.is_file():
            found.add(file)
    return found - {path}


def files_running(path: Path) -> set[Path]:
    """Those of them whose import runs."""
    found = {
        CORE.joinpath(*n.split(".")[1:]).with_suffix(".py") for n, runs in imports(path) if runs
    }
    return found & files_imported(path)


def circles(graph: dict[Path, set[Path]]) -> list[Path]:
    """What is left when files that import nothing that is left are taken away, again and again."""
    left = dict(graph)
    while free := [path for path, needed in left.items() if not needed & left.keys()]:
        for path in free:
            del left[path]
    return sorted(left)


def reaches(graph: dict[Path, set[Path]], start: Path, end: Path) -> bool:
    """Whether a file imports another, by way of others or not."""
    seen, waiting = {start}, [start]
    while waiting:
        new = graph[waiting.pop()] - seen
        seen |= new
        waiting += new
    return end in seen


def test_files_import_each_other_in_no_circle():
    known = {CORE / a: {CORE / b for b in others} for a, others in TYPES_FROM_USERS.items()}
    graph = {path: files_imported(path) for path in sources(CORE)}
    assert circles({path: found - known.get(path, set()) for path, found in graph.items()}) == []
    assert circles({path: files_running(path) for path in sources(CORE)}) == []
    # Each exception is for types only, and still closes a circle.
    for path, others in known.items():
        assert others <= graph[path] - files_running(path), path
        assert all(reaches(graph, other, path) for other in others), path


def test_a_circle_is_found():
    a, b, c = (CORE / f"{name}.py" for name in "abc")
    assert circles({a: {b}, b: {a}, c: set()}) == [a, b]


def test_every_folder_is_a_known_room():
    folders = {str(p.parent.relative_to(CORE)) for p in sources(CORE)}
    assert folders - {"."} == set(ROOMS)


def test_a_room_imports_from_its_neighbours_only() -> None:
    wrong = []
    for room, neighbours in ROOMS.items():
        allowed, for_types = set(neighbours.split()), set(TYPES_FROM.get(room, "").split())
        # `from polyblocks.a.b import c` also names the room a.b around the module c.
        around = {str(p) for name in allowed | for_types for p in Path(name).parents}
        running, annotating = (rooms_imported(room, runs) for runs in (True, False))
        wrong += [f"{room} imports {other}" for other in running - allowed - around]
        wrong += [
            f"{room} imports {other} for types"
            for other in annotating - allowed - for_types - around
        ]
        wrong += [f"{room} no longer imports {other}" for other in allowed - running]
        wrong += [f"{room} takes no types from {other}" for other in for_types - annotating]
    assert sorted(wrong) == []


def of_passes() -> dict[Path, ast.Module]:
    """Files of passes, and their code."""
    files = [path for path in (CORE / "passes").glob("*/*.py") if path.name != "__init__.py"]
    return {path: tree(path.read_text()) for path in files}


def pass_classes(code: ast.Module) -> list[ast.ClassDef]:
    """The passes that a file defines."""
    return [n for n in code.body if isinstance(n, ast.ClassDef) and n.name.endswith("Pass")]


def test_a_pass_uses_no_other_pass() -> None:
    passes = {path for path, code in of_passes().items() if pass_classes(code)}
    assert len(passes) > 60
    used = {path: sorted(p.stem for p in files_imported(path) & passes) for path in passes}
    assert {path.stem: names for path, names in used.items() if names} == {}


def test_a_pass_is_derived_from_the_frame_of_passes_alone() -> None:
    bases = {
        base.id
        for code in of_passes().values()
        for found in pass_classes(code)
        for base in found.bases
        if isinstance(base, ast.Name)
    }
    assert bases == {"NestPass"}


def test_no_pass_asks_for_the_kind_of_a_target() -> None:
    asking = [
        f"{path.stem}: {ast.unparse(node)}"
        for path, code in of_passes().items()
        for node in ast.walk(code)
        if isinstance(node, ast.Compare) and "multiprocessor" in ast.unparse(node)
    ]
    assert asking == []


def test_plans_are_made_without_what_emits_code() -> None:
    plans = sources(CORE / "affine")
    plans += [p for p in sources(CORE / "passes") if p.name != "emit_kernels.py"]
    assert offenders(plans, lambda p: {n for n, _ in imports(p) if ".codegen.gpu" in n}) == []


def test_a_room_can_be_surveyed() -> None:
    files = {room: [*(CORE / room).glob("*.py")] for room in (".", *ROOMS)}
    sizes = {room: len([p for p in f if p.name != "__init__.py"]) for room, f in files.items()}
    limits = {".": 26, **dict.fromkeys(LARGE_ROOMS, 1000)}
    assert {room: n for room, n in sizes.items() if n > limits.get(room, 16)} == {}


def plugin_files(word: str) -> list[Path]:
    """Files of the plugins in whose folders' names a word is."""
    return [f for p in PLUGINS.values() if word in str(p) for f in sources(p)]


def test_a_room_of_a_plugin_can_be_surveyed() -> None:
    files = [path for path in plugin_files("") if path.name != "__init__.py"]
    sizes = Counter(str(path.parent).partition("/src/")[2] for path in files)
    assert {room for room, n in sizes.items() if n > 16} == LARGE_PLUGIN_ROOMS


def test_plugins_never_import_each_other() -> None:
    def others(path: Path) -> set[str]:
        return tops(path) & {name for name, folder in PLUGINS.items() if folder not in path.parents}

    assert offenders(plugin_files(""), others) == []


def test_targets_import_no_framework() -> None:
    assert offenders(plugin_files("target"), lambda path: tops(path) & FRAMEWORKS) == []


def test_frontends_import_no_vendor_library_and_no_llvm() -> None:
    banned = VENDORS | {"llvmlite"}
    assert offenders(plugin_files("frontend"), lambda path: tops(path) & banned) == []


def declared(project: str, optional: bool) -> set[str]:
    """Names of the distributions that a pyproject.toml depends on."""
    data = tomllib.loads((ROOT / project / "pyproject.toml").read_text())["project"]
    lines = list(data["dependencies"])
    if optional:
        lines += itertools.chain(*data.get("optional-dependencies", {}).values())
    return {re.split(r"[\s<>=!;\[]", line)[0] for line in lines}


def imported(project: str) -> set[str]:
    """Names of the distributions that a project imports; ours are named like their packages."""
    own = {"core": "polyblocks"}.get(project)
    found: set[str] = set()
    for path in sources(ROOT / project / "src"):
        if path.name not in DOCUMENTED:  # imports what need not be there
            found |= tops(path)
    packages = {p.name for p in (ROOT / project / "src").iterdir()}
    found -= packages | set(sys.stdlib_module_names) | {own, "__future__"}
    return {DISTRIBUTION_OF.get(name, name.replace("_", "-")) for name in found}


def copied(one: str, other: str, lines: int = 8) -> list[str]:
    """Runs of so many equal lines of code; imports, comments and targets' names do not count."""

    def windows(package: str) -> dict[str, str]:
        found = {}
        for path in sources(PLUGINS[package]):
            if path.name == "plugin.py":  # the hooks, the same for every target
                continue
            text = re.sub(r"nvgpu|amdgpu", "", path.read_text())
            code = [line.strip() for line in text.splitlines()]
            code = [c for c in code if c and not re.match(r"#|from |import |[])},]*$", c)]
            for at in range(len(code) - lines + 1):
                found["\n".join(code[at : at + lines])] = path.name
        return found

    first, second = windows(one), windows(other)
    return [f"{first[w]} and {second[w]}:\n{w}" for w in first.keys() & second.keys()]


def test_targets_of_gpus_share_no_copied_code():
    assert not copied("polyblocks_nvgpu", "polyblocks_amdgpu")
    assert copied("polyblocks_nvgpu", "polyblocks_nvgpu"), "copies are found"


@pytest.mark.parametrize(
    "project",
    [
        "core",
        "plugins/frontend_torch",
        "plugins/frontend_jax",
        "plugins/frontend_tf",
        "plugins/target_cpu",
        "plugins/target_nvgpu",
        "plugins/target_amdgpu",
    ],
)
class TestDependencies:
    def test_what_is_imported_is_declared(self, project):
        assert not imported(project) - declared(project, optional=True)

    def test_what_is_declared_is_imported(self, project):
        # OpenMP runtimes are shared libraries, opened by their paths; the linker is a program.
        used_otherwise = {"cmeel-libomp", "intel-openmp", "ziglang"}
        assert not declared(project, optional=False) - imported(project) - used_otherwise


def test_forks_are_the_business_of_one_file() -> None:
    """A lock that is made elsewhere stays taken in a child that is forked meanwhile."""
    fork_file, locks_forgotten = CORE / "isolation" / "forks.py", CORE / "cache" / "key_lock.py"

    def banned(path: Path) -> list[str]:
        # Nothing else runs in the process of `polyblocks bisect`.
        if path == fork_file or CORE / "bisect" in path.parents:
            return []
        text = path.read_text()
        found = re.findall(r"register_at_fork", text)
        return found + ([] if path == locks_forgotten else re.findall(r"threading\.R?Lock\(", text))

    assert offenders(sources(ROOT / "core") + sources(ROOT / "plugins"), banned) == []
    text = fork_file.read_text()
    assert "register_at_fork" in text
    assert re.search(r"threading\.R?Lock\(", text)
