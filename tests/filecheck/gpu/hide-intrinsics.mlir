// PASSES: hide-intrinsics
//
// Math of LLVM is called by name, and keeps its flags; other intrinsics stay.

// CHECK-LABEL: llvm.func @k
// CHECK:         llvm.call_intrinsic "llvm.sqrt"(%{{.*}}) {fastmathFlags = #llvm.fastmath<contract>
// CHECK:         llvm.intr.ctpop
llvm.mlir.global internal @unrelated() : i32
gpu.module @kernels {
  llvm.func @k(%x: f32, %i: i32) attributes {gpu.kernel} {
    %0 = llvm.intr.sqrt(%x) {fastmathFlags = #llvm.fastmath<contract>} : (f32) -> f32
    %1 = llvm.intr.ctpop(%i) : (i32) -> i32
    llvm.return
  }
}
