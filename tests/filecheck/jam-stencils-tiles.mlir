// PASSES: jam-stencils
// ARCH: x86-64-v4
//
// Three sums of the same long rows of a tile are made at once, with a look-up behind its check.

// CHECK-LABEL: func.func @main
// CHECK:         math.absf
// CHECK:         affine.for %[[R:.*]] = 0 to 8 {
// CHECK-NEXT:      affine.for %[[X:.*]] = 0 to 2048 {
// CHECK:             affine.load %[[ROWS:.*]][0, %[[R]], %[[X]]] : memref<2x8x2048xf32>
// CHECK:             affine.load %[[ROWS]][1, %[[R]], %[[X]]] : memref<2x8x2048xf32>
// CHECK:             cf.assert %{{.*}}, "index out of range"
// CHECK-NOT:         affine.load %[[ROWS]]
// CHECK:             cf.assert %{{.*}}, "index out of range"
// CHECK:             cf.assert %{{.*}}, "index out of range"
// CHECK:             memref.load
// CHECK:             affine.store %{{.*}}, %{{.*}}[0,
// CHECK:             memref.load
// CHECK:             affine.store %{{.*}}, %{{.*}}[1,
// CHECK:             memref.load
// CHECK:             affine.store %{{.*}}, %{{.*}}[2,
//
// Short rows are still in the first cache.
//
// CHECK:         affine.for %{{.*}} = 0 to 3 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 8 {
// CHECK-NEXT:        affine.for %{{.*}} = 0 to 128 {
// CHECK:               affine.load %{{.*}} : memref<2x8x128xf32>
// CHECK:               affine.load %{{.*}} : memref<2x8x128xf32>
// CHECK-NOT:           affine.load %{{.*}} : memref<2x8x128xf32>
// CHECK:               affine.store
// CHECK-NEXT:        }
func.func @main(%a: memref<2x64x2048xf32>, %m: memref<3x2xf32>, %table: memref<64xf32>,
                %b: memref<3x64x2048xf32>, %c: memref<3x64x128xf32>) {
  affine.for %t = 0 to 8 {
    %rows = memref.alloca() : memref<2x8x2048xf32>
    affine.for %k = 0 to 2 {
      affine.for %r = 0 to 8 {
        affine.for %x = 0 to 2048 {
          %0 = affine.load %a[%k, %r + %t * 8, %x] : memref<2x64x2048xf32>
          %1 = math.absf %0 : f32
          affine.store %1, %rows[%k, %r, %x] : memref<2x8x2048xf32>
        }
      }
    }
    affine.for %i = 0 to 3 {
      affine.for %r = 0 to 8 {
        affine.for %x = 0 to 2048 {
          %0 = affine.load %rows[0, %r, %x] : memref<2x8x2048xf32>
          %1 = affine.load %rows[1, %r, %x] : memref<2x8x2048xf32>
          %2 = affine.load %m[%i, 0] : memref<3x2xf32>
          %3 = affine.load %m[%i, 1] : memref<3x2xf32>
          %4 = arith.mulf %0, %2 fastmath<reassoc,contract> : f32
          %5 = arith.mulf %1, %3 fastmath<reassoc,contract> : f32
          %6 = arith.addf %4, %5 fastmath<reassoc,contract> : f32
          %7 = arith.fptosi %6 : f32 to i32
          %c64 = arith.constant 64 : i32
          %8 = arith.cmpi ult, %7, %c64 : i32
          cf.assert %8, "index out of range"
          %9 = arith.index_cast %7 : i32 to index
          %10 = memref.load %table[%9] : memref<64xf32>
          affine.store %10, %b[%i, %r + %t * 8, %x] : memref<3x64x2048xf32>
        }
      }
    }
  } {polyblocks.tile}
  affine.for %t = 0 to 8 {
    %rows = memref.alloca() : memref<2x8x128xf32>
    affine.for %k = 0 to 2 {
      affine.for %r = 0 to 8 {
        affine.for %x = 0 to 128 {
          %0 = affine.load %a[%k, %r + %t * 8, %x] : memref<2x64x2048xf32>
          %1 = math.absf %0 : f32
          affine.store %1, %rows[%k, %r, %x] : memref<2x8x128xf32>
        }
      }
    }
    affine.for %i = 0 to 3 {
      affine.for %r = 0 to 8 {
        affine.for %x = 0 to 128 {
          %0 = affine.load %rows[0, %r, %x] : memref<2x8x128xf32>
          %1 = affine.load %rows[1, %r, %x] : memref<2x8x128xf32>
          %2 = affine.load %m[%i, 0] : memref<3x2xf32>
          %3 = affine.load %m[%i, 1] : memref<3x2xf32>
          %4 = arith.mulf %0, %2 fastmath<reassoc,contract> : f32
          %5 = arith.mulf %1, %3 fastmath<reassoc,contract> : f32
          %6 = arith.addf %4, %5 fastmath<reassoc,contract> : f32
          affine.store %6, %c[%i, %r + %t * 8, %x] : memref<3x64x128xf32>
        }
      }
    }
  } {polyblocks.tile}
  return
}
