"""Models of Flax and Equinox: forward and gradient, compiled whole, against JAX."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")
nn = pytest.importorskip("flax.linen")
jnp = jax.numpy
from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402

STRICT = {"strict_target": True}


class Block(nn.Module):
    """The basic block of ResNet-18 (He et al. 2015, table 1)."""

    features: int
    stride: int = 1

    @nn.compact
    def __call__(self, x, train):
        def norm():
            return nn.BatchNorm(use_running_average=not train, momentum=0.9)

        y = nn.Conv(self.features, (3, 3), (self.stride, self.stride), use_bias=False)(x)
        y = nn.relu(norm()(y))
        y = nn.Conv(self.features, (3, 3), use_bias=False)(y)
        y = norm()(y)
        if x.shape != y.shape:
            x = norm()(
                nn.Conv(self.features, (1, 1), (self.stride, self.stride), use_bias=False)(x)
            )
        return nn.relu(x + y)


class ResNet18(nn.Module):
    """Two blocks in each of four stages."""

    width: int = 8
    classes: int = 10

    @nn.compact
    def __call__(self, x, train=False):
        x = nn.Conv(self.width, (7, 7), (2, 2), use_bias=False)(x)
        x = nn.relu(nn.BatchNorm(use_running_average=not train)(x))
        x = nn.max_pool(x, (3, 3), (2, 2), padding="SAME")
        for stage in range(4):
            for index in range(2):
                stride = 2 if stage > 0 and index == 0 else 1
                x = Block(self.width * 2**stage, stride)(x, train)
        return nn.Dense(self.classes)(x.mean(axis=(1, 2)))


class Encoder(nn.Module):
    """A transformer encoder: two layers, pre-norm."""

    vocabulary: int = 50
    features: int = 16
    heads: int = 2

    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(self.vocabulary, self.features)(tokens)
        x = x + nn.Embed(32, self.features)(jnp.arange(tokens.shape[1]))
        for _ in range(2):
            y = nn.LayerNorm()(x)
            x = x + nn.MultiHeadDotProductAttention(self.heads)(y, y)
            y = nn.Dense(4 * self.features)(nn.LayerNorm()(x))
            x = x + nn.Dense(self.features)(nn.gelu(y))
        return nn.Dense(self.vocabulary)(nn.LayerNorm()(x))


def assert_near(got, want, tolerance=1e-4):
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        scale = max(1.0, float(np.abs(np.asarray(b)).max(initial=0)))
        np.testing.assert_allclose(np.asarray(a) / scale, np.asarray(b) / scale, atol=tolerance)


def check(f, *args):
    compiled = polyblocks_jit_jax(f, compile_options=STRICT)
    assert_near(compiled(*args), jax.jit(f)(*args))
    assert compiled.polyblocks_report().whole


@pytest.mark.slow
@pytest.mark.large
def test_resnet_18_forward():
    model = ResNet18()
    images = np.random.default_rng(0).normal(size=(2, 32, 32, 3)).astype(np.float32)
    variables = model.init(jax.random.key(0), images)
    check(lambda variables, x: model.apply(variables, x), variables, images)


@pytest.mark.large
@pytest.mark.slow
def test_resnet_18_gradient():
    model = ResNet18()
    # Large enough that no statistics are taken over a handful of pixels.
    images = np.random.default_rng(0).normal(size=(4, 48, 48, 3)).astype(np.float32)
    labels = np.array([3, 7, 1, 0])
    variables = model.init(jax.random.key(0), images)

    def loss(params, statistics, x, y):
        logits, changed = model.apply(
            {"params": params, "batch_stats": statistics}, x, train=True, mutable=["batch_stats"]
        )
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1)
        return -picked.mean(), changed

    step = jax.value_and_grad(loss, has_aux=True)
    check(step, variables["params"], variables["batch_stats"], images, labels)


@pytest.mark.extended
def test_transformer_encoder_forward():
    model = Encoder()
    tokens = np.random.default_rng(1).integers(0, 50, (2, 12))
    variables = model.init(jax.random.key(1), tokens)
    check(model.apply, variables, tokens)


@pytest.mark.slow
def test_transformer_encoder_training_step():
    optax = pytest.importorskip("optax")
    # Not Adam: it divides gradients that are zero but for rounding by their own size.
    model, optimizer = Encoder(), optax.sgd(0.1, momentum=0.9)
    tokens = np.random.default_rng(1).integers(0, 50, (2, 12))
    variables = model.init(jax.random.key(1), tokens)

    def loss(variables, tokens):
        logits = model.apply(variables, tokens[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

    def step(variables, state, tokens):
        value, gradient = jax.value_and_grad(loss)(variables, tokens)
        updates, state = optimizer.update(gradient, state)
        return value, gradient, optax.apply_updates(variables, updates), state

    check(step, variables, optimizer.init(variables), tokens)


def test_modules_of_flax_as_arguments_are_constants():
    nn = pytest.importorskip("flax.linen")
    x = np.ones((2, 4), np.float32)
    f = polyblocks_jit_jax(lambda model, variables, x: model.apply(variables, x))
    for model in (nn.Dense(3), nn.Dense(5)):
        variables = model.init(jax.random.key(0), x)
        assert_near(f(model, variables, x), model.apply(variables, x))
        assert f.trace(model, variables, x).jaxpr.out_avals


def test_nnx_modules():
    nnx = pytest.importorskip("flax.nnx")
    model = nnx.Sequential(nnx.Linear(4, 8, rngs=nnx.Rngs(0)), nnx.relu)
    graph, state = nnx.split(model)
    x = np.ones((2, 4), np.float32)
    check(lambda state, x: nnx.merge(graph, state)(x), state, x)


@pytest.mark.extended
def test_equinox_modules():
    eqx = pytest.importorskip("equinox")
    model = eqx.nn.MLP(4, 2, 8, 2, key=jax.random.key(0))
    x = np.ones(4, np.float32)
    f = lambda model, x: model(x)  # noqa: E731
    compiled = polyblocks_jit_jax(f, compile_options=STRICT)
    # Activation functions are leaves of the module.
    for _ in range(2):
        assert_near(compiled(model, x), f(model, x))
    assert len(compiled.polyblocks_report().variants) == 1
    other = eqx.nn.MLP(4, 2, 8, 2, activation=jnp.tanh, key=jax.random.key(0))
    assert_near(compiled(other, x), f(other, x))
    assert len(compiled.polyblocks_report().variants) == 2
    params, static = eqx.partition(model, eqx.is_array)
    check(jax.grad(lambda p, x: eqx.combine(p, static)(x).sum()), params, x)
