"""Calls whose guards are asked without Dynamo evaluating frames: results are those of others."""

from __future__ import annotations

import gc
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch")

from torch._dynamo.utils import counters  # noqa: E402

from polyblocks.errors import ExecutionError, InputError  # noqa: E402
from polyblocks_torch import polyblocks_jit_torch  # noqa: E402

pytestmark = pytest.mark.cpu

ONES = torch.ones(3, 4)
WEIGHT = torch.full((4,), 2.0)

CALLED = 3
"""Calls after which machine code is made: one compiles, one finds the code, one uses it."""


def repeated(function, *args, **kwargs):
    """The result of a call that was made before."""
    for _ in range(CALLED):
        result = function(*args, **kwargs)
    return result


def builtins_called(function, *args):
    """Names of the functions in C that a call runs."""
    names = []

    def see(frame, event, arg):
        if event == "c_call":
            names.append(arg.__name__)

    sys.setprofile(see)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return names


def is_direct(function, *args):
    """Whether machine code alone runs the program, behind the guards."""
    names = builtins_called(function, *args)
    return function.__name__ in names and "set_eval_frame" not in names


def scaled(x, y):
    return x * 2 + y


def test_guards_are_followed_by_machine_code():
    compiled = polyblocks_jit_torch(scaled)
    assert torch.equal(repeated(compiled, ONES, ONES), 3 * ONES)
    assert is_direct(compiled, ONES, ONES)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x, y=WEIGHT: x + y, (ONES, ONES)),
        (lambda *xs: xs[0] - xs[1], (ONES, 3 * ONES)),
        (lambda x, *xs, **more: x + sum(xs) + len(more), (ONES, ONES, ONES)),
        (lambda x: x @ WEIGHT, (ONES,)),
        (lambda x, k: x * k, (ONES, 5)),
        (lambda d: {"b": d["a"] + 1, "a": (d["b"], d["a"] * 2)}, ({"a": ONES, "b": 2 * ONES},)),
        (lambda x: (x + 1, x - 1, x), (ONES,)),
        (lambda x: [x + 1], (ONES,)),
        (lambda x: [[y + 1 for y in x.unbind()], x * x][1], (ONES,)),
        (torch.sqrt, (ONES,)),
        (torch.sort, (ONES,)),
        (lambda x: {"a": x.max(0), "b": [x.cumsum(1).topk(2), x.mean()]}, (ONES,)),
    ],
)
def test_arguments_of_all_kinds(function, args):
    compiled = polyblocks_jit_torch(function)
    expected = function(*args)
    for _ in range(CALLED + 1):
        result = compiled(*args)
        torch.testing.assert_close(result, expected, rtol=0, atol=0)
        assert type(result) is type(expected)
    names = builtins_called(compiled, *args)
    assert "set_eval_frame" not in names


def test_keywords_are_arguments_like_others():
    compiled = polyblocks_jit_torch(scaled)
    for _ in range(CALLED):
        assert torch.equal(compiled(y=ONES, x=2 * ONES), 5 * ONES)
        assert torch.equal(compiled(2 * ONES, y=ONES), 5 * ONES)
    names = builtins_called(lambda: compiled(y=ONES, x=2 * ONES))
    assert "scaled" in names
    assert "set_eval_frame" not in names
    for wrong in ({"z": ONES}, {"x": ONES}, {"y": ONES, "z": ONES}):
        with pytest.raises(TypeError, match="argument"):
            compiled(ONES, **wrong)
    unnamed = polyblocks_jit_torch(lambda x, /, y: x - y)
    assert torch.equal(repeated(unnamed, ONES, ONES), 0 * ONES)
    assert torch.equal(repeated(unnamed, ONES, y=ONES), 0 * ONES)
    with pytest.raises(TypeError, match="positional-only"):
        unnamed(x=ONES, y=ONES)
    mapped = polyblocks_jit_torch(lambda x, **more: x + more["a"] * more["b"])
    for _ in range(CALLED):
        assert torch.equal(mapped(ONES, b=2 * ONES, a=ONES), 3 * ONES)
        assert torch.equal(mapped(ONES, a=ONES, b=3 * ONES), 4 * ONES)
    assert "set_eval_frame" not in builtins_called(lambda: mapped(ONES, a=ONES, b=3 * ONES))
    with pytest.raises(KeyError, match="a"):
        mapped(ONES, b=ONES)


def test_defaults_go_to_dynamo():
    compiled = polyblocks_jit_torch(lambda x, y=WEIGHT: x + y)
    for _ in range(CALLED):
        assert torch.equal(compiled(ONES), 3 * ONES)
        assert torch.equal(compiled(ONES, y=ONES), 2 * ONES)
        assert torch.equal(compiled(ONES, ONES), 2 * ONES)
        assert torch.equal(compiled(y=ONES, x=ONES), 2 * ONES)
    for wrong in ((), (ONES, ONES, ONES)):
        with pytest.raises(TypeError, match="positional argument"):
            compiled(*wrong)


def test_closures_and_globals_are_read_at_each_call(monkeypatch):
    factor = 2.0

    def inside(x):
        return x * factor + WEIGHT

    compiled = polyblocks_jit_torch(inside)
    assert torch.equal(repeated(compiled, ONES), 4 * ONES)
    assert is_direct(compiled, ONES)
    factor = 5.0
    assert torch.equal(repeated(compiled, ONES), 7 * ONES)
    monkeypatch.setitem(globals(), "WEIGHT", torch.zeros(4))
    assert torch.equal(repeated(compiled, ONES), 5 * ONES)


def test_a_variable_of_a_closure_may_be_gone():
    def make():
        factor = 2.0

        def forget():
            nonlocal factor
            del factor

        return polyblocks_jit_torch(lambda x: x * factor), forget

    compiled, forget = make()
    assert torch.equal(repeated(compiled, ONES), 2 * ONES)
    forget()
    with pytest.raises(NameError, match="factor"):
        compiled(ONES)


@pytest.mark.extended
def test_more_arguments_than_bytecode_counts_in_a_byte():
    compiled = polyblocks_jit_torch(lambda *xs: xs[0] - xs[299] + xs[1])
    xs = [torch.full((3,), float(k)) for k in range(300)]
    # Python makes other instructions of code that has run some times.
    for _ in range(40):
        assert torch.equal(compiled(*xs), torch.full((3,), -298.0))
    wide = polyblocks_jit_torch(lambda *xs: torch.stack(xs))
    for _ in range(40):
        assert torch.equal(wide(*xs), torch.stack(xs))


def test_each_variant_has_its_own_guards():
    compiled = polyblocks_jit_torch(scaled)
    for _ in range(CALLED):
        for x in (ONES, torch.ones(5), ONES.double(), torch.ones(4, 3).t(), ONES[:0]):
            assert torch.equal(compiled(x, x), 3 * x)
            assert compiled(x, x).dtype == x.dtype
    count = len(compiled.polyblocks_report().variants)
    # Dynamo also guards that both arguments are one tensor.
    again = torch.ones(5)
    assert is_direct(compiled, again, again)
    assert len(compiled.polyblocks_report().variants) == count == 5


def test_states_of_pytorch_are_guarded():
    compiled = polyblocks_jit_torch(lambda x: x @ x.t())
    x = torch.ones(4, 4)
    for _ in range(CALLED):
        assert compiled(x).dtype == torch.float32
        with torch.autocast("cpu", torch.bfloat16):
            assert compiled(x).dtype == torch.bfloat16
        with torch.inference_mode():
            assert compiled(x).is_inference()
        needs = x.clone().requires_grad_()
        assert compiled(needs).requires_grad
        with torch.no_grad():
            assert not compiled(needs).requires_grad


def test_what_machine_code_does_not_take_goes_to_python():
    # No other test has this program: machine code has the name of the first function with it.
    compiled = polyblocks_jit_torch(lambda x: 3 * x - 4.5)
    repeated(compiled, ONES)
    assert is_direct(compiled, ONES)
    without = torch.ones(3, 4)
    without.untyped_storage().resize_(0)
    with pytest.raises(InputError, match="no memory"):
        compiled(without)
    lazy = torch._neg_view(ONES)
    assert torch.equal(repeated(compiled, lazy), -7.5 * ONES)


def test_failed_checks_raise():
    compiled = polyblocks_jit_torch(lambda x, i: x[i])
    index = torch.tensor([0, 2])
    assert torch.equal(repeated(compiled, ONES, index), ONES[:2])
    assert is_direct(compiled, ONES, index)
    with pytest.raises((ExecutionError, IndexError), match="out of bounds|out of range"):
        compiled(ONES, index + 7)
    assert torch.equal(compiled(ONES, index), ONES[:2])


def test_a_reset_and_dead_objects_end_the_code():
    compiled = polyblocks_jit_torch(scaled)
    repeated(compiled, ONES, ONES)
    torch._dynamo.reset()
    variants = len(compiled.polyblocks_report().variants)
    assert torch.equal(compiled(ONES, ONES), 3 * ONES)
    assert len(compiled.polyblocks_report().variants) == variants + 1

    class Factor:
        value = 2.0

    held = [Factor()]
    compiled = polyblocks_jit_torch(lambda x: x * held[0].value)
    for value in (2.0, 3.0, 4.0):
        held[0] = Factor()
        held[0].value = value
        gc.collect()
        assert torch.equal(repeated(compiled, ONES), value * ONES)


def test_nothing_stays_in_the_globals():
    def added(x, y):
        return x + y

    compiled = polyblocks_jit_torch(added)
    before = set(globals())
    repeated(compiled, ONES, ONES)
    assert any(name.endswith("_native") for name in set(globals()) - before)
    del compiled, added
    torch._dynamo.reset()
    gc.collect()
    assert not [name for name in set(globals()) - before if name.endswith("_native")]


def test_a_function_that_python_runs_a_part_of_compiles_no_helper():
    inner = polyblocks_jit_torch(scaled)
    repeated(inner, ONES, ONES)

    @polyblocks_jit_torch
    def outer(x):
        y = x + 1
        torch._dynamo.graph_break()
        return inner(y, y)

    assert torch.equal(outer(ONES), 6 * ONES)
    frames = dict(counters["frames"])
    for _ in range(CALLED):
        assert torch.equal(outer(ONES), 6 * ONES)
    assert dict(counters["frames"]) == frames


def test_profilers_see_what_they_saw():
    compiled = polyblocks_jit_torch(scaled)
    repeated(compiled, ONES, ONES)
    with torch.profiler.profile() as profile:
        compiled(ONES, ONES)
    names = [event.name for event in profile.events()]
    assert any(name.startswith("scaled: ") for name in names)
    assert is_direct(compiled, ONES, ONES)


def test_threads_share_the_code():
    compiled = polyblocks_jit_torch(scaled)

    def call(k):
        x = torch.full((1 + k % 3, 4), float(k))
        return all(torch.equal(compiled(x, x), 3 * x) for _ in range(50))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, range(32)))
