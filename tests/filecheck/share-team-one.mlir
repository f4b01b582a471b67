// PASSES: outline-kernels,share-team
//
// A program that comes to one parallel kernel is left alone: here one of two in a branch.

// CHECK-NOT:   main_team
// CHECK-LABEL: func.func @main
// CHECK:         call @serial(
// CHECK:         scf.if
// CHECK:           func.call @one({{.*}}) {polyblocks.team}
// CHECK:         } else {
// CHECK:           func.call @other({{.*}}) {polyblocks.team}
// CHECK-NOT:   main_team
func.func @main(%x: memref<64xf32>, %y: memref<64xf32>, %n: memref<1xi32>) {
  affine.for %i = 0 to 64 {
    %v = affine.load %x[%i] : memref<64xf32>
    affine.store %v, %y[%i] : memref<64xf32>
  } {polyblocks.kernel = "serial"}
  %zero = arith.constant 0 : i32
  %k = affine.load %n[0] : memref<1xi32>
  %c = arith.cmpi sgt, %k, %zero : i32
  scf.if %c {
    affine.parallel (%i) = (0) to (64) {
      %v = affine.load %x[%i] : memref<64xf32>
      affine.store %v, %y[%i] : memref<64xf32>
    } {polyblocks.kernel = "one", polyblocks.level = "team"}
  } else {
    affine.parallel (%i) = (0) to (64) {
      %v = affine.load %y[%i] : memref<64xf32>
      %w = arith.negf %v : f32
      affine.store %w, %y[%i] : memref<64xf32>
    } {polyblocks.kernel = "other", polyblocks.level = "team"}
  } {polyblocks.region = "cond"}
  return
}
