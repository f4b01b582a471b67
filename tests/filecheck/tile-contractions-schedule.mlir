// PASSES: tile-contractions,expand-packing
// ARCH: x86-64-v3
//
// A schedule that nobody but its author would choose is obeyed: three rows of one vector, results
// staged, nothing packed, passes of 8 steps, and chunks of the columns for two threads. A nest
// without schedule stays as it is.

// CHECK-LABEL: func.func @main
// CHECK:         affine.parallel (%[[T:.*]]) = (0) to (2) {
// CHECK:           %[[STAGED:.*]] = memref.alloca() {alignment = 64 : i64} : memref<12x48xf32>
// CHECK:           affine.for %[[PASS:.*]] = 0 to 4 {
// CHECK:             affine.for %[[LANE:.*]] = 0 to 8 {
// CHECK:               %{{.*}}:3 = affine.for %{{.*}} = 0 to 8 iter_args(
// CHECK:             {polyblocks.lanes = 8 : i64}
// CHECK:         affine.for %{{.*}} = 0 to 24 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 64 {
// CHECK-NEXT:        affine.for %{{.*}} = 0 to 32 iter_args(
module {
  func.func @main(%a: memref<24x32xf32>, %b: memref<32x64xf32>, %c: memref<24x64xf32>,
                  %d: memref<24x64xf32>) {
    %z = arith.constant 0.0 : f32
    affine.for %i = 0 to 24 {
      affine.for %j = 0 to 64 {
        %r = affine.for %k = 0 to 32 iter_args(%s = %z) -> (f32) {
          %x = affine.load %a[%i, %k] : memref<24x32xf32>
          %y = affine.load %b[%k, %j] : memref<32x64xf32>
          %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
          %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }
        affine.store %r, %c[%i, %j] : memref<24x64xf32>
      }
    } {polyblocks.schedule = {register_tile = [3, 8], block_tile = [12, 32], k_block = 8,
       sum_chunk = 8, chunks = [1, 2], packed = [false, false], threads = 2, staged = true,
       transposed = false, windows = false}}
    affine.for %i = 0 to 24 {
      affine.for %j = 0 to 64 {
        %r = affine.for %k = 0 to 32 iter_args(%s = %z) -> (f32) {
          %x = affine.load %a[%i, %k] : memref<24x32xf32>
          %y = affine.load %b[%k, %j] : memref<32x64xf32>
          %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
          %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }
        affine.store %r, %d[%i, %j] : memref<24x64xf32>
      }
    }
    return
  }
}
