"""Methods of a compiled module: Python runs them, and what they call of the module is compiled.

A compiled module is another object than the one it was made of, whose methods it has: in them
``self(x)`` would be the module that is not compiled. So while such a method runs, ``forward`` of
that module is the compiled one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import MethodType
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from polyblocks.isolation import forks
from polyblocks_torch.report import FunctionReport


class Methods:
    """The methods of one compiled module.

    Args:
        module: the one that was compiled.
        compile_: makes a compiled function of a function.
        report: of the compiled module.
        strict: what is not compiled is an error.
    """

    def __init__(
        self,
        module: nn.Module,
        compile_: Callable[[Any], Any],
        report: FunctionReport,
        strict: bool,
    ) -> None:
        self._module = module
        self._compile = compile_
        self._report = report
        self._strict = strict
        self._lock = forks.rlock()
        #: How many calls of methods are under way.
        self._running = 0
        #: ``forward`` of the module itself, if that has one, and not its class.
        self._own: list[Any] = []
        self._compiled: tuple[Any, Callable[..., Any]] | None = None
        #: How many calls of ``forward`` were compiled ones.
        self._calls = 0

    def bound(self, method: MethodType) -> Callable[..., Any]:
        """A method whose calls of the module are compiled."""

        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling():
                return method(*args, **kwargs)
            before = self._calls
            with self._forward_compiled():
                result = method(*args, **kwargs)
            if self._calls == before and _has_tensor((args, kwargs)):
                self._tell(method)
            return result

        return call

    @contextmanager
    def _forward_compiled(self) -> Iterator[None]:
        attributes = self._module.__dict__
        with self._lock:
            if not self._running:
                self._own = [attributes["forward"]] if "forward" in attributes else []
                attributes["forward"] = self._compiled_forward()
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                if not self._running:
                    del attributes["forward"]
                    if self._own:
                        attributes["forward"] = self._own.pop()

    def _compiled_forward(self) -> Callable[..., Any]:
        forward = self._module.forward
        if self._compiled is None or self._compiled[0] != forward:
            compiled = self._compile(forward)

            @functools.wraps(forward)
            def call(*args: Any, **kwargs: Any) -> Any:
                self._calls += 1
                return compiled(*args, **kwargs)

            self._compiled = forward, call
        return self._compiled[1]

    def _tell(self, method: MethodType) -> None:
        name = method.__name__
        code = getattr(method.__func__, "__code__", None)
        location = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""
        self._report.not_compiled(
            f"method {name}",
            "only forward of a module is compiled, and this method does not call it; compile the "
            f"method as well: polyblocks_jit_torch(module.{name})",
            location,
            strict=self._strict,
        )


def _has_tensor(values: Any) -> bool:
    return any(isinstance(value, torch.Tensor) for value in pytree.tree_leaves(values))
