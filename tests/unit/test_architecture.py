"""Who may import whom, and which words the core may not know (DESIGN: The house)."""

from __future__ import annotations

import ast
import itertools
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "core/src/polyblocks"
PLUGINS = {p.name: p for p in ROOT.glob("plugins/*/src/polyblocks_*")}
FRAMEWORKS = {"torch", "torchvision", "jax", "jaxlib", "tensorflow", "flax", "functorch"}
VENDORS = {"cuda", "cupy", "hip", "triton", "intel_openmp", "mkl", "pycuda"}
MLIR = {"torch_mlir", "mlir", "jaxlib.mlir"}

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


def imports(path: Path) -> list[tuple[str, bool]]:
    """Modules that a file imports, and whether the import runs (not for type checkers only)."""
    found: list[tuple[str, bool]] = []

    def visit(node: ast.AST, runs: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend((alias.name, runs) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
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
            visit(child, runs)

    visit(ast.parse(path.read_text()), True)
    return found


def tops(path: Path) -> set[str]:
    return {name.partition(".")[0] for name, _ in imports(path)}


@pytest.mark.parametrize("path", sources(CORE), ids=lambda p: str(p.relative_to(CORE)))
class TestCore:
    def test_imports_no_framework_no_vendor_library_and_no_plugin(self, path):
        foreign = tops(path) & (FRAMEWORKS | VENDORS | set(PLUGINS))
        if path.name in DOCUMENTED:
            foreign -= {DOCUMENTED[path.name]}
        assert not foreign

    def test_the_mlir_binding_is_imported_in_one_file(self, path):
        if path != CORE / "mlir.py":
            assert not tops(path) & MLIR

    def test_llvm_is_imported_only_where_code_is_generated_or_linked(self, path):
        if path.relative_to(CORE).parts[0] not in ("codegen", "runtime"):
            assert "llvmlite" not in tops(path)

    def test_knows_no_vendor(self, path):
        words = {m.group().lower() for m in VENDOR_WORDS.finditer(path.read_text())}
        assert words <= ALLOWED_WORDS.get(path.name, set())

    def test_knows_no_framework(self, path):
        # In code; docstrings and comments may give examples.
        text = DISTRIBUTIONS.sub("", _code_only(path))
        words = {m.group().lower() for m in FRAMEWORK_WORDS.finditer(text)}
        assert words <= ALLOWED_WORDS.get(path.name, set())


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


@pytest.mark.parametrize("path", sources(CORE / "runtime"), ids=lambda p: p.name)
def test_the_runtime_runs_without_mlir(path):
    banned = ("polyblocks.mlir", "polyblocks.pipeline", "polyblocks.passes", "polyblocks.affine")
    running = [name for name, runs in imports(path) if runs]
    assert not [name for name in running if name.startswith(banned) or name in MLIR]


def module_level(path: Path) -> list[str]:
    """What is imported as soon as the file is."""
    tree = ast.parse(path.read_text())
    names = []
    for node in tree.body:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


@pytest.mark.parametrize(
    "name",
    [
        *("artifact", "driver", "options", "events", "target"),
        *("cache/cache", "registry/registry", "isolation/isolation"),
    ],
)
def test_what_a_warm_start_imports_does_not_import_mlir(name):
    banned = ("polyblocks.mlir", "polyblocks.passes", "torch_mlir", "llvmlite")
    assert not [m for m in module_level(CORE / f"{name}.py") if m.startswith(banned)]


#: Rooms of the core, and the rooms that their files import from besides the top and themselves. A
#: program passes through them from top to bottom.
ROOMS: dict[str, str] = {
    "registry": "isolation",
    "targets": "",
    "cache": "isolation",
    "isolation": "",
    "frontends": "isolation reports",
    "ahead_of_time": "cache explanation frontends registry runtime runtime/device",
    "stablehlo": "",
    "passes": "affine affine/mlir "
    "passes/tensor passes/bufferize passes/normalize passes/layout passes/fuse passes/schedule "
    "passes/map",
    "passes/tensor": "affine",
    "passes/bufferize": "affine affine/analysis affine/mlir passes/tensor",
    "passes/normalize": "affine affine/analysis affine/contraction affine/cost affine/mlir "
    "affine/rewrites affine/tiles passes",
    "passes/layout": "affine affine/analysis affine/rewrites passes",
    "passes/fuse": "affine affine/analysis affine/contraction affine/cost affine/mlir "
    "affine/rewrites affine/tiles passes passes/normalize",
    "passes/schedule": "affine affine/analysis affine/contraction affine/cost affine/mlir "
    "affine/rewrites affine/vectors passes",
    "passes/map": "affine affine/analysis affine/cost affine/mlir affine/rewrites affine/vectors "
    "codegen/gpu/emission codegen/gpu/mapping codegen/gpu/matrix passes",
    "affine": "",
    "affine/contraction": "affine affine/analysis affine/cost affine/vectors",
    "affine/analysis": "affine",
    "affine/vectors": "affine affine/analysis",
    "affine/mlir": "affine affine/vectors",
    "affine/rewrites": "affine affine/analysis affine/vectors",
    "affine/tiles": "affine affine/analysis",
    "affine/cost": "affine affine/analysis affine/tiles affine/vectors",
    "codegen": "isolation",
    "codegen/vector_math": "codegen",
    "codegen/gpu": "affine/cost affine/mlir codegen codegen/gpu/passes codegen/vector_math",
    "codegen/gpu/mapping": "affine affine/analysis affine/cost affine/tiles affine/vectors "
    "codegen/gpu/matrix",
    "codegen/gpu/matrix": "affine affine/analysis affine/contraction affine/cost affine/rewrites "
    "codegen/gpu/mapping",
    "codegen/gpu/emission": "affine affine/analysis affine/mlir affine/vectors codegen "
    "codegen/gpu/mapping codegen/gpu/matrix codegen/gpu/matrix_emission",
    "codegen/gpu/matrix_emission": "affine affine/analysis codegen/gpu/emission codegen/gpu/matrix",
    "codegen/gpu/passes": "affine affine/mlir codegen codegen/gpu",
    "s3": "affine/mlir",
    "runtime": "codegen isolation runtime/device runtime/kept runtime/native",
    "runtime/foreign": "registry runtime runtime/device runtime/native",
    "runtime/native": "cache codegen isolation runtime",
    "runtime/kept": "isolation runtime",
    "runtime/device": "cache isolation runtime runtime/device/launches simt",
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
#: Each of these is one thing, however many files it takes.
LARGE_ROOMS = {"simt", "stablehlo", "codegen"}


def rooms_imported(room: str) -> set[str]:
    """Rooms that the files of a room import from, the room itself and the top left out."""
    found = set()
    for path in sorted((CORE / room).glob("*.py")):
        for name, runs in imports(path):
            parts = name.split(".")
            folder = CORE.joinpath(*parts[1:])
            if not runs or parts[0] != "polyblocks":
                continue
            if not folder.is_dir():
                folder = folder.parent
            # `from room import name` of something that is no module.
            while not folder.is_dir():
                folder = folder.parent
            found.add(str(folder.relative_to(CORE)))
    return found - {room, "."}


def files_imported(path: Path) -> set[Path]:
    """Files of the core that a file imports, also inside of functions."""
    found = set()
    for name, runs in imports(path):
        parts = name.split(".")
        file = CORE.joinpath(*parts[1:]).with_suffix(".py")
        if runs and parts[0] == "polyblocks" and len(parts) > 1 and file.is_file():
            found.add(file)
    return found - {path}


def circles(graph: dict[Path, set[Path]]) -> list[Path]:
    """What is left when files that import nothing that is left are taken away, again and again."""
    left = dict(graph)
    while free := [path for path, needed in left.items() if not needed & left.keys()]:
        for path in free:
            del left[path]
    return sorted(left)


def test_files_import_each_other_in_no_circle():
    assert circles({path: files_imported(path) for path in sources(CORE)}) == []


def test_a_circle_is_found():
    a, b, c = (CORE / f"{name}.py" for name in "abc")
    assert circles({a: {b}, b: {a}, c: set()}) == [a, b]


def test_every_folder_is_a_known_room():
    folders = {str(p.parent.relative_to(CORE)) for p in sources(CORE)}
    assert folders - {"."} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_from_its_neighbours_only(room):
    allowed = set(ROOMS[room].split())
    # `from polyblocks.a.b import c` also names the room a.b around the module c.
    around = {str(parent) for name in allowed for parent in Path(name).parents}
    assert rooms_imported(room) - allowed - around == set()
    assert allowed - rooms_imported(room) == set(), "no longer needed"


@pytest.mark.parametrize("room", [".", *ROOMS])
def test_a_room_can_be_surveyed(room):
    files = [p for p in (CORE / room).glob("*.py") if p.name != "__init__.py"]
    assert room in LARGE_ROOMS or len(files) <= (26 if room == "." else 16)


@pytest.mark.parametrize("name", sorted(PLUGINS))
def test_plugins_never_import_each_other(name):
    others = set(PLUGINS) - {name}
    for path in sources(PLUGINS[name]):
        assert not tops(path) & others, path


@pytest.mark.parametrize("name", sorted(n for n in PLUGINS if "target" in str(PLUGINS[n])))
def test_targets_import_no_framework(name):
    for path in sources(PLUGINS[name]):
        assert not tops(path) & FRAMEWORKS, path


@pytest.mark.parametrize("name", sorted(n for n in PLUGINS if "frontend" in str(PLUGINS[n])))
def test_frontends_import_no_vendor_library_and_no_llvm(name):
    for path in sources(PLUGINS[name]):
        assert not tops(path) & (VENDORS | {"llvmlite"}), path


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


@pytest.mark.parametrize("path", sources(ROOT / "core") + sources(ROOT / "plugins"), ids=str)
def test_forks_are_the_business_of_one_file(path):
    """A lock that is made elsewhere stays taken in a child that is forked meanwhile."""
    if path == CORE / "isolation" / "forks.py" or CORE / "bisect" in path.parents:
        return  # nothing else runs in the process of `polyblocks bisect`
    text = path.read_text()
    assert "register_at_fork" not in text
    if path != CORE / "cache" / "key_lock.py":  # its locks are forgotten in a child
        assert not re.search(r"threading\.R?Lock\(", text)
