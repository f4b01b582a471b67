"""Functions whose gradients are called without AOTAutograd's wrapper: as in eager mode."""

from __future__ import annotations

import threading

import pytest
import torch

from polyblocks.errors import ExecutionError
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

pytestmark = pytest.mark.cpu


def mixed(x, w):
    """A product, a sum of rows, positions that have no gradient, and a view of what is fresh."""
    product = torch.tanh(x @ w)
    return product, x.sum(-1), x.argmax(-1), (x * 2).reshape(-1)


def compiled(function):
    return polyblocks_jit_torch(compile_options={"strict_target": True})(function)


def drawn(**options):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(5, 7, generator=generator, **options).requires_grad_()
    return x, torch.randn(7, 3, generator=generator, **options).requires_grad_()


def warm(function=mixed):
    """A compiled function, and a result of its second call."""
    call = compiled(function)
    arguments = drawn()
    for _ in range(2):
        results = call(*arguments)
        sum(r.sum() for r in results if r.requires_grad).backward()
    return call


def is_short(result):
    while not hasattr(result.grad_fn, "_forward_cls"):
        result = result.grad_fn.next_functions[0][0]
    return hasattr(result.grad_fn._forward_cls.backward, "polyblocks_source")


def test_gradients_of_calls_without_the_steps_of_others():
    call = warm()
    (x, w), (y, v) = drawn(), drawn()
    results, expected = call(x, w), mixed(y, v)
    assert is_short(results[1])
    assert not results[2].requires_grad
    torch.testing.assert_close(results, expected)
    for one, a in ((results, x), (expected, y)):
        (one[0].sum() + 3 * one[1].square().sum() + one[3].sum()).backward()
        assert a.grad is not None
    torch.testing.assert_close((x.grad, w.grad), (y.grad, v.grad))


@pytest.mark.parametrize("needs", [(True, False), (False, True), (False, False)], ids=str)
def test_some_arguments_need_gradients(needs):
    call = warm()
    for _ in range(3):
        arguments = [a.detach().requires_grad_(n) for a, n in zip(drawn(), needs, strict=True)]
        others = [a.detach().requires_grad_(n) for a, n in zip(drawn(), needs, strict=True)]
        results, expected = call(*arguments), mixed(*others)
        for a, b in zip(results, expected, strict=True):
            assert a.requires_grad == b.requires_grad
        if any(needs):
            results[0].sum().backward()
            expected[0].sum().backward()
        for a, b in zip(arguments, others, strict=True):
            assert (a.grad is None) == (b.grad is None)
            torch.testing.assert_close(a.grad, b.grad) if a.grad is not None else None


@pytest.mark.parametrize(
    "incoming",
    [
        pytest.param(lambda: torch.ones(()).expand(5, 3), id="expanded"),
        pytest.param(lambda: torch.randn(3, 5).T, id="transposed"),
        pytest.param(lambda: torch.randn(5, 6)[:, ::2], id="strided"),
    ],
)
def test_gradients_that_come_in_with_other_strides(incoming):
    call = warm()
    (x, w), (y, v), g = drawn(), drawn(), incoming()
    call(x, w)[0].backward(g)
    mixed(y, v)[0].backward(g)
    torch.testing.assert_close((x.grad, w.grad), (y.grad, v.grad))


def test_a_graph_that_is_kept_and_one_that_is_not():
    call = warm()
    x, w = drawn()
    result = call(x, w)[0].sum()
    result.backward(retain_graph=True)
    first = x.grad.clone()
    result.backward()
    torch.testing.assert_close(x.grad, 2 * first)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        result.backward()


def test_second_derivatives_outside_are_refused():
    call = warm()
    x, w = drawn()
    (gradient,) = torch.autograd.grad(call(x, w)[0].sum(), x, create_graph=True)
    assert gradient.requires_grad
    with pytest.raises(ExecutionError, match="gradients of the gradients"):
        gradient.sum().backward()


def test_an_argument_that_is_changed_before_its_gradient():
    call = warm()
    x, w = drawn()
    result = call(x, w)[0].sum()
    with torch.no_grad():
        w.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()


def test_hooks_of_arguments_results_and_functions():
    call = warm()
    seen: list[list[torch.Tensor]] = []
    for function in (call, mixed):
        x, w = drawn()
        found: list[torch.Tensor] = []
        x.register_hook(lambda g, found=found: found.append(g) or g * 2)
        result = function(x, w)[1]
        result.register_hook(lambda g, found=found: found.append(g) or g * 3)
        result.sum().backward()
        seen.append([*found, x.grad])
    torch.testing.assert_close(*seen)
    torch.testing.assert_close(seen[0][-1], torch.full((5, 7), 6.0))


def test_hooks_of_saved_tensors():
    call = warm()
    x, w = drawn()
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        result = call(x, w)[0].sum()
    assert packed
    result.backward()
    y, v = drawn()
    mixed(y, v)[0].sum().backward()
    torch.testing.assert_close(x.grad, y.grad)


def test_a_call_without_gradients_and_one_in_which_they_are_asked_for_again():
    call = warm()
    x, w = drawn()
    with torch.no_grad():
        assert not call(x, w)[0].requires_grad
    assert call(x, w)[0].requires_grad


def test_profiled_calls():
    call = warm()
    x, w = drawn()
    with torch.profiler.profile() as profile:
        call(x, w)[0].sum().backward()
    assert any("CompiledFunction" in event.key for event in profile.key_averages())


def test_deterministic_algorithms_after_compilation():
    call = warm()
    x, w = drawn()
    result = call(x, w)[0].sum()
    torch.use_deterministic_algorithms(True)
    try:
        with pytest.raises(RuntimeError, match="use_deterministic_algorithms"):
            result.backward()
    finally:
        torch.use_deterministic_algorithms(False)


def test_gradients_in_other_threads():
    call = warm()
    found = []

    def work():
        x, w = drawn()
        call(x, w)[0].sum().backward()
        found.append(x.grad)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    y, v = drawn()
    mixed(y, v)[0].sum().backward()
    assert len(found) == 4
    for each in found:
        torch.testing.assert_close(each, y.grad)


def test_results_are_changed_in_place_as_in_eager_mode():
    call = warm()
    gradients = []
    for function in (call, mixed):
        x, w = drawn()
        results = function(x, w)
        results[3].mul_(3)
        results[1].add_(1)
        (results[3].sum() + results[1].square().sum()).backward()
        gradients.append(x.grad)
    torch.testing.assert_close(*gradients)


def test_checkpoints_outside_of_a_function():
    call = warm()
    gradients = []
    for function in (call, mixed):
        x, w = drawn()
        result = torch.utils.checkpoint.checkpoint(
            lambda a, b, f=function: f(a, b)[0], x, w, use_reentrant=False
        )
        result.sum().backward()
        gradients.append((x.grad, w.grad))
    torch.testing.assert_close(*gradients)


def test_functions_that_update_an_argument_take_the_long_way():
    def update(x, state):
        state.add_(1)
        return x * state

    call = compiled(update)
    for _ in range(3):
        x, state = torch.ones(3, requires_grad=True), torch.ones(3)
        result = call(x, state)
        assert not is_short(result)
        result.sum().backward()
        assert torch.equal(state, torch.full((3,), 2.0))
        assert torch.equal(x.grad, state)


def test_functions_that_return_views_of_arguments():
    call = compiled(lambda x: (x * 2, x.T))
    for _ in range(3):
        x = torch.ones(3, 2, requires_grad=True)
        doubled, transposed = call(x)
        assert transposed._is_view()
        (doubled.sum() + transposed.sum()).backward()
        assert torch.equal(x.grad, torch.full((3, 2), 3.0))
