"""The header of a library for CPUs."""

from __future__ import annotations

from polyblocks.c_library.header import (
    CALL,
    Status,
    bound_declarations,
    error_declaration,
    parameters,
)
from polyblocks.c_library.interface import Interface

#: See :data:`polyblocks.c_library.header.STATUSES`.
STATUSES: tuple[Status, ...] = (
    ("UNSUPPORTED_CPU", -6, "there is no code for the chip of this machine"),
)

#: Lifetime of bound weights.
BOUND = "They stay the caller's, are read where they are, and must live as long as they are bound."


def functions(interface: Interface) -> str:
    """The functions, with comments."""
    name = interface.name
    return f"""\
/* Run the program.
 *
 * {CALL}
 *
 * Any number of threads may call it at the same time. Memory for intermediate results is kept for
 * the next call. The arrays stay the caller's.
 */
int32_t {name}(
    {parameters(interface)});

{bound_declarations(interface, "", BOUND)}\
{error_declaration(name)}
/* How many threads a call may use: at most as many as OpenMP has (OMP_NUM_THREADS); 0, the
 * default: as many as OpenMP has.
 */
void {name}_set_num_threads(int32_t num_threads);

/* Which of the library's code this machine runs: the name of a chip, NULL if it runs none. */
const char *{name}_arch(void);
"""
