// PASSES: estimate-roots
// ARCH: x86-64-v4
//
// One estimate for each register, and no root or quotient is left where terms may be rearranged.

// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: "llvm.x86.avx512.rsqrt14.ps.512"
// CHECK-NOT:     arith.divf
// CHECK:         "llvm.x86.avx512.rsqrt14.ps.256"
// CHECK:         math.absf
// CHECK-NOT:     arith.divf
// CHECK:         "llvm.x86.avx512.rsqrt14.ps.128"
//
// A quotient that is not free, a root that is needed besides, and other types stay.
//
// CHECK-NOT:     llvm.call_intrinsic
// CHECK:         arith.divf %{{.*}} : vector<16xf32>
// CHECK-NOT:     llvm.call_intrinsic
// CHECK:         arith.divf %{{.*}} : vector<16xf32>
// CHECK-NOT:     llvm.call_intrinsic
// CHECK:         arith.divf %{{.*}} : vector<8xf64>
// CHECK-NOT:     llvm.call_intrinsic
func.func @main(%x: vector<32xf32>, %s: vector<32xf32>, %y: vector<8xf32>, %t: vector<8xf32>, %h: vector<4xf32>, %z: vector<16xf32>, %u: vector<16xf32>, %d: vector<8xf64>) -> (vector<32xf32>, vector<8xf32>, vector<4xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<8xf64>) {
  %0 = math.sqrt %s : vector<32xf32>
  %1 = arith.divf %x, %0 fastmath<reassoc,contract> : vector<32xf32>
  %2 = math.sqrt %t : vector<8xf32>
  %3 = arith.mulf %2, %t : vector<8xf32>
  %4 = arith.divf %y, %3 fastmath<reassoc,contract> : vector<8xf32>
  %5 = math.rsqrt %h : vector<4xf32>
  %6 = math.sqrt %u : vector<16xf32>
  %7 = arith.divf %z, %6 fastmath<contract> : vector<16xf32>
  %8 = math.sqrt %z : vector<16xf32>
  %9 = arith.divf %u, %8 fastmath<reassoc> : vector<16xf32>
  %10 = math.sqrt %d : vector<8xf64>
  %11 = arith.divf %d, %10 fastmath<reassoc> : vector<8xf64>
  return %1, %4, %5, %7, %8, %9, %11 : vector<32xf32>, vector<8xf32>, vector<4xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<8xf64>
}
