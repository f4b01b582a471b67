"""Halide, compiled in the process: two autoschedulers, and schedules by hand."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import halide as hl
import numpy as np

from bench.engines import Prepared, written_in
from bench.memory import empty_at
from bench.pipelines.halide_programs import Program, Source

#: Peer -> its autoscheduler, and the library beside Halide's that has it.
_AUTOSCHEDULERS = {
    "halide-mullapudi": ("Mullapudi2016", "autoschedule_mullapudi2016"),
    "halide-adams": ("Adams2019", "autoschedule_adams2019"),
}

OUTPUTS = dict.fromkeys(
    (*_AUTOSCHEDULERS, "halide-by-hand"), "one buffer of its own, written at each call"
)
DISTRIBUTIONS = dict.fromkeys(OUTPUTS, ("halide",))

#: Bytes that vectors are aligned to.
_LINE = 64

Arrays = tuple[np.ndarray[Any, Any], ...]

_threads = 1


def warm_up(name: str, threads: int) -> None:
    """Set the threads, which Halide reads when it runs first; load the autoscheduler."""
    global _threads
    _threads = threads
    os.environ["HL_NUM_THREADS"] = str(threads)
    if name in _AUTOSCHEDULERS:
        (library,) = Path(hl.__file__).parent.glob(f"lib*/lib{_AUTOSCHEDULERS[name][1]}.*")
        hl.load_plugin(str(library))
    x = hl.Var("x")
    f = hl.Func("ones")
    f[x] = hl.f32(1)
    f.parallel(x).realize([4])


def prepare(name: str, program: str, inputs: Arrays) -> Prepared:
    """The pipeline; scheduling and compiling belong to the first call.

    Raises:
        NotImplementedError: the program is not written in Halide, or has no schedule by hand.
    """
    function: Callable[..., Program] = written_in("in_halide", program)
    if name not in _AUTOSCHEDULERS and _Run(function, inputs).program.by_hand is None:
        raise NotImplementedError(f"{program.rpartition('.')[2]} has no schedule by hand")
    run: _Run | None = None

    def call() -> np.ndarray[Any, Any]:
        nonlocal run
        if run is not None:
            return run()
        try:
            run = _compiled(name, function, inputs, beyond=False)
            return run()
        except hl.HalideError:
            # A schedule that rounds tiles up may read beyond the border, which a call finds.
            if name not in _AUTOSCHEDULERS:
                raise
            run = _compiled(name, function, inputs, beyond=True)
            return run()

    return Prepared(call, np.copy)


class _Run:
    """Calls of a pipeline: one, or some in which results become arguments."""

    def __init__(
        self, function: Callable[..., Program], inputs: Arrays, *, beyond: bool = False
    ) -> None:
        """
        Args:
            function: of a module ``in_halide``.
            inputs: its arguments.
            beyond: they may be read beyond their borders, where they stay what they are there.
        """
        self.parameters = [_parameter(number, array) for number, array in enumerate(inputs)]
        self.program = function(
            *(
                Source(_held(image, array.shape) if beyond else image, array.shape)
                for image, array in zip(self.parameters, inputs, strict=True)
            )
        )
        self.target = hl.get_jit_target_from_environment()
        self.pipeline = hl.Pipeline(self.program.output)
        self.arguments = [hl.Buffer(array) for array in inputs]
        # A result becomes an argument and that one a result again: one more than there are.
        count = 1 if self.program.calls == 1 else 1 + len(inputs)
        self.arrays = [_empty(self.program.shape) for _ in range(count)]
        self.buffers = [hl.Buffer(array) for array in self.arrays]

    def __call__(self) -> np.ndarray[Any, Any]:
        """The result; the next call writes it again."""
        arguments = list(self.arguments)
        for number in range(self.program.calls):
            for parameter, argument in zip(self.parameters, arguments, strict=True):
                parameter.set(argument)
            place = number % len(self.buffers)
            self.pipeline.realize(self.buffers[place], self.target)
            if self.program.calls > 1:
                arguments = [*arguments[1:], self.buffers[place]]
        return self.arrays[place]


def _parameter(number: int, array: np.ndarray[Any, Any]) -> hl.ImageParam:
    """An argument whose extents are known when the pipeline is compiled."""
    image = hl.ImageParam(hl.Float(32), array.ndim, f"input{number}")
    stride = 1
    for place, extent in enumerate(reversed(array.shape)):
        image.dim(place).set_bounds(0, extent).set_stride(stride).set_estimate(0, extent)
        stride *= extent
    return image


def _held(image: hl.ImageParam, shape: tuple[int, ...]) -> hl.Func:
    bounds = [(0, extent) for extent in reversed(shape)]
    return hl.BoundaryConditions.repeat_edge(image, bounds)


def _compiled(name: str, function: Callable[..., Program], inputs: Arrays, *, beyond: bool) -> _Run:
    run = _Run(function, inputs, beyond=beyond)
    program, pipeline, target = run.program, run.pipeline, run.target
    output, stride = program.output, 1
    output.set_estimates([(0, extent) for extent in reversed(program.shape)])
    for place, extent in enumerate(reversed(program.shape)):
        output.output_buffer().dim(place).set_bounds(0, extent).set_stride(stride)
        stride *= extent
    if name in _AUTOSCHEDULERS:
        autoscheduler = _AUTOSCHEDULERS[name][0]
        parameters = {"parallelism": str(_threads)}
        if autoscheduler == "Adams2019":
            parameters["beam_size"] = str(program.beam)
        pipeline.apply_autoscheduler(target, hl.AutoschedulerParams(autoscheduler, parameters))
    elif program.by_hand:
        program.by_hand(target.natural_vector_size(hl.Float(32)))
    pipeline.compile_jit(target)
    return run


def _empty(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    nbytes = int(np.prod(shape)) * 4
    return empty_at(nbytes, _LINE).view(np.float32).reshape(shape)
