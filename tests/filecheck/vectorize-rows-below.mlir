// PASSES: vectorize-nests
// ARCH: x86-64-v4
//
// A register tile reads its rows where they are. With every step it fetches a part of the rows of the
// next tile, two elements further, which another core may have stored: rows behind each other are one
// run, and between others it goes on in the next row. Rows that the nearest cache has room for are
// not fetched.

// CHECK-DAG:   #[[TWICE:.*]] = affine_map<(d0) -> (d0 * 2)>
// CHECK-DAG:   #[[BEHIND:.*]] = affine_map<(d0) -> (d0 * 2 + (d0 floordiv 128) * 4)>
// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[I:.*]] = 0 to 64 {
// CHECK:           affine.for %[[K:.*]] = 0 to 256 iter_args(
// CHECK:             %[[ROW:.*]] = affine.apply #[[TWICE]](%[[I]])
// CHECK:             %[[BELOW:.*]] = arith.addi %[[ROW]], %c2
// CHECK:             %[[PLACE:.*]] = affine.apply #[[TWICE]](%[[K]])
// CHECK:             memref.prefetch %arg0[%[[BELOW]], %[[PLACE]]], read, locality<2>, data
// CHECK-NOT:         memref.prefetch
// CHECK:         affine.for %[[I:.*]] = 0 to 64 {
// CHECK:           affine.for %[[K:.*]] = 0 to 256 iter_args(
// CHECK:             %[[PLACE:.*]] = affine.apply #[[BEHIND]](%[[K]])
// CHECK:             memref.prefetch %arg3[%{{.*}}, %[[PLACE]]], read, locality<2>, data
// CHECK-NOT:         memref.prefetch

module {
  func.func @main(%a: memref<128x256xf32>, %b: memref<256x32xf32>, %c: memref<128x32xf32>,
                  %apart: memref<128x260xf32>, %d: memref<128x32xf32>,
                  %few: memref<8x256xf32>, %e: memref<8x32xf32>) {
    affine.for %panel = 0 to 1 {
      affine.for %j = 0 to 32 {
        affine.for %i = 0 to 64 {
          %z = arith.constant 0.0 : f32
          %r:2 = affine.for %k = 0 to 256 iter_args(%s = %z, %t = %z) -> (f32, f32) {
            %y = affine.load %b[%k, %j] : memref<256x32xf32>
            %x0 = affine.load %a[%i * 2, %k] : memref<128x256xf32>
            %p0 = arith.mulf %x0, %y fastmath<contract> : f32
            %s0 = arith.addf %s, %p0 fastmath<contract> : f32
            %x1 = affine.load %a[%i * 2 + 1, %k] : memref<128x256xf32>
            %p1 = arith.mulf %x1, %y fastmath<contract> : f32
            %s1 = arith.addf %t, %p1 fastmath<contract> : f32
            affine.yield %s0, %s1 : f32, f32
          }
          affine.store %r#0, %c[%i * 2, %j] : memref<128x32xf32>
          affine.store %r#1, %c[%i * 2 + 1, %j] : memref<128x32xf32>
        }
      } {polyblocks.lanes = 32 : i64}
    }
    affine.for %panel = 0 to 1 {
      affine.for %j = 0 to 32 {
        affine.for %i = 0 to 64 {
          %z = arith.constant 0.0 : f32
          %r:2 = affine.for %k = 0 to 256 iter_args(%s = %z, %t = %z) -> (f32, f32) {
            %y = affine.load %b[%k, %j] : memref<256x32xf32>
            %x0 = affine.load %apart[%i * 2, %k] : memref<128x260xf32>
            %p0 = arith.mulf %x0, %y fastmath<contract> : f32
            %s0 = arith.addf %s, %p0 fastmath<contract> : f32
            %x1 = affine.load %apart[%i * 2 + 1, %k] : memref<128x260xf32>
            %p1 = arith.mulf %x1, %y fastmath<contract> : f32
            %s1 = arith.addf %t, %p1 fastmath<contract> : f32
            affine.yield %s0, %s1 : f32, f32
          }
          affine.store %r#0, %d[%i * 2, %j] : memref<128x32xf32>
          affine.store %r#1, %d[%i * 2 + 1, %j] : memref<128x32xf32>
        }
      } {polyblocks.lanes = 32 : i64}
    }
    affine.for %panel = 0 to 1 {
      affine.for %j = 0 to 32 {
        affine.for %i = 0 to 4 {
          %z = arith.constant 0.0 : f32
          %r:2 = affine.for %k = 0 to 256 iter_args(%s = %z, %t = %z) -> (f32, f32) {
            %y = affine.load %b[%k, %j] : memref<256x32xf32>
            %x0 = affine.load %few[%i * 2, %k] : memref<8x256xf32>
            %p0 = arith.mulf %x0, %y fastmath<contract> : f32
            %s0 = arith.addf %s, %p0 fastmath<contract> : f32
            %x1 = affine.load %few[%i * 2 + 1, %k] : memref<8x256xf32>
            %p1 = arith.mulf %x1, %y fastmath<contract> : f32
            %s1 = arith.addf %t, %p1 fastmath<contract> : f32
            affine.yield %s0, %s1 : f32, f32
          }
          affine.store %r#0, %e[%i * 2, %j] : memref<8x32xf32>
          affine.store %r#1, %e[%i * 2 + 1, %j] : memref<8x32xf32>
        }
      } {polyblocks.lanes = 32 : i64}
    }
    return
  }
}
