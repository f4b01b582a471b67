// PASSES: split-phases
// TARGET: nvgpu sm_80
//
// Products of a matrix unit with zeros are left out, too, if they take longer than to store results
// of two phases between each other: of 256 channels, not of 16.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[P:.*]] = 0 to 2 {
// CHECK:           affine.for %[[K:.*]] = 0 to 2 iter_args(
// CHECK:           affine.store %{{.*}}, %arg2[%{{.*}}, %{{.*}} * 2 + %[[P]]]
// CHECK:         affine.for %{{.*}} = 0 to 4 iter_args(
// CHECK:         affine.store %{{.*}}, %arg5[%{{.*}}, %{{.*}}]

module {
  func.func @main(%x: memref<256x8192xf16>, %w: memref<256x64x4xf16>, %y: memref<64x16384xf32>,
                  %u: memref<16x8192xf16>, %v: memref<16x64x4xf16>, %z: memref<64x16384xf32>) {
    %zero = arith.constant 0.0 : f32
    %p = memref.alloc() : memref<256x16387xf16>
    %q = memref.alloc() : memref<16x16387xf16>
    affine.for %c = 0 to 256 { affine.for %i = 0 to 16387 {
      %none = arith.constant 0.0 : f16
      affine.store %none, %p[%c, %i] {polyblocks.padding = array<i64: 1>} : memref<256x16387xf16>
    } }
    affine.for %c = 0 to 256 { affine.for %i = 0 to 8192 {
      %e = affine.load %x[%c, %i] : memref<256x8192xf16>
      affine.store %e, %p[%c, 2 * %i + 2] : memref<256x16387xf16>
    } }
    affine.for %f = 0 to 64 { affine.for %o = 0 to 16384 {
      %s = affine.for %c = 0 to 256 iter_args(%a = %zero) -> f32 {
        %t = affine.for %k = 0 to 4 iter_args(%b = %a) -> f32 {
          %l = affine.load %p[%c, %o + %k] {polyblocks.padding = array<i64: 1>} : memref<256x16387xf16>
          %r = affine.load %w[%c, %f, %k] : memref<256x64x4xf16>
          %le = arith.extf %l : f16 to f32
          %re = arith.extf %r : f16 to f32
          %m = arith.mulf %le, %re fastmath<reassoc,contract> : f32
          %n = arith.addf %b, %m fastmath<reassoc,contract> : f32
          affine.yield %n : f32
        }
        affine.yield %t : f32
      }
      affine.store %s, %y[%f, %o] : memref<64x16384xf32>
    } }
    affine.for %c = 0 to 16 { affine.for %i = 0 to 16387 {
      %none = arith.constant 0.0 : f16
      affine.store %none, %q[%c, %i] {polyblocks.padding = array<i64: 2>} : memref<16x16387xf16>
    } }
    affine.for %c = 0 to 16 { affine.for %i = 0 to 8192 {
      %e = affine.load %u[%c, %i] : memref<16x8192xf16>
      affine.store %e, %q[%c, 2 * %i + 2] : memref<16x16387xf16>
    } }
    affine.for %f = 0 to 64 { affine.for %o = 0 to 16384 {
      %s = affine.for %c = 0 to 16 iter_args(%a = %zero) -> f32 {
        %t = affine.for %k = 0 to 4 iter_args(%b = %a) -> f32 {
          %l = affine.load %q[%c, %o + %k] {polyblocks.padding = array<i64: 2>} : memref<16x16387xf16>
          %r = affine.load %v[%c, %f, %k] : memref<16x64x4xf16>
          %le = arith.extf %l : f16 to f32
          %re = arith.extf %r : f16 to f32
          %m = arith.mulf %le, %re fastmath<reassoc,contract> : f32
          %n = arith.addf %b, %m fastmath<reassoc,contract> : f32
          affine.yield %n : f32
        }
        affine.yield %t : f32
      }
      affine.store %s, %z[%f, %o] : memref<64x16384xf32>
    } }
    return
  }
}
