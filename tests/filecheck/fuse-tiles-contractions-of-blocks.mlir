// PASSES: fuse-tiles
// TARGET: gpu
//
// A contraction whose steps are unrolled in part is computed in tiles of registers if it is a nest of its
// own. That is faster than a tile of shared memory, which saves storing what it reads.

// CHECK-LABEL: @main
// CHECK:         affine.for %{{.*}} = 0 to 4 {
// CHECK:           affine.store %{{.*}}, %[[X:.*]][
// CHECK:         affine.for %{{.*}} = 0 to 4 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 32 {
// CHECK-NEXT:        affine.for %{{.*}} = 0 to 128 {
// CHECK-NEXT:          affine.for %{{.*}} = 0 to 128 {
// CHECK:                 affine.for %{{.*}} = 0 to 32 iter_args
// CHECK:                   affine.load %[[X]][
func.func @main(%a: memref<4x32x256x256xf32>, %w: memref<32x32x2x2xf32>, %b: memref<4x32x128x128xf32>) {
  %x = memref.alloc() : memref<4x32x256x256xf32>
  %z = arith.constant 0.0 : f32
  affine.for %n = 0 to 4 {
    affine.for %c = 0 to 32 {
      affine.for %h = 0 to 256 {
        affine.for %v = 0 to 256 {
          %0 = affine.load %a[%n, %c, %h, %v] : memref<4x32x256x256xf32>
          %1 = arith.maximumf %0, %z : f32
          affine.store %1, %x[%n, %c, %h, %v] : memref<4x32x256x256xf32>
        }
      }
    }
  }
  affine.for %n = 0 to 4 {
    affine.for %k = 0 to 32 {
      affine.for %h = 0 to 128 {
        affine.for %v = 0 to 128 {
          %s = affine.for %c = 0 to 32 iter_args(%t = %z) -> (f32) {
            %x0 = affine.load %x[%n, %c, %h * 2, %v * 2] : memref<4x32x256x256xf32>
            %w0 = affine.load %w[%k, %c, 0, 0] : memref<32x32x2x2xf32>
            %p0 = arith.mulf %x0, %w0 : f32
            %t0 = arith.addf %t, %p0 fastmath<reassoc> : f32
            %x1 = affine.load %x[%n, %c, %h * 2, %v * 2 + 1] : memref<4x32x256x256xf32>
            %w1 = affine.load %w[%k, %c, 0, 1] : memref<32x32x2x2xf32>
            %p1 = arith.mulf %x1, %w1 : f32
            %t1 = arith.addf %t0, %p1 fastmath<reassoc> : f32
            affine.yield %t1 : f32
          }
          affine.store %s, %b[%n, %k, %h, %v] : memref<4x32x128x128xf32>
        }
      }
    }
  }
  return
}
