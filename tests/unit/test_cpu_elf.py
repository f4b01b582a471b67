"""Reading the symbols of object files."""

from __future__ import annotations

import pytest
from llvmlite import binding

from polyblocks_cpu.objects.elf import read_symbols

IR = """
target triple = "{triple}"
declare float @sinf(float)
define float @exported(float %x) {{
  %y = call float @sinf(float %x)
  %z = call float @helper(float %y)
  ret float %z
}}
define internal float @helper(float %x) noinline {{
  ret float %x
}}
"""


def object_of(triple: str) -> bytes:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    machine = binding.Target.from_triple(triple).create_target_machine(
        reloc="pic", codemodel="small"
    )
    return bytes(machine.emit_object(binding.parse_assembly(IR.format(triple=triple))))


@pytest.mark.parametrize("triple", ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"])
def test_symbols(triple: str) -> None:
    symbols = read_symbols(object_of(triple))
    assert symbols is not None
    assert symbols.undefined == ("sinf",)
    assert sorted(symbols.functions) == ["exported", "helper"]
    assert all(size > 0 for size in symbols.functions.values())


def test_another_format_is_left_alone() -> None:
    assert read_symbols(object_of("arm64-apple-macosx")) is None
    assert read_symbols(b"") is None


def test_truncated_object() -> None:
    data = object_of("x86_64-unknown-linux-gnu")
    with pytest.raises(ValueError, match="truncated ELF object"):
        read_symbols(data[: len(data) // 2])
