"""A GPU build run in the simulator: the launch plan on arrays of the host, without a device.

Everything that the simulator finds wrong is an error of the call; what it counts is kept for
reports. See :mod:`polyblocks.simt`.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from polyblocks.artifact import Artifact, code_digest
from polyblocks.errors import ExecutionError
from polyblocks.isolation import forks
from polyblocks.options import CompileOptions
from polyblocks.program import DTYPES
from polyblocks.registry.honoured_options import describe_target
from polyblocks.runtime.device.code import SIMULATED, code_of
from polyblocks.runtime.device.plan import read_plan, spec_of, without_own
from polyblocks.runtime.executable import Executable
from polyblocks.runtime.native_entry import NativeEntry

if TYPE_CHECKING:
    from polyblocks.simt import LaunchResult, Semantics
    from polyblocks.target import TargetDescription

#: Findings that an error lists; the others are counted.
_LISTED = 20


class SimulatedExecutable(Executable):
    """See :class:`polyblocks.runtime.executable.Executable`. One call runs at a time.

    Attributes:
        manifest: the artifact's, with the inputs and outputs as ``arguments``.
        results: what the simulator says of each launch of the last call.
        runs: how many calls there were.
        digest: identifies the code, see :class:`polyblocks.reports.report.Part`.
    """

    def __init__(
        self, artifact: Artifact, semantics: Semantics, description: TargetDescription
    ) -> None:
        """Check the artifact; the module is read at the first call.

        Args:
            artifact: built with the option ``simulate``.
            semantics: what the target's ops mean.
            description: of the chip that the artifact is for.

        Raises:
            ArtifactError: it has no launch plan, or a wrong one.
        """
        self._plan = read_plan(artifact.manifest)
        self.manifest: dict[str, Any] = without_own(artifact.manifest, self._plan)
        self.digest = code_digest(artifact.manifest)
        self._text = next(
            data for (_, form), data in code_of(artifact).items() if form == SIMULATED
        )
        self._semantics = semantics
        self._description = description
        self._lock = forks.lock()
        self._views = [_view_of(row) for row in self._plan.rows]
        self._launches, self._status = _with_status(artifact.manifest)
        self.results: tuple[LaunchResult, ...] = ()
        self.runs = 0
        _alive.add(self)

    def entry(self, pointers: bytes, num_threads: int) -> int:
        """Run the plan on arrays of the host.

        Returns:
            0, or the number of the failed run-time check.

        Raises:
            ExecutionError: the simulator found something; lists each with kernel, op and line.
        """
        import numpy as np

        del num_threads
        addresses = np.frombuffer(pointers, np.uint64).tolist()
        with self._lock:
            arrays = [view(at) for view, at in zip(self._views, addresses, strict=True)]
            status = np.zeros(1, np.int32)
            if self._status:
                arrays.append(status)
            self.results = self._simulator.run_plan(self._launches, arrays)
            self.runs += 1
            failed = int(status[0])
            # A thread whose check fails writes nothing more, and no result of the call is used.
            findings = [
                finding
                for result in self.results
                for finding in result.findings
                if not failed or finding.kind != "unwritten read"
            ]
        # A failed check is the program's own business, as long as nothing else is wrong.
        if findings:
            raise ExecutionError(_message(self._plan.name, findings))
        return failed

    def sample(self, blocks: int, alike: bool = False) -> list[dict[str, Any]]:
        """Run ``blocks`` blocks of each launch on arrays of zeros; counts for the whole grids.

        For sizes that would take too long as a whole, where what is counted does not depend on
        the numbers in the arrays.

        Args:
            blocks: at least 3.
            alike: launches of one kernel that differ only in their arrays, as those of a loop of
                steps, are run once.

        Returns:
            as :meth:`counts`, with ``times``: how many launches a row stands for.

        Raises:
            ExecutionError: the simulator found something.
        """
        import numpy as np

        rows = [r for r in self._launches["arguments"] if r["role"] in ("input", "output")]
        launches = self._launches["launches"]
        keys = [_key(row) if alike else number for number, row in enumerate(launches)]
        firsts = [row for number, row in enumerate(launches) if keys.index(keys[number]) == number]
        with self._lock:
            arrays = [
                np.zeros(row["shape"], "uint16" if row["dtype"] == "bfloat16" else row["dtype"])
                if "shape" in row
                else np.zeros(1, np.int32)
                for row in rows
            ]
            self.results = self._simulator.run_plan(
                self._launches | {"launches": firsts}, arrays, blocks
            )
            findings = [finding for result in self.results for finding in result.findings]
        if findings:
            raise ExecutionError(_message(self._plan.name, findings))
        times = Counter(keys)
        return [
            row | {"times": times[key]}
            for row, key in zip(self.counts(), dict.fromkeys(keys), strict=True)
        ]

    @property
    def sector(self) -> int:
        """Bytes of the smallest transaction with the chip's memory."""
        return int(chip_of(self._description).sector_bytes)

    @functools.cached_property
    def native_entry(self) -> NativeEntry:
        """:meth:`entry` for callers without Python."""
        return NativeEntry(self.entry, len(self._views), len(self._plan.checks))

    def counts(self) -> list[dict[str, Any]]:
        """Counts of the last call: one row per launch, JSON values.

        Keys: ``kernel``, ``grid``, ``block``, ``counts`` (see :class:`polyblocks.simt.Counts`),
        and ``findings`` as texts.
        """
        return [
            {
                "kernel": result.kernel,
                "grid": list(result.grid),
                "block": list(result.block),
                "counts": asdict(result.counts) if is_dataclass(result.counts) else {},
                "findings": [str(finding) for finding in result.findings],
            }
            for result in self.results
        ]

    def close(self) -> None:
        """Forget the module."""
        self.__dict__.pop("_simulator", None)

    @functools.cached_property
    def _simulator(self) -> Any:
        from polyblocks.simt import Simulator
        from polyblocks.simt.llvm_ir.reader import read_module

        module = read_module(self._text.decode())
        return Simulator(module, self._semantics, chip_of(self._description))


def load_simulated(artifact: Artifact, semantics: Semantics) -> SimulatedExecutable:
    """The program of an artifact that was built for the simulator, on the chip of its ``arch``.

    Raises:
        ArtifactError: it has no launch plan, or a wrong one.
    """
    name, arch = artifact.manifest["target"], artifact.manifest["arch"]
    options = CompileOptions(target=name, arch=arch, simulate=True)
    return SimulatedExecutable(artifact, semantics, describe_target(options))


def chip_of(description: TargetDescription) -> Any:
    """The simulator's model of a chip.

    Args:
        description: of a GPU; its ``multiprocessor`` has the facts.
    """
    from polyblocks.simt import Chip

    facts = description.multiprocessor
    if facts is None:
        return Chip(name=description.arch)
    return Chip(
        name=description.arch,
        subgroup_width=facts.warp,
        sector_bytes=facts.sector,
        banks=facts.banks,
        bank_bytes=facts.bank_bytes,
        shared_bytes=max(facts.shared_per_block, facts.shared_per_block_optin),
        block_threads=facts.threads_per_block,
    )


_alive: weakref.WeakSet[SimulatedExecutable] = weakref.WeakSet()


def counts_of(digest: str) -> list[dict[str, Any]]:
    """Counts of the last call of a program; empty if it has not run here.

    Args:
        digest: of its code, as reports have it: the digests of its blobs, in order.
    """
    ran = [e for e in _alive if e.runs and e.digest == digest]
    return max(ran, key=lambda e: e.runs).counts() if ran else []


def _key(launch: Mapping[str, Any]) -> str:
    """Equal for launches that differ only in their arrays."""
    values = [operand.get("value") for operand in launch["arguments"]]
    return repr((launch["kernel"], launch["grid"], launch["block"], values))


def _with_status(manifest: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """The plan with the status as one more array of the caller's, who wants to read it."""
    rows = list(manifest["arguments"])
    # The number of an argument must not change, but the arrays are counted in their order.
    status = [k for k, row in enumerate(rows) if row["role"] == "status"]
    launches = manifest["launches"]
    if status:
        end = len(rows)
        rows.append({"role": "input", "name": "status", "updates": None})
        launches = [
            {**launch, "arguments": [_moved(a, status[0], end) for a in launch["arguments"]]}
            for launch in launches
        ]
    plan = {"arguments": rows, "launches": launches}
    return plan | {"workspace_bytes": manifest.get("workspace_bytes", 0)}, bool(status)


def _moved(argument: dict[str, Any], old: int, new: int) -> dict[str, Any]:
    return {"argument": new} if argument.get("argument") == old else argument


def _view_of(row: Mapping[str, Any]) -> Callable[[int], Any]:
    """A function that gives the array of a row at an address."""
    import numpy as np

    spec = spec_of(row)
    width = DTYPES[spec.dtype][1]
    # NumPy by itself has no bfloat16; the simulator looks at bytes alone.
    dtype = np.dtype(np.uint16 if spec.dtype == "bfloat16" else spec.dtype)
    strides = tuple(step * width for step in spec.strides)
    size = spec.nbytes

    def view(address: int) -> Any:
        memory: Any
        if size == 0:
            return np.empty(spec.shape, dtype)
        memory = (ctypes.c_char * size).from_address(address)
        return np.ndarray(spec.shape, dtype, memory, strides=strides)

    return view


def _message(name: str, findings: Sequence[Any]) -> str:
    more = len(findings) - _LISTED
    lines = [f"{name}: the simulator found {len(findings)} problem{'s' * (len(findings) > 1)}"]
    lines += [f"  {finding}" for finding in findings[:_LISTED]]
    if more > 0:
        lines.append(f"  and {more} more")
    return "\n".join(lines)
