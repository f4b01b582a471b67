// PASSES: choose-kernels
// TARGET: gpu
//
// The schedule of a product that a matrix unit computes: tiles of a block and of a warp, steps for
// which operands are in shared memory, and how many tiles there are of these. What follows from them
// stands beside it: the tiles in shared memory, how they are filled, and that lanes exchange their
// sums, to store results from there.

// CHECK-LABEL: func.func @main
// CHECK-NOT:   gpu.
// CHECK:       polyblocks.schedule = {block_tile = [{{[0-9]+}}, {{[0-9]+}}], k_block = {{16|32|64}} : i64,
// CHECK-SAME:    kernel = "kernel", predicted = {{{.*}}}, register_tile = [{{[0-9]+}}, {{[0-9]+}}],
// CHECK-SAME:    resident = 1 : i64, staged = true, stages = 2 : i64,
// CHECK-SAME:    staging = {asynchronous = [false, false], barrier = {{[0-9]+}} : i64,
// CHECK-SAME:    shared = {{\[\[}}2, {{[0-9]+}}, {{[0-9]+}}], [2, {{[0-9]+}}, {{[0-9]+}}]], stored = {{[0-9]+}} : i64},
// CHECK-SAME:    unit = "unit"}
func.func @main(%a: memref<1024x512xf16>, %b: memref<1024x512xf16>, %c: memref<1024x1024xf16>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 1024 {
    affine.for %j = 0 to 1024 {
      %s = affine.for %k = 0 to 512 iter_args(%t = %zero) -> (f32) {
        %x = affine.load %a[%i, %k] : memref<1024x512xf16>
        %y = affine.load %b[%j, %k] : memref<1024x512xf16>
        %u = arith.extf %x : f16 to f32
        %v = arith.extf %y : f16 to f32
        %z = arith.mulf %u, %v fastmath<reassoc,contract> : f32
        %w = arith.addf %t, %z fastmath<reassoc,contract> : f32
        affine.yield %w : f32
      }
      %h = arith.truncf %s : f32 to f16
      affine.store %h, %c[%i, %j] : memref<1024x1024xf16>
    }
  }
  return
}
