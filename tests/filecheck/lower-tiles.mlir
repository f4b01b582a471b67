// PASSES: lower-tiles
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
    %z = arith.constant 0.0 : f32
    %zi = arith.constant 0 : i32
    affine.for %t = 0 to 4 {
      affine.for %i = 0 to 32 {
        affine.for %j = 0 to 32 {
          %r = affine.for %k = 0 to 64 iter_args(%s = %z) -> (f32) {
            %x = affine.load %a[%t * 32 + %i, %k] : memref<128x64xi32>
            %y = affine.load %b[%k, %j] : memref<64x32xi32>
            %v = llvm.call_intrinsic "llvm.polyblocks.dot.tdpbf16ps"(%s, %x, %y) : (f32, i32, i32) -> f32
            affine.yield %v : f32
          }
          affine.store %r, %c[%t * 32 + %i, %j] : memref<128x32xf32>
        }
      } {polyblocks.unit = "tdpbf16ps"}
    }
    affine.for %i = 0 to 5 {
      affine.for %j = 0 to 7 {
        %r = affine.for %k = 0 to 19 iter_args(%s = %zi) -> (i32) {
          %x = affine.load %d[%i, %k] : memref<5x19xi32>
          %y = affine.load %e[%k, %j] : memref<19x7xi32>
          %v = llvm.call_intrinsic "llvm.polyblocks.dot.tdpbssd"(%s, %x, %y) : (i32, i32, i32) -> i32
          affine.yield %v : i32
        }
        affine.store %r, %f[%i, %j] : memref<5x7xi32>
      }
    } {polyblocks.unit = "tdpbssd"}
    return
  }
}
