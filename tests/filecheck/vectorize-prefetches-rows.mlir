// PASSES: vectorize-nests
// ARCH: x86-64-v4
//
// Rows of a tile that are swept together, and again one by one, with a buffer for each: the second
// sweeps fetch the rows of the next tile.

// CHECK:       #[[NEXT:.*]] = affine_map<(d0, d1) -> (d0 * 4 + d1 + 4)>
// CHECK-LABEL: func.func @main
// CHECK:           %[[OWN:.*]] = memref.alloca() {alignment = 64 : i64} : memref<1xf32>
// CHECK:           %[[ROW:.*]] = affine.apply #[[NEXT]](%{{.*}}, %{{.*}})
// CHECK:           scf.for %[[C:[^ ]*]] = %{{.*}} to
// CHECK:             memref.prefetch %arg0[%[[ROW]], %[[C]]], read, locality<2>, data : memref<4096x4096xf32>
module {
  func.func @main(%a: memref<4096x4096xf32>, %out: memref<4096xf32>) {
    %low = arith.constant 0xFF800000 : f32
    %zero = arith.constant 0.0 : f32
    affine.for %t = 0 to 1024 {
      %most = memref.alloca() : memref<4xf32>
      affine.for %r = 0 to 4 {
        %m = affine.for %c = 0 to 4096 iter_args(%s = %low) -> (f32) {
          %x = affine.load %a[%t * 4 + %r, %c] : memref<4096x4096xf32>
          %n = arith.maximumf %s, %x fastmath<nsz> : f32
          affine.yield %n : f32
        }
        affine.store %m, %most[%r] : memref<4xf32>
      }
      affine.for %r = 0 to 4 {
        %own = memref.alloca() : memref<1xf32>
        %m = affine.load %most[%r] : memref<4xf32>
        affine.store %m, %own[0] : memref<1xf32>
        %d = affine.for %c = 0 to 4096 iter_args(%s = %zero) -> (f32) {
          %x = affine.load %a[%t * 4 + %r, %c] : memref<4096x4096xf32>
          %y = affine.load %own[0] : memref<1xf32>
          %z = arith.subf %x, %y fastmath<reassoc,contract> : f32
          %n = arith.addf %s, %z fastmath<reassoc,contract> : f32
          affine.yield %n : f32
        }
        affine.store %d, %out[%t * 4 + %r] : memref<4096xf32>
      } {polyblocks.tile}
    } {polyblocks.tile}
    return
  }
}
