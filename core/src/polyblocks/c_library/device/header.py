"""The header of a library for GPUs."""

from __future__ import annotations

from polyblocks.c_library.device.vendor import Vendor
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
    ("UNSUPPORTED_GPU", -6, "there is no code for the device"),
    ("NO_DEVICE", -7, "there is no driver, or no device"),
    ("DRIVER_ERROR", -8, "a function of the driver failed; the error says which, and why"),
)

#: Lifetime of bound weights: on the device, and on the host.
ON_DEVICE = (
    "They stay the caller's, are read where they are, and must live as long as they are bound."
)
COPIED = """\
They stay the caller's and must live as long as they are bound. Those that the program does not
 * change are copied to a device by the first call there, and not again: what the host then writes
 * into them is not seen, before they are bound anew."""


def functions(interface: Interface, vendor: Vendor, on_device: bool) -> str:
    """The functions, with comments.

    Args:
        interface: of the program.
        vendor: whose driver is called.
        on_device: whether arrays are on the device.
    """
    name = interface.name
    call = _on_device(interface, vendor) if on_device else _on_host(interface, vendor)
    stream, kept = ("void *stream,", ON_DEVICE) if on_device else ("", COPIED)
    return f"""\
{call}
{bound_declarations(interface, stream, kept)}\
{error_declaration(name)}
/* Which of the library's code the device that is current to the thread runs: the name of an
 * architecture. It is loaded there. NULL if that fails; {name}_error() says why.
 */
const char *{name}_arch(void);

/* Wait for the devices that the program was called on, and give up what it has there: code, stored
 * arrays, memory. No call may be under way; the next one loads it again. At the end of a process
 * the driver does so by itself.
 */
int32_t {name}_release(void);
"""


def _on_host(interface: Interface, vendor: Vendor) -> str:
    name = interface.name
    return f"""\
/* Run the program on the device that is current to the thread (by default the first one), and wait
 * for it.
 *
 * {CALL}
 *
 * Arrays are in the host's memory: they are copied to the device, and results back. Any number of
 * threads may call it at the same time, each on a stream of its own; memory on the device is kept
 * for the next call. The {vendor.name} is opened at the first call, which also loads the code and
 * the stored arrays.
 */
int32_t {name}(
    {parameters(interface)});
"""


def _on_device(interface: Interface, vendor: Vendor) -> str:
    name = interface.name
    return f"""\
/* Put the program on a stream ({vendor.stream}; NULL: the default stream) of the device that is
 * current to the thread, and wait for nothing.
 *
 * {CALL}
 *
 * Arrays are in the device's memory, and stay the caller's: until the stream has passed the program
 * they must not be freed, or changed by what is not ordered behind it. Intermediate results are
 * allocated and freed in the order of the stream. Any number of threads may call it at the same
 * time. The {vendor.name} is opened at the first call, which also loads the code and the stored
 * arrays, and waits for that.
 *
 * A failed check of the program is reported asynchronously: by the next call, which then runs
 * nothing, or by {name}_synchronize(). Which earlier call failed is not known; discard the results
 * of all of them.
 */
int32_t {name}(
    void *stream,
    {parameters(interface)});

/* Wait for a stream of the device that is current to the thread. Returns a check of the program
 * that has failed in a call before, on any stream of the device.
 */
int32_t {name}_synchronize(void *stream);
"""
