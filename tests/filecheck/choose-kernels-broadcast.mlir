// PASSES: choose-kernels
// TARGET: gpu
//
// Neighbouring threads take neighbouring pixels, four each: what all of them read of a channel is one
// transaction, though more arrays are in order along the channels.

// CHECK-LABEL: func.func @main
// CHECK:       group = 1 : i64
// CHECK-SAME:  order = [0, 1, 2]
// CHECK-SAME:  width = 4 : i64}
func.func @main(%x: memref<4x32x65536xf32>, %m: memref<32xf32>, %s: memref<32xf32>, %w: memref<32xf32>, %o: memref<4x32x65536xf32>) {
  affine.for %n = 0 to 4 {
    affine.for %c = 0 to 32 {
      affine.for %i = 0 to 65536 {
        %0 = affine.load %x[%n, %c, %i] : memref<4x32x65536xf32>
        %1 = affine.load %m[%c] : memref<32xf32>
        %2 = affine.load %s[%c] : memref<32xf32>
        %3 = affine.load %w[%c] : memref<32xf32>
        %4 = arith.subf %0, %1 : f32
        %5 = arith.mulf %4, %2 : f32
        %6 = arith.mulf %5, %3 : f32
        affine.store %6, %o[%n, %c, %i] : memref<4x32x65536xf32>
      }
    }
  }
  return
}
