"""Programs that take their weights by the names that the frameworks give them."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from sweeps import sweep

import polyblocks
from polyblocks.artifact import Artifact

torch = pytest.importorskip("torch")


def network() -> torch.nn.Module:
    """Parameters, buffers, one weight in two places, and one that is a transposed view."""

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = torch.nn.Sequential(
                torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU()
            )
            self.one = torch.nn.Linear(5, 5, bias=False)
            self.two = torch.nn.Linear(5, 5)
            self.two.weight = self.one.weight
            self.mix = torch.nn.Parameter(torch.randn(5, 4).t())

        def forward(self, x):
            x = self.body(x).mean((2, 3)) @ self.mix
            return self.two(torch.tanh(self.one(x)))

    made = Network().eval()
    with torch.no_grad():
        for held in (*made.parameters(), made.body[1].running_mean):
            held.copy_(torch.randn_like(held))
    return made


X = torch.randn(2, 3, 7, 5, generator=torch.Generator().manual_seed(0))


def made_of(owner, *inputs, **settings) -> Artifact:
    artifact = polyblocks.aot(
        owner, inputs or [X], {"target": "cpu"}, weights="arguments", **settings
    )
    return Artifact.from_bytes(artifact.to_bytes())


def agree(loaded, model, x=X) -> None:
    with torch.no_grad():
        torch.testing.assert_close(loaded(x), model(x), rtol=1e-4, atol=1e-5)


def test_a_state_dict():
    model = network()
    artifact = made_of(model)
    assert sorted(map(tuple, artifact.manifest["weight_names"])) == [
        ("body.0.bias",), ("body.0.weight",), ("body.1.bias",), ("body.1.running_mean",),
        ("body.1.running_var",), ("body.1.weight",), ("mix",), ("one.weight", "two.weight"),
        ("two.bias",),
    ]  # fmt: skip
    loaded = polyblocks.load(artifact, weights=model.state_dict())
    agree(loaded, model)
    other = network()
    agree(polyblocks.load(artifact, weights=other.state_dict()), other)
    saved = {name: held.numpy() for name, held in other.state_dict().items()}
    agree(polyblocks.load(artifact, weights=saved), other)


def test_training_goes_on_in_place_and_storage_moves():
    model = network()
    loaded = polyblocks.load(
        made_of(model), weights=dict(model.named_parameters()) | dict(model.named_buffers())
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(X).square().sum().backward()
    optimizer.step()
    agree(loaded, model)
    with torch.no_grad():
        model.two.bias.data = torch.randn(5)
    agree(loaded, model)
    for _ in range(100):  # memory that was given up is soon another tensor's
        model.two.bias.data = torch.randn(5)
        model.two.bias.data = torch.randn(5)
        agree(loaded, model)
    square = model.one.weight
    square.data = square.data.t()
    with pytest.raises(polyblocks.errors.InputError, match=r"weight 'one.weight' of Network: exp"):
        loaded(X)
    square.data = square.data.t()
    agree(loaded, model)
    model.two.bias.data = torch.randn(0)
    model.two.bias.data = torch.randn(4)
    with pytest.raises(polyblocks.errors.InputError, match=r"weight 'two.bias' of Network: expect"):
        loaded(X)


def test_exported_programs_functions_and_methods():
    model = network()
    exported = torch.export.export(model, (X,))
    agree(polyblocks.load(made_of(exported), weights=exported.state_dict), model)

    def closure(x):
        return model(x)

    named = {f"model.{name}": held for name, held in model.state_dict().items()}
    agree(polyblocks.load(made_of(closure, frontend="torch"), weights=named), model)
    agree(polyblocks.load(made_of(model.forward), weights=model.state_dict()), model)

    def partial(x, *, held):
        return model(x) + held

    held = torch.randn(5)
    found = made_of(functools.partial(partial, held=held), frontend="torch").manifest[
        "weight_names"
    ]
    assert ["held"] in found


def test_variables_of_tensorflow():
    tf = pytest.importorskip("tensorflow")
    model = tf.keras.Sequential(
        [tf.keras.layers.Input((6,)), tf.keras.layers.Dense(4), tf.keras.layers.Dense(3)]
    )

    class Module(tf.Module):
        def __init__(self) -> None:
            self.scale = tf.Variable(tf.random.normal((6, 4)))
            self.shifts = [tf.Variable(tf.random.normal((4,)))]

        def __call__(self, x):
            return x @ self.scale + self.shifts[0]

    module = Module()
    x = tf.random.normal((5, 6))
    of_module = {"scale": module.scale, "shifts.0": module.shifts[0]}
    for owner, weights in ((model, {v.path: v for v in model.variables}), (module, of_module)):
        arrays = {name: np.asarray(value) for name, value in weights.items()}
        loaded = polyblocks.load(made_of(owner, x, frontend="tf"), weights=arrays)
        np.testing.assert_allclose(loaded(x), owner(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("stored_before", sweep([False, True], True))
def test_small_arrays_of_jax_and_those_of_inner_functions_are_no_constants(stored_before):
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def made(seed):
        w, bias, late = jax.random.normal(jax.random.key(seed), (3, 3, 3))
        return {
            "w": w, "bias": [bias[0], np.asarray(late[1])], "scale": jnp.float32(seed + 2),
            "large": jax.random.normal(jax.random.key(seed + 9), (3, 5000)),
        }  # fmt: skip

    params = made(0)

    @jax.jit
    def inner(x):
        return (x @ params["w"] + params["bias"][0]) @ params["large"]

    def function(x):
        # These three numbers are no weights, and stay a part of the program.
        rows = jnp.array([1.0, 2.0, 3.0]) * x + params["bias"][1]
        return inner(rows) * params["scale"]

    x = jax.random.normal(jax.random.key(20), (5, 3))
    expected = function(x)
    if stored_before:
        stored = polyblocks.load(polyblocks.aot(function, [x], frontend="jax"))
        np.testing.assert_allclose(stored(x), expected, rtol=1e-5, atol=1e-5)
    artifact = made_of(function, x, frontend="jax")
    other = made(1)
    weights = {
        "params.w": other["w"], "params.bias.0": other["bias"][0],
        "params.bias.1": other["bias"][1], "params.scale": other["scale"],
        "params.large": other["large"],
    }  # fmt: skip
    assert {each for (each,) in artifact.manifest["weight_names"]} == set(weights)
    loaded = polyblocks.load(artifact, weights=weights)
    params.update(other)
    inner.clear_cache()
    np.testing.assert_allclose(loaded(x), function(x), rtol=1e-4, atol=1e-4)


def test_arrays_of_jax():
    jax = pytest.importorskip("jax")
    params = {"layer": [jax.random.normal(jax.random.key(0), (300, 200))]}
    x = jax.random.normal(jax.random.key(1), (5, 300))
    artifact = made_of(lambda x: x @ params["layer"][0], x, frontend="jax")
    assert artifact.manifest["weight_names"] == [["params.layer.0"]]
    other = jax.random.normal(jax.random.key(2), (300, 200))
    loaded = polyblocks.load(artifact, weights={"params.layer.0": other})
    np.testing.assert_allclose(loaded(x), x @ other, rtol=1e-4, atol=1e-4)


def doubling(x, y):
    x.mul_(2)
    return y + x


@pytest.mark.parametrize("machine_code", [True, False])
def test_autograd_sees_updates(machine_code, monkeypatch):
    """What it has saved of an updated tensor is no longer so, which it knows by the version."""
    if not machine_code:
        monkeypatch.setattr("polyblocks.runtime.native.native_code.place", lambda *a: None)
    loaded = polyblocks.load(polyblocks.aot(doubling, [torch.rand(4), torch.rand(4)]))
    for _ in range(5):
        x, y, w = torch.rand(4), torch.rand(4), torch.rand(4, requires_grad=True)
        product = (x * w).sum()
        version = x._version
        torch.testing.assert_close(loaded(x, y), y + x)
        assert x._version == version + 1
        assert not y._version
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            product.backward()
    with torch.inference_mode():
        x = torch.ones(4)
        loaded(x, torch.zeros(4))
        assert (x == 2).all()


@pytest.mark.each_choice
@pytest.mark.parametrize("of_weights", ["numpy", "torch"])
@pytest.mark.parametrize("of_arguments", ["numpy", "torch", "tf"])
def test_weights_of_one_framework_beside_arguments_of_another(of_weights, of_arguments):
    """In machine code, too, which takes over after some calls."""
    model = torch.nn.Linear(4, 3).eval()
    loaded_from = polyblocks.aot(model, [torch.rand(5, 4)], {"target": "cpu"}, weights="arguments")
    weights = {name: held.detach().clone() for name, held in model.state_dict().items()}
    if of_weights == "numpy":
        weights = {name: held.numpy() for name, held in weights.items()}
    loaded = polyblocks.load(loaded_from, weights=weights)

    def given(x: np.ndarray):
        if of_arguments == "tf":
            return pytest.importorskip("tensorflow").constant(x)
        return torch.from_numpy(x) if of_arguments == "torch" else x

    random = np.random.default_rng(0)
    kind = type(given(np.ones(1, np.float32)))
    for turn in range(8):
        weights["bias"][0] += 1
        if turn == 5 and of_weights == "torch":
            weights["bias"].data = torch.rand(3)
        x = random.random((5, 4), np.float32)
        expected = x @ np.asarray(weights["weight"]).T + np.asarray(weights["bias"])
        result = loaded(given(x))
        assert type(result) is kind
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(
        polyblocks.errors.InputError, match=r"argument 1 \('input'\) of Linear: exp"
    ):
        loaded(given(np.ones((4, 5), np.float32)))
