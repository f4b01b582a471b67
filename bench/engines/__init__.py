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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Peer -> module that runs it.
ENGINES = {
    "polyblocks": "bench.engines.pytorch",
    "eager": "bench.engines.pytorch",
    "inductor": "bench.engines.pytorch",
    "inductor-max-autotune": "bench.engines.pytorch",
    "jax": "bench.engines.jax_xla",
    "tf-xla": "bench.engines.tensorflow_xla",
    "openvino": "bench.engines.openvino_cpu",
    "onnxruntime": "bench.engines.onnx_runtime",
    "iree": "bench.engines.iree_cpu",
}

#: The one that the others are compared with.
OURS = "polyblocks"

#: Peers that need nothing but the project's own environment.
QUICK = ("polyblocks", "eager", "inductor")


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
