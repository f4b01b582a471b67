// PASSES: tile-transposes
//
// Loops around a transposition may end early, and so may a transposed one: whole squares, and a
// loop over the rest. One that ends where another one says stays as it is.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[T:.*]] = 0 to 4
// CHECK-NEXT:      affine.for %{{.*}} = 0 to min
// CHECK:             affine.for %{{.*}} = 0 to 16 {
// CHECK-NEXT:          affine.for %{{.*}} = 0 to 16 {
// CHECK-NEXT:            affine.load
// CHECK-NEXT:            affine.store
// CHECK:         affine.for %[[U:.*]] = 0 to 6
// CHECK:           affine.for %{{.*}} = 0 to min
// CHECK-NEXT:        affine.for %{{.*}} = 0 to 16 {
// CHECK-NEXT:          affine.for %{{.*}} = 0 to 16 {
// CHECK-NEXT:            affine.load
// CHECK-NEXT:            affine.store
// CHECK:           affine.for %{{.*}} = #{{.*}} to min
// CHECK-NEXT:        affine.for %{{.*}} = 0 to 16
// CHECK-NEXT:          affine.load
// CHECK-NEXT:          affine.store
// CHECK:         affine.for %[[I:.*]] = 0 to 64
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to min
// CHECK-NEXT:        affine.load %{{.*}}[%[[J]], %[[I]]]
#rows = affine_map<(d0) -> (8, d0 * -8 + 31)>
#many = affine_map<(d0) -> (32, d0 * -32 + 173)>
#start = affine_map<(d0) -> (64, d0 + 3)>
func.func @main(%a: memref<31x64x32xf32>, %b: memref<31x32x64xf32>,
                %e: memref<173x16xf32>, %f: memref<16x173xf32>,
                %c: memref<128x64xf32>, %d: memref<64x128xf32>) {
  affine.for %t = 0 to 4 {
    affine.for %r = 0 to min #rows(%t) {
      affine.for %i = 0 to 64 {
        affine.for %j = 0 to 32 {
          %x = affine.load %a[%t * 8 + %r, %i, %j] : memref<31x64x32xf32>
          affine.store %x, %b[%t * 8 + %r, %j, %i] : memref<31x32x64xf32>
        }
      }
    }
  }
  affine.for %t = 0 to 6 {
    affine.for %i = 0 to min #many(%t) {
      affine.for %j = 0 to 16 {
        %x = affine.load %e[%t * 32 + %i, %j] : memref<173x16xf32>
        affine.store %x, %f[%j, %t * 32 + %i] : memref<16x173xf32>
      }
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to min #start(%i) {
      %x = affine.load %c[%j, %i] : memref<128x64xf32>
      affine.store %x, %d[%i, %j] : memref<64x128xf32>
    }
  }
  return
}
