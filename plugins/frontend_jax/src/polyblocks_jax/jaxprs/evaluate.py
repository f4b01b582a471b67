"""Evaluating a jaxpr."""

from __future__ import annotations

from typing import Any

import jax
from jax.extend.core import ClosedJaxpr


def evaluate(closed: ClosedJaxpr, *args: Any) -> list[Any]:
    """Evaluate a jaxpr, equation by equation.

    Not ``jaxpr_as_fun``: it uses ``with jax.debug_nans(False)``, and once a thread has left such a
    block, JAX ignores there what ``jax.config.update`` says of the whole process.
    """
    return list(jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *args))
