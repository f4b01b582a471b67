"""check-sizes: no tensor is taken for one of another size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.passes import facts
from polyblocks.passes.tensor.casts import cast_from, extents
from polyblocks.passes.tensor.control_flow import besides_bodies


@dataclass(frozen=True)
class CheckSizesPass:
    """Refuse a module whose casts change the size of a tensor, or invent one.

    MLIR lets a cast to an unknown size and back change it; the program then reads and writes past
    the end of the smaller buffer. All sizes of a program are static, so once the module is
    simplified a remaining cast is such a mistake of its producer.

    Refused::

        %a = tensor.cast %x : tensor<8xf32> to tensor<?xf32>
        %b = tensor.cast %a : tensor<?xf32> to tensor<4xf32>
    """

    name: ClassVar[str] = "check-sizes"
    needs: ClassVar[frozenset[str]] = frozenset({facts.TENSORS})

    def run(self, module: Any, context: Any) -> bool:
        """Look at the casts; nothing is changed.

        Raises:
            ValueError: the size of a tensor is not the one that a cast says.
        """
        del context
        casts = [op for op in besides_bodies(module) if op.name == "tensor.cast"]
        for op in casts:
            if not _says_more(op):
                continue
            raise ValueError(
                f"a tensor of type {cast_from(op).type} is cast to {op.results[0].type}, whose "
                f"size it need not have, at {op.location}"
            )
        return False


def _says_more(op: Any) -> bool:
    """Whether a cast gives a static size that its operand is not known to have."""
    source, result = cast_from(op).type, op.results[0].type
    return any(b is not None and a != b for a, b in extents(source, result))
