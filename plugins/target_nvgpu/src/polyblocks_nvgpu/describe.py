"""``describe_target``: what the mid-level may know of an NVIDIA GPU."""

from __future__ import annotations

from dataclasses import replace

from polyblocks.options import CompileOptions
from polyblocks.target import MatrixUnit, Multiprocessor, TargetDescription
from polyblocks.targets.gpu_description import (
    Cache,
    Figures,
    describe_gpu,
    matrix_units_at,
    precision_modes,
)
from polyblocks.targets.target_choice import no_device
from polyblocks_nvgpu.archs import PRODUCTS, Arch, best_arch, capability_of, lookup
from polyblocks_nvgpu.chips import Chip, representative
from polyblocks_nvgpu.device import Device, NoDeviceError, present

#: Seconds that one more kernel in a stream takes, from the end of the one before it.
LAUNCH_OVERHEAD = 3e-6


def describe(options: CompileOptions) -> TargetDescription:
    """The description of ``options.arch``; for None and ``native`` of the device that is present.

    Raises:
        TargetError: unknown architecture (the message names the nearest ones), or none was named
            and there is no device.
        OptionError: an option asks for what this target does not do.
    """
    if options.arch not in (None, "native"):
        arch, chip = lookup(options.arch)
        return _description(arch, chip, capability_of(arch).multiprocessor, options)
    try:
        device = present()
    except NoDeviceError as error:
        raise no_device("nvgpu", str(error), "sm_90a") from None
    arch = best_arch((device.major, device.minor))
    return _description(arch, _chip_of(device, arch), _limits_of(device, arch), options)


def _chip_of(device: Device, arch: Arch) -> Chip:
    """The table's chip, or its kin's, with the numbers that the device says itself."""
    known = PRODUCTS.get(device.name)
    chip = known or representative(arch.capability)
    clock = device.clock_khz / 1e6 or chip.ghz
    return replace(
        chip,
        name=known.name if known else device.name,
        multiprocessors=device.multiprocessors or chip.multiprocessors,
        ghz=clock,
        # The lower clock of the matrix units is a fact about known chips only.
        matrix_ghz=min(chip.matrix_ghz, clock) if known else clock,
        half_rate=chip.half_rate if known else "geforce" in device.name.lower(),
        l2=device.l2 or chip.l2,
        bandwidth=device.bandwidth or chip.bandwidth,
    )


def _limits_of(device: Device, arch: Arch) -> Multiprocessor:
    table = capability_of(arch).multiprocessor
    blocks = device.blocks or table.blocks
    return replace(
        table,
        threads=device.threads or table.threads,
        blocks=blocks,
        single_warp_blocks=blocks,
        registers=device.registers or table.registers,
        shared=device.shared or table.shared,
        shared_per_block_optin=device.shared_per_block_optin or table.shared_per_block_optin,
        shared_reserved=device.shared_reserved or table.shared_reserved,
    )


def _description(
    arch: Arch, chip: Chip, limits: Multiprocessor, options: CompileOptions
) -> TargetDescription:
    capability = capability_of(arch)
    clock = chip.ghz * 1e9
    l2_bandwidth = capability.l2_rate * chip.multiprocessors * clock
    return describe_gpu(
        "nvgpu",
        arch.name,
        limits,
        Figures(
            multiprocessors=chip.multiprocessors,
            hertz=clock,
            rates=capability.rates,
            caches=(Cache("L2", chip.l2, l2_bandwidth, capability.l2_gathered),),
            bandwidth=chip.bandwidth,
            launch_overhead=LAUNCH_OVERHEAD,
        ),
        () if options.polyblocks_gpu_no_tensor_core else _matrix_units(arch, chip),
        precision_modes(capability.units),
        {
            "cpu": arch.name,
            "capability": list(arch.capability),
            "ptx": arch.ptx,
            "chip": chip.name,
        },
    )


def _matrix_units(arch: Arch, chip: Chip) -> tuple[MatrixUnit, ...]:
    """The instructions that code for ``arch`` may use, with the chip's rates."""
    capability = capability_of(arch)
    units = [
        replace(unit, rate=unit.rate / 2)
        if chip.half_rate and unit.accumulator == "float32"
        else unit
        for unit in (*(capability.accelerated_units * arch.accelerated), *capability.units)
    ]
    return matrix_units_at(units, chip.multiprocessors, chip.matrix_ghz * 1e9)
