// PASSES: choose-kernels
// TARGET: nvgpu sm_90a
//
// Products that are launched together have no clusters, which launches of their own have.

// CHECK:     unit = "
// CHECK-NOT: cluster =
func.func @main(%a: memref<512x1024xf16>, %b: memref<2048x1024xf16>, %d: memref<64x1024xf16>,
                %c: memref<512x2048xf16>, %e: memref<512x64xf16>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 512 {
    affine.for %j = 0 to 2048 {
      %s = affine.for %k = 0 to 1024 iter_args(%t = %zero) -> (f32) {
        %x = affine.load %a[%i, %k] : memref<512x1024xf16>
        %y = affine.load %b[%j, %k] : memref<2048x1024xf16>
        %u = arith.extf %x : f16 to f32
        %v = arith.extf %y : f16 to f32
        %z = arith.mulf %u, %v fastmath<reassoc,contract> : f32
        %w = arith.addf %t, %z fastmath<reassoc,contract> : f32
        affine.yield %w : f32
      }
      %h = arith.truncf %s : f32 to f16
      affine.store %h, %c[%i, %j] : memref<512x2048xf16>
    }
  }
  affine.for %i = 0 to 512 {
    affine.for %j = 0 to 64 {
      %s = affine.for %k = 0 to 1024 iter_args(%t = %zero) -> (f32) {
        %x = affine.load %a[%i, %k] : memref<512x1024xf16>
        %y = affine.load %d[%j, %k] : memref<64x1024xf16>
        %u = arith.extf %x : f16 to f32
        %v = arith.extf %y : f16 to f32
        %z = arith.mulf %u, %v fastmath<reassoc,contract> : f32
        %w = arith.addf %t, %z fastmath<reassoc,contract> : f32
        affine.yield %w : f32
      }
      %h = arith.truncf %s : f32 to f16
      affine.store %h, %e[%i, %j] : memref<512x64xf16>
    }
  }
  return
}
