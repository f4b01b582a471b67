"""``describe_target``: what the mid-level may know of an AMD GPU."""

from __future__ import annotations

from dataclasses import replace

from polyblocks.errors import TargetError
from polyblocks.options import CompileOptions
from polyblocks.target import TargetDescription
from polyblocks.targets.gpu_description import (
    Cache,
    Figures,
    describe_gpu,
    matrix_units_at,
    precision_modes,
)
from polyblocks.targets.target_choice import no_device
from polyblocks_amdgpu.archs import lookup
from polyblocks_amdgpu.chips import Chip, nearest
from polyblocks_amdgpu.device import Device, NoDeviceError, present
from polyblocks_amdgpu.generations import ARCHS, UNITS_PER_WGP

#: Seconds that one more kernel in a stream takes, from the end of the one before it.
LAUNCH_OVERHEAD = 5e-6
#: Bytes per cycle of one slice of L2.
SLICE = 64


def describe(options: CompileOptions) -> TargetDescription:
    """The description of ``options.arch``; for None and ``native`` of the device that is present.

    Raises:
        TargetError: unknown architecture (the message names the nearest ones), none was named and
            there is no device, or the device is of another kind.
        OptionError: an option asks for what this target does not do.
    """
    if options.arch not in (None, "native"):
        return _description(*lookup(options.arch), options)
    try:
        device = present()
    except NoDeviceError as error:
        raise no_device("amdgpu", str(error), "gfx1100") from None
    return _description(device.arch, _chip_of(device), options)


def _chip_of(device: Device) -> Chip:
    """The table's chip that is most like the device, with the numbers that it says itself."""
    if device.arch not in ARCHS:
        raise TargetError(
            f"the device here is a {device.arch}; target 'amdgpu' generates code for "
            f"{', '.join(ARCHS)}"
        )
    chip = nearest(device.arch, device.units)
    return replace(
        chip,
        units=device.units,
        ghz=device.clock_mhz / 1e3 or chip.ghz,
        l2=device.l2 or chip.l2,
        l3=device.l3 or chip.l3,
    )


def _description(arch: str, chip: Chip, options: CompileOptions) -> TargetDescription:
    limits, generation = ARCHS[arch]
    clock = chip.ghz * 1e9
    caches = [Cache("L2", chip.l2, SLICE * chip.l2_slices * clock)]
    if chip.l3:
        caches.append(Cache("L3", chip.l3, chip.l3_bandwidth))
    units = () if options.polyblocks_gpu_no_tensor_core else generation.units
    return describe_gpu(
        "amdgpu",
        arch,
        limits,
        Figures(
            multiprocessors=chip.multiprocessors,
            hertz=clock,
            rates=generation.rates,
            caches=tuple(caches),
            bandwidth=chip.bandwidth,
            launch_overhead=LAUNCH_OVERHEAD,
            # Each compute unit has its half of the local data share, read at the same time.
            shared_units=UNITS_PER_WGP,
        ),
        matrix_units_at(units, chip.multiprocessors, clock),
        precision_modes(generation.units),
        {"cpu": arch, "wavefront": limits.warp, "mode": "wgp", "chip": chip.name},
    )
