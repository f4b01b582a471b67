// PASSES: choose-kernels
// TARGET: nvgpu sm_80
//
// Sums of the rows of a product of few blocks: groups of threads have as many as the product has,
// since blocks of one launch do.

// CHECK-LABEL: func.func @main
// CHECK:       polyblocks.schedule = {block_tile = [[TILE:.*]], kernel
// CHECK:       polyblocks.schedule = {
// CHECK-SAME:    group = 128 : i64, groups = 1 : i64
func.func @main(%a: memref<128x768xf16>, %b: memref<768x768xf16>, %c: memref<128x768xf16>,
                %d: memref<128xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 128 {
    affine.for %j = 0 to 768 {
      %s = affine.for %k = 0 to 768 iter_args(%t = %zero) -> (f32) {
        %x = affine.load %a[%i, %k] : memref<128x768xf16>
        %y = affine.load %b[%j, %k] : memref<768x768xf16>
        %u = arith.extf %x : f16 to f32
        %v = arith.extf %y : f16 to f32
        %z = arith.mulf %u, %v fastmath<reassoc,contract> : f32
        %w = arith.addf %t, %z fastmath<reassoc,contract> : f32
        affine.yield %w : f32
      }
      %h = arith.truncf %s : f32 to f16
      affine.store %h, %c[%i, %j] : memref<128x768xf16>
    }
  }
  affine.for %i = 0 to 128 {
    %s = affine.for %k = 0 to 768 iter_args(%t = %zero) -> (f32) {
      %x = affine.load %c[%i, %k] : memref<128x768xf16>
      %u = arith.extf %x : f16 to f32
      %w = arith.addf %t, %u fastmath<reassoc,contract> : f32
      affine.yield %w : f32
    }
    affine.store %s, %d[%i] : memref<128xf32>
  }
  return
}
