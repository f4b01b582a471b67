// PASSES: plan-contractions,tile-contractions,expand-packing,vectorize-nests
// ARCH: x86-64-v4
//
// Few rows: columns are used where they are, in a matrix that fits no cache. Each step is in another
// page, so lines of the next tiles are fetched by the steps of this one, into the second cache.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[K:.*]] = 0 to {{.*}} iter_args(
// CHECK:           memref.prefetch %{{.*}}[%{{.*}}], read, locality<2>, data
// CHECK:           memref.prefetch %{{.*}}[%{{.*}}], read, locality<2>, data
// CHECK:           vector.load %{{.*}} : memref<16777216xf32>, vector<32xf32>

module {
  func.func @main(%a: memref<8x4096xf32>, %b: memref<4096x4096xf32>, %c: memref<8x4096xf32>) {
    %z = arith.constant 0.0 : f32
    affine.for %i = 0 to 8 {
      affine.for %j = 0 to 4096 {
        %r = affine.for %k = 0 to 4096 iter_args(%s = %z) -> (f32) {
          %x = affine.load %a[%i, %k] : memref<8x4096xf32>
          %y = affine.load %b[%k, %j] : memref<4096x4096xf32>
          %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
          %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }
        affine.store %r, %c[%i, %j] : memref<8x4096xf32>
      }
    }
    return
  }
}
