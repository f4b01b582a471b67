"""Checks of data in the forms that PyTorch has of them."""

from __future__ import annotations

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition
from polyblocks_torch.importing.checks import CHECK, require

aten = torch.ops.aten


@decomposition(aten._assert_async.msg)
def assert_async_with_message(holds: Tensor, message: str) -> None:
    """Of one boolean; PyTorch takes one element of any type and shape."""
    if holds.dtype == torch.bool and not holds.dim():
        return NotImplemented
    require((holds != 0).reshape(()), message)


@decomposition(aten._functional_assert_async.msg)
def functional_assert_async(holds: Tensor, message: str, token: Tensor) -> Tensor:
    CHECK(holds, message)
    return token.clone()


@decomposition(aten._is_all_true.default)
def is_all_true(x: Tensor) -> Tensor:
    return x.all()


@decomposition(aten._is_any_true.default)
def is_any_true(x: Tensor) -> Tensor:
    return x.any()


#: Part of a function's name -> what eager mode says of matrices that it fails for. The number of
#: the row is not said: a program's messages are fixed.
_FAILURES = {
    "inv": "The inversion could not be completed because the input matrix is singular.",
    "solve": "The solver failed because the input matrix is singular.",
    "cholesky": "The factorization could not be completed because the input is not "
    "positive-definite.",
    "lu_factor": "An element of the diagonal of U is zero and using it on lu_solve would result in "
    "a division by zero. If you still want to perform the factorization, consider calling "
    "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)",
}


@decomposition(aten._linalg_check_errors.default)
def linalg_check_errors(info: Tensor, api_name: str, *, is_matrix: bool) -> None:
    del is_matrix
    if info.numel():
        found = (text for part, text in _FAILURES.items() if part in api_name)
        # Of other functions eager mode has no words.
        reason = next(found, "Unknown error code.")
        kind = RuntimeError if "lu_factor" in api_name else torch.linalg.LinAlgError
        require(info == 0, f"{api_name}: {reason}", kind)
