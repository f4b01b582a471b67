// PASSES: multiply-reciprocals
// TARGET: gpu
//
// Threads take an iteration each of loops that are nested perfectly: a nest stays so, and in a tile
// the reciprocal stands in front of all of them.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %{{.*}} = 0 to 8 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 64 {
// CHECK:             arith.divf
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK:           %[[D:.*]] = affine.load %arg1[%[[I]]]
// CHECK:           arith.divf
// CHECK:           affine.for %{{.*}} = 0 to 4 {
// CHECK-NEXT:        affine.for %{{.*}} = 0 to 64 {
// CHECK-NOT:           arith.divf
// CHECK:         return
func.func @main(%x: memref<8x64xf32>, %d: memref<8xf32>, %out: memref<8x64xf32>,
                %y: memref<8x4x64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %a = affine.load %x[%i, %j] : memref<8x64xf32>
      %b = affine.load %d[%i] : memref<8xf32>
      %q = arith.divf %a, %b fastmath<reassoc,contract> : f32
      affine.store %q, %out[%i, %j] : memref<8x64xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %k = 0 to 1 {
      affine.store %zero, %out[%i, %k] : memref<8x64xf32>
    }
    affine.for %r = 0 to 4 {
      affine.for %j = 0 to 64 {
        %a = affine.load %x[%i, %j] : memref<8x64xf32>
        %b = affine.load %d[%i] : memref<8xf32>
        %q = arith.divf %a, %b fastmath<reassoc,contract> : f32
        affine.store %q, %y[%i, %r, %j] : memref<8x4x64xf32>
      }
    }
  }
  return
}
