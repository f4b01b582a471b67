"""The launcher's code for arguments: lines that convert them and take addresses.

An argument that Dynamo guards costs its ``data_ptr()`` and a look at whether there is memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import torch

from polyblocks.runtime.source import Source
from polyblocks_torch.capture import FromConstant, FromInput, TorchCapture
from polyblocks_torch.launch.arrivals import Arrivals, Form, in_form, with_memory
from polyblocks_torch.launch.memory_of import memory_expression


class ArgumentWriter:
    """The arguments of one program, in the source of the function that calls it.

    Args:
        source: has ``a0``, ``a1``, … for the arguments of the graph.
        capture: what was compiled.
        device: the GPU where the tensors are; None on the CPU.
        unguarded: see :func:`polyblocks_torch.launch.launcher.make_call`.
    """

    def __init__(
        self,
        source: Source,
        capture: TorchCapture,
        device: torch.device | None,
        unguarded: Mapping[int, str],
    ) -> None:
        self._source = source
        self._capture = capture
        self._device = device or torch.device("cpu")
        self._updated = {r.updates for r in capture.results if r.updates is not None}
        #: Of each argument of the program: an expression for a tensor of its form.
        self.names: list[str] = []
        #: Arguments that may be copies, which updates must be written back from.
        self._copies: list[int] = []
        checked = []
        for number, (origin, lazy) in enumerate(zip(capture.sources, capture.resolve, strict=True)):
            form = self._form(number, unguarded)
            if isinstance(origin, FromConstant):
                # A number that PyTorch keeps on the CPU goes to the device once.
                tensor = origin.tensor.to(self._device)
                tensor = in_form(tensor, replace(form, device=tensor.device))
                self.names.append(source.name("constant", tensor))
            elif origin.position in unguarded:
                self.names.append(f"p{origin.position}")
                checked.append(number)
                self._copies.append(number)
            elif lazy:
                self.names.append(f"p{origin.position}")
                bring = source.name("in_form", partial(in_form, form=form))
                source.add(f"p{origin.position} = {bring}(a{origin.position})")
                self._copies.append(number)
            else:
                self.names.append(f"a{origin.position}")
        if checked:
            arrivals = Arrivals([self._form(number, unguarded) for number in checked])
            name = source.name("arrivals", arrivals)
            given = ", ".join(self._given(number) for number in checked)
            brought = ", ".join(self.names[number] for number in checked)
            source.add(f"{brought}, = ({given},) if {name}.known({given}) else {name}({given})")

    def _form(self, number: int, unguarded: Mapping[int, str]) -> Form:
        argument, origin = self._capture.arguments[number], self._capture.sources[number]
        name, op = f"argument {argument.name} of {self._capture.name}", ""
        if isinstance(origin, FromInput):
            op = unguarded.get(origin.position, "")
        return Form(argument.spec, self._device, f"the result of {op}" if op else name, bool(op))

    def _given(self, number: int) -> str:
        origin = self._capture.sources[number]
        assert isinstance(origin, FromInput)
        return f"a{origin.position}"

    def addresses(self, read: Sequence[int], source: Source | None = None) -> dict[int, str]:
        """Write the lines that take addresses; returns an expression for each.

        Args:
            read: the arguments of the program that it reads or updates.
            source: of a function that has parameters of their :attr:`names`; None: of this one.
        """
        source = source or self._source
        found: dict[int, str] = {}
        asked = []
        for number in read:
            if isinstance(self._capture.sources[number], FromConstant):
                tensor = self._source.names[self.names[number]]
                found[number] = str(tensor.data_ptr())
                continue
            found[number] = f"x{number}"
            source.add(f"x{number} = {self.names[number]}.data_ptr()")
            if self._capture.arguments[number].spec.numel:
                asked.append(number)
        if asked:
            forms = [self._form(number, {}) for number in asked]
            updated = [i for i, number in enumerate(asked) if number in self._updated]
            make = source.name("with_memory", with_memory(forms, updated))
            tensors = ", ".join(self.names[number] for number in asked)
            usable = [memory_expression(found[number], self.names[number]) for number in asked]
            source.add(f"if not ({' and '.join(usable)}):")
            # Bound to a name: they are alive while the program runs.
            source.add(f"held = {make}({tensors})", depth=2)
            addresses = ", ".join(found[number] for number in asked)
            source.add(f"{addresses}, = [tensor.data_ptr() for tensor in held]", depth=2)
        return found

    def write_back(self) -> None:
        """Write the lines that copy updates into the caller's arguments."""
        for number in self._copies:
            if number in self._updated:
                given, name = self._given(number), self.names[number]
                self._source.add(f"if {name} is not {given}:")
                self._source.add(f"{given}.copy_({name})", depth=2)
