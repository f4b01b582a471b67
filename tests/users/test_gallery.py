"""The programs of the gallery run, small, and are compiled whole."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

pytestmark = [pytest.mark.cpu, pytest.mark.isolated]

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "examples/gallery"
#: Arguments that make a program small, and the size of the picture.
SMALL = {
    "tf_sharpen": (["--size", "40"], (80, 40)),
    "tf_median": (["--size", "40"], (80, 40)),
    "jax_bilateral": (["--size", "40"], (80, 40)),
    "torch_patches": (["--size", "40"], (80, 40)),
    "torch_edges": (["--size", "80"], (160, 80)),
    "torch_corners": (["--size", "80"], (160, 80)),
    "torch_camera": (["--size", "40"], (80, 40)),
    "torch_tones": (["--size", "48"], (96, 48)),
    "jax_grid": (["--size", "41"], (82, 41)),
    "jax_contrast": (["--size", "48"], (96, 48)),
    "torch_fill": (["--size", "43"], (86, 43)),
    "tf_seam": (["--size", "64"], (128, 64)),
    "torch_matrices": (["--size", "40"], (80, 40)),
    "jax_mandelbrot": (["--size", "64", "--limit", "100"], (64, 40)),
    "jax_reaction": (["--size", "40", "--steps", "50"], (40, 40)),
    "jax_heat": (["--size", "41", "--steps", "20"], (82, 41)),
    "jax_wave": (["--size", "20", "--steps", "12"], (120, 60)),
    "jax_bodies": (["--size", "30", "--steps", "160"], (640, 400)),
    "jax_points": (["--points", "60"], (576, 288)),
    "torch_denoise": (["--size", "40", "--steps", "60"], (80, 40)),
    "tf_picture": (["--size", "24", "--steps", "120"], (72, 24)),
}
#: The others are run by make test-all.
QUICK = {"torch_camera", "torch_fill", "jax_reaction", "jax_points", "tf_median"}


def load(path: Path) -> ModuleType:
    """A file of Python, as a module."""
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_every_program_is_run_and_shown() -> None:
    programs = {p.stem for p in PROGRAMS.glob("*.py")}
    assert programs == set(SMALL)
    assert {name.partition("_")[0] for name in QUICK} == {"torch", "jax", "tf"}
    page = (ROOT / "docs/gallery.md").read_text()
    for name in programs:
        assert f"`examples/gallery/{name}.py`" in page
        assert f"(images/gallery-{name}.webp)" in page
        shown = ROOT / f"docs/images/gallery-{name}.webp"
        assert shown.stat().st_size <= 60_000
        assert np.asarray(Image.open(shown)).std() > 10, "one colour"


@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("*.py")), ids=lambda p: p.stem)
def test_a_program_falls_back_to_nothing_and_is_short(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 80
    options = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.keyword)]
    (given,) = (ast.literal_eval(n.value) for n in options if n.arg == "compile_options")
    assert given["strict_target"] is True


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in SMALL]
)
def test_a_program_runs(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = load(PROGRAMS / f"{name}.py")
    arguments, size = SMALL[name]
    out = tmp_path / "new" / "picture.png"
    # The programs check their results themselves, and return 1 where they are wrong.
    assert program.main([*arguments, "--out", str(out)]) == 0
    assert "no fallbacks" in capsys.readouterr().out
    image = Image.open(out)
    assert image.size == size
    assert image.mode == "RGB"
    assert np.asarray(image).std() > 4, "one colour"


def test_pictures_are_made_by_name_and_stay_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gallery = load(ROOT / "docs/_gallery.py")
    monkeypatch.setattr(gallery, "IMAGES", tmp_path)
    monkeypatch.setattr(gallery, "LIMIT", 3)
    written = []

    def run(command: list[str | Path], check: bool) -> None:
        written.append(Path(command[-1]))
        written[-1].write_bytes(bytes(len(written) + 2))

    monkeypatch.setattr(subprocess, "run", run)
    gallery.main(["tf_picture"])
    assert written == [tmp_path / "gallery-tf_picture.webp"]
    with pytest.raises(SystemExit, match="gallery-torch_tones.webp: 4 bytes; 3 are allowed"):
        gallery.main(["torch_tones"])
    with pytest.raises(SystemExit, match="no program: nonsense; jax_bilateral, .* are"):
        gallery.main(["nonsense"])
