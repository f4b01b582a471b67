"""The generated source of a library for GPUs: tables, and the functions with the program's name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polyblocks.artifact import Artifact
from polyblocks.c_library.device.tables import initializer, plan_tables
from polyblocks.c_library.files import MADE
from polyblocks.c_library.header import parameters
from polyblocks.c_library.interface import Interface
from polyblocks.c_library.source import (
    arrays_and_counts,
    c_string,
    embedded,
    expected_rows,
    weight_names,
)


@dataclass(frozen=True)
class Image:
    """Code of the library.

    Attributes:
        plan: number of the architecture that it is for.
        form: what it is, see :func:`polyblocks.runtime.device.code.code_of`.
        file: with the code.
        nbytes: how much that is.
    """

    plan: int
    form: str
    file: str
    nbytes: int


@dataclass(frozen=True)
class Stored:
    """A stored array of the library: its file, and its size."""

    file: str
    nbytes: int


def tables_text(
    interface: Interface,
    variants: Sequence[Artifact],
    uses: Sequence[Sequence[int]],
    images: Sequence[Image],
    stored: Sequence[Stored],
) -> str:
    """The C source of the tables. It does not see the header, whose names could be those in it.

    Args:
        interface: of the program.
        variants: one artifact per architecture.
        uses: for each of them the numbers of its stored arrays.
        images: of all of them.
        stored: what they store.
    """
    name = interface.name
    plans = [plan_tables(k, each, uses[k]) for k, each in enumerate(variants)]
    code = [f"{name}_code_{k}" for k in range(len(images))]
    contents = [f"{name}_stored_{k}" for k in range(len(stored))]
    tables = {
        "plans": [row for _, row in plans],
        "images": [
            initializer(plan=image.plan, form=c_string(image.form), code=symbol, bytes=image.nbytes)
            for symbol, image in zip(code, images, strict=True)
        ],
        "stored": [
            initializer(contents=symbol, bytes=each.nbytes)
            for symbol, each in zip(contents, stored, strict=True)
        ],
    }
    parts = [
        '#include "program.h"\n',
        *(embedded(symbol, image.file) for symbol, image in zip(code, images, strict=True)),
        *(embedded(symbol, each.file) for symbol, each in zip(contents, stored, strict=True)),
        *(text for text, _ in plans),
        f"static const struct expected arrays[] = {{\n    {expected_rows(interface)}}};",
        *(
            f"static const struct {kind} {key}[] = {{\n  " + ",\n  ".join(tables[key]) + "};"
            for key, kind in (("plans", "plan"), ("images", "image"), ("stored", "stored"))
            if tables[key]
        ),
        "const struct program _library_program = "
        + initializer(
            name=c_string(name),
            array_count=len(interface.arrays),
            plan_count=len(plans),
            image_count=len(images),
            stored_count=len(stored),
            first_weight=interface.weights.start,
            weight_count=len(interface.weights),
            arrays="arrays",
            **{key: key if rows else "NULL" for key, rows in tables.items()},
        )
        + ";\n",
    ]
    return "\n".join(parts)


def functions_text(interface: Interface, on_device: bool) -> str:
    """The C source of the functions that the header declares.

    Args:
        interface: of the program.
        on_device: whether arrays are on the device.
    """
    name = interface.name
    stream = "\n    void *stream," if on_device else ""
    synchronize = (
        f"int32_t {name}_synchronize(void *stream) {{\n"
        "  return _library_synchronize(stream);\n}\n\n"
        if on_device
        else ""
    )
    return f"""\
#include "calls.h"

#pragma GCC visibility push(default)
#include "{MADE}/{name}.h"

int32_t {name}({stream}
    {parameters(interface, numbered=True)}) {{
{arrays_and_counts(interface)}\
  return _library_call({"stream" if on_device else "NULL"}, arrays, counts);
}}

{_bound(interface, on_device)}\
{synchronize}int32_t {name}_release(void) {{ return _library_release(); }}

const char *{name}_error(void) {{ return _library_error(); }}

const char *{name}_arch(void) {{ return _library_arch(); }}

#pragma GCC visibility pop
"""


def _bound(interface: Interface, on_device: bool) -> str:
    """The functions for weights that are bound, if there are weights."""
    name = interface.name
    if not interface.weight_names:
        return ""
    stream = "\n    void *stream," if on_device else ""
    return f"""\
{weight_names(interface)}
int32_t {name}_bind(void *const *weights, const size_t *counts, struct {name}_bound **bound) {{
  return _library_bind(weights, counts, (struct bound **)bound);
}}

int32_t {name}_run(
    struct {name}_bound *bound,{stream}
    {parameters(interface, numbered=True, bound=True)}) {{
{arrays_and_counts(interface, bound=True)}\
  return _library_run((struct bound *)bound, {"stream" if on_device else "NULL"}, arrays, counts);
}}

int32_t {name}_unbind(struct {name}_bound *bound) {{
  return _library_unbind((struct bound *)bound);
}}

"""
