"""Tensors that are read in machine code: taken or left exactly as Python does."""

from __future__ import annotations

import functools
import gc
import random
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from c_programs import Both, CProgram, weighted  # noqa: E402
from manifest_rows import row  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from polyblocks.codegen.array_layout import Word  # noqa: E402
from polyblocks.runtime.bound_weights import bind_weights  # noqa: E402
from polyblocks.runtime.foreign.foreign_arrays import by_framework  # noqa: E402
from polyblocks.runtime.launch import bind  # noqa: E402
from polyblocks.runtime.numpy_arrays import NumpyArrays  # noqa: E402
from polyblocks.runtime.slots import WEIGHT_NAMES  # noqa: E402
from polyblocks_torch.launch import native_reader, tensor_layout  # noqa: E402
from polyblocks_torch.launch.arrays import TorchArrays  # noqa: E402
from polyblocks_torch.specs import TORCH_DTYPES  # noqa: E402

pytestmark = pytest.mark.cpu


@pytest.fixture(autouse=True, params=["machine code", "generated Python"])
def generated(request, monkeypatch):
    """Both ways to be fast."""
    monkeypatch.setattr(Both, "generated", request.param != "machine code")
    return Both.generated


class Counting(TorchArrays):
    described = 0

    def describe(self, array: torch.Tensor) -> Any:
        self.described += 1
        return super().describe(array)


def ones(*shape: int) -> torch.Tensor:
    return torch.ones(shape or (2, 3))


def copy(x: Any, out: Any) -> None:
    out[...] = x


def increase(x: Any, out: Any) -> None:
    out += 1


def copier(dtype: str = "float32", updated: bool = False, **more: Any) -> CProgram:
    rows = [row("input", "x", dtype=dtype, **more), row("output", "out", dtype=dtype, **more)]
    if updated:
        rows[1]["updates"] = 0
        return CProgram(rows, increase)
    return CProgram(rows, copy)


def both(program: CProgram, *good: Any, **settings: Any) -> Both:
    return Both(program, Counting(), good, **settings)


def test_this_pytorch_has_a_reader():
    assert native_reader.reader() is not None


def test_the_host_is_meant_wherever_pytorch_makes_tensors():
    x = ones()
    native_reader.reader.cache_clear()
    try:
        with torch.device("meta"):
            made = both(copier(), x)
            assert made.is_fast(x)
            assert torch.equal(made.fast(x).cpu(), x)
            assert len(made.outcome("fast", ones())) == 2, "an error"
    finally:
        native_reader.reader.cache_clear()


@pytest.mark.parametrize("dtype", TORCH_DTYPES)
def test_every_dtype(dtype):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    x = torch.tensor([[1, 0, 1], [0, 1, 1]]).to(TORCH_DTYPES[dtype])
    made = both(copier(dtype), x)
    assert made.is_fast(x)
    assert torch.equal(made.fast(x), x)
    assert made.fast(x).dtype == x.dtype


def test_random_layouts():
    chance = random.Random(5)
    for _ in range(60):
        shape = tuple(chance.choice((0, 1, 1, 2, 3, 5)) for _ in range(chance.randrange(7)))
        strides, step = [0] * len(shape), chance.choice((1, 2))
        for d in sorted(range(len(shape)), key=lambda _: chance.random()):
            strides[d] = step
            step *= max(shape[d], 1) + chance.choice((0, 0, 1))
        x = torch.empty_strided(shape, strides).copy_(torch.randn(shape))
        made = both(copier(shape=shape, strides=strides), x)
        assert made.is_fast(x)
        assert made.outcome("fast", x) == made.outcome("slow", x)
        y = x.contiguous()
        assert made.outcome("fast", y) == made.outcome("slow", y)


def test_views_at_an_offset_and_parameters():
    made = both(copier(), ones())
    for x in (torch.arange(20.0)[7:13].view(2, 3), torch.nn.Parameter(ones())):
        for _ in range(2 * Both.generated):  # which knows each class for itself
            made.fast(x)
        assert made.is_fast(x)
        assert torch.equal(made.fast(x), x)
        assert not made.fast(x).requires_grad


class Derived(torch.Tensor):
    pass


def complex_view(make: Any) -> torch.Tensor:
    return make(torch.randn(2, 3, dtype=torch.complex64))


def freed() -> torch.Tensor:
    return freed_behind(ones())


def freed_behind(view: torch.Tensor) -> torch.Tensor:
    view.untyped_storage().resize_(0)
    return view


def fake() -> torch.Tensor:
    with FakeTensorMode():
        return torch.empty(2, 3)


def escaped(transform: Any) -> torch.Tensor:
    """A wrapper of a transform that is over."""
    kept: list[torch.Tensor] = []

    def f(x: torch.Tensor) -> torch.Tensor:
        kept.append(x)
        return x.sum()

    transform(f)(ones())
    return kept[0]


OTHERS: dict[str, Any] = {
    "rank": lambda: ones(6),
    "shape": lambda: ones(3, 2),
    "strides": lambda: ones(3, 2).t(),
    "expanded": lambda: ones(1, 3).expand(2, 3),
    "dtype": lambda: ones().double(),
    "same size": lambda: ones().int(),
    "unsigned": lambda: torch.ones(2, 3, dtype=torch.uint16),
    "negated": lambda: torch._neg_view(ones()),
    "imaginary part of a conjugate": lambda: complex_view(lambda z: z.conj().imag),
    "sparse": lambda: ones().to_sparse(),
    "compressed": lambda: ones().to_sparse_csr(),
    "blocked": lambda: ones().to_mkldnn(),
    "meta": lambda: ones().to("meta"),
    "fake": fake,
    "zero": lambda: torch._efficientzerotensor(2, 3),
    "freed": freed,
    "view of zero": lambda: torch._efficientzerotensor(4, 3)[2:],
    "view of freed": lambda: freed_behind(ones(4, 3)[2:]),
    "subclass": lambda: ones().as_subclass(Derived),
    "masked": lambda: torch.masked.masked_tensor(ones(), ones() > 0),
    "nested": lambda: torch.nested.nested_tensor([ones(3), ones(3)]),
    "of vmap": lambda: escaped(lambda f: torch.func.vmap(lambda x: f(x.expand(2, 3)))),
    "of grad": lambda: escaped(torch.func.grad),
    "requires grad": lambda: ones().requires_grad_(),
    "recorded": lambda: ones().requires_grad_() * 1,
    "view of a leaf": lambda: ones().requires_grad_().view(2, 3),
    "numpy": lambda: np.ones((2, 3), np.float32),
    "list": lambda: [[1.0] * 3] * 2,
    "none": lambda: None,
    "number": lambda: 1.0,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("updated", [False, True])
@pytest.mark.parametrize("case", OTHERS)
def test_other_arrays_get_what_python_says(case, updated):
    made = both(copier(updated=updated), ones())
    outcomes = []
    for which in ("slow", "fast"):
        x = OTHERS[case]()
        # A mask and a wrapper that is over have no contents that NumPy takes.
        outcomes.append(made.outcome(which, x))
        if case in ("imaginary part of a conjugate", "fake", "meta"):
            assert len(outcomes[-1]) == 2, "an error"
    assert outcomes[0] == outcomes[1]


def test_lazy_conjugates():
    made = both(copier("complex64"), torch.ones(2, 3, dtype=torch.complex64))
    z = torch.randn(2, 3, dtype=torch.complex64)
    assert made.is_fast(z)
    assert made.is_fast(z.conj().resolve_conj())
    for x in (z.conj(), torch._neg_view(z), torch._neg_view(z).conj()):
        assert made.outcome("fast", x) == made.outcome("slow", x)
        assert "lazy conjugate or negation" in made.outcome("fast", x)[1]


def test_updates_without_gradients():
    made = both(copier(updated=True), ones())
    x = ones().requires_grad_()
    assert "cannot be written" in made.outcome("fast", x)[1]
    with torch.no_grad():
        assert made.is_fast(x)
    assert (x == 2).all()
    y = x.detach()
    assert made.is_fast(y)
    assert (x == 3).all()


def test_inference_tensors():
    made = both(copier(), ones())
    with torch.inference_mode():
        x = ones()
        assert made.is_fast(x)
        assert made.fast(x).is_inference()
    assert made.is_fast(x)
    assert not made.fast(x).is_inference()


# --- bound weights -------------------------------------------------------------------------------


def product(x: Any, w: Any, v: Any, out: Any, updated: Any = None) -> None:
    out[...] = x * w + v
    if updated is not None:
        updated += 1


def with_weights(program: CProgram, *weights: torch.Tensor) -> Both:
    held = bind_weights(program.manifest, {}, list(weights), lambda array: TorchArrays())
    return both(program, ones(), weights=held)


def weight(value: float) -> torch.Tensor:
    return torch.nn.Parameter(value * ones())


def test_weights_that_change_or_move():
    w, v = weight(2), weight(3)
    made = with_weights(weighted(product), w, v)
    assert made.is_fast(ones())
    assert (made.fast(5 * ones()) == 13).all()
    with torch.no_grad():
        v.add_(1)
        assert (made.fast(5 * ones()) == 14).all()
    v.data = 5 * ones()
    assert Both.generated or not made.is_fast(ones())  # Python binds it anew
    assert made.is_fast(ones())
    assert (made.fast(5 * ones()) == 15).all()
    other = weight(7)
    torch.utils.swap_tensors(v, other)
    assert (made.fast(5 * ones()) == 17).all()
    with torch.no_grad():
        v.set_(9 * ones())
    assert (made.fast(5 * ones()) == 19).all()


@pytest.mark.parametrize(
    "moved",
    [
        lambda: ones(3, 2),
        lambda: ones(3, 2).t(),
        lambda: torch._neg_view(ones()),
        lambda: torch._efficientzerotensor(2, 3),
        freed,
        lambda: torch._efficientzerotensor(4, 3)[2:],
        lambda: freed_behind(ones(4, 3)[2:]),
        lambda: ones().double(),
    ],
)
def test_weights_that_do_not_fit_any_more(moved):
    outcomes = []
    for which in ("slow", "fast"):
        w, v = weight(2).detach(), weight(3).detach()
        made = with_weights(weighted(product), w, v)
        made.fast(ones())
        other = moved()
        w.data = other
        outcomes.append(made.outcome(which, ones()))
        w.data = 4 * ones()
        assert (made.fast(ones()) == 7).all()
    assert outcomes[0] == outcomes[1]
    assert "weight 'w' of f" in outcomes[0][1]


def test_weights_that_are_updated():
    w, v = weight(2), weight(3)
    program = weighted(product, updated=True)
    with torch.no_grad():
        made = with_weights(program, w, v)
        assert made.is_fast(ones())
    assert made.outcome("fast", ones()) == made.outcome("slow", ones())
    assert "cannot be written" in made.outcome("fast", ones())[1]
    with torch.no_grad():
        assert made.is_fast(ones())


def test_weights_of_another_framework():
    program = weighted(product)
    arrays = [np.full((2, 3), 2, np.float32), np.full((2, 3), 3, np.float32)]
    held = bind_weights(program.manifest, {}, arrays, lambda array: NumpyArrays())
    made = both(program, ones(), weights=held)
    assert (made.fast(ones()) == 5).all()
    assert made.is_fast(ones())
    arrays[1] += 1
    assert (made.fast(ones()) == 6).all()


def test_weights_of_two_frameworks_need_python():
    program = weighted(product)
    arrays = [np.full((2, 3), 2, np.float32), torch.full((2, 3), 3.0)]
    held = bind_weights(
        program.manifest,
        {},
        arrays,
        lambda array: NumpyArrays() if isinstance(array, np.ndarray) else TorchArrays(),
    )
    made = both(program, ones(), weights=held)
    assert (made.fast(ones()) == 5).all()
    assert not made.is_native


@pytest.mark.parametrize("which", ["fast", "slow"])
def test_weights_that_are_bound_anew_during_a_call_stay_until_it_ends(which):
    """Another thread gives a weight other memory, and calls, while a call reads the old one."""

    def body(x: Any, w: Any, v: Any, out: Any) -> None:
        if watched and not freed:
            freed.append(False)
            w_parameter.data = 7 * ones()
            other = threading.Thread(target=getattr(made, which), args=(ones(),))
            other.start()
            other.join()
            gc.collect()
            freed[0] = watched[0]() is None
        out[...] = x * w + v

    watched: list[Any] = []
    freed: list[bool] = []
    memory = np.full((2, 3), 2, np.float32)
    w_parameter = torch.nn.Parameter(torch.from_numpy(memory))
    made = with_weights(weighted(body), w_parameter, weight(3))
    assert (getattr(made, which)(ones()) == 5).all()
    watched.append(weakref.ref(memory))
    del memory
    assert (getattr(made, which)(ones()) == 5).all()
    assert freed == [False]
    assert (getattr(made, which)(ones()) == 10).all()
    gc.collect()
    assert watched[0]() is None


@pytest.fixture(params=["guards", "functions"])
def looked_at(request, monkeypatch):
    """How machine code looks at weights: itself, or with functions of PyTorch."""
    native_reader.reader.cache_clear()
    if request.param == "functions":
        monkeypatch.setattr(tensor_layout, "layout", lambda: None)
    yield request.param
    native_reader.reader.cache_clear()


def watched_weights(*arrays: torch.Tensor) -> Any:
    """What weights were read with, of which machine code tells whether they stay."""
    rows = [
        row("input", f"w{k}", tuple(each.shape), strides=each.stride())
        for k, each in enumerate(arrays)
    ]
    names = [[f"w{k}"] for k in range(len(arrays))]
    program = CProgram([*rows, row("output", "out")], **{WEIGHT_NAMES: names})
    held = bind_weights(program.manifest, {}, list(arrays), lambda array: TorchArrays())
    readings = [held.read() for _ in range(3)]
    assert readings[-1].stays()
    return readings[-1]


@pytest.mark.parametrize("change", range(len(tensor_layout.CHANGES)))
@pytest.mark.parametrize("kind", [torch.Tensor, torch.nn.Parameter])
def test_every_change_of_a_weight_is_seen(change, kind, looked_at):
    tensor = torch.ones(4, 4)
    if kind is torch.nn.Parameter:
        tensor = torch.nn.Parameter(tensor)
    reading = watched_weights(torch.ones(3), tensor, torch.ones(2, 4, 4)[1])
    assert bool(reading.guard) == (looked_at == "guards")
    with torch.no_grad():
        tensor.add_(1)
        tensor.grad = torch.ones(4, 4)
        assert tensor.untyped_storage().nbytes() == 64
        assert reading.stays()
        try:
            tensor_layout.CHANGES[change](tensor)
        except RuntimeError:  # PyTorch does not allow it
            assert reading.stays()
        else:
            assert not reading.stays()


def test_other_ways_to_get_other_memory(looked_at):
    module = torch.nn.Linear(4, 4)
    for change in (
        lambda: module.share_memory(),
        lambda: module.double(),
        lambda: module.load_state_dict(torch.nn.Linear(4, 4).state_dict()),
        lambda: torch.nn.utils.vector_to_parameters(torch.ones(20), module.parameters()),
        lambda: module.to_empty(device="cpu"),
    ):
        module.float()
        reading = watched_weights(*module.parameters())
        before = [each.data_ptr() for each in module.parameters()]
        change()
        same = before == [each.data_ptr() for each in module.parameters()]
        assert reading.stays() == same
    assert not same


def test_weights_of_large_rank_are_looked_at_with_functions(looked_at):
    small, large = torch.ones(4), torch.ones(1, 2, 1, 3, 1, 2)
    for changed in (small, large):
        reading = watched_weights(small, large)
        assert reading.unmoved
        changed.data = changed.data.clone()
        assert not reading.stays()


def test_weights_in_random_layouts():
    chance = random.Random(5)
    for _ in range(40):
        arrays = []
        for _ in range(chance.randrange(1, 9)):
            shape = [chance.choice((1, 2, 3)) for _ in range(chance.randrange(7))]
            made = torch.ones(7, *shape)[chance.randrange(7)]
            arrays.append(made.permute(chance.sample(range(len(shape)), len(shape))))
        reading = watched_weights(*arrays)
        assert reading.stays()
        changed = chance.choice(arrays)
        changed.data = changed.data.clone()
        assert not reading.stays()


def test_layouts_that_are_not_known(monkeypatch):
    unknown = tensor_layout.layout.__wrapped__
    assert unknown() is not None
    with monkeypatch.context() as patch:
        patch.setattr(tensor_layout, "_OBJECT_BYTES", 64)
        assert unknown() is None
    with monkeypatch.context() as patch:
        patch.setattr(tensor_layout, "_TENSOR", Word(0, 24))
        assert unknown() is None
    monkeypatch.setattr(tensor_layout, "CHANGES", [lambda tensor: None])
    assert unknown() is None


def test_the_layout_is_found_whatever_mode_is_on():
    unknown = tensor_layout.layout.__wrapped__
    known = unknown()
    with torch.device("meta"):
        assert unknown() == known
    with FakeTensorMode():
        assert unknown() == known
    with torch.inference_mode():
        assert unknown() == known


# --- while something watches ---------------------------------------------------------------------


class Watching(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.seen.append(str(function))
        return function(*args, **(kwargs or {}))


def test_modes_see_what_they_see_of_python():
    made = both(copier(), ones())
    x = ones()
    seen = []
    for which in (made.slow, made.fast):
        with Watching() as mode:
            which(x)
        seen.append(mode.seen)
    assert seen[0] == seen[1] != []
    assert made.is_fast(x)


def _twice(which: Any, x: torch.Tensor) -> torch.Tensor:
    return which(x) * 2


def test_fake_modes_and_traces_get_what_python_says():
    made = both(copier(), ones())
    x = ones()
    with FakeTensorMode(allow_non_fake_inputs=True):
        outcomes = [made.outcome(which, x) for which in ("slow", "fast")]
    assert outcomes[0] == outcomes[1]
    graphs = []
    for which in (made.slow, made.fast):
        traced = make_fx(functools.partial(_twice, which))(x)
        graphs.append([node.target for node in traced.graph.nodes])
    assert graphs[0] == graphs[1]
    with torch.device("meta"):  # a mode of functions, which changes where new tensors are
        assert made.is_fast(x)
        assert made.fast(x).device.type == "cpu"


def test_transforms_get_what_python_says():
    made = both(copier(), ones())
    given = ones()
    for transform in (torch.func.vmap, torch.func.grad, torch.func.functionalize):
        outcomes = []
        for which in ("slow", "fast"):
            found: list[Any] = []

            def f(x: torch.Tensor, which: str = which, found: list[Any] = found) -> torch.Tensor:
                for each in (x, given):
                    try:
                        found.append(type(getattr(made, which)(each)))
                    except Exception as error:
                        found.append((type(error), str(error)))
                return x.sum()

            transform(f)(ones(4, 2, 3) if transform is torch.func.vmap else ones())
            outcomes.append(found)
        assert outcomes[0] == outcomes[1]
    assert made.is_fast(ones())


def test_compiled_functions_around_it():
    made = both(copier(), ones())
    torch._dynamo.reset()
    around = torch.compile(lambda x: made.fast(x + 1) * 2, backend="eager")
    with torch.no_grad():
        assert torch.equal(around(ones()), 4 * ones())


# --- settings, memory ----------------------------------------------------------------------------


def test_number_of_threads_is_asked_at_each_call():
    program = copier()
    made = both(program, ones())
    before = torch.get_num_threads()
    try:
        for count in (1, 2, 1):
            torch.set_num_threads(count)
            assert made.is_fast(ones())
            made.slow(ones())
            assert program.thread_counts[-1] == program.thread_counts[-2]
    finally:
        torch.set_num_threads(before)


def test_large_results_are_on_pooled_memory():
    size = 1 << 18
    made = both(copier(shape=(size,)), ones(size))
    address = made.fast(ones(size)).data_ptr()
    assert made.fast(ones(size)).data_ptr() == address


@pytest.mark.extended
def test_references_are_kept_in_balance():
    made = both(copier(), ones())
    x, z = ones(), ones(4)
    gc.collect()
    before = [sys.getrefcount(each) for each in (x, z)]
    # In a list: of a local variable Python 3.14 sometimes holds a reference less.
    arrays = [ones(), ones()]
    for k in range(20_000):
        arrays[0] = made.fast(x)
        if k % 100 == 0:
            made.outcome("fast", z)
    assert sys.getrefcount(arrays[0]) == sys.getrefcount(arrays[1])
    assert [sys.getrefcount(each) for each in (x, z)] == before


def test_the_first_array_chooses_the_framework():
    program = copier()
    call = by_framework(lambda interface: bind(program, interface), program)
    x = np.ones((2, 3), np.float32)
    for _ in range(4):
        assert type(call(x)) is np.ndarray
        assert type(call(ones())) is torch.Tensor
        assert type(call(torch.nn.Parameter(ones()))) is torch.Tensor


def test_another_pytorch_is_left_to_python(monkeypatch):
    native_reader.reader.cache_clear()
    monkeypatch.setattr(native_reader, "_HEAD", 24)
    try:
        assert native_reader.reader() is None
        made = both(copier(), ones())
        assert not made.is_native
    finally:
        native_reader.reader.cache_clear()


@pytest.mark.parametrize("field", ["is_neg", "get_data"])
def test_functions_that_are_gone_are_left_to_python(monkeypatch, field):
    native_reader.reader.cache_clear()
    monkeypatch.setitem(native_reader._FUNCTIONS, field, ("torch_cpu", "of_another_release"))
    try:
        assert native_reader.reader() is None
    finally:
        native_reader.reader.cache_clear()
