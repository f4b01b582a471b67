"""Ahead of time: a function of any framework as one file, for several architectures of a target.

The function is compiled as it always is, by calling it, but what is compiled is not run: programs
that do nothing stand in for those that were compiled, and see which arrays they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from polyblocks import driver
from polyblocks.ahead_of_time.architectures import options_by_arch
from polyblocks.ahead_of_time.examples import arrays_of, names_of
from polyblocks.ahead_of_time.seen_program import Seen, places_of_results, source_of_inputs
from polyblocks.ahead_of_time.weight_names import held_arrays, names_of_weights
from polyblocks.artifact import Artifact
from polyblocks.cache.artifact_variants import join
from polyblocks.errors import InputError, OptionError
from polyblocks.frontends.partition import without_framework
from polyblocks.frontends.weight_arguments import taken_as_arguments
from polyblocks.hookspecs import CompiledFunction, original_of
from polyblocks.options import CompileOptions
from polyblocks.runtime.arrays import HOST, ArrayInterface
from polyblocks.runtime.device.plan import ON_DEVICE
from polyblocks.runtime.slots import NAMES, WEIGHT_NAMES, text_of
from polyblocks.signature import spec_of

#: Treatments of arrays that a function holds.
WEIGHTS = ("stored", "arguments")


def aot(
    function: Callable[..., Any],
    example_inputs: Sequence[Any] | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    frontend: str | None = None,
    weights: str = "stored",
) -> Artifact:
    """Compile a function ahead of time, also for chips that are not present.

    Args:
        function: a function or module of a framework, which becomes one program; a compiled one
            is taken as what it was made of. Or a program that the framework has exported, as
            PyTorch's ``ExportedProgram`` and JAX's ``Exported``.
        example_inputs: its arguments, as for a call; arrays on the host, or what describes them:
            PyTorch's meta and fake tensors, ``jax.ShapeDtypeStruct``, ``tf.TensorSpec``. Default:
            those that an exported program or a ``tf.function`` with ``input_signature`` names.
        options: see :class:`polyblocks.CompileOptions`; here ``arch`` may be a list.
        frontend: which framework it is written in; default: as for :func:`polyblocks.compile`.
        weights: arrays that the function holds are ``stored`` in the artifact, or become
            ``arguments`` behind the function's own, which :func:`polyblocks.load` binds by name.

    Returns:
        The artifact; ``artifact.write(path)`` makes a file for :func:`polyblocks.load`. It takes
        the arrays of ``example_inputs`` and returns the arrays of the result, both in the order in
        which the framework flattens structures. It has no gradients, and a result that is an
        argument is the array that was passed.

    Raises:
        InputError: the function does not become one program, or returns what none computes: a
            view of another array, an array that it holds, a number; or it changes an array that it
            holds; or an array of the example is not on the host, or there is no example, or one
            with a size that is not known.
        OptionError: an unknown option or a wrong value; or ``on_gpu_tensors`` for a target without
            devices, or without an array among the arguments that would say which device is meant;
            or ``freeze_weights``, which is for functions that are compiled when they are called.
        FallbackError: an operation cannot be compiled, or draws from the framework's generator of
            random numbers.
        TargetError, PluginError: the target cannot be used.

    Example::

        polyblocks.aot(model.eval(), [x], {"arch": ["x1", "x2"]}).write("f.zip")
        polyblocks.load("f.zip")(x)
    """
    from polyblocks.api import compile
    from polyblocks.registry.frontend_choice import chosen_frontend
    from polyblocks.registry.registry import get_registry

    if weights not in WEIGHTS:
        raise OptionError(f"weights must be one of {', '.join(WEIGHTS)}, not {weights!r}")
    name = frontend or chosen_frontend(function)
    hook = get_registry().frontend(name).hook
    arrays: ArrayInterface = hook.array_interface()
    owner = original(function)
    function, own = hook.exported(function=owner)
    example_inputs = arrays_of(arrays, _examples(example_inputs, own))
    names = names_of(function, example_inputs, arrays)
    leaves = [leaf for leaf in arrays.leaves(example_inputs) if arrays.is_array(leaf)]
    _check_host(arrays, leaves)
    made = []
    for checked in options_by_arch(options):
        _check_options(checked, bool(leaves))
        strict = replace(checked, strict_target=True, num_iters=1)
        # The frontends check a dictionary.
        given = {key: value for key, value in vars(strict).items() if value is not None}
        compiled = compile(function, frontend=name, compile_options=given)
        bound = list(held_arrays(owner, arrays)) if weights == "arguments" else []
        with taken_as_arguments(array for _, array in bound):
            seen, results = _look(compiled, example_inputs, arrays)
        artifact, held = _artifact(seen, arrays, leaves, results, weights)
        called = names_of_weights(bound, seen, held, arrays) if weights == "arguments" else None
        _write_names(artifact.manifest, names, held, called)
        if checked.on_gpu_tensors:
            artifact.manifest[ON_DEVICE] = True
        made.append(artifact)
    return join(made)


def original(function: Any) -> Any:
    """The original of a compiled function; other functions as they are."""
    if not isinstance(function, CompiledFunction):
        return function
    return original_of(function) or function


def _examples(given: Sequence[Any] | None, own: Sequence[Any] | None) -> Sequence[Any]:
    """The inputs that are given, or those that a function names itself."""
    if given is not None:
        return given
    if own is not None:
        return own
    raise InputError(
        "a function that names no inputs of its own needs example inputs: pass arrays, or what "
        "describes their shapes and dtypes"
    )


def _check_options(options: CompileOptions, has_arrays: bool) -> None:
    """Refuse options that mean nothing for a file."""
    if options.on_gpu_tensors:
        _check_devices(options, has_arrays)
    if options.freeze_weights:
        raise OptionError(
            "option 'freeze_weights' is for functions that are compiled when they are called; "
            "a file holds its weights, or takes them at each call: leave the option out"
        )


def _write_names(
    manifest: dict[str, Any],
    names: list[str],
    held: Sequence[int],
    called: list[list[str]] | None,
) -> None:
    """Write what arguments are called.

    Args:
        manifest: of the artifact.
        names: of the function's own arguments.
        held: rows of the manifest's arguments that are arrays of the function.
        called: the names of each of these; None if they are stored.
    """
    manifest[NAMES] = names
    if called is None:
        return
    manifest[WEIGHT_NAMES] = called
    rows = manifest["arguments"]
    manifest[NAMES] = names + [
        each[0] if each else rows[row]["name"] for row, each in zip(held, called, strict=True)
    ]


def _check_host(arrays: ArrayInterface, leaves: Sequence[Any]) -> None:
    for number, leaf in enumerate(leaves):
        place = arrays.device(leaf)
        if place != HOST:
            raise InputError(
                f"array number {number + 1} of the example is on device {tuple(place)}, and "
                "nothing is run there; pass one on the host"
            )


def _check_devices(options: CompileOptions, has_arrays: bool) -> None:
    from polyblocks.registry.honoured_options import describe_target

    describe_target(options)
    if options.simulate:
        raise OptionError(
            "option 'on_gpu_tensors' is for programs that run on a device, and the simulator has "
            "none; leave one of the two out"
        )
    if not has_arrays:
        raise OptionError(
            "option 'on_gpu_tensors' needs an array among the arguments, whose device is meant; "
            "leave it out"
        )


def _look(
    compiled: Callable[..., Any], example_inputs: Sequence[Any], arrays: ArrayInterface
) -> tuple[Seen, list[Any]]:
    """The program that a function became, and what the function returned without running it.

    Raises:
        InputError: it is not one.
    """
    with without_framework(), arrays.without_gradients():
        with _looking() as seen:
            results = _call(compiled, example_inputs, arrays)
        ran = [each for each in seen if each.calls]
        if not ran:
            raise _nothing_computed(arrays, example_inputs, results)
        if len(ran) != 1:
            raise InputError(
                f"the function became {len(ran)} programs, and a file holds one; take the parts "
                "that break it (prints, data-dependent Python, gradients) out of the function"
            )
        # Once more: what the function holds is the same again, what Python computed may not be.
        with _looking():
            _call(compiled, example_inputs, arrays)
    return ran[0], results


def _nothing_computed(
    arrays: ArrayInterface, example_inputs: Sequence[Any], results: Sequence[Any]
) -> InputError:
    """The error for a function that ran no program."""
    leaves = [leaf for leaf in arrays.leaves(example_inputs) if arrays.is_array(leaf)]
    what = dict.fromkeys(_origin(arrays, leaves, result) for result in results)
    return InputError(
        "no compiled code computes what the function returns: "
        f"{', '.join(what) or 'nothing'}; a file holds a program, so return a copy of what a "
        "caller should get, or compute something"
    )


def _origin(arrays: ArrayInterface, leaves: Sequence[Any], result: Any) -> str:
    """The origin of a result that no program computed, in words."""
    if not arrays.is_array(result):
        return f"a value of type {type(result).__name__}"
    address = arrays.pointer(result)
    own = arrays.describe(result)
    for number, leaf in enumerate(leaves, 1):
        spec = arrays.describe(leaf)
        if arrays.pointer(leaf) <= address < arrays.pointer(leaf) + spec.nbytes:
            is_whole = (spec.shape, spec.strides) == (own.shape, own.strides)
            return f"argument {number} as it came" if is_whole else f"a view of argument {number}"
    return "a constant, or an argument as it came"


def _call(
    compiled: Callable[..., Any], example_inputs: Sequence[Any], arrays: ArrayInterface
) -> list[Any]:
    """Its results without None; frameworks may call their programs later."""
    results = [leaf for leaf in arrays.leaves(compiled(*example_inputs)) if leaf is not None]
    for leaf in results:
        if arrays.is_array(leaf):
            arrays.make_ready(leaf, 0)
    return results


@contextmanager
def _looking() -> Iterator[list[Seen]]:
    """Inspect programs that are loaded inside of the block instead of running them."""
    seen: list[Seen] = []

    def load(artifact: Artifact) -> Seen:
        seen.append(Seen(artifact))
        return seen[-1]

    with driver.loading_with(load):
        yield seen


def _artifact(
    seen: Seen,
    arrays: ArrayInterface,
    leaves: Sequence[Any],
    results: Sequence[Any],
    weights: str,
) -> tuple[Artifact, list[int]]:
    """The artifact, and which of its program's arguments the function holds."""
    manifest = {**seen.manifest, "arguments": [dict(row) for row in seen.manifest["arguments"]]}
    blobs = dict(seen.artifact.blobs)
    found = source_of_inputs(seen, arrays, leaves)
    order = [row for leaf in range(len(leaves)) for row, source in found.items() if source == leaf]
    _check_inputs(manifest, leaves, found)
    held = [row for row, source in found.items() if source is None]
    _check_held(manifest, seen, held)
    if weights == "stored":
        _check_updates(manifest, held)
        for row in held:
            blob = f"weight-{row}.bin"
            blobs[blob] = seen.contents[row]
            manifest["arguments"][row]["stored"] = blob
    else:
        order += held
    manifest["call"] = order
    manifest["results"] = places_of_results(seen, arrays, results, found)
    return Artifact(manifest, blobs), held


def _check_inputs(
    manifest: dict[str, Any], leaves: Sequence[Any], found: dict[int, int | None]
) -> None:
    unused = [k for k in range(len(leaves)) if k not in found.values()]
    if unused:
        raise InputError(
            f"{manifest['name']} does not use its array number {unused[0] + 1}; leave it out of "
            "the function's arguments"
        )


def _check_held(manifest: dict[str, Any], seen: Seen, held: Sequence[int]) -> None:
    changed = [row for row in held if row in seen.changed]
    if changed:
        row = manifest["arguments"][changed[0]]
        raise InputError(
            f"{manifest['name']} computes {text_of(spec_of(row))} ('{row['name']}') in Python, "
            "and differently at each call, as random numbers for example; make it an argument of "
            "the function"
        )


def _check_updates(manifest: dict[str, Any], held: Sequence[int]) -> None:
    """Nobody would see what becomes of an array in a file."""
    for row in manifest["arguments"]:
        if row["role"] != "workspace" and row.get("updates") in held:
            changed = manifest["arguments"][row["updates"]]
            raise InputError(
                f"{manifest['name']} changes {text_of(spec_of(changed))} ('{changed['name']}'), an "
                "array that it holds, and a file does not keep that: call eval() on a module, or "
                "make the array an argument, or pass weights='arguments'"
            )
