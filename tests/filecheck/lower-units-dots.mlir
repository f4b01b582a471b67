// PASSES: lower-units
// ARCH: znver4
//
// Vectors of one register, of two, of a part of one, and a scalar.

// CHECK-LABEL: func.func @main
// CHECK:         %[[A:.*]] = vector.bitcast %arg1 : vector<16xi32> to vector<64xi8>
// CHECK:         %[[B:.*]] = vector.bitcast %arg2 : vector<16xi32> to vector<64xi8>
// CHECK:         llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%arg0, %[[A]], %[[B]]) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
// CHECK-COUNT-2: "llvm.x86.avx512bf16.dpbf16ps.512"({{.*}}) : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>
// CHECK:         vector.shuffle {{.*}} : vector<16xf32>, vector<16xf32>
// CHECK:         vector.shuffle %{{.*}}, %{{.*}} [0, 1, 1, 1] : vector<2xi32>, vector<2xi32>
// CHECK:         "llvm.x86.avx512.vpdpbusd.128"
// CHECK:         vector.shuffle %{{.*}}, %{{.*}} [0, 1] : vector<4xi32>, vector<4xi32>
// CHECK:         vector.broadcast %arg9 : i32 to vector<4xi32>
// CHECK:         "llvm.x86.avx512.vpdpbusd.128"
// CHECK:         vector.extract %{{.*}}[0] : i32 from vector<4xi32>
// CHECK-NOT:     polyblocks
func.func @main(%c: vector<16xi32>, %a: vector<16xi32>, %b: vector<16xi32>,
                %cf: vector<32xf32>, %af: vector<32xi32>, %bf: vector<32xi32>,
                %c2: vector<2xi32>, %a2: vector<2xi32>, %b2: vector<2xi32>,
                %c1: i32, %a1: i32, %b1: i32) -> (vector<16xi32>, vector<32xf32>, vector<2xi32>, i32) {
  %0 = llvm.call_intrinsic "llvm.polyblocks.dot.vpdpbusd"(%c, %a, %b) : (vector<16xi32>, vector<16xi32>, vector<16xi32>) -> vector<16xi32>
  %1 = llvm.call_intrinsic "llvm.polyblocks.dot.vdpbf16ps"(%cf, %af, %bf) : (vector<32xf32>, vector<32xi32>, vector<32xi32>) -> vector<32xf32>
  %2 = llvm.call_intrinsic "llvm.polyblocks.dot.vpdpbusd"(%c2, %a2, %b2) : (vector<2xi32>, vector<2xi32>, vector<2xi32>) -> vector<2xi32>
  %3 = llvm.call_intrinsic "llvm.polyblocks.dot.vpdpbusd"(%c1, %a1, %b1) : (i32, i32, i32) -> i32
  return %0, %1, %2, %3 : vector<16xi32>, vector<32xf32>, vector<2xi32>, i32
}
