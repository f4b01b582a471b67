// PASSES: hide-intrinsics, show-intrinsics
//
// Back again, as if nothing had been; a call without flags is not one of those.

// CHECK-LABEL: llvm.func @k
// CHECK:         llvm.intr.roundeven(%{{.*}}) : (vector<4xf32>) -> vector<4xf32>
// CHECK:         llvm.intr.fma(%{{.*}}, %{{.*}}, %{{.*}}) {fastmathFlags = #llvm.fastmath<contract>}
// CHECK:         llvm.call_intrinsic "llvm.ctpop.i32"
gpu.module @kernels {
  llvm.func @k(%x: vector<4xf32>, %i: i32) attributes {gpu.kernel} {
    %0 = llvm.intr.roundeven(%x) : (vector<4xf32>) -> vector<4xf32>
    %1 = llvm.intr.fma(%0, %x, %x) {fastmathFlags = #llvm.fastmath<contract>} : (vector<4xf32>, vector<4xf32>, vector<4xf32>) -> vector<4xf32>
    %2 = llvm.call_intrinsic "llvm.ctpop.i32"(%i) : (i32) -> i32
    llvm.return
  }
}
