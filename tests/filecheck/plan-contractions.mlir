// PASSES: plan-contractions
// ARCH: x86-64-v3
//
// The tiles of a product, as its schedule: six rows of two vectors in registers, the transposed right
// operand packed, eight chunks for eight threads. The nest stays as it is.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %{{.*}} = 0 to 480 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 90 {
// CHECK:        %{{.*}} = affine.for %{{.*}} = 0 to 320 iter_args(
// CHECK:       } {polyblocks.schedule = {block_tile = [60, 48], chunks = [4, 2], k_block = 320 : i64,
// CHECK-SAME:    packed = [false, true], register_tile = [6, 16], staged = false,
// CHECK-SAME:    sum_chunk = 160 : i64, threads = 8 : i64, transposed = false, windows = false}}
module {
  func.func @main(%a: memref<480x320xf32>, %b: memref<90x320xf32>, %c: memref<480x90xf32>) {
    %z = arith.constant 0.0 : f32
    affine.for %i = 0 to 480 {
      affine.for %j = 0 to 90 {
        %r = affine.for %k = 0 to 320 iter_args(%s = %z) -> (f32) {
          %x = affine.load %a[%i, %k] : memref<480x320xf32>
          %y = affine.load %b[%j, %k] : memref<90x320xf32>
          %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
          %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }
        affine.store %r, %c[%i, %j] : memref<480x90xf32>
      }
    }
    return
  }
}
