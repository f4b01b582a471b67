"""The header of a library, and what CMake needs of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from polyblocks.c_library.interface import TYPES, Array, Interface

#: Name (behind that of the program), value and meaning of a status.
Status = tuple[str, int, str]

#: Status codes of every library. A target's own begin at -6.
STATUSES: tuple[Status, ...] = (
    ("OK", 0, "it has run"),
    ("NULL_POINTER", -1, "an array is NULL"),
    ("WRONG_SIZE", -2, "an array does not have the number of elements that the program is for"),
    ("MISALIGNED", -3, "the address of an array is no multiple of its alignment"),
    ("OVERLAP", -4, "an array that is written shares memory with another one"),
    ("NO_MEMORY", -5, "there is not enough memory"),
)


def parameters(interface: Interface, *, numbered: bool = False, bound: bool = False) -> str:
    """The function's parameters: for each array its address and number of elements.

    Args:
        interface: of the program.
        numbered: call them ``a0``, ``n0``, ..., as the definition does: there, what arrays are
            called could be what something else is called.
        bound: leave the weights out.
    """
    parts = []
    for k, array in enumerate(interface.arrays):
        if bound and k in interface.weights:
            continue
        const = "" if array.is_output else "const "
        names = (f"a{k}", f"n{k}") if numbered else (array.name, f"{array.name}_count")
        parts += [f"{const}{array.type} *{names[0]}", f"size_t {names[1]}"]
    return ",\n    ".join(parts)


def header_text(
    interface: Interface,
    archs: Sequence[str],
    checks: Sequence[str],
    version: str,
    statuses: Sequence[Status],
    functions: str,
) -> str:
    """The header.

    Args:
        interface: of the program.
        archs: the chips that the library has code for, the best first.
        checks: messages of the program's run-time checks.
        version: of the compiler.
        statuses: what the target adds to :data:`STATUSES`.
        functions: their declarations, each with a comment.
    """
    name, upper = interface.name, interface.upper
    macros = [line for array in interface.arrays for line in _macros(upper, array)]
    known = [*STATUSES, *statuses]
    ends = [","] * (len(known) - 1) + [""]
    lines = [
        f"  /* {text} */\n  {upper}_{key} = {value}{end}"
        for (key, value, text), end in zip(known, ends, strict=True)
    ]
    failures = "".join(f"\n *   {k + 1}: {_comment(text)}" for k, text in enumerate(checks))
    return f"""\
/* {name}: a program compiled by PolyBlocks {version} for {", ".join(archs)}.
 *
{"".join(f" * {line}" + chr(10) for line in _described(interface))} */
#ifndef {upper}_H
#define {upper}_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* What {name}() returns. A positive number is a check of the program that failed: an index that
 * is out of range, for example.{failures}
 */
enum {name}_status {{
{chr(10).join(lines)}
}};

{chr(10).join(macros)}

{functions}
#ifdef __cplusplus
}}
#endif

#endif
"""


#: The comment on the function that runs the program, in every library.
CALL = """\
Each array is passed as its address and the number of elements in its memory, from the first to
 * the last one (the macros that end in _COUNT): with another number nothing is run, and it is an
 * error."""


def error_declaration(name: str) -> str:
    """The function that tells what was wrong, the same in every library."""
    return f"""\
/* What was wrong with the last call that this thread made; empty if nothing was. */
const char *{name}_error(void);
"""


def bound_declarations(interface: Interface, stream: str, kept: str) -> str:
    """The functions for weights that are bound; nothing for a program that has none.

    Args:
        interface: of the program.
        stream: the first parameter of a call where it has one: ``"void *stream,"``.
        kept: what becomes of the weights, a sentence of the comment.
    """
    if not interface.weight_names:
        return ""
    name, upper = interface.name, interface.upper
    first = f"\n    {stream}" if stream else ""
    return f"""\
/* The last inputs are weights, {upper}_WEIGHTS of them: {name}_bind() checks them once, in the
 * order of {name}_weight_name(), and {name}_run() takes the other arrays.
 * {kept}
 */
#define {upper}_WEIGHTS {len(interface.weight_names)}
struct {name}_bound;

/* The framework's name of a weight: "" without one, NULL if the number is out of range. */
const char *{name}_weight_name(int32_t number);

/* Takes their addresses, and how many elements each has. If it fails, *bound is NULL. */
int32_t {name}_bind(void *const *weights, const size_t *counts, struct {name}_bound **bound);

/* {name}() with bound weights. */
int32_t {name}_run(
    struct {name}_bound *bound,{first}
    {parameters(interface, bound=True)});

/* Give up what {name}_bind() has made; no call with it may be under way. NULL: nothing. */
int32_t {name}_unbind(struct {name}_bound *bound);

"""


def _described(interface: Interface) -> Iterator[str]:
    for array in interface.arrays:
        kind = "updated" if array.is_input and array.is_output else (
            "written" if array.is_output else "read"
        )  # fmt: skip
        said = TYPES[array.spec.dtype][1]
        yield f"{array.name}: {array.text}, {kind}" + (f"; elements are {said}" if said else "")
        yield (
            f"    strides in elements [{', '.join(map(str, array.spec.strides))}], aligned to "
            f"{array.alignment} bytes"
        )
    if interface.results:
        yield f"The function returns {', '.join(interface.results)}."


def _macros(upper: str, array: Array) -> Iterator[str]:
    prefix = f"#define {upper}_{array.name.upper()}"
    yield f"{prefix}_COUNT {array.count}"
    yield f"{prefix}_RANK {len(array.spec.shape)}"
    if array.spec.shape:
        yield f"{prefix}_SHAPE {{{', '.join(map(str, array.spec.shape))}}}"
        yield f"{prefix}_STRIDES {{{', '.join(map(str, array.spec.strides))}}}"


def _comment(text: str) -> str:
    return text.replace("*/", "* /")


def cmake_text(name: str) -> str:
    """``find_package(NAME CONFIG)`` with the folder in ``NAME_DIR`` gives ``NAME::NAME``."""
    return f"""\
# find_package({name} CONFIG REQUIRED PATHS /this/folder)
# target_link_libraries(application PRIVATE {name}::{name})
if(NOT TARGET {name}::{name})
  add_library({name}::{name} SHARED IMPORTED)
  set_target_properties({name}::{name} PROPERTIES
    IMPORTED_LOCATION "${{CMAKE_CURRENT_LIST_DIR}}/lib{name}.so"
    IMPORTED_SONAME "lib{name}.so"
    INTERFACE_INCLUDE_DIRECTORIES "${{CMAKE_CURRENT_LIST_DIR}}")
endif()
"""
