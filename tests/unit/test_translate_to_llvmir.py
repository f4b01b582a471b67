"""Translation of the LLVM dialect to LLVM IR."""

from __future__ import annotations

from polyblocks import mlir


def test_our_attributes_of_arguments_take_no_time() -> None:
    # The translation warns of each such attribute, with the text of the whole function: of a
    # training step of 2,000 kernels that took four times as long as everything else.
    module = mlir.parse(
        """
        module {
          llvm.func @f(%a: !llvm.ptr {llvm.noalias, polyblocks.arg = 1}, %b: i32 {polyblocks.x}) {
            llvm.return
          }
          llvm.func @g(!llvm.ptr {llvm.readonly})
        }
        """
    )
    said: list[str] = []
    handler = module.context.attach_diagnostic_handler(lambda d: (said.append(str(d)), True)[1])
    text = mlir.translate_to_llvmir(module)
    handler.detach()
    assert said == []
    assert "define void @f(ptr noalias %0, i32 %1)" in text
    assert "declare void @g(ptr readonly)" in text
