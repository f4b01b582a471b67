"""What a function compiled ahead of time takes and returns, in every framework."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from sweeps import sweep

import polyblocks
from polyblocks.ahead_of_time.function import _check_held, _check_host
from polyblocks.ahead_of_time.seen_program import Seen, source_of_inputs
from polyblocks.artifact import Artifact
from polyblocks.errors import ArtifactError, FallbackError, InputError
from polyblocks.runtime.arrays import Device
from polyblocks.runtime.numpy_arrays import NumpyArrays
from polyblocks.runtime.slots import signature_of

pytestmark = pytest.mark.usefixtures("compiled_in_this_process")

CPU = {"target": "cpu"}


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).random(shape, np.float32)


class Torch:
    name = "torch"

    def __init__(self):
        self.np = pytest.importorskip("torch")
        self.array = self.np.from_numpy

    def sum(self, x):
        return x.sum(-1)


class Jax:
    name = "jax"

    def __init__(self):
        jax = pytest.importorskip("jax")
        self.array = jax.numpy.asarray

    def sum(self, x):
        return x.sum(-1)


class Tf:
    name = "tf"

    def __init__(self):
        self.tf = pytest.importorskip("tensorflow")
        self.array = self.tf.constant

    def sum(self, x):
        return self.tf.reduce_sum(x, -1)


@pytest.fixture(params=[Torch, Jax, Tf], ids=lambda c: c.name)
def framework(request):
    return request.param()


def check(framework, function, *given, results=None):
    """Ahead of time it returns what the function does, for other arrays too."""
    made = polyblocks.aot(
        function, [framework.array(x) for x in given], CPU, frontend=framework.name
    )
    loaded = polyblocks.load(Artifact.from_bytes(made.to_bytes()))
    for arrays in (given, [1 - x for x in given]):
        arrays = [framework.array(x) for x in arrays]
        expected, got = function(*arrays), loaded(*arrays)
        assert isinstance(got, tuple) == isinstance(expected, tuple)
        if not isinstance(got, tuple):
            expected, got = (expected,), (got,)
        for one, other in zip(got, expected, strict=True):
            assert type(one) is type(other)
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-5)
    return made


def test_results_in_the_order_of_the_function(framework):
    x = numbers(5, 4)
    check(framework, lambda x: (framework.sum(x), x * 2), x)
    check(framework, lambda x: (x * 2, framework.sum(x), x + 1, x - 1), x)
    check(framework, lambda x: (x[0, 0] > 0.5, x > 0.5, x[1, 1] > 0.5, x[2, 2] > 0.5), x)


def test_the_same_result_twice(framework):
    def twice(x):
        y = x * 2
        return y, framework.sum(x), y

    made = check(framework, twice, numbers(5, 4))
    assert len(made.manifest["results"]) == 3


def test_results_without_elements(framework):
    check(framework, lambda x: (x[:0], x + 1), numbers(5, 4))


def test_structures_are_flattened(framework):
    """Of dictionaries by the order of the framework: PyTorch's is that of insertion."""
    x, y = framework.array(numbers(5, 4)), framework.array(numbers(5, 4, seed=1))
    made = polyblocks.aot(
        lambda d: {"b": d["z"] * 2, "a": (framework.sum(d["y"]),)},
        [{"z": x, "y": y}],
        CPU,
        frontend=framework.name,
    )
    given = (x, y) if framework.name == "torch" else (y, x)
    got = polyblocks.load(made)(*given)
    expected = [np.asarray(x) * 2, np.asarray(y).sum(-1)]
    for one, other in zip(
        got, expected if framework.name == "torch" else expected[::-1], strict=True
    ):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-5)


def test_large_programs_that_run_later(framework):
    """JAX calls them on another thread, when the function has returned."""
    x = numbers(300, 300)
    for _ in range(3):
        check(framework, lambda x: (framework.sum(x @ x), x * 2), x)


def test_results_that_are_arguments():
    for kind in (Torch, Tf):
        framework = kind()
        check(framework, lambda x: (x, x + 1), numbers(5, 4))
    torch = Torch()
    made = polyblocks.aot(lambda x: (x, x + 1), [torch.array(numbers(3))], CPU, frontend="torch")
    x = torch.array(numbers(3))
    assert polyblocks.load(made)(x)[0] is x
    jax = Jax()
    with pytest.raises(InputError, match="result number 2 of .* is an argument as it came, or a c"):
        polyblocks.aot(lambda x: (x + 1, x), [jax.array(numbers(3))], CPU, frontend="jax")


def test_functions_that_compute_nothing():
    torch, jax, tf = Torch(), Jax(), Tf()
    for kind, function, what in (
        (torch, lambda x: x.t(), "a view of argument 1; a file holds a program, so return a copy"),
        (torch, lambda x: (x, x[1:]), "argument 1 as it came, a view of argument 1; a file"),
        (torch, lambda x: 3, "a value of type int; a file"),
        (jax, lambda x: x, "a constant, or an argument as it came; a file"),
        (tf, lambda x: None, "nothing; a file"),
    ):
        with pytest.raises(InputError, match=f"no compiled code computes what .* returns: {what}"):
            polyblocks.aot(function, [kind.array(numbers(3, 4))], CPU, frontend=kind.name)


def test_results_that_no_program_computes():
    torch = Torch()
    weight = torch.np.nn.Parameter(torch.array(numbers(4, 4)))
    shared = torch.array(numbers(4, 4, seed=2))
    for function, message in (
        (lambda x: (x @ weight, weight), "result number 2 of .* is an array that the function hol"),
        (lambda x: (x @ shared, shared), "result number 2 of .* is an array that the function hol"),
        (lambda x: (x * 2, x[1:]), "result number 2 of .* is a view of an argument; return a copy"),
        (lambda x: (x * 2, 3), "result number 2 of .* is of type int; a program returns arrays o"),
    ):
        with pytest.raises(InputError, match=message):
            polyblocks.aot(function, [torch.array(numbers(4, 4))], CPU, frontend="torch")

    def views(x):
        y = x * 2
        return y, y.t()

    with pytest.raises(InputError, match="is a view of another result; return a copy of it"):
        polyblocks.aot(views, [torch.array(numbers(4, 4))], CPU, frontend="torch")
    jax = Jax()
    with pytest.raises(
        InputError, match=r"result number 1 of .* \(bool\[\]\) is a constant, which"
    ):
        polyblocks.aot(
            lambda x: (jax.array(np.asarray(True)), x[0] > 0),
            [jax.array(numbers(3))],
            CPU,
            frontend="jax",
        )


def test_examples_are_on_the_host():
    class Elsewhere(NumpyArrays):
        def device(self, array):
            return Device(2, 0)

    with pytest.raises(
        InputError, match=r"array number 1 of the example is on device \(2, 0\), and"
    ):
        _check_host(Elsewhere(), [numbers(3)])


def test_there_are_no_gradients():
    """What a backward pass would need is no result of the program."""
    torch = Torch().np
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4))
    x = torch.from_numpy(numbers(5, 4))
    made = polyblocks.aot(model, [x], CPU, frontend="torch")
    outputs = [row for row in made.manifest["arguments"] if row["role"] == "output"]
    assert len(outputs) == 1
    with torch.no_grad():
        torch.testing.assert_close(polyblocks.load(made)(x), model(x))
    assert torch.is_grad_enabled()


def test_arrays_that_cannot_be_told_apart(framework):
    x = framework.array(numbers(5, 4))
    with pytest.raises(InputError, match="example arrays 1 and 2 share an address"):
        polyblocks.aot(lambda x, y: x * 2 + y, [x, x], CPU, frontend=framework.name)


def test_arrays_of_the_function_with_the_contents_of_an_argument():
    """An argument that was copied is known by its contents only."""
    row = {"role": "input", "dtype": "float32", "shape": [2, 3], "strides": [3, 1], "updates": None}
    output = {**row, "role": "output", "name": "out"}
    manifest = {"name": "f", "arguments": [{**row, "name": "w"}, {**row, "name": "x"}, output]}
    weight, copy, result = numbers(2, 3), numbers(2, 3, seed=1), numbers(2, 3)
    x = np.asfortranarray(copy)

    def sources(*leaves):
        seen = Seen(Artifact(manifest))
        seen.entry(struct.pack("3Q", *(a.ctypes.data for a in (weight, copy, result))), 1)
        return source_of_inputs(seen, NumpyArrays(), leaves)

    assert sources(x) == {0: None, 1: 0}
    assert sources(weight, x) == {0: 0, 1: 1}
    assert sources(x + 0, weight + 0) == {0: 1, 1: 0}
    weight[:] = copy
    message = "example array 1 has the same contents as an array that the function holds"
    with pytest.raises(InputError, match=message):
        sources(x)
    assert sources(x, copy) == {0: 0, 1: 1}
    assert sources(x, copy + 0) == {0: 0, 1: 1}


def test_numpy_arrays_are_arguments():
    for framework in (Jax(), Tf()):
        x = numbers(5, 4)
        made = polyblocks.aot(lambda x: x * 2, [x], CPU, frontend=framework.name)
        np.testing.assert_allclose(polyblocks.load(made)(1 - x), 2 * (1 - x))


def test_scalars_of_tensorflow():
    tf = Tf().tf
    x, y = tf.constant(numbers(5)), tf.constant(3.0)
    made = polyblocks.aot(lambda x, y: (x * y, tf.reduce_sum(x)), [x, y], CPU, frontend="tf")
    product, total = polyblocks.load(made)(x, tf.constant(2.0))
    np.testing.assert_allclose(product, numbers(5) * 2)
    np.testing.assert_allclose(total, numbers(5).sum(), rtol=1e-6)


def test_variables_stay_as_they_are():
    tf = Tf().tf
    variable = tf.Variable(numbers(3))

    def step(x):
        variable.assign_add(x)
        return x * 2

    with pytest.raises(
        InputError, match="step assigns variables, and a program that is compiled a"
    ):
        polyblocks.aot(step, [tf.constant(numbers(3))], CPU, frontend="tf")
    np.testing.assert_array_equal(variable.numpy(), numbers(3))


def test_stages_are_dumped(framework, tmp_path):
    options = {"arch": "x86-64-v2", "debug": str(tmp_path)}
    polyblocks.aot(
        lambda x: x * 2, [framework.array(numbers(3))], CPU | options, frontend=framework.name
    )
    assert len(list(tmp_path.glob("*/*-S2-affine.mlir"))) == 1


def test_an_artifact_is_shown_without_its_contents():
    made = Artifact({"target": "cpu", "arch": "v1", "name": "f"}, {"w.bin": bytes(10000)})
    assert repr(made) == "<Artifact program 'f' for cpu (v1); w.bin: 10000 bytes>"
    made = Artifact({"kind": "plan", "name": "f"})
    assert repr(made) == "<Artifact plan 'f'>"
    made = Artifact({"target": "t", "arch": "a", "name": "f", "variants": {"a": {}, "b": {}}})
    assert repr(made) == "<Artifact program 'f' for t (a, b)>"


def test_wrong_results_of_a_manifest():
    row = {"name": "x", "dtype": "float32", "shape": [2], "strides": [1], "updates": None}
    rows = [{"role": "input", **row}, {"role": "output", **row}]
    for wrong in (2, "x", -1):
        with pytest.raises(ArtifactError, match="results must name outputs and inputs, not"):
            signature_of({"arguments": rows, "results": [wrong]}, {})
    rows[0]["stored"] = "w"
    with pytest.raises(ArtifactError, match="results must name outputs and inputs, not 0"):
        signature_of({"arguments": rows, "results": [0]}, {"w": bytes(8)})


def test_what_python_computes_is_no_weight():
    row = {"role": "input", "dtype": "float32", "shape": [2], "strides": [1], "updates": None}
    manifest = {"name": "f", "arguments": [{**row, "name": "x"}]}
    seen = Seen(Artifact(manifest))
    held = np.zeros(2, np.float32)
    for _ in range(2):
        _check_held(manifest, seen, [0])
        assert seen.entry(struct.pack("Q", held.ctypes.data), 1) == 0
    held[1] = 1
    seen.entry(struct.pack("Q", held.ctypes.data), 1)
    with pytest.raises(
        InputError, match=r"f computes float32\[2\] \('x'\) in Python, and different"
    ):
        _check_held(manifest, seen, [0])


# Random numbers


def draws_of_torch():
    torch = Torch().np
    return torch.from_numpy(numbers(3)), {
        "aten.bernoulli.p": lambda x: torch.nn.functional.dropout(x, 0.5) + 1,
        "aten.rand.default": lambda x: torch.rand(3) + x,
        "aten.normal_functional.default|aten.randn_like.default": lambda x: torch.randn_like(x) * x,
    }


def draws_of_tf():
    tf = Tf().tf
    generator = tf.random.Generator.from_seed(1)
    return tf.constant(numbers(3)), {
        "RandomStandardNormal": lambda x: tf.random.normal((3,)) + x,
        "RandomUniform": lambda x: tf.nn.dropout(x, 0.5) + 1,
        "RngReadAndSkip": lambda x: generator.uniform((3,)) + x,
    }


FRAMEWORKS_THAT_DRAW = pytest.mark.parametrize(
    "kind, draws", [("torch", draws_of_torch), ("tf", draws_of_tf)], ids=["torch", "tf"]
)


@FRAMEWORKS_THAT_DRAW
def test_draws_of_a_framework_are_refused(kind, draws):
    x, functions = draws()
    for op, function in functions.items():
        line = function.__code__.co_firstlineno
        with pytest.raises(
            FallbackError, match=rf"({op}): it draws random numbers from .*:{line}$"
        ):
            polyblocks.aot(function, [x], CPU, frontend=kind)


@pytest.mark.parametrize("number", sweep([0, 1, 2], 0))
@FRAMEWORKS_THAT_DRAW
def test_where_the_framework_is_there_it_draws(kind, draws, number):
    x, functions = draws()
    function = list(functions.values())[number]
    polyblocks.compile(function, frontend=kind, compile_options={"strict_target": True})(x)


def test_dropout_that_is_off():
    torch = Torch().np
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5))
    x = torch.from_numpy(numbers(2, 3))
    with pytest.raises(FallbackError, match="or switch the draw off"):
        polyblocks.aot(model, [x], CPU, frontend="torch")
    loaded = polyblocks.load(polyblocks.aot(model.eval(), [x], CPU, frontend="torch"))
    with torch.no_grad():
        torch.testing.assert_close(loaded(x), model(x))


@pytest.mark.extended
def test_keys_of_jax_are_arguments():
    jax = pytest.importorskip("jax")
    x = jax.numpy.asarray(numbers(3))

    def noisy(key, x):
        return jax.random.normal(key, (3,)) + x, jax.random.split(key)[0]

    for make in (jax.random.key, jax.random.PRNGKey):
        loaded = polyblocks.load(polyblocks.aot(noisy, [make(0), x], CPU, frontend="jax"))
        for seed in (1, 2):
            got, expected = loaded(make(seed), x), noisy(make(seed), x)
            np.testing.assert_allclose(got[0], expected[0], rtol=1e-5)
            key = expected[1]
            if make is jax.random.key:
                key = jax.random.key_data(key)
            np.testing.assert_array_equal(got[1], key)
