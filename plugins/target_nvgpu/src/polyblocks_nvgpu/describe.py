"""``describe_target``: what the mid-level may know of an NVIDIA GPU."""

from __future__ import annotations

from dataclasses import replace

from polyblocks.errors import OptionError, TargetError
from polyblocks.options import CompileOptions
from polyblocks.target import MatrixUnit, MemoryLevel, Multiprocessor, ParallelLevel
from polyblocks.target import TargetDescription as Description
from polyblocks_nvgpu.archs import Arch, best_arch, capability_of, chip_called, lookup
from polyblocks_nvgpu.chips import Chip, representative
from polyblocks_nvgpu.device import Device, NoDeviceError, present

#: Seconds that one more kernel in a stream takes: its launch by the driver and the device's change
#: from one grid to the next.
LAUNCH_OVERHEAD = 3e-6
#: Bytes of a sector, the portion in which caches and memory are asked.
SECTOR = 32
#: Operands that a multiply-add reads from the registers.
OPERANDS = 3


def describe(options: CompileOptions) -> Description:
    """The description of ``options.arch``; for None and ``native`` of the device that is present.

    Raises:
        TargetError: unknown architecture (the message names the nearest ones), or none was named
            and there is no device.
        OptionError: an option asks for what this target does not do.
    """
    _refuse_what_is_not_done(options)
    if options.arch in (None, "native"):
        try:
            device = present()
        except NoDeviceError as error:
            raise TargetError(
                f"target 'nvgpu' has no GPU to generate code for: {error}; name one, for example "
                "compile_options={'target': 'nvgpu', 'arch': 'sm_90a'}"
            ) from None
        return _describe_device(device, options)
    arch, chip = lookup(options.arch)
    return _description(arch, chip, capability_of(arch).multiprocessor, options)


def _refuse_what_is_not_done(options: CompileOptions) -> None:
    """Options that change results must not be ignored."""
    if options.mm_conv_precision_mode not in (None, "fp32"):
        raise OptionError(
            f"mm_conv_precision_mode='{options.mm_conv_precision_mode}' is not available for target"
            " 'nvgpu'; leave it out, or convert the operands in the function"
        )


def _describe_device(device: Device, options: CompileOptions) -> Description:
    """The table's description of the device, or of its kin, with the numbers that it says itself."""
    number = (device.major, device.minor)
    arch = best_arch(number)
    known = chip_called(device.name)
    chip = known or representative(arch.capability)
    clock = device.clock_khz / 1e6 or chip.ghz
    # The lower clock of the matrix units is a fact about known chips only.
    matrix = chip.matrix_ghz if known else clock
    chip = replace(
        chip,
        name=known.name if known else device.name,
        multiprocessors=device.multiprocessors or chip.multiprocessors,
        ghz=clock,
        matrix_ghz=min(matrix, clock),
        l2=device.l2 or chip.l2,
        bandwidth=device.bandwidth or chip.bandwidth,
    )
    table = capability_of(arch).multiprocessor
    refined = replace(
        table,
        threads=device.threads or table.threads,
        blocks=device.blocks or table.blocks,
        single_warp_blocks=device.blocks or table.single_warp_blocks,
        registers=device.registers or table.registers,
        shared=device.shared or table.shared,
        shared_per_block_optin=device.shared_per_block_optin or table.shared_per_block_optin,
        shared_reserved=device.shared_reserved or table.shared_reserved,
    )
    return _description(arch, chip, refined, options)


def _description(
    arch: Arch, chip: Chip, multiprocessor: Multiprocessor, options: CompileOptions
) -> Description:
    capability = capability_of(arch)
    clock = chip.ghz * 1e9
    count = chip.multiprocessors
    limits = multiprocessor
    operand_bytes = OPERANDS * 4 * capability.rates["float32"]
    return Description(
        name="nvgpu",
        arch=arch.name,
        parallel=(
            ParallelLevel("grid", count, LAUNCH_OVERHEAD),
            ParallelLevel("block", limits.blocks),
            ParallelLevel("warp", limits.threads_per_block // limits.warp),
            ParallelLevel("thread", limits.warp),
        ),
        memory=(
            MemoryLevel("registers", limits.registers * 4, operand_bytes * clock, 4),
            MemoryLevel(
                "shared", limits.shared, limits.banks * limits.bank_bytes * clock, limits.bank_bytes
            ),
            MemoryLevel("L2", chip.l2, capability.l2_rate * count * clock, SECTOR, count),
            MemoryLevel("main", 0, chip.bandwidth, SECTOR, count),
        ),
        flops={name: 2.0 * rate * count * clock for name, rate in capability.rates.items()},
        matrix_units=() if options.polyblocks_gpu_no_tensor_core else _matrix_units(arch, chip),
        multiprocessor=limits,
        properties={
            "cpu": arch.name,
            "capability": list(arch.capability),
            "ptx": arch.ptx,
            "chip": chip.name,
        },
    )


def _matrix_units(arch: Arch, chip: Chip) -> tuple[MatrixUnit, ...]:
    """The instructions that code for ``arch`` may use, with the chip's rates."""
    units = []
    for unit in capability_of(arch).units:
        if unit.accelerated and not arch.accelerated:
            continue
        halved = chip.half_rate and unit.accumulator == "float32"
        rate = unit.rate / 2 if halved else unit.rate
        flops = 2.0 * rate * chip.multiprocessors * chip.matrix_ghz * 1e9
        units.append(MatrixUnit(unit.name, unit.shape, unit.operands, unit.accumulator, flops))
    return tuple(units)
