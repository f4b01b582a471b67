// PASSES: plan-contractions,tile-contractions,expand-packing,vectorize-nests
// ARCH: x86-64-v4
//
// Few rows: columns are used where they are. Steps that are nearly a page apart are as many streams
// for hardware as whole pages are.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[K:.*]] = 0 to {{.*}} iter_args(
// CHECK:           memref.prefetch %{{.*}}[%{{.*}}], read, locality<2>, data
// CHECK:           memref.prefetch %{{.*}}[%{{.*}}], read, locality<2>, data
// CHECK:           vector.load %{{.*}} : memref<4096000xf32>, vector<32xf32>

module {
  func.func @main(%a: memref<8x4096xf32>, %b: memref<4096x1000xf32>, %c: memref<8x1000xf32>) {
    %z = arith.constant 0.0 : f32
    affine.for %i = 0 to 8 {
      affine.for %j = 0 to 1000 {
        %r = affine.for %k = 0 to 4096 iter_args(%s = %z) -> (f32) {
          %x = affine.load %a[%i, %k] : memref<8x4096xf32>
          %y = affine.load %b[%k, %j] : memref<4096x1000xf32>
          %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
          %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }
        affine.store %r, %c[%i, %j] : memref<8x1000xf32>
      }
    }
    return
  }
}
