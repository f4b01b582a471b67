// PASSES: choose-kernels
// TARGET: nvgpu sm_90a
//
// Two small products whose quickest kernels have equal tiles and clusters: join-launches does not
// take such kernels, so that they would be two launches. One without clusters is quicker.

// CHECK-NOT: cluster =
// CHECK:     unit = "
// CHECK-NOT: cluster =
func.func @main(%a: memref<64x512xf16>, %b: memref<256x512xf16>, %d: memref<256x512xf16>,
                %c: memref<64x256xf16>, %e: memref<64x256xf16>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 256 {
      %s = affine.for %k = 0 to 512 iter_args(%t = %zero) -> (f32) {
        %x = affine.load %a[%i, %k] : memref<64x512xf16>
        %y = affine.load %b[%j, %k] : memref<256x512xf16>
        %u = arith.extf %x : f16 to f32
        %v = arith.extf %y : f16 to f32
        %z = arith.mulf %u, %v fastmath<reassoc,contract> : f32
        %w = arith.addf %t, %z fastmath<reassoc,contract> : f32
        affine.yield %w : f32
      }
      %h = arith.truncf %s : f32 to f16
      affine.store %h, %c[%i, %j] : memref<64x256xf16>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 256 {
      %s = affine.for %k = 0 to 512 iter_args(%t = %zero) -> (f32) {
        %x = affine.load %a[%i, %k] : memref<64x512xf16>
        %y = affine.load %d[%j, %k] : memref<256x512xf16>
        %u = arith.extf %x : f16 to f32
        %v = arith.extf %y : f16 to f32
        %z = arith.mulf %u, %v fastmath<reassoc,contract> : f32
        %w = arith.addf %t, %z fastmath<reassoc,contract> : f32
        affine.yield %w : f32
      }
      %h = arith.truncf %s : f32 to f16
      affine.store %h, %e[%i, %j] : memref<64x256xf16>
    }
  }
  return
}
