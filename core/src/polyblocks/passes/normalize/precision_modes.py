"""Factor types of contractions in the modes of `mm_conv_precision_mode`."""

from __future__ import annotations

from polyblocks.affine.analysis.contractions import Contraction
from polyblocks.affine.analysis.dataflow import ops_of
from polyblocks.affine.analysis.reduction_chains import StraightLineCode
from polyblocks.affine.analysis.reductions import EXTENSIONS
from polyblocks.affine.element import printed
from polyblocks.affine.mlir.source import sources
from polyblocks.affine.model import For, Nest, Node, Op
from polyblocks.errors import OptionError
from polyblocks.options import FLOAT_MODES

#: Operations that add, multiply, and extend.
_SUMS = ("arith.addf", "arith.addi")
_PRODUCTS = ("arith.mulf", "arith.muli")


def products(contraction: Contraction) -> list[Op]:
    """The products that a step of a contraction's loops adds to sums."""
    body = contraction.reduction.body
    makers = ops_of(body)
    code = StraightLineCode(body)
    chains = [code.chain(value) for value in contraction.reduction.loops[-1].yields]
    return [
        maker
        for chain in chains
        if chain is not None and chain.last.name in _SUMS
        for maker in (makers.get(term) for term in chain.terms)
        if maker is not None and maker.name in _PRODUCTS
    ]


def check_factors(
    nest: Nest, contraction: Contraction, mode: str, wanted: str, most_bits: int
) -> None:
    """Whether a mode for integers can take effect in a nest.

    Args:
        nest: a contraction.
        contraction: its parts.
        mode: the mode.
        wanted: what it is for.
        most_bits: bits of these integers, before they are extended.

    Raises:
        OptionError: the nest multiplies others.
    """
    makers = ops_of(contraction.reduction.body)
    for value in (v for product in products(contraction) for v in product.operands):
        maker = makers.get(value)
        while maker is not None and maker.name in EXTENSIONS:
            (value,) = maker.operands
            maker = makers.get(value)
        met = printed(value.type)
        if not met.startswith("i") or value.type.width > most_bits:
            where = " at ".join(found[0]) if (found := sources(nest.body)) else "a contraction"
            raise OptionError(
                f"mm_conv_precision_mode={mode!r} expects products of {wanted}, not of {met} as "
                f"in {where}; convert its operands, or give one of {', '.join(FLOAT_MODES)}"
            )


def container_of(nodes: list[Node], loop: Node) -> list[Node]:
    """The nodes among which a loop stands."""
    while loop not in nodes:
        outer = nodes[0]
        assert isinstance(outer, For), "the loop is in one of the first loops of bodies"
        nodes = outer.body
    return nodes
