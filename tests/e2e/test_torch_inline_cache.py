"""Calls that are like earlier ones are taken in machine code; whatever differs is seen."""

from __future__ import annotations

import functools
import gc
import operator
import os
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch")

from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from polyblocks_torch import polyblocks_jit_torch  # noqa: E402
from polyblocks_torch.inline_cache import cache, settings  # noqa: E402
from polyblocks_torch.inline_cache.cache import MOST_ENTRIES  # noqa: E402
from polyblocks_torch.inline_cache.guard_tree import GuardTree, Unknown  # noqa: E402
from polyblocks_torch.tracing import cached_calls  # noqa: E402

pytestmark = pytest.mark.cpu

ONES = torch.ones(3, 4)
FACTOR = 2
WEIGHT = torch.full((4,), 2.0)


def is_cached(function, *args, **kwargs):
    """Whether a call does not reach the Python that asks Dynamo's guards."""
    frames = []

    def see(frame, event, arg):
        if event == "call":
            frames.append((frame.f_code.co_filename, frame.f_code.co_name))

    sys.setprofile(see)
    try:
        function(*args, **kwargs)
    finally:
        sys.setprofile(None)
    return (cached_calls.__file__, "call") not in frames


def ready(function, *args):
    """A compiled function that has been called like this before."""
    compiled = polyblocks_jit_torch(function)
    for _ in range(3):
        compiled(*args)
    return compiled


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x: x + 1, (ONES,)),
        (lambda x, y: x + y, (ONES, ONES.clone())),
        (lambda x: x * 2, (torch.tensor(3.0),)),
        (lambda x: x + 1, (torch.zeros(2, 1, 3, 1, 2),)),
        (lambda x: x + 1, (torch.zeros(0, 3),)),
        (lambda x: x.t() + 1, (ONES.t(),)),
        (lambda x, n: x * n, (ONES, 3)),
        (lambda x, n: x if n is None else x + 1, (ONES, "more")),
        (lambda x, kind: x.to(kind) + 1, (ONES, torch.float64)),
        (lambda x: (x + 1, x * 2), (ONES,)),
        (lambda x, y: (y + 1,), (ONES, 3 * ONES)),
        (lambda x, y: y * 2 + x, (ONES, torch.ones(4))),
        (lambda *x: x[0] + x[1], (ONES, 4 * ONES)),
        (lambda x: torch.nn.functional.softplus(x) * FACTOR, (ONES,)),
        (lambda x: x + len("four"), (ONES,)),
        (lambda *x: functools.reduce(operator.add, x), (ONES, 2 * ONES, 3 * ONES)),
        (functools.partial(torch.sum, dim=1), (ONES,)),
        (functools.partial(torch.nn.functional.softshrink), (ONES,)),
        (torch.neg, (ONES,)),
        (torch.trace, (ONES,)),
        (torch.sin, (ONES,)),
    ],
)
def test_calls_are_taken(function, args):
    compiled = ready(function, *args)
    assert is_cached(compiled, *args)
    expected, found = function(*args), compiled(*args)
    assert type(found) is type(expected)
    torch.testing.assert_close(found, expected)


def test_an_argument_is_its_own_result():
    compiled = ready(torch.conj_physical, ONES)
    assert compiled(ONES) is ONES
    assert torch.conj_physical(ONES) is ONES
    assert is_cached(compiled, ONES)
    z = torch.ones(2, dtype=torch.complex64) * 1j
    assert torch.equal(compiled(z), z.conj().resolve_conj())


Z = torch.ones(3, 4) + 0j


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (torch.view_as_real, Z),
        (lambda x: x.view(torch.int32), ONES),
        (lambda x: x.t(), ONES),
        (lambda x: x.real, Z),
        (lambda x: x.conj(), Z),
        (lambda x: (x.t(), x + 1), ONES),
        (lambda x: x[:0], ONES),
        (lambda x: x.chunk(2), ONES),
        (lambda x: (x, x), ONES),
        (lambda x: (lambda y: (y, y.t()))(x + 1), ONES),
        (lambda x: x.detach(), ONES),
        (lambda x: x.contiguous(), ONES),
        (lambda x: x.expand(2, 3, 4), ONES),
        (lambda x: torch.meshgrid(x[0], x[1], indexing="ij"), ONES),
    ],
)
def test_results_share_memory_as_in_eager_mode(function, x):
    def described(results):
        many = results if isinstance(results, (list, tuple)) else [results]
        return [
            (y is x, y._base is x, y._is_view(), y.is_conj(), y.stride(), y.storage_offset(), same)
            for y in many
            for same in [y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()]
        ]

    compiled = polyblocks_jit_torch(function)
    expected = described(function(x))
    for _ in range(4):
        assert described(compiled(x)) == expected


@pytest.mark.parametrize(
    "other",
    [
        ONES.double(),
        torch.ones(4, 3).t(),
        torch.ones(3, 5)[:, :4],
        torch.ones(4, 3),
        torch.ones(12),
        torch.ones(3, 4, requires_grad=True),
        torch.nn.Parameter(torch.ones(3, 4)),
        torch._neg_view(-torch.ones(3, 4)),
        torch.ones(3, 4, dtype=torch.complex64).conj(),
        torch.ones(3, 4).to_sparse(),
        torch.ones(3, 4, device="meta"),
        torch.ones(2, 2, 2, 2, 2, 2),
    ],
)
def test_other_tensors_are_seen(other):
    def plus(x):
        return x + 1

    compiled = ready(plus, ONES)
    if other.is_sparse or other.is_meta:
        with pytest.raises(Exception, match=r"sparse|meta"):
            compiled(other)
    else:
        for _ in range(3):
            found = compiled(other)
            torch.testing.assert_close(found, plus(other))
            assert found.requires_grad == other.requires_grad
    assert torch.equal(compiled(ONES), ONES + 1)


def test_subclasses_are_seen():
    class Named(torch.Tensor):
        pass

    compiled = ready(lambda x: x + 1, ONES)
    assert type(compiled(ONES.as_subclass(Named))) is Named
    x = ONES.clone()
    compiled(x)
    x.__class__ = Named
    assert type(compiled(x)) is Named


def test_tensors_that_changed_are_seen():
    compiled = ready(lambda x: x * 2, ONES)
    x = ONES.clone()
    assert torch.equal(compiled(x), 2 * ONES)
    x.data = torch.full((3, 4), 5.0)
    assert torch.equal(compiled(x), 10 * ONES)
    x.data = torch.ones(2, 2)
    assert torch.equal(compiled(x), torch.full((2, 2), 2.0))
    x.resize_(4, 2).fill_(3)
    assert torch.equal(compiled(x), torch.full((4, 2), 6.0))
    x.requires_grad_()
    assert compiled(x).requires_grad


def test_states_are_seen():
    def plus(x):
        return (x @ x.t()) + torch.ones(3)

    x = ONES.clone()
    compiled = ready(plus, x)
    assert is_cached(compiled, x)
    with torch.no_grad():
        assert torch.equal(compiled(x), plus(x))
    with torch.autocast("cpu", torch.bfloat16):
        assert compiled(x).dtype == plus(x).dtype
    with torch.inference_mode():
        assert compiled(x).is_inference()
        inferred = x.clone()
    assert torch.equal(compiled(inferred), plus(x))
    torch.set_default_dtype(torch.float64)
    try:
        assert compiled(x).dtype == plus(x).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        assert torch.equal(compiled(x), plus(x))
    finally:
        torch.set_num_threads(threads)
    with torch.device("meta"), pytest.raises(Exception, match="meta"):
        compiled(x)
    assert is_cached(compiled, x)


def test_modes_and_transforms_are_seen():
    class Functions(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    class Operations(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    seen = []
    compiled = ready(lambda x: x.sin() + 1, ONES)
    for mode in (Functions, Operations):
        seen.clear()
        with mode():
            assert not is_cached(compiled, ONES)
    batched = torch.vmap(compiled)(ONES)
    torch.testing.assert_close(batched, ONES.sin() + 1)
    with torch.autograd.forward_ad.dual_level():
        x = torch.autograd.forward_ad.make_dual(ONES, ONES)
        y = torch.autograd.forward_ad.unpack_dual(compiled(x))
        torch.testing.assert_close(y.tangent, ONES.cos())


def test_what_is_read_from_outside_is_seen(monkeypatch):
    factor = 2
    function = lambda x: x * factor + FACTOR  # noqa: E731
    compiled = ready(function, ONES)
    assert is_cached(compiled, ONES)
    factor = 3
    assert torch.equal(compiled(ONES), 5 * ONES)
    monkeypatch.setitem(globals(), "FACTOR", 7)
    assert torch.equal(compiled(ONES), 10 * ONES)
    compiled = ready(lambda x: torch.neg(x), ONES)
    assert is_cached(compiled, ONES)
    monkeypatch.setattr(torch, "neg", torch.abs)
    assert torch.equal(compiled(ONES), ONES)


def test_partial_functions_are_seen():
    function = functools.partial(torch.sum, dim=1)
    compiled = ready(function, ONES)
    assert is_cached(compiled, ONES)
    function.keywords["dim"] = 0
    assert torch.equal(compiled(ONES), torch.full((4,), 3.0))
    function.keywords["keepdim"] = True
    assert torch.equal(compiled(ONES), torch.full((1, 4), 3.0))
    function.__setstate__((torch.prod, (), {"dim": 0}, {}))
    assert torch.equal(compiled(ONES), torch.ones(4))
    shared = functools.partial(torch.add, ONES)
    compiled = ready(shared, 3 * ONES)
    assert torch.equal(compiled(3 * ONES), 4 * ONES)


def helper(x):
    return x + 1


def test_code_of_functions_is_seen(monkeypatch):
    compiled = ready(lambda x: helper(x) * 2, ONES)
    assert is_cached(compiled, ONES)
    monkeypatch.setattr(helper, "__code__", (lambda x: x + 3).__code__)
    assert torch.equal(compiled(ONES), 8 * ONES)


def test_what_may_change_has_its_guards_asked():
    settings = [2]
    compiled = ready(lambda x: x * settings[0], ONES)
    assert not is_cached(compiled, ONES)
    settings[0] = 3
    assert torch.equal(compiled(ONES), 3 * ONES)
    compiled = ready(lambda x, n: x * n[0], ONES, [2])
    assert not is_cached(compiled, ONES, [2])
    assert torch.equal(compiled(ONES, [4]), 4 * ONES)
    compiled = ready(lambda x: x * WEIGHT, ONES)
    assert torch.equal(compiled(ONES), 2 * ONES)


def test_a_tensor_that_is_passed_twice():
    def update(x, y):
        x.add_(1)
        return x + y

    compiled = ready(update, ONES.clone(), ONES.clone())
    x, y = ONES.clone(), ONES.clone()
    assert torch.equal(compiled(x, y), 3 * ONES)
    assert torch.equal(x, 2 * ONES)
    assert torch.equal(compiled(x, x), 6 * ONES)
    assert torch.equal(x, 3 * ONES)
    whole = torch.ones(6, 4)
    assert torch.equal(compiled(whole[:3], whole[1:4])[0], torch.full((4,), 4.0))


def test_keywords_and_wrong_arguments():
    compiled = ready(lambda x, y: x - y, 3 * ONES, ONES)
    assert torch.equal(compiled(y=3 * ONES, x=ONES), -2 * ONES)
    assert torch.equal(compiled(ONES, y=3 * ONES), -2 * ONES)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        compiled(ONES)
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
        compiled(ONES, ONES, ONES)


def test_the_last_kinds_of_arguments_are_kept():
    compiled = polyblocks_jit_torch(lambda x: x + 1)
    shapes = [(n,) for n in range(1, MOST_ENTRIES + 4)]
    for shape in shapes * 2:
        assert torch.equal(compiled(torch.ones(shape)), torch.full(shape, 2.0))
    assert is_cached(compiled, torch.ones(shapes[-1]))
    assert is_cached(compiled, torch.ones(shapes[-MOST_ENTRIES]))


def test_changing_numbers_are_given_up():
    compiled = ready(lambda x, n: x + n.bit_length(), ONES, 3)
    for n in range(1000, 1030):
        assert torch.equal(compiled(ONES, n), ONES + n.bit_length())


def test_a_reset_ends_the_entries():
    compiled = ready(lambda x: x + 1, ONES)
    assert is_cached(compiled, ONES)
    torch._dynamo.reset()
    assert not is_cached(compiled, ONES)
    assert torch.equal(compiled(ONES), 2 * ONES)


def test_threads():
    compiled = polyblocks_jit_torch(lambda x: x * 2 + 1)

    def work(first):
        for n in range(200):
            x = torch.full((1 + (first + n) % 11,), float(n))
            assert torch.equal(compiled(x), x * 2 + 1)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


@pytest.mark.isolated
def test_a_fork_goes_on():
    compiled = ready(lambda x: x * 2, ONES)
    child = os.fork()
    if not child:
        os._exit(0 if torch.equal(compiled(ONES), 2 * ONES) and is_cached(compiled, ONES) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_nothing_is_kept_of_a_call():
    compiled = ready(lambda x: x + 1, ONES)
    x = ONES.clone()
    references = sys.getrefcount(x)
    for _ in range(100):
        y = compiled(x)
    assert sys.getrefcount(x) == references
    assert sys.getrefcount(y) == 2
    gone = weakref.ref(x)
    del x
    assert gone() is None


def test_a_function_is_freed():
    def make():
        compiled = ready(lambda x: x + 1, ONES)
        assert is_cached(compiled, ONES)
        return weakref.ref(compiled)

    gone = make()
    torch._dynamo.reset()
    gc.collect()
    assert gone() is None


def test_settings_are_those_of_the_guard():
    """Each setting that Dynamo's guard compares changes what is compared here."""
    torch.set_float32_matmul_precision("highest")
    known = settings.current_settings()
    assert known is not None
    assert known == settings.current_settings()
    changes = [
        (torch.set_grad_enabled, False, True),
        (torch.set_default_dtype, torch.float64, torch.float32),
        (torch.set_num_threads, torch.get_num_threads() + 1, torch.get_num_threads()),
        (torch.use_deterministic_algorithms, True, False),
        (torch.set_autocast_cache_enabled, False, True),
        (torch.set_float32_matmul_precision, "high", "highest"),
    ]
    for change, other, usual in changes:
        change(other)
        try:
            assert settings.current_settings() != known
        finally:
            change(usual)
        assert settings.current_settings() == known
    with torch._C.DisableTorchFunctionSubclass():
        assert settings.current_settings() != known
    with torch.autocast("cpu"):
        assert settings.current_settings() is None


def test_without_known_settings_the_guard_is_asked(monkeypatch):
    monkeypatch.setattr(cache, "current_settings", lambda: None)
    compiled = ready(lambda x: x + 1, ONES)
    assert is_cached(compiled, ONES)
    with torch.no_grad():
        assert not is_cached(compiled, ONES)


def test_without_versions_of_dicts_each_is_asked(monkeypatch):
    monkeypatch.setattr(cache, "version_offset", lambda: 0)
    compiled = ready(lambda x: x * FACTOR, ONES)
    assert is_cached(compiled, ONES)
    monkeypatch.setitem(globals(), "FACTOR", 7)
    assert torch.equal(compiled(ONES), 7 * ONES)


@pytest.mark.parametrize("part", ["get_leaf_guards", "get_epilogue_lambda_guards"])
def test_guards_that_are_not_known_are_asked(part):
    class Strange:
        def get_epilogue_lambda_guards(self):
            return [self] if part == "get_epilogue_lambda_guards" else []

        def get_leaf_guards(self):
            return [self]

        def verbose_code_parts(self):
            return []

    with pytest.raises(Unknown, match=r"Strange|evaluated last"):
        GuardTree(Strange(), helper, (ONES,))
