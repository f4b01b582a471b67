"""Halide, compiled in the process: two autoschedulers, and schedules by hand."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import halide as hl
import numpy as np

from bench.engines import Prepared, written_in
from bench.memory import empty_at
from bench.pipelines.halide_programs import Program, Source

#: Peer -> its autoscheduler: the name, the library beside Halide's, and parameters besides the
#: number of threads.
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


def prepare(name: str, program: str, inputs: tuple[np.ndarray[Any, Any], ...]) -> Prepared:
    """The pipeline; scheduling and compiling belong to the first call.

    Raises:
        NotImplementedError: the program is not written in Halide, or has no schedule by hand.
    """
    function = written_in("in_halide", program)
    sources = [_source(number, array) for number, array in enumerate(inputs)]
    written: Program = function(*sources)
    if name not in _AUTOSCHEDULERS and written.by_hand is None:
        raise NotImplementedError(f"{program.rpartition('.')[2]} has no schedule by hand")
    pipeline: hl.Pipeline | None = None
    target = hl.get_jit_target_from_environment()
    run = _Run(written, sources, inputs, target)

    def call() -> np.ndarray[Any, Any]:
        nonlocal pipeline
        if pipeline is None:
            pipeline = _scheduled(name, written, target)
        return run(pipeline)

    return Prepared(call, np.copy)


class _Run:
    """Calls of a pipeline: one, or some in which results become arguments."""

    def __init__(
        self,
        program: Program,
        sources: list[Source],
        inputs: tuple[np.ndarray[Any, Any], ...],
        target: hl.Target,
    ) -> None:
        self.images = [source.image for source in sources]
        self.target = target
        self.calls = program.calls
        self.arguments = [hl.Buffer(array) for array in inputs]
        # A result becomes an argument and that one a result again: one more than there are.
        count = 1 if self.calls == 1 else 1 + len(inputs)
        self.arrays = [_empty(program.shape) for _ in range(count)]
        self.buffers = [hl.Buffer(array) for array in self.arrays]

    def __call__(self, pipeline: hl.Pipeline) -> np.ndarray[Any, Any]:
        """The result; the next call writes it again."""
        arguments = list(self.arguments)
        for number in range(self.calls):
            for image, argument in zip(self.images, arguments, strict=True):
                image.set(argument)
            place = number % len(self.buffers)
            pipeline.realize(self.buffers[place], self.target)
            if self.calls > 1:
                arguments = [*arguments[1:], self.buffers[place]]
        return self.arrays[place]


def _source(number: int, array: np.ndarray[Any, Any]) -> Source:
    """An argument whose extents are known when the pipeline is compiled."""
    image = hl.ImageParam(hl.Float(32), array.ndim, f"input{number}")
    stride = 1
    for place, extent in enumerate(reversed(array.shape)):
        image.dim(place).set_bounds(0, extent).set_stride(stride).set_estimate(0, extent)
        stride *= extent
    return Source(image, array.shape)


def _scheduled(name: str, program: Program, target: hl.Target) -> hl.Pipeline:
    output, stride = program.output, 1
    output.set_estimates([(0, extent) for extent in reversed(program.shape)])
    for place, extent in enumerate(reversed(program.shape)):
        output.output_buffer().dim(place).set_bounds(0, extent).set_stride(stride)
        stride *= extent
    pipeline = hl.Pipeline(output)
    if name in _AUTOSCHEDULERS:
        parameters = {"parallelism": str(_threads)}
        chosen = hl.AutoschedulerParams(_AUTOSCHEDULERS[name][0], parameters)
        pipeline.apply_autoscheduler(target, chosen)
    elif program.by_hand:
        program.by_hand(target.natural_vector_size(hl.Float(32)))
    pipeline.compile_jit(target)
    return pipeline


def _empty(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    nbytes = int(np.prod(shape)) * 4
    return empty_at(nbytes, _LINE).view(np.float32).reshape(shape)
