"""ArrayInterface: what the runtime must know of a framework's arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from polyblocks.errors import InputError
from polyblocks.program import ArraySpec

if TYPE_CHECKING:
    from polyblocks.runtime.binding import Binding
    from polyblocks.runtime.native.reader import NativeReader
    from polyblocks.runtime.source import Source


class Device(NamedTuple):
    """Where an array lies, as DLPack says it.

    Attributes:
        kind: a ``DLDeviceType`` (dlpack.h): 1 is the host's memory.
        number: which device of that kind.
    """

    kind: int
    number: int


HOST = Device(1, 0)


class ArrayInterface(ABC):
    """How a framework's arrays give pointers and layouts, and how results are made.

    Stateless and safe among threads.
    """

    @abstractmethod
    def is_array(self, value: Any) -> bool:
        """Whether ``value`` is an array of this framework."""

    @abstractmethod
    def describe(self, array: Any) -> ArraySpec:
        """Shape, dtype and strides (elements) of an array.

        Raises:
            InputError: a dtype or layout that no program takes; says how to convert it.
        """

    @abstractmethod
    def pointer(self, array: Any) -> int:
        """The address of the first element, on the array's device."""

    def memory(self, array: Any) -> Any:
        """An object that keeps the memory of an array alive, without the array itself.

        By default the array: that it gets other memory is a matter of few frameworks.
        """
        return array

    def is_constant(self, array: Any) -> bool:
        """Whether memory and contents of an array stay as long as what :meth:`memory` gives.

        Where all weights of a program are constants, no call looks at them again. By default False.
        """
        del array
        return False

    @abstractmethod
    def device(self, array: Any) -> Device:
        """Where the array lies."""

    @abstractmethod
    def is_writable(self, array: Any) -> bool:
        """Whether a program may update the array in place."""

    def updating(self, *arrays: Any) -> None:
        """Told of the arrays that a program updates in place, before it does; by default nothing.

        Frameworks count how often an array was updated, to know that what they have kept of it is
        no longer so.
        """
        del arrays

    @abstractmethod
    def empty(self, spec: ArraySpec, device: Device) -> Any:
        """A new array with this layout and any content, from the framework's allocator or a pool.

        Raises:
            InputError: the framework has no such dtype.
        """

    @abstractmethod
    def transfer(self, array: Any, device: Device) -> Any:
        """The array on ``device``: itself if it is there, else a copy.

        Raises:
            InputError: the framework cannot put arrays there.
        """

    def allocation(self, spec: ArraySpec) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """A function and its arguments that make what :meth:`empty` makes on the host.

        For calls that make the same array again and again; by default :meth:`empty` itself.
        """
        return self.empty, (spec, HOST)

    def native_reader(self) -> NativeReader | None:
        """How machine code reads host arrays of this framework; None, the default: it cannot."""
        return None

    def device_reader(self, device: Device) -> NativeReader | None:
        """The same for arrays on a device; None, the default: machine code cannot read them.

        It must take no array that :meth:`device` says is elsewhere. Only for frameworks that have
        streams and an allocator there, see :meth:`has_streams` and :meth:`allocates`.
        """
        del device
        return None

    def device_allocation(
        self, spec: ArraySpec, device: Device
    ) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """A function and its arguments that make what :meth:`empty` makes on a device."""
        return self.empty, (spec, device)

    def stream_getter(self, device: Device) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """A function and its arguments that give what :meth:`stream` gives."""
        return self.stream, (device,)

    def own_call(self, binding: Binding) -> Callable[..., Any] | None:
        """A function that calls a loaded program in the framework's own way.

        It takes and returns what ``binding.plain`` does, and raises the same errors. Its attribute
        ``native_call`` may say how machine code calls it, as that of ``plain`` does.

        Args:
            binding: the program.

        Returns:
            None, the default: there is no such way, for this program or at all.
        """
        del binding
        return None

    def check_expressions(
        self, source: Source, array: str, spec: ArraySpec, written: bool
    ) -> tuple[list[str], str] | None:
        """Expressions in Python for what is expected of an array, where machine code cannot be.

        Args:
            source: has the names that the expressions need.
            array: the array's name.
            spec: what it must be.
            written: whether the program updates it.

        Returns:
            Conditions that together hold only for an array that :meth:`describe` would describe
            so, and an expression for its address, which says nothing on its alignment; None, the
            default: it is described at each call.
        """
        del source, array, spec, written
        return None

    def guard_expressions(self, source: Source) -> list[str]:
        """Conditions for :meth:`check_expressions` on a call as a whole; by default none."""
        del source
        return []

    def leaves(self, value: Any) -> list[Any]:
        """The leaves of a structure of the framework, in its order of flattening.

        By default of lists, tuples and dictionaries, these by their sorted keys.
        """
        return list(_leaves(value))

    def with_arrays(self, value: Any, make: Callable[[ArraySpec], Any]) -> Any:
        """A structure whose abstract values, which only describe arrays, became arrays.

        Args:
            value: a structure as :meth:`leaves` takes it.
            make: makes an array of this framework, on the host.

        Returns:
            By default the structure as it is: there are no such descriptions.

        Raises:
            InputError: a description leaves a size or the dtype open.
        """
        del make
        return value

    def named(self, value: Any) -> dict[str, Any]:
        """The arrays of a structure, or of an object of the framework (a module, a model), by the
        names that the framework's checkpoints give them.

        An array that is found twice has both names; the name of ``value`` itself is empty. By
        default of lists, tuples and dictionaries: indices and keys with dots between.
        """
        if self.is_array(value):
            return {"": value}
        items: Iterable[tuple[Any, Any]] = ()
        if isinstance(value, dict):
            items = value.items()
        elif isinstance(value, (list, tuple)):
            items = enumerate(value)
        return {
            ".".join(filter(None, (str(key), name))): array
            for key, item in items
            for name, array in self.named(item).items()
        }

    def without_gradients(self) -> AbstractContextManager[Any]:
        """Inside, the framework records nothing that a gradient would need."""
        return nullcontext()

    def num_threads(self) -> int | None:
        """CPU threads that the user has set the framework to; None, the default: it has no such
        setting, or it is not set. See :mod:`polyblocks.runtime.threads`.
        """
        return None

    def stream(self, device: Device) -> int:
        """The handle of the stream on which the caller's work on ``device`` goes; 0: none."""
        del device
        return 0

    def has_streams(self, device: Device) -> bool:
        """Whether work on ``device`` goes on the stream that :meth:`stream` tells, as does the
        reuse of freed memory. If not, :meth:`make_ready` is called before each launch.
        """
        del device
        return False

    def make_ready(self, array: Any, stream: int) -> None:
        """Let ``stream`` (or the caller) wait until the array has its values."""
        del array, stream

    def waits(self, arrays: Sequence[Any]) -> frozenset[int] | None:
        """The streams that a reader of the arrays has to wait for, and nothing else.

        None, the default: :meth:`make_ready` must be called for each.
        """
        del arrays
        return None

    def readings(self, arrays: Sequence[Any]) -> tuple[list[int], Any] | None:
        """Readings of the arrays' state at each call, without the cost of a check.

        Returns:
            The addresses, and a value of everything else that a check and :meth:`waits` look at:
            devices, dtypes, shapes, strides, whether they can be written. Where it is equal to
            that of arrays which were checked, these pass. By default None: it takes no less time
            than the check. Any exception means that the arrays have to be checked.
        """
        del arrays
        return None

    def allocates(self, device: Device) -> bool:
        """Whether :meth:`empty` makes arrays on ``device``; if not, :meth:`adopt` takes over ours.

        On the host every framework's does.
        """
        return device == HOST

    def adopt(self, memory: Any) -> Any:
        """An array on memory of ours, which the program is writing.

        Args:
            memory: an object with ``__dlpack__`` and ``__dlpack_device__``.

        Raises:
            InputError: the framework cannot take it over.
        """
        raise InputError(
            f"{type(self).__name__} has no arrays on device {tuple(memory.__dlpack_device__())}"
        )


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from _leaves(value[key])
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value
