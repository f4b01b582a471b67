"""Why operations are predicted to take longer than their floors allow."""

from __future__ import annotations

import re

#: Names of operations, as a regular expression of their beginnings, and the reason. The first that
#: fits counts.
REASONS = (
    (
        r"sort|argsort|msort|topk|kthvalue|median|nanmedian|quantile|top-p|mode",
        "sorts and selections go over memory once for each doubling of their blocks",
    ),
    (
        r"fft|ifft|rfft|irfft|stft|circular convolution",
        "long transforms are two kernels, and half a transform is computed as a whole one",
    ),
    (
        r"attention",
        "float32 has no unit: scores and exponentials go through memory, and keys are read again",
    ),
    (
        r"cholesky|inv|solve|lu_factor|qr|det|slogdet|eigvalsh|svdvals|lstsq|matrix_exp",
        "factorizations: a step waits for the one before, and a thread has a small matrix, or a "
        "group of threads the columns of a large one",
    ),
    (
        r"ig?amma|igammac|mvlgamma|polygamma|special\.|erfinv|lgamma|digamma|i0|pow|cdist of 16",
        "hundreds of operations for each element, in kernels whose operations the floor has not",
    ),
    (
        r"layer_norm, grad|rms_norm, grad|rotary embedding, grad|mv, grad",
        "sums over rows and sums over columns of the same array are kernels of their own, each of "
        "which reads it",
    ),
    (
        r"recurrence of 32 steps, grad",
        "gradients of steps are put together by copies, which are kernels of their own",
    ),
    (
        r"cumsum|cummax|cummin|logcumsumexp|cumprod",
        "scans in parts read their operand twice: once for the totals of parts",
    ),
    (
        r"std|var|masked\.var|batch_norm|group norm|group_norm|instance_norm|argmax of all",
        "what is subtracted is known when all has been read: longer rows than a block has room for "
        "are read twice",
    ),
    (
        r"softmax",
        "rows longer than a block has room for are read again for the quotients",
    ),
    (
        r"put|scatter|index_copy|index_fill|index_add|index_put|index_reduce|embedding, grad"
        r"|gather of rows, grad|gather, rows of 256, grad|index_select, columns, grad|max_unpool2d",
        "stores at run-time places: operands are copied first, and the last store is found by its "
        "number",
    ),
    (
        r"grid_sample|affine_grid|embedding_bag|bucketize|searchsorted|isin|masked_scatter"
        r"|resize, linear|cross$|gather|take",
        "loads at run-time places: each is a sector of its own to the model",
    ),
    (
        r"conv3d 3x3x3 f16|conv_transpose2d 4x4/2 f16",
        "windows of 16-bit images with channels first: rows are copied two bytes at a time",
    ),
    (
        r"conv|depthwise",
        "few channels for a tile of registers: a padded copy of the operand, or little reuse",
    ),
    (
        r"im2col|fold|pad|kron|roll|repeat_interleave|pixel_shuffle|vander|lerp",
        "stores or sums along strides: sums of parts that overlap, elements beside other ones",
    ),
    (
        r"binary_cross_entropy|multi|cosine_embedding|triplet|kl_div|huber|smooth_l1|cross_entropy",
        "losses check their operands, and have a second kernel for the sum of parts",
    ),
    (
        r"max_pool|avg_pool|local_response_norm|adaptive|resize",
        "windows of neighbours are read from caches, which the floor has not",
    ),
    (
        r"mm|addmm|bmm|baddbmm|tall and thin|bilinear|cdist|pdist|product of complex|matrix_power"
        r"|einsum|gelu then linear|swiglu|embeddings, then",
        "products: prologue, epilogue and waves of tiles, or too few rows for a tile of registers",
    ),
)


def reason(name: str) -> str | None:
    """The reason for an operation; None if there is none."""
    return next((text for pattern, text in REASONS if re.match(pattern, name)), None)
