"""Import of element-wise operations: one ``linalg.generic`` each, with PyTorch's types.

torch-mlir promotes, converts, folds and compares by rules of its own. Here the type in which an
operation is computed is PyTorch's, each operand is converted to it, and constants with equal
elements are numbers in the body: nothing is left to fold. ``x + 300`` of bytes becomes::

    %b = torch_c.to_builtin_tensor %x : !torch.vtensor<[4],ui8> -> tensor<4xi8>
    %g = linalg.generic ins(%b : tensor<4xi8>) outs(%empty : tensor<4xi8>) {
      ^bb0(%a: i8, %_: i8):
        %n = arith.constant 44 : i8
        %s = arith.addi %a, %n : i8
        linalg.yield %s : i8 } -> tensor<4xi8>
    %1 = torch_c.from_builtin_tensor %g : tensor<4xi8> -> !torch.vtensor<[4],ui8>
"""

from polyblocks_torch.elementwise.importing import ElementwiseImporter, import_fill
from polyblocks_torch.elementwise.operations import operation_of
from polyblocks_torch.elementwise.scalars import element_type, number_in
from polyblocks_torch.elementwise.splats import fill_of

__all__ = [
    "ElementwiseImporter",
    "element_type",
    "fill_of",
    "import_fill",
    "number_in",
    "operation_of",
]
