// PASSES: lower-units
// ARCH: sapphirerapids
//
// Sums of 32 rows and 32 columns are four tiles. The chip is told once, before the loop around, in
// which all products have the same tiles, and these are given back behind it. Steps that fill no
// tile are done in smaller ones, for which the sums wait in memory.

// CHECK-DAG:     memref.global "private" constant @tiles_0 : memref<64xi8> = dense<{{.*}}> {alignment = 64 : i64}
// CHECK-LABEL: func.func @main
// CHECK:         memref.get_global @tiles_0
// CHECK:         llvm.call_intrinsic "llvm.x86.ldtilecfg"(
// CHECK:         affine.for %[[I:.*]] = 0 to 4 {
// CHECK-NOT:       ldtilecfg
// CHECK-COUNT-4:   llvm.call_intrinsic "llvm.x86.tilezero"(
// CHECK:           scf.for %[[G:.*]] = %c0{{.*}} to %c4
// CHECK:             %[[STEP:.*]] = arith.muli %[[G]], %c16
// CHECK:             affine.apply #{{.*}}(%[[I]], %c0{{.*}}, %[[STEP]])
// CHECK:             "llvm.x86.tileloadd64"(%[[A:.*]], %{{.*}}, %c256{{.*}}) : (i8, !llvm.ptr, i64) -> ()
// CHECK:             "llvm.x86.tileloadd64"(%{{.*}}, %{{.*}}, %c128{{.*}}) : (i8, !llvm.ptr, i64) -> ()
// CHECK:             "llvm.x86.tdpbf16ps"(
// CHECK:             "llvm.x86.tileloadd64"(
// CHECK:             "llvm.x86.tdpbf16ps"(
// CHECK:             "llvm.x86.tileloadd64"(
// CHECK-COUNT-2:     "llvm.x86.tdpbf16ps"(
// CHECK-COUNT-4:   llvm.call_intrinsic "llvm.x86.tilestored64"(
// CHECK-NOT:       tilerelease
// CHECK:         }
// CHECK-NEXT:    llvm.call_intrinsic "llvm.x86.tilerelease"()

// CHECK:         llvm.call_intrinsic "llvm.x86.ldtilecfg"(
// CHECK:         "llvm.x86.tilezero"(
// CHECK-NOT:     scf.for
// CHECK:         "llvm.x86.tdpbssd"(
// CHECK:         "llvm.x86.tilestored64"(
// CHECK:         llvm.call_intrinsic "llvm.x86.ldtilecfg"(
// CHECK:         "llvm.x86.tileloadd64"(
// CHECK:         "llvm.x86.tileloadd64"(
// CHECK:         "llvm.x86.tileloadd64"(
// CHECK:         "llvm.x86.tdpbssd"(
// CHECK:         "llvm.x86.tilestored64"(
// CHECK:         llvm.call_intrinsic "llvm.x86.tilerelease"()
// CHECK-NOT:     polyblocks
module {
  func.func @main(%a: memref<128x64xi32>, %b: memref<64x32xi32>, %c: memref<128x32xf32>,
                  %d: memref<5x19xi32>, %e: memref<19x7xi32>, %f: memref<5x7xi32>) {
    affine.for %t = 0 to 4 {
      "polyblocks.multiply"(%a, %b, %c, %t) {
        unit = "tdpbf16ps", shape = array<i64: 32, 32, 64>,
        accumulator = affine_map<(d0)[s0, s1] -> (d0 * 32 + s0, s1)>,
        a = affine_map<(d0)[s0, s1] -> (d0 * 32 + s0, s1)>,
        b = affine_map<(d0)[s0, s1] -> (s0, s1)>
      } : (memref<128x64xi32>, memref<64x32xi32>, memref<128x32xf32>, index) -> ()
    }
    "polyblocks.multiply"(%d, %e, %f) {
      unit = "tdpbssd", shape = array<i64: 5, 7, 19>,
      accumulator = affine_map<()[s0, s1] -> (s0, s1)>,
      a = affine_map<()[s0, s1] -> (s0, s1)>,
      b = affine_map<()[s0, s1] -> (s0, s1)>
    } : (memref<5x19xi32>, memref<19x7xi32>, memref<5x7xi32>) -> ()
    return
  }
}
