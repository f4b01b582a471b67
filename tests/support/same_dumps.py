"""Whether two trees compile alike: dumps of 40 programs after every stage, for five chips.

    python -m tests.support.same_dumps write out/before      # in the one tree
    python -m tests.support.same_dumps write out/after       # in the other
    python -m tests.support.same_dumps compare out/before out/after

With ``--units`` the programs are contractions of halves for three GPUs instead, each by some plan
of a matrix unit, the same in both trees.

Where keys of an attribute are new, ``compare --without polyblocks.schedule`` leaves it out.

For changes that are to change no code: files that move, names, what is computed once and not twice.
The programs are those of the benchmarks, in PyTorch. Locations are left out.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from bench.algorithms import in_torch as algorithms
from bench.algorithms.table import ALGORITHMS
from bench.programs import in_torch as programs
from bench.table import CASES
from tests.extended.test_matrix_units_simulated import PROGRAMS
from tests.support.any_unit import any_unit
from tests.support.captured import captured

from polyblocks.api import compile_text
from polyblocks.errors import PolyBlocksError, UnsupportedError
from polyblocks.options import CompileOptions

#: Of CPUs those that every machine can compile for, whatever it is.
CHIPS = {
    "x86-64-v4": "cpu",
    "neoverse-v2": "cpu",
    "sm_80": "nvgpu",
    "sm_90a": "nvgpu",
    "gfx1100": "amdgpu",
}
COUNT = 40
#: Of GPUs those whose matrix units take operands in different ways.
UNIT_CHIPS = {"sm_70": "nvgpu", "sm_80": "nvgpu", "gfx1100": "amdgpu"}

_LOCATION = re.compile(r" ?loc\((?:[^()]|\([^()]*\))*\)|^#loc.*\n", re.MULTILINE)


def functions() -> Iterator[tuple[str, Callable[..., Any], Sequence[torch.Tensor]]]:
    """Name, function and example inputs of every program."""
    for case in CASES:
        yield f"case-{case.program}", getattr(programs, case.program), _tensors(case.inputs())
    for algorithm in ALGORITHMS:
        name = algorithm.name
        yield f"algorithm-{name}", getattr(algorithms, name), _tensors(algorithm.small())


def modules() -> Iterator[tuple[str, str]]:
    """Name and module of every program that needs nothing but a capture of its operations."""
    for name, function, inputs in functions():
        try:
            module = captured(function, inputs).module
        except UnsupportedError:
            continue
        yield name, module.operation.get_asm(enable_debug_info=True)


def _tensors(arrays: Sequence[Any]) -> list[torch.Tensor]:
    return [torch.from_numpy(array) for array in arrays]


def write(folder: Path, count: int = COUNT, chips: Sequence[str] = tuple(CHIPS)) -> None:
    """Compile the first ``count`` programs; each has a folder of dumps for each chip."""
    for name, text in islice(modules(), count):
        for chip in chips:
            _write(folder, chip, CHIPS[chip], name, text)


def write_units(folder: Path) -> None:
    """The same of contractions by matrix units; plans are drawn with a seed."""
    for name, (function, shapes) in PROGRAMS.items():
        torch.manual_seed(0)
        inputs = [torch.randn(shape).half() for shape in shapes]
        text = captured(function, inputs).module.operation.get_asm(enable_debug_info=True)
        for arch, target in UNIT_CHIPS.items():
            with any_unit(random.Random(f"{arch} {name}")):
                _write(folder, arch, target, name.replace(" ", "-"), text)


def _write(folder: Path, arch: str, target: str, name: str, text: str) -> None:
    place = folder / arch / name
    place.mkdir(parents=True)
    print(arch, name, flush=True)
    options = CompileOptions(target=target, arch=arch, debug=str(place))
    try:
        compile_text(text, options, name)
    except PolyBlocksError as error:
        # That it fails, and how, is to stay as well.
        (place / "error.txt").write_text(str(error))


def compare(before: Path, after: Path, without: Sequence[str] = ()) -> list[str]:
    """What differs: files of one tree only, and files of other contents.

    Args:
        before, after: folders that were written.
        without: names of attributes that are dictionaries, and are left out.
    """
    files = [{p.relative_to(f): p for p in f.rglob("*") if p.is_file()} for f in (before, after)]
    found = [f"only in one: {name}" for name in sorted(files[0].keys() ^ files[1].keys())]
    return found + [
        f"differs: {name}"
        for name in sorted(files[0].keys() & files[1].keys())
        if _text(files[0][name], without) != _text(files[1][name], without)
    ]


def _text(path: Path, without: Sequence[str]) -> str:
    text = _LOCATION.sub("", path.read_text())
    for name in without:
        head, *rest = text.split(f"{name} = {{")
        text = head + "".join(each[_closing(each) :] for each in rest)
    return text


def _closing(text: str) -> int:
    """Where text goes on behind the brace that closes one before it."""
    depth = 1
    for place, sign in enumerate(text):
        depth += (sign == "{") - (sign == "}")
        if not depth:
            return place + 1
    raise ValueError(f"expected a closing brace in {text[:80]!r}")


def main() -> int:
    """Write or compare; the exit status is 1 if anything differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write")
    writing.add_argument("folder", type=Path)
    writing.add_argument("--count", type=int, default=COUNT)
    writing.add_argument("--chips", nargs="+", choices=CHIPS, default=tuple(CHIPS))
    writing.add_argument("--units", action="store_true", help="contractions by matrix units")
    both = commands.add_parser("compare")
    both.add_argument("before", type=Path)
    both.add_argument("after", type=Path)
    both.add_argument("--without", nargs="+", default=(), help="attributes to leave out")
    arguments = parser.parse_args()
    if arguments.command == "write":
        if arguments.units:
            write_units(arguments.folder)
        else:
            write(arguments.folder, arguments.count, arguments.chips)
        return 0
    found = compare(arguments.before, arguments.after, arguments.without)
    count = sum(p.is_file() for p in arguments.before.rglob("*"))
    print(*found, f"{count} files, {len(found)} differ", sep="\n")
    return bool(found) or not count


if __name__ == "__main__":
    sys.exit(main())
