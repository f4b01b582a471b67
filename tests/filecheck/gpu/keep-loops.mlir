// PASSES: keep-loops
//
// Of branches, LLVM sees its own attribute alone.

// CHECK-LABEL: llvm.func @k
// CHECK:       ^bb1
// CHECK:         llvm.cond_br %{{.*}}, ^bb2, ^bb3{{$}}
// CHECK:         llvm.br ^bb1(%{{.*}} : i32) {loop_annotation = #loop_annotation}
// CHECK-NOT:   llvm.loop_annotation
gpu.module @kernels {
  llvm.func @k(%n: i32) attributes {gpu.kernel} {
    %0 = llvm.mlir.constant(0 : i32) : i32
    %1 = llvm.mlir.constant(1 : i32) : i32
    llvm.br ^bb1(%0 : i32)
  ^bb1(%i: i32):
    %2 = llvm.icmp "slt" %i, %n : i32
    llvm.cond_br %2, ^bb2, ^bb3
  ^bb2:
    %3 = llvm.add %i, %1 : i32
    llvm.br ^bb1(%3 : i32) {llvm.loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
  ^bb3:
    llvm.return
  }
}
