"""Operations to hold against eager mode: of every type, with the numbers at which they differ."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from eager_graphs import NothingToRun, can_be_imported, difference
from torch import Tensor
from torch.testing._internal import common_utils
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten

# It looks for a test case of PyTorch's among the callers, of which there is none here: a second for
# each entry where many modules are loaded.
common_utils.extract_test_fn = lambda: None

DTYPES = (
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64),
)

_FLOATS = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.0, -3.0, 7.25, 20.0, -20.0, 100.0),
    *(-100.0, 300.0, 1e-6, -1e-6, 0.3, -0.3, 0.9999, torch.inf, -torch.inf, torch.nan),
)
_INTEGERS = (
    *(0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100, 127, 128, 200, 255),
    *(-1, -2, -3, -7, -100, -128),
)
_COMPLEX = (0.0, -0.0, 1.0, -2.5, 300.0, 1e-6)

#: What stands for arguments that are no tensors, by their type in the schema.
_NUMBERS: dict[str, tuple[Any, ...]] = {
    "number": (True, -1, 0, 2.5, 100, 3, -0.0, torch.nan, 0.3, 1e-6, torch.inf, 7, 31, 64),
    "int": (0, 1, -1, 3),
    "float": (0.0, 1.0, -1.5, 0.3, torch.nan),
    "bool": (True, False),
}
_NAMED: dict[str, tuple[Any, ...]] = {
    "alpha": (1, 2),
    "rounding_mode": ("floor", "trunc", None),
    "approximate": ("none", "tanh"),
    "dtype": (torch.float32,),
}

#: Eager mode divides the least integer by -1, at which the process dies.
_DIVIDES = frozenset(
    "div divide divide_ floor_divide fmod remainder gcd lcm true_divide floor".split()
)


#: Their operands are made with one type.
_OF_ONE_TYPE = frozenset({"fma"})

#: At their poles eager mode gives some large number, ours is infinite; masks are booleans; booleans
#: that are shifted are refused by PyTorch's own rules for traced programs.
_OMITTED = frozenset("__lshift__ __rshift__ mvlgamma native_dropout_backward polygamma".split())


@dataclass(frozen=True)
class Case:
    """One call of an operation."""

    func: torch._ops.OpOverload
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def outcome(self) -> str | None:
        """How what is imported differs; None if nothing is compared, or eager mode refuses it."""
        try:
            self.func(*self.args, **self.kwargs)
        except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
            return None
        try:
            return difference(self.func, self.args, self.kwargs)
        except NothingToRun:
            return None
        except Exception as error:
            return f"raised {type(error).__name__}: {error}"[:300]

    def is_small(self) -> bool:
        """Whether no dimension is so long that sorting it by comparisons takes a second."""
        tensors = (t for t in pytree.tree_leaves((self.args, self.kwargs)) if isinstance(t, Tensor))
        return all(max(t.shape, default=0) <= 1000 for t in tensors)

    def __str__(self) -> str:
        def short(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"

        args, kwargs = pytree.tree_map(short, (self.args, self.kwargs))
        named = [f"{name}={value}" for name, value in kwargs.items()]
        return f"{self.func}({', '.join([*map(str, args), *named])})"


def values(dtype: torch.dtype, *, limits: bool = True) -> Tensor:
    """Numbers of a type.

    Args:
        dtype: the type.
        limits: whether the greatest and the least ones are among them.
    """
    if dtype == torch.bool:
        return torch.tensor([False, True])
    if dtype.is_complex:
        return torch.tensor([complex(a, b) for a in _COMPLEX for b in _COMPLEX], dtype=dtype)
    if dtype.is_floating_point:
        largest = torch.finfo(dtype).max
        extreme = (largest, -largest) if limits else ()
        return torch.tensor((*_FLOATS, *extreme), dtype=torch.float64).to(dtype)
    least, greatest = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    numbers = {*_INTEGERS, greatest, greatest - 1, *((least, least + 1) if limits else ())}
    return torch.tensor(sorted(n for n in numbers if least <= n <= greatest), dtype=dtype)


def elementwise(table: Any) -> list[torch._ops.OpOverload]:
    """The operations of a table that compute one number from each, in the order of their names."""
    return sorted(
        (
            op
            for op in table
            if isinstance(op, torch._ops.OpOverload)
            and torch.Tag.pointwise in op.tags
            and can_be_imported(op, (), {})
            and op.overloadpacket.__name__ not in _OMITTED
            and not any("Generator" in str(a.type) for a in op._schema.arguments)
        ),
        key=str,
    )


def cases_of(op: torch._ops.OpOverload, draw: random.Random, most: int) -> Iterator[Case]:
    """Calls of an element-wise operation on all values of types, of 0-d tensors too.

    Args:
        op: the operation.
        draw: what is left out if there are too many.
        most: how many, at most.
    """
    name = op.overloadpacket.__name__
    arguments = [a for a in op._schema.arguments if _is_varied(a)]
    count = sum(_kind(a) == "Tensor" for a in arguments)
    choices = [_choices(a) for a in arguments]
    if not 0 < count <= 3 or any(c is None for c in choices):
        return
    dtypes = list(itertools.product(DTYPES, repeat=count))
    if name in _OF_ONE_TYPE or name.endswith("_backward"):
        dtypes = [(dtype,) * count for dtype in DTYPES]
    made = list(itertools.product(dtypes, (False, True)[:count], itertools.product(*choices)))  # type: ignore[arg-type]
    for kinds, scalar, chosen in draw.sample(made, min(most, len(made))):
        limits = count < 3 and name not in _DIVIDES and not name.endswith("_backward")
        tensors = _grid([values(kind, limits=limits) for kind in kinds])
        if scalar:
            last = tensors[-1].reshape(-1)
            tensors[-1] = last[draw.randrange(len(last))].clone()
        left = iter(tensors)
        given = [next(left) if c is _TENSOR else c for c in chosen]
        named = {a.name: v for a, v in zip(arguments, given, strict=True) if a.kwarg_only}
        yield Case(op, tuple(given[: len(given) - len(named)]), named)


_TENSOR = object()


def _is_varied(argument: Any) -> bool:
    if not argument.has_default_value():
        return True
    return not argument.kwarg_only and _kind(argument) in ("number", "Tensor")


def _kind(argument: Any) -> str:
    return str(argument.type).removeprefix("Optional[").removesuffix("]")


def _choices(argument: Any) -> Sequence[Any] | None:
    if _kind(argument) == "Tensor":
        return (_TENSOR,)
    return _NAMED.get(argument.name) or _NUMBERS.get(_kind(argument))


def _grid(vectors: list[Tensor]) -> list[Tensor]:
    """All pairs of the elements of two vectors; of three, some triples."""
    if len(vectors) < 3:
        shapes = [[-1 if i == k else 1 for i in range(len(vectors))] for k in range(len(vectors))]
        whole = [len(v) for v in vectors]
        return [
            v.reshape(s).expand(whole).contiguous() for v, s in zip(vectors, shapes, strict=True)
        ]
    generator = torch.Generator().manual_seed(1)
    return [v[torch.randint(len(v), (499,), generator=generator)] for v in vectors]


class _Record(TorchDispatchMode):
    """While active, collects the operations that run, with their operands."""

    def __init__(self) -> None:
        super().__init__()
        self.cases: list[Case] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if can_be_imported(func, args, kwargs):
            self.cases.append(Case(func, args, kwargs))
        return func(*args, **kwargs)


def recorded(
    dtype: torch.dtype, count: int, *, gradients: bool = False, part: tuple[int, int] = (0, 1)
) -> Iterator[Case]:
    """The operations that PyTorch's database of samples comes down to, each kind of call once.

    Args:
        dtype: of the samples.
        count: of samples of an entry.
        gradients: whether their gradients are computed as well.
        part: (k, n): every n-th entry from the k-th on.
    """
    seen = set()
    for entry in op_db[part[0] :: part[1]]:
        if dtype not in entry.dtypes or entry.name in _NOT_RUN:
            continue
        torch.manual_seed(0)
        try:
            samples = itertools.islice(
                entry.sample_inputs("cpu", dtype, requires_grad=gradients), count
            )
            found = [case for sample in samples for case in _run(entry, sample, gradients)]
        except Exception:  # an entry may claim a type that it has no samples of
            continue
        for case in found:
            omitted = case.func.overloadpacket.__name__ in _OMITTED
            if str(case) not in seen and not omitted and case.is_small():
                seen.add(str(case))
                yield case


#: Entries whose samples have millions of numbers, or that write where they should not.
_NOT_RUN = frozenset({"nn.functional.ctc_loss", "ormqr", "linalg.lstsq"})


def _run(entry: Any, sample: Any, gradients: bool) -> list[Case]:
    try:
        with _Record() as record:
            results = entry.op(sample.input, *sample.args, **sample.kwargs)
            if gradients:
                _differentiate(results, (sample.input, sample.args, sample.kwargs))
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
        return []

    def detached(value: Any) -> Any:
        return value.detach() if isinstance(value, Tensor) else value

    return [Case(c.func, *pytree.tree_map(detached, (c.args, c.kwargs))) for c in record.cases]


def _differentiate(results: Any, operands: Any) -> None:
    outputs, inputs = (
        [t for t in pytree.tree_leaves(tree) if isinstance(t, Tensor) and t.requires_grad]
        for tree in (results, operands)
    )
    if outputs and inputs:
        seeds = [torch.randn_like(output) for output in outputs]
        torch.autograd.grad(outputs, inputs, seeds, allow_unused=True)


def changed(case: Case, dtype: torch.dtype, share: float) -> Case:
    """A call with another type in the place of its floating-point numbers, and special ones.

    What is searched in stays sorted: those are left as they are.

    Args:
        case: the call.
        dtype: the type.
        share: of the elements that become 0, NaN, infinities, or the limits of integers.
    """
    if case.func.overloadpacket.__name__ in ("bucketize", "searchsorted"):
        return case
    generator = torch.Generator().manual_seed(3)
    special = _SPECIAL
    divides = case.func.overloadpacket.__name__ in _DIVIDES
    if case.func.overloadpacket.__name__.removeprefix("_").startswith(("upsample_", "fft_")):
        # Infinities cancel in some orders of the terms only.
        special = special[special.isfinite() | special.isnan()]

    def change(value: Any) -> Any:
        if not isinstance(value, Tensor) or not value.is_floating_point():
            return value
        value = value.to(dtype) if dtype.is_floating_point else (value * 3).to(dtype)
        numbers = special if dtype.is_floating_point else values(dtype, limits=not divides)
        if dtype == torch.bool or not value.numel():
            return value
        chosen = torch.rand(value.shape, generator=generator) < share
        places = torch.randint(len(numbers), value.shape, generator=generator)
        return torch.where(chosen, numbers.to(dtype)[places], value)

    return Case(case.func, *pytree.tree_map(change, (case.args, case.kwargs)))


_SPECIAL = torch.tensor([0.0, -0.0, torch.nan, torch.inf, -torch.inf, 1.0, -1.0, 1e-6])
