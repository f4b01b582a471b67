// PASSES: plan-contractions,tile-contractions
//
// Rows of the tiles are columns of heads, which are side by side in the result: a block of them is
// a whole number of vectors, so that none of those that are stored goes from a head to the next.

// CHECK-LABEL: func.func @main
// CHECK:         %[[STRIP:.*]] = memref.alloca() {alignment = 64 : i64} : memref<16x224xf32>
// CHECK:           affine.for %[[BLOCK:.*]] = 0 to 19 {
// CHECK:             affine.store %{{.*}}, %[[STRIP]]
// CHECK:               affine.for %[[T:.*]] = 0 to 16 {
// CHECK-NEXT:            affine.for %[[V:.*]] = 0 to min {{.*}}(%[[BLOCK]]) {
// CHECK-NEXT:              affine.for %[[D:.*]] = 0 to 32 {
// CHECK:                     affine.load %[[STRIP]][%[[T]], %[[D]] + %[[V]] * 32]
// CHECK:                     affine.store %{{.*}}, %arg2[(%[[BLOCK]] * 7 + %[[V]]) floordiv 2, {{.*}} + %[[T]], %[[D]] + {{.*}}] : memref<64x256x64xf32>
func.func @main(%x: memref<256x768xf32>, %w: memref<4096x768xf32>, %out: memref<64x256x64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 256 {
    affine.for %h = 0 to 64 {
      affine.for %d = 0 to 64 {
        %r = affine.for %k = 0 to 768 iter_args(%c = %zero) -> f32 {
          %p = affine.load %x[%i, %k] : memref<256x768xf32>
          %q = affine.load %w[%h * 64 + %d, %k] : memref<4096x768xf32>
          %m = arith.mulf %p, %q fastmath<reassoc,contract> : f32
          %n = arith.addf %c, %m fastmath<reassoc,contract> : f32
          affine.yield %n : f32
        }
        affine.store %r, %out[%h, %i, %d] : memref<64x256x64xf32>
      }
    }
  }
  return
}
