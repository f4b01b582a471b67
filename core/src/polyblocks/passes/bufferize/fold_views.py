"""fold-views: accesses go to what views are of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.passes import facts


@dataclass(frozen=True)
class FoldViewsPass:
    """Compose the indices of accesses with the views that they go through.

    Folded reshapes leave ``affine.linearize_index``; nests want expressions, so it is expanded.
    In a program with loops or branches, affine accesses are left for the model of nests to
    resolve: an offset that is computed in a body is no symbol there, and upstream folds it all the
    same.

    Before::

        %row = memref.subview %x[2, 0] [1, 64] [1, 1] : memref<8x64xf32> to ...
        %v = affine.load %row[%i]

    After::

        %v = affine.load %x[2, %i]
    """

    name: ClassVar[str] = "fold-views"
    needs: ClassVar[frozenset[str]] = frozenset({facts.AFFINE_LOOPS})

    def run(self, module: Any, context: Any) -> None:
        """Rewrite in place."""
        from polyblocks import mlir, signature
        from polyblocks.affine.mlir.regions import nested_regions

        del context
        main = signature.main_of(module)
        plain = next(nested_regions(main.body.blocks[0]), None) is None
        affine = "affine-fold-memref-alias-ops," if plain else ""
        # Without loops of the program there is nothing that goes around in circles and is not used.
        simplify = "canonicalize{region-simplify=disabled}" if plain else "canonicalize"
        mlir.run_textual(
            module,
            f"fold-memref-alias-ops,{affine}affine-expand-index-ops-as-affine,{simplify},cse",
            verify=False,
        )
