"""Where the arrays of a call are: all on one device, or all on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from polyblocks.errors import InputError
from polyblocks.runtime.arrays import HOST, ArrayInterface, Device
from polyblocks.runtime.device.plan import ON_DEVICE
from polyblocks.runtime.slots import Signature, check_all

if TYPE_CHECKING:
    from polyblocks.runtime.bound_weights import BoundWeights
    from polyblocks.runtime.device.executable import DeviceExecutable


class PlaceCheck:
    """Checks the arrays of a program for devices.

    Args:
        executable: the loaded program.
        interface: of the arrays.
        signature: of the program.
        weights: bound to the last inputs; where they are, the others must be.
    """

    def __init__(
        self,
        executable: DeviceExecutable,
        interface: ArrayInterface,
        signature: Signature,
        weights: BoundWeights | None,
    ) -> None:
        self._executable = executable
        self._interface = interface
        self._signature = signature
        self._weights = weights
        manifest = executable.manifest
        self._function = str(manifest.get("name", "main"))
        self._target = manifest["target"]
        self._on_device = bool(manifest.get(ON_DEVICE))
        self._names = [slot.name for slot in signature.inputs]

    def __call__(self, arrays: Sequence[Any]) -> Device:
        """Where the arrays are; those of the host are not looked at any further.

        Raises:
            InputError: they are in several places, or on a device and not as the program expects.
        """
        interface = self._interface
        places = [
            interface.device(array) if interface.is_array(array) else HOST for array in arrays
        ]
        bound = HOST if self._weights is None else self._weights.device
        first = places[0] if places else bound
        if len(arrays) != len(self._names):
            return HOST  # where the number is checked first
        if any(place != first for place in places):
            raise self._mixed(places)
        if first == HOST:
            self._expect_host(places, bound)
            return HOST
        if first.kind not in self._executable.driver.device_kinds:
            raise InputError(
                f"{self._function} is compiled for target '{self._target}'; its arrays are on "
                f"{_text(first)}, which that target does not support; copy them to the host"
            )
        if self._weights is not None and bound != first:
            raise self._mixed(places, bound)
        check_all(self._function, self._signature, interface, arrays, first)
        return first

    def _expect_host(self, places: list[Device], bound: Device) -> None:
        if bound != HOST and places:
            raise self._mixed(places, bound)
        if self._on_device:
            raise InputError(
                f"{self._function} is built with the option 'on_gpu_tensors' and expects its "
                f"arrays on a device of target '{self._target}'; '{self._names[0]}' is on the "
                "host; copy the arrays there, or build it without the option"
            )

    def _mixed(self, places: list[Device], weights: Device | None = None) -> InputError:
        named = list(zip(self._names, places, strict=True))
        if weights is not None:
            named.append(("weights", weights))
        found = ", ".join(f"'{name}' on {_text(place)}" for name, place in named)
        return InputError(
            f"{self._function}: the arrays are in several places: {found}; expected all on the "
            "host or all on one device; copy them to one place"
        )


def _text(place: Device) -> str:
    return "the host" if place == HOST else f"device {place.number}"
