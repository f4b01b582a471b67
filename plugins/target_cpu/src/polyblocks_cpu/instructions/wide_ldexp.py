"""LLVM's ``ldexp`` on vectors that are wider than the registers which a program uses.

LLVM's vectorizers make them where narrower types are in the same loop. Its code generator takes
wider vectors apart for every operation of generated code but this one: on a chip with AVX-512 it
would have an instruction of 512 bits, and where those are not to be used, LLVM aborts.
"""

from __future__ import annotations

import re
from typing import Any

from polyblocks.codegen import llvm

_NAME = re.compile(r"llvm\.ldexp\.v(?P<lanes>\d+)(?P<kind>f16|f32|f64)\.v\d+(?P<integer>i\d+)")
_KINDS = {"f16": ("half", 16), "f32": ("float", 32), "f64": ("double", 64)}


def take_apart(module: Any, target_machine: Any, machine: llvm.Machine) -> Any:
    """Make several calls of each call of ``ldexp`` that takes more than a register.

    Args:
        module: of :func:`polyblocks.codegen.llvm.optimize`.
        target_machine: of the same.
        machine: what it is for.

    Returns:
        The module, or the one that takes its place.
    """
    wide = [
        match
        for function in module.functions
        if (match := _NAME.fullmatch(function.name)) is not None
        and 0 < machine.vector_bits < int(match["lanes"]) * _KINDS[match["kind"]][1]
    ]
    if not wide:
        return module
    from llvmlite import binding

    text = str(module)
    attributes = " ".join(llvm.function_attributes(machine))
    known = {function.name for function in module.functions}
    for match in wide:
        ours = f"polyblocks.{match[0]}"
        text = text.replace(f"@{match[0]}(", f"@{ours}(")
        lines = _pieces(match, ours, attributes, machine.vector_bits, known)
        text = re.sub(rf"^declare [^\n]*@{re.escape(ours)}\([^\n]*$", lines, text, flags=re.M)
    made = binding.parse_assembly(text)
    made.verify()
    manager = binding.create_new_module_pass_manager()
    manager.add_always_inliner_pass()
    tuning = binding.create_pipeline_tuning_options(machine.opt_level)
    manager.run(made, binding.create_pass_builder(target_machine, tuning))
    return made


def _pieces(match: re.Match[str], name: str, attributes: str, bits: int, known: set[str]) -> str:
    """A function that computes it piece by piece, and the declarations that it needs."""
    lanes, integer = int(match["lanes"]), match["integer"]
    float_type, width = _KINDS[match["kind"]]
    step = bits // width
    whole, exponents = f"<{lanes} x {float_type}>", f"<{lanes} x {integer}>"
    body, declared, result = [], [], "poison"
    for number, begin in enumerate(range(0, lanes, step)):
        count = min(step, lanes - begin)
        piece, numbers = f"<{count} x {float_type}>", f"<{count} x {integer}>"
        callee = f"llvm.ldexp.v{count}{match['kind']}.v{count}{integer}"
        if callee not in known:
            known.add(callee)
            declared.append(f"declare {piece} @{callee}({piece}, {numbers})")
        taken = _mask(range(begin, begin + count))
        spread = _mask([*range(count), *[None] * (lanes - count)])
        merged = _mask(
            [lanes + k - begin if begin <= k < begin + count else k for k in range(lanes)]
        )
        body += [
            f"%x{number} = shufflevector {whole} %x, {whole} poison, {taken}",
            f"%n{number} = shufflevector {exponents} %n, {exponents} poison, {taken}",
            f"%p{number} = call {piece} @{callee}({piece} %x{number}, {numbers} %n{number})",
            f"%w{number} = shufflevector {piece} %p{number}, {piece} poison, {spread}",
            f"%r{number} = shufflevector {whole} {result}, {whole} %w{number}, {merged}",
        ]
        result = f"%r{number}"
    return "\n".join(
        [
            *declared,
            f"define internal {whole} @{name}({whole} %x, {exponents} %n) alwaysinline "
            f"{attributes} {{",
            *(f"  {line}" for line in body),
            f"  ret {whole} {result}",
            "}",
        ]
    )


def _mask(places: Any) -> str:
    """The places of a ``shufflevector``; None for an element that does not matter."""
    texts = [f"i32 {'poison' if place is None else place}" for place in places]
    return f"<{len(texts)} x i32> <{', '.join(texts)}>"
