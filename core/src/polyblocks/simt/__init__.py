"""Executes generated GPU kernels on the CPU, finds what is wrong with them, counts what they do."""

from polyblocks.simt.buffers import Address, Buffer
from polyblocks.simt.chip import Chip
from polyblocks.simt.counts import Counts
from polyblocks.simt.findings import KINDS, Finding
from polyblocks.simt.machine import Machine
from polyblocks.simt.semantics import Instruction, Operation, Semantics
from polyblocks.simt.simulator import LaunchResult, Simulator

__all__ = [
    "KINDS",
    "Address",
    "Buffer",
    "Chip",
    "Counts",
    "Finding",
    "Instruction",
    "LaunchResult",
    "Machine",
    "Operation",
    "Semantics",
    "Simulator",
]
