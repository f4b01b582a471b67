"""The peers, one file per framework; :data:`ENGINES` names them all.

An engine is a module with

- ``OUTPUTS``: by peer, whether each call returns new memory or writes the same again, and in what
  way;
- ``DISTRIBUTIONS``: by peer, what it is made of, for the versions;
- optionally ``explain(name, error)``: why the peer could not run, in one line;
- ``warm_up(name, threads)``: imports everything, sets the threads, compiles something small;
- ``prepare(name, program, inputs)``: a :class:`Prepared` for one case, not compiled yet where the
  framework compiles at the first call.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

#: Peer -> module that runs it.
ENGINES = {
    "polyblocks": "bench.engines.pytorch",
    "polyblocks-frozen": "bench.engines.pytorch",
    "eager": "bench.engines.pytorch",
    "inductor": "bench.engines.pytorch",
    "inductor-max-autotune": "bench.engines.pytorch",
    "jax": "bench.engines.jax_xla",
    "tf-xla": "bench.engines.tensorflow_xla",
    "openvino": "bench.engines.openvino_cpu",
    "onnxruntime": "bench.engines.onnx_runtime",
    "iree": "bench.engines.iree_cpu",
    "halide-mullapudi": "bench.engines.halide_cpu",
    "halide-adams": "bench.engines.halide_cpu",
    "halide-by-hand": "bench.engines.halide_cpu",
}

#: This compiler behind the other frameworks, for :mod:`bench.frontends`.
FACES = {
    "polyblocks-jax": "bench.engines.jax_polyblocks",
    "polyblocks-tf": "bench.engines.tensorflow_polyblocks",
}

#: The one that the others are compared with.
OURS = "polyblocks"

#: The variant whose weights change through PyTorch only.
FROZEN = "polyblocks-frozen"

#: Ways of ours with further compile options: by name, which is one of :data:`ENGINES`, the options.
#: They are no rivals of ours: the faster one counts, and all are shown. They run programs that have
#: weights of their own.
VARIANTS: dict[str, dict[str, Any]] = {FROZEN: {"freeze_weights": True}}

#: Halide, with the autoschedulers Mullapudi2016 and Adams2019 and with schedules by hand. It runs
#: what is written in it, which are programs of :mod:`bench.pipelines`.
HALIDE = ("halide-mullapudi", "halide-adams", "halide-by-hand")
PIPELINES = "pipelines"

#: Programs with weights of their own: ``models.`` and a name of :data:`bench.models.MODELS`.
MODELS = "models"

#: Modules with programs.
LANGUAGES = {
    "in_torch": "in PyTorch",
    "in_jax": "in JAX",
    "in_tensorflow": "in TensorFlow",
    "in_halide": "in Halide",
}

#: Peers that need nothing but the project's own environment.
QUICK = ("polyblocks", "polyblocks-frozen", "eager", "inductor")


@dataclass(frozen=True)
class Prepared:
    """One case, ready for its first call.

    Attributes:
        call: computes the case once, and returns when the result is there.
        to_numpy: the array in what ``call`` returns.
        facts: what else is known after the first call: ``overhead``, the seconds of it that the
            framework's own capture takes, and ``predicted``, the seconds of a call that the
            compiler expects.
    """

    call: Callable[[], Any]
    to_numpy: Callable[[Any], np.ndarray[Any, Any]]
    facts: Callable[[], dict[str, float | None]] = dict


def written_in(language: str, program: str) -> Callable[..., Any]:
    """A case's function in one framework; of a model, its module in PyTorch.

    Args:
        language: ``in_torch``, ``in_jax``, ``in_tensorflow`` or ``in_halide``.
        program: ``softmax`` of :mod:`bench.programs`, ``algorithms.n_body`` of another package,
            ``models.ResNet-18`` of :mod:`bench.models`.

    Raises:
        NotImplementedError: a model in another framework than PyTorch, or a program that is not
            written in this one.
    """
    package, _, name = program.rpartition(".")
    if package == MODELS:
        if language != "in_torch":
            raise NotImplementedError(f"{name} is written in PyTorch only")
        from bench.models import with_weights

        return with_weights(name)
    where = f"bench.{package or 'programs'}"
    found = importlib.util.find_spec(f"{where}.{language}")
    function = getattr(import_module(found.name), name, None) if found else None
    if function is None:
        raise NotImplementedError(f"{name} is not written {LANGUAGES[language]}")
    written: Callable[..., Any] = function
    return written


def takes_part(name: str, program: str) -> bool:
    """Whether a peer is to run a program.

    A variant of ours is where there are weights; Halide is where anything is written in it.
    """
    if name in VARIANTS:
        return program.startswith(f"{MODELS}.")
    return name not in HALIDE or program.startswith(f"{PIPELINES}.")


def joined(result: Any) -> np.ndarray[Any, Any]:
    """The result as one array; several are laid behind each other, in float64.

    bfloat16 becomes float32, since NumPy has no conversion of PyTorch's.
    """
    if isinstance(result, (tuple, list)):
        return np.concatenate([joined(part).ravel().astype(np.float64) for part in result])
    if str(getattr(result, "dtype", "")) == "torch.bfloat16":
        result = result.float()
    return np.asarray(result)
