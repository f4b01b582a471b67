"""Where a tensor keeps what describes it: offsets in PyTorch's C++ objects, found by trying.

``c10/core/TensorImpl.h`` and ``StorageImpl.h`` have them. No offset is taken from there: each is
where tensors made for this purpose have what they are known to have, and nowhere else. Then all
that gives a tensor other memory or another shape has to change the words that were found. A version
of PyTorch where anything is otherwise has no layout here, and its functions are called.
"""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from polyblocks.codegen.array_layout import ArrayLayout, Word
from polyblocks.runtime.native.memory_probe import MemoryProbe

#: Tensors of larger rank keep their extents elsewhere.
MAX_RANK = 5
#: Bytes of an object that are looked at.
_OBJECT_BYTES = 256
#: Of a Python object: its class, and behind the head the tensor.
_CLASS, _TENSOR = Word(0, 8), Word(0, 16)

_log = logging.getLogger(__name__)


@functools.cache
def layout() -> ArrayLayout | None:
    """The layout of this version of PyTorch; None if it is unknown."""
    try:
        with (
            _disable_current_modes(),
            torch._C.DisableTorchFunction(),
            torch.inference_mode(False),
            torch.no_grad(),
            MemoryProbe() as memory,
        ):
            found = _find(memory)
            if found is not None and _sees_changes(memory, found):
                return found
    except (AttributeError, RuntimeError, TypeError) as error:
        _log.debug("PyTorch's tensors are not looked at: %s", error)
    return None


def _find(memory: MemoryProbe) -> ArrayLayout | None:
    samples = _samples()
    tensors = [(each._cdata, each) for each in samples]
    storages = [(each.untyped_storage()._cdata, each) for each in samples]
    if any(memory.word(id(t) + _TENSOR.offset) != address for address, t in tensors):
        return None
    kinds = torch._C._dispatch_keys

    def offset(
        objects: Iterable[tuple[int, torch.Tensor]],
        value: Callable[[torch.Tensor], Iterable[Any]],
        nbytes: int = 8,
    ) -> int:
        """The only place where all have these values, of ``nbytes`` each, one behind the other.

        Raises:
            RuntimeError: no word qualifies, or several do.
        """
        places = set(range(0, _OBJECT_BYTES, nbytes))
        for address, tensor in objects:
            there = memory.contents(address, _OBJECT_BYTES)
            wanted = b"".join(each.to_bytes(nbytes, sys.byteorder) for each in value(tensor))
            places &= {at for at in places if there[at : at + len(wanted)] == wanted}
        if len(places) != 1:
            raise RuntimeError(f"{len(places)} places for a word")
        return places.pop()

    ranked = [each for each in tensors if each[1].dim()]
    extents = offset(ranked, lambda t: t.shape)
    strides = offset(ranked, lambda t: t.stride())
    return ArrayLayout(
        pointers=(_TENSOR, Word(1, offset(tensors, lambda t: [t.untyped_storage()._cdata]))),
        own=(Word(2, offset(storages, lambda t: [t.untyped_storage().data_ptr()])),),
        shared=(
            _CLASS,
            Word(1, offset(tensors, lambda t: [t.dim()])),
            Word(1, offset(tensors, lambda t: [t.storage_offset()])),
            # With flags and the device.
            Word(1, offset(tensors, lambda t: [_DTYPES[t.dtype]], 2) & ~7),
            Word(1, offset(tensors, lambda t: [kinds(t).raw_repr()])),
            Word(2, offset(storages, lambda t: [t.untyped_storage().nbytes()])),
        ),
        of_rank=tuple(
            tuple(Word(1, at + 8 * k) for at in (extents, strides) for k in range(rank))
            for rank in range(MAX_RANK + 1)
        ),
    )


#: ``c10::ScalarType``, which PyTorch's files of tensors have too.
_DTYPES = {
    torch.uint8: 0,
    torch.int16: 2,
    torch.int64: 4,
    torch.float16: 5,
    torch.float32: 6,
    torch.float64: 7,
    torch.complex64: 9,
    torch.bool: 11,
    torch.bfloat16: 15,
}


def _samples() -> list[torch.Tensor]:
    """Tensors that differ from each other in every word that varies."""
    made = []
    for number, dtype in enumerate(_DTYPES):
        rank = number % (MAX_RANK + 1)
        shape = [(7, 3, 5, 11, 2)[(number + k) % 5] + number for k in range(rank)]
        base = torch.empty([23 + number, *shape], dtype=dtype, device="cpu")
        made.append(base[number * 2 + 1])
        if rank > 1:
            made.append(base[number].transpose(0, rank - 1))
    # Memory of others: the address that is freed is not that of the elements.
    for size in (40, 72):
        made.append(torch.frombuffer(bytearray(size), dtype=torch.float32, offset=8))
    made.append(torch._neg_view(torch.empty(3, 2, device="cpu")))
    made.append(torch.empty(3, 2, dtype=torch.complex64, device="cpu").conj())
    made.append(torch.nn.Parameter(torch.empty(9, 4, 6, device="cpu")))
    return made


def kind_offsets(rank: int) -> tuple[int, ...] | None:
    """Where a tensor's implementation says what it is: all but its memory.

    Rank, dtype with device and flags, dispatch keys, extents and strides.

    Args:
        rank: of the tensor.

    Returns:
        Offsets of words of the C++ object; None: it is not known.
    """
    found = layout()
    if found is None or rank > MAX_RANK:
        return None
    kept = (*(found.shared[k] for k in _KIND), *found.of_rank[rank])
    return tuple(word.offset for word in kept)


#: Of ``ArrayLayout.shared``: rank, dtype, keys.
_KIND = (1, 3, 4)


def words_of(memory: MemoryProbe, found: ArrayLayout, tensor: torch.Tensor) -> list[int | None]:
    """The words that describe a tensor."""
    parts: list[int] = [id(tensor)]
    words = []
    for word in found.words(tensor.dim()):
        words.append(memory.word(parts[word.part] + word.offset))
        if len(parts) <= len(found.pointers):
            parts.append(words[-1] or 0)
    return words


def _sees_changes(memory: MemoryProbe, found: ArrayLayout) -> bool:
    """Whether all that makes another array of a tensor changes its words, and nothing else does."""
    for kind in (torch.Tensor, torch.nn.Parameter):
        for change, matters in [*((c, True) for c in CHANGES), *((u, False) for u in _USES)]:
            tensor = torch.zeros(8, 4, 4, device="cpu")[2].clone()
            if kind is torch.nn.Parameter:
                tensor = torch.nn.Parameter(tensor)
            # As long as this lives, no other memory has its address.
            held, before = tensor.detach(), words_of(memory, found, tensor)
            try:
                change(tensor)
            except RuntimeError:
                continue  # this version does not allow it
            after = words_of(memory, found, tensor) if tensor.dim() == held.dim() else None
            if (before != after) != matters:
                _log.debug("a change of tensors is not seen as it should be: %s", change)
                return False
    return True


def _data(make: Callable[[torch.Tensor], Any]) -> Callable[[torch.Tensor], None]:
    def change(tensor: torch.Tensor) -> None:
        tensor.data = make(tensor.data)

    return change


def _ones() -> torch.Tensor:
    return torch.ones(4, 4, device="cpu")


class _Derived(torch.Tensor):
    """Another class."""


#: Changes that make another array of a 4 x 4 float32 tensor.
CHANGES: tuple[Callable[[torch.Tensor], Any], ...] = (
    _data(lambda t: t.clone()),
    _data(lambda t: t.t()),
    _data(lambda t: t.view(2, 8)),
    _data(lambda t: t[1:]),
    _data(lambda t: t[:, 1:]),
    _data(lambda t: t.view(torch.int32)),
    _data(lambda t: t.double()),
    _data(torch._neg_view),
    _data(lambda t: t.to("meta")),
    lambda t: t.set_(_ones()),  # type: ignore[call-overload]
    lambda t: t.set_(t.untyped_storage(), 1, (3, 4), (4, 1)),
    lambda t: t.set_(t.untyped_storage(), 1, (4, 3), (4, 1)),
    lambda t: t.resize_(64, 64),
    lambda t: t.resize_(2, 2),
    lambda t: t.as_strided_((4, 4), (1, 4)),
    lambda t: t.as_strided_((2, 2), (4, 1), 3),
    lambda t: t.t_(),
    lambda t: t.unsqueeze_(0),
    lambda t: t.untyped_storage().resize_(0),
    lambda t: t.untyped_storage().resize_(1 << 16),
    lambda t: t.untyped_storage().resize_(32),
    lambda t: torch.utils.swap_tensors(t, type(t)(_ones())),
    lambda t: setattr(t, "__class__", _Derived),
)


def _use_by_autograd(tensor: torch.Tensor) -> None:
    tensor.grad = _ones()


#: Uses that leave it the same.
_USES: tuple[Callable[[torch.Tensor], Any], ...] = (
    lambda t: t.add_(1),
    lambda t: t.numpy(),
    lambda t: t.view(16).untyped_storage(),
    _use_by_autograd,
)
