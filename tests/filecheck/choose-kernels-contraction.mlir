// PASSES: choose-kernels
// TARGET: gpu
//
// The schedule of a matrix product: the tiles of a thread and of a block, steps whose operands are
// in shared memory, their tiles there, and how they are copied. The nest stays as it is.

// CHECK-LABEL: func.func @main
// CHECK-NOT:   gpu.
// CHECK:         affine.for %{{.*}} = 0 to 256 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 256 {
// CHECK:       polyblocks.schedule = {block_tile = [16, 32], k_block = 16 : i64, kernel = "kernel",
// CHECK-SAME:    predicted = {{{.*}}}, register_tile = [4, 2], resident = 1 : i64,
// CHECK-SAME:    staging = {at_once = {{\[\[}}4, 1], [1, 4]], shared = {{\[\[}}4, 72], [16, 32]]}}
func.func @main(%a: memref<256x256xf32>, %b: memref<256x256xf32>, %c: memref<256x256xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 256 {
    affine.for %j = 0 to 256 {
      %s = affine.for %k = 0 to 256 iter_args(%t = %zero) -> (f32) {
        %x = affine.load %a[%i, %k] : memref<256x256xf32>
        %y = affine.load %b[%k, %j] : memref<256x256xf32>
        %z = arith.mulf %x, %y fastmath<reassoc> : f32
        %w = arith.addf %t, %z fastmath<reassoc> : f32
        affine.yield %w : f32
      }
      affine.store %s, %c[%i, %j] : memref<256x256xf32>
    }
  }
  return
}
