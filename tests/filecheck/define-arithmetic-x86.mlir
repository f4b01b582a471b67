// PASSES: define-arithmetic
// ARCH: x86-64-v4
//
// x86's own conversions make the lowest integer of what does not fit.

// CHECK-LABEL: func.func @main
// CHECK:         llvm.call_intrinsic "llvm.x86.sse.cvttss2si"(%{{.*}}) : (vector<4xf32>) -> i32
// CHECK:         llvm.call_intrinsic "llvm.x86.sse.cvttss2si64"
// CHECK:         llvm.call_intrinsic "llvm.x86.avx512.mask.cvttps2dq.512"(%arg1, {{.*}} : (vector<16xf32>, vector<16xi32>, i16, i32) -> vector<16xi32>
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.x86.avx512.mask.cvttps2qq.512"
// CHECK:         llvm.call_intrinsic "llvm.x86.avx512.mask.cvttpd2dq.512"
// CHECK:         llvm.call_intrinsic "llvm.x86.sse2.cvttps2dq"
// CHECK:         llvm.call_intrinsic "llvm.x86.avx512.mask.cvttps2dq.512"
// CHECK:         arith.trunci %{{.*}} : vector<16xi32> to vector<16xi8>
// CHECK-NOT:     arith.fptosi
// CHECK:         return
func.func @main(%s: f32, %v: vector<16xf32>, %w: vector<32xf32>, %d: vector<8xf64>, %p: vector<2xf32>)
    -> (i32, i64, vector<16xi32>, vector<32xi64>, vector<8xi32>, vector<2xi32>, vector<16xi8>) {
  %0 = arith.fptosi %s : f32 to i32
  %1 = arith.fptosi %s : f32 to i64
  %2 = arith.fptosi %v : vector<16xf32> to vector<16xi32>
  %3 = arith.fptosi %w : vector<32xf32> to vector<32xi64>
  %4 = arith.fptosi %d : vector<8xf64> to vector<8xi32>
  %5 = arith.fptosi %p : vector<2xf32> to vector<2xi32>
  %6 = arith.fptosi %v : vector<16xf32> to vector<16xi8>
  return %0, %1, %2, %3, %4, %5, %6 : i32, i64, vector<16xi32>, vector<32xi64>, vector<8xi32>, vector<2xi32>, vector<16xi8>
}
