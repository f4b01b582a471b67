"""A loaded program with the variables that it reads and assigns, bound once and for all calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from polyblocks.artifact import KEPT
from polyblocks.runtime.native.call import is_c_function
from polyblocks_tf.capture import TfCapture
from polyblocks_tf.variables import call_text
from polyblocks_tf.variables.layout import Layout, Place, layout
from polyblocks_tf.variables.prepared import Preparation, Prepared
from polyblocks_tf.variables.spares import Spare, spare_of
from polyblocks_tf.variables.tables import Claim, Row, Run, Table, functions

if TYPE_CHECKING:
    from polyblocks.runtime.executable import Executable
    from polyblocks.runtime.kept.preparer import Preparer

#: How often a call is tried again, besides twice for each variable that it assigns.
_ATTEMPTS = 3
#: How long a call waits for another one that assigns the same variables, in seconds, at a time.
_PAUSE = 2e-5


class BoundVariables:
    """The variables of a program.

    Calls that assign the same variables run one after the other, each from reading to assigning.

    Attributes:
        table: the address that ``run`` takes.
        run: ``run(table, given, record, threads) -> status``: runs the program. ``given`` are the
            packed addresses of its arguments that are no variables, in order; ``record`` is that of
            :attr:`prepared`. A negative status says that nothing was done; see :meth:`again`.
        prepared: what the program has computed once.
    """

    def __init__(
        self,
        table: Table,
        run: Run,
        claim: Claim,
        spares: Sequence[Spare],
        preparation: Preparation | None,
    ) -> None:
        self.table = table.address
        self.run = run
        self.prepared = Prepared(0, None) if preparation is None else preparation.nothing()
        self._claim = claim
        self._spares = spares
        self._preparation = preparation
        self._held = table

    def again(self, status: int, given: bytes, num_threads: int) -> int:
        """Run the program after a negative status, once the reason for that is removed.

        Returns:
            The status; still negative where operations have to read and assign the variables.
        """
        left = _ATTEMPTS + 2 * len(self._spares)
        while left and status < 0 and status != call_text.REFUSED:
            if status == call_text.BUSY:
                time.sleep(_PAUSE)
            else:
                left -= 1
                self._mend(status)
            prepared = self.prepared
            status = self.run(self.table, given, prepared.record, num_threads)
        return status

    def _mend(self, status: int) -> None:
        if status == call_text.CHANGED and self._preparation is not None:
            # Not in the memory of the last one: another thread may be running with that.
            self.prepared = self._preparation.nothing()
            self.prepared = self._preparation()
        elif status <= call_text.UNUSABLE:
            self._spares[call_text.UNUSABLE - status].renew(self._claim)


def bind_variables(
    capture: TfCapture,
    executable: Executable,
    iterations: int,
    preparer: Preparer | None,
    num_threads: Callable[[], int],
) -> BoundVariables | None:
    """Bind the variables of a program of the host.

    Args:
        capture: what was compiled.
        executable: the loaded program.
        iterations: how often the program is run per call.
        preparer: of what it computes once; None: nothing.
        num_threads: tells the threads of a preparation.

    Returns:
        None where operations of TensorFlow have to read and assign them: those of other devices,
        of a version of TensorFlow whose layout is not known; and where there are none.
    """
    positions = [k for k, a in enumerate(capture.arguments) if a.kind == "variable"]
    # A program that Python runs, as on a simulator, takes longer than any operation.
    if not positions or not is_c_function(executable.entry):
        return None
    assigned: Sequence[int] = executable.manifest["report"].get("assigned", ())
    known = layout()
    if known is None or len(set(assigned)) < len(assigned):
        return None
    places: dict[int, Place] = {}
    for position in positions:
        argument = capture.arguments[position]
        place = known.locate(argument.held)
        if place is None or argument.spec is None:
            return None
        places[position] = place
    if not all(_size(capture, position) for position in assigned):
        return None

    rows, taken = _rows(capture, executable, places)
    read = [taken[number] for number, row in enumerate(rows) if row.kind == call_text.READ]
    # Those that are only assigned have to be as they should be, too.
    read += [position for position in assigned if position not in read]
    inputs = [] if preparer is None else [taken[number] for number in preparer.inputs]
    lasting = {k: 1 + n for n, k in enumerate(k for k in inputs if k in places)}
    spares = {}
    for k in assigned:
        argument = capture.arguments[k]
        assert argument.spec is not None
        spares[k] = spare_of(argument.held, argument.spec, known, places[k])
    table = Table(
        executable.entry,
        iterations,
        rows,
        [
            (places[k], _size(capture, k), lasting.get(k, -1), _shape(capture, k, known))
            for k in read
        ],
        [(places[k], _size(capture, k), spare) for k, spare in spares.items()],
        [capture.arguments[k].held for k in positions],
    )
    preparation = None
    if preparer is not None:
        arguments = [capture.arguments[k] for k in inputs]
        preparation = Preparation(known.functions, preparer, arguments, num_threads)
    run, claim = functions(known.functions)
    return BoundVariables(table, run, claim, list(spares.values()), preparation)


def _size(capture: TfCapture, position: int) -> int:
    spec = capture.arguments[position].spec
    return 0 if spec is None else spec.nbytes


def _shape(capture: TfCapture, position: int, known: Layout) -> int:
    spec = capture.arguments[position].spec
    assert spec is not None
    return known.functions.shape(spec.shape)


def _rows(
    capture: TfCapture, executable: Executable, places: dict[int, Place]
) -> tuple[list[Row], dict[int, int]]:
    """The rows of the program's arguments, and which position in the capture each input has."""
    inputs = iter(k for k, a in enumerate(capture.arguments) if a.spec and a.spec.numel)
    empty = executable.manifest["report"].get("empty", {})
    results = len(capture.concrete.graph.outputs)
    rows: list[Row] = []
    taken: dict[int, int] = {}
    read = output = 0
    for number, row in enumerate(executable.manifest["arguments"]):
        kind, index = call_text.GIVEN, 0
        if row["role"] == "input":
            taken[number] = next(inputs)
            if taken[number] in places:
                kind, index = call_text.READ, read
                read += 1
        elif row["role"] == KEPT:
            kind = call_text.PREPARED
        elif row["role"] == "output":
            while str(output) in empty:
                output += 1
            if output >= results:
                kind, index = call_text.ASSIGNED, output - results
            output += 1
        rows.append(Row(kind, index))
    return rows, taken
