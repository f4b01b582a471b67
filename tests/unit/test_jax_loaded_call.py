"""Programs of a made-up target with JAX's arrays: which pointers XLA's calls give them."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from c_programs import CProgram
from manifest_rows import row

jax = pytest.importorskip("jax")
jnp = jax.numpy
from polyblocks.errors import InputError  # noqa: E402
from polyblocks.runtime.bound_weights import bind_weights  # noqa: E402
from polyblocks.runtime.launch import bind  # noqa: E402
from polyblocks.runtime.slots import WEIGHT_NAMES  # noqa: E402
from polyblocks_jax.launch import programs  # noqa: E402
from polyblocks_jax.launch.arrays import JaxArrays  # noqa: E402
from polyblocks_jax.launch.programs import _identity  # noqa: E402

pytestmark = pytest.mark.cpu
ONES = np.ones((2, 3), np.float32)
W = np.arange(6, dtype=np.float32).reshape(2, 3)


def bound(program, blobs=None, **settings):
    return bind(program, JaxArrays(), blobs=blobs, **settings)


def thrice(f, *arrays):
    """The results of the generic call, of the first one by XLA, and of one that JAX dispatches."""
    return [f(*map(jnp.array, arrays)) for _ in range(3)]


def test_arguments_in_the_order_of_the_call_and_stored_ones_between():
    def body(space, y, w, out, x, status, more):
        space[...] = status[...] = 1  # may be written
        out[...] = 100 * x + 10 * y + w
        more[...] = x - y

    rows = [
        row("workspace", "space", (9,)),
        row("input", "y"),
        row("input", "w", stored="w.bin"),
        row("output", "out"),
        row("input", "x"),
        row("status", "status", (1,)),
        row("output", "more"),
    ]
    results = [6, {"dtype": "int32", "shape": [0, 2]}, 3, 3]
    program = CProgram(rows, body, call=[4, 1], results=results)
    f = bound(program, {"w.bin": W.tobytes()}, num_threads=3)
    for more, empty, out, again in thrice(f, 2 * ONES, ONES):
        np.testing.assert_array_equal(more, ONES)
        assert (empty.shape, empty.dtype) == ((0, 2), "int32")
        np.testing.assert_array_equal(out, 210 + W)
        np.testing.assert_array_equal(again, out)
    assert program.thread_counts == [3] * 3
    with pytest.raises(
        InputError, match=r"^argument 2 \('y'\) of f: expected float32\[2, 3\], got"
    ):
        f(jnp.array(ONES), jnp.array(ONES[0]))


@pytest.mark.parametrize("stored", [True, False])
def test_what_is_prepared_of_stored_weights_is_prepared_once(stored):
    prepared = []

    def prepare(w, kept):
        kept[...] = (2 * w).view(np.uint8).ravel()
        prepared.append(1)

    def body(x, w, kept, out):
        out[...] = x + kept.view(np.float32).reshape(2, 3)

    more = {"stored": "w.bin"} if stored else {}
    rows = [
        row("input", "x"),
        row("input", "w", **more),
        row("kept", "kept", (24,)),
        row("output", "o"),
    ]
    program = CProgram(rows, body)
    program.preparation = CProgram(
        [row("input", "w"), row("kept", "kept", (24,))], prepare, sources=[1, 2]
    )
    f = bound(program, {"w.bin": W.tobytes()} if stored else None)
    for made in thrice(f, *([ONES] if stored else [ONES, W])):
        np.testing.assert_array_equal(made, 1 + 2 * W)
    # Once by the generic call and once for XLA; or at each call.
    assert len(prepared) == (2 if stored else 3)


@pytest.mark.parametrize(
    "manifest",
    [
        {"arguments": [row("input", "x"), row("output", "o", strides=[1, 2])]},
        {"arguments": [row("input", "x"), row("output", "o")], "results": [1, 0]},
        {"arguments": [row("input", "x"), row("output", "o")], "checks": ["never"]},
    ],
    ids=["strides", "an argument that is returned", "checks"],
)
def test_what_xla_would_do_otherwise_goes_the_generic_way(manifest, monkeypatch):
    monkeypatch.setattr(programs, "XlaCall", lambda *a, **k: pytest.fail("called by XLA"))

    def body(x, out):
        out[...] = x + 1

    program = CProgram(manifest.pop("arguments"), body, **manifest)
    f, x = bound(program), jnp.array(ONES)
    for _ in range(3):
        if program.manifest["arguments"][1]["strides"] == [1, 2]:
            with pytest.raises(InputError, match=r"row-major arrays only, not strides \[1, 2\]"):
                f(x)
        else:
            made = f(x)
            np.testing.assert_array_equal(made if "results" not in manifest else made[0], 2 * ONES)
            assert "results" not in manifest or made[1] is x


def test_programs_that_update_arguments_are_refused():
    rows = [row("input", "x"), row("output", "x", updates=0)]
    f = bound(CProgram(rows, lambda *_: 0))
    for _ in range(2):
        with pytest.raises(InputError, match="it is updated in place, but cannot be written"):
            f(jnp.array(ONES))


def test_programs_of_one_signature_are_told_apart():
    def program(number):
        def body(x, out):
            out[...] = x + number

        return CProgram([row("input", "x"), row("output", "o")], body)

    for blobs in (None, "code"):
        for number in (1, 2, 3):
            given = None if blobs is None else {"code.o": bytes([number])}
            for made in thrice(bound(program(number), given), ONES):
                np.testing.assert_array_equal(made, 1 + number)


def test_files_are_told_apart_by_the_digests_that_they_list():
    manifest = {"arguments": [row("input", "x")], "blobs": {"a": {"sha256": "1"}}}
    other = {**manifest, "blobs": {"a": {"sha256": "2"}}}
    assert _identity(manifest, {"a": b""}) == _identity(dict(manifest), {"a": b""})
    assert _identity(manifest, {"a": b""}) != _identity(other, {"a": b""})
    assert _identity(manifest, {}) != _identity(manifest, {})
    unlisted = {"arguments": manifest["arguments"]}
    assert _identity(unlisted, {"a": b"1"}) == _identity(unlisted, {"a": b"1"})
    assert _identity(unlisted, {"a": b"1"}) != _identity(unlisted, {"a": b"2"})


# --- bound weights -------------------------------------------------------------------------------


def weighted_sum(count=3):
    """A program of an input between weights, of which the values are added."""

    def body(*arrays):
        *inputs, out = arrays
        out[...] = sum((k + 1) * each for k, each in enumerate(inputs))

    names = [f"w{k}" for k in range(count)]
    rows = [row("input", name) for name in (names[0], "x", *names[1:])]
    call = [1, 0, *range(2, count + 1)]
    more = {WEIGHT_NAMES: [[name] for name in names], "call": call}
    return CProgram([*rows, row("output", "o")], body, **more)


def with_weights(weights, program=None):
    program = program or weighted_sum(len(weights))
    interface = JaxArrays()
    held = bind_weights(program.manifest, {}, weights, lambda array: interface)
    return bind(program, interface, weights=held)


def expected(x, weights):
    return weights[0] + 2 * x + sum((k + 3) * w for k, w in enumerate(weights[1:]))


@pytest.fixture
def jitted_with(monkeypatch):
    """How many arguments XLA's programs have that were compiled."""
    counts = []
    original = jax.ffi.build_ffi_lowering_function

    def counting(target, **more):
        lower = original(target, **more)

        def count(ctx, *operands):
            counts.append(len(operands))
            return lower(ctx, *operands)

        return count

    monkeypatch.setattr(jax.ffi, "build_ffi_lowering_function", counting)
    return counts


def test_weights_are_passed_as_one_list_of_addresses(jitted_with):
    weights = [jnp.array(W + k) for k in range(3)]
    f = with_weights(weights)
    for made in thrice(f, ONES):
        np.testing.assert_array_equal(made, expected(ONES, weights))
    assert jitted_with == [2]
    with pytest.raises(InputError, match=r"argument 1 \('x'\) of f: expected float32\[2, 3\]"):
        f(jnp.array(ONES[0]))
    with pytest.raises(InputError, match=r"f\(x\) takes 1 array, got 2"):
        f(jnp.array(ONES), jnp.array(ONES))
    np.testing.assert_array_equal(f(ONES), expected(ONES, weights))  # of NumPy


def test_functions_of_one_program_have_weights_of_their_own():
    program = weighted_sum()
    sets = [[jnp.array(W + 10 * n + k) for k in range(3)] for n in range(3)]
    functions = [with_weights(each, program) for each in sets]
    for _ in range(3):
        for f, weights in zip(functions, sets, strict=True):
            np.testing.assert_array_equal(f(jnp.array(ONES)), expected(ONES, weights))


def test_weights_in_traced_functions_are_held_by_xla(jitted_with):
    weights = [jnp.array(W + k) for k in range(3)]
    f = with_weights(weights)
    x = jnp.array(ONES)
    for _ in range(3):
        f(x)
    outer = jax.jit(lambda x: f(x) + 1)
    batched = jax.vmap(f)
    want = expected(ONES, weights)
    np.testing.assert_array_equal(outer(x), want + 1)
    np.testing.assert_array_equal(batched(jnp.stack([x, x]))[1], want)
    assert set(jitted_with) == {2, 4}
    del f, weights, batched
    gc.collect()
    junk = [jnp.full((2, 3), -1.0) for _ in range(50)]
    np.testing.assert_array_equal(outer(x), want + 1)
    del junk
    with jax.disable_jit():
        f = with_weights([jnp.array(W + k) for k in range(3)])
        for made in thrice(f, ONES):
            np.testing.assert_array_equal(made, want)


@pytest.mark.parametrize("how", ["deleted", "donated", "dropped"])
def test_memory_of_weights_stays_as_long_as_the_function(how):
    weights = [jnp.array(W + k) for k in range(3)]
    want = expected(ONES, weights)
    f = with_weights(weights)
    x = jnp.array(ONES)
    for _ in range(3):
        f(x)
    if how == "deleted":
        for each in weights:
            each.delete()
    elif how == "donated":
        step = jax.jit(lambda *w: [each - 100 for each in w], donate_argnums=(0, 1, 2))
        step(*weights)
    del weights
    gc.collect()
    junk = [jnp.full((2, 3), -1.0) for _ in range(50)]
    for _ in range(3):
        np.testing.assert_array_equal(f(x), want)
    del junk


def test_nothing_is_left_of_functions_with_weights():
    """Nor of their weights: a file that is loaded again and again makes one entry of XLA's."""
    x = jnp.array(ONES)
    blobs = {"code": b"of a file"}
    listed = {"code": {"sha256": "of a file of weights"}}
    left = []
    for n in range(4):
        weights = [jnp.full((2, 3), float(n + k)) for k in range(3)]
        program = weighted_sum()
        program.manifest["blobs"] = listed
        held = bind_weights(program.manifest, {}, weights, lambda array: JaxArrays())
        f = bound(program, blobs, weights=held)
        for _ in range(3):
            np.testing.assert_array_equal(f(x), expected(ONES, weights))
        assert lists_of_addresses() == 1
        del f, held, weights, program
        assert lists_of_addresses() == 0
        left.append((len(programs._registered), len(jax.live_arrays())))
    assert len(set(left)) == 1


def lists_of_addresses():
    gc.collect()
    return sum(type(each).__name__ == "Addresses" for each in gc.get_objects())


def test_a_function_is_gone_with_its_last_reference():
    def body(x, out):
        out[...] = x

    f = bound(CProgram([row("input", "x"), row("output", "o")], body))
    thrice(f, ONES)
    kept = weakref.ref(f)
    del f
    jax.clear_caches()
    gc.collect()
    assert kept() is None
