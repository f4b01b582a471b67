// PASSES: multiply-reciprocals
//
// The divisor is the same in all iterations of the inner loop: it is inverted in front of it, after
// it was moved to where its reciprocal is a normal number. A division that has to be exact stays.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK:           %[[D:.*]] = affine.load %arg1[%[[I]]]
// CHECK:           %[[A:.*]] = math.absf %[[D]]
// CHECK:           arith.cmpf olt, %[[A]]
// CHECK:           arith.cmpf ogt, %[[A]]
// CHECK:           arith.select
// CHECK:           %[[S:.*]] = arith.select
// CHECK:           %[[T:.*]] = arith.mulf %[[D]], %[[S]]
// CHECK:           %[[R:.*]] = arith.divf %{{.*}}, %[[T]]
// CHECK:           affine.for
// CHECK:             %[[X:.*]] = affine.load %arg0
// CHECK:             %[[Y:.*]] = arith.mulf %[[X]], %[[S]] : f32
// CHECK:             arith.mulf %[[Y]], %[[R]] : f32
// CHECK:         affine.for
// CHECK:           affine.for
// CHECK:             arith.divf
func.func @main(%x: memref<8x64xf32>, %d: memref<8xf32>, %out: memref<8x64xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %a = affine.load %x[%i, %j] : memref<8x64xf32>
      %b = affine.load %d[%i] : memref<8xf32>
      %q = arith.divf %a, %b fastmath<reassoc,contract> : f32
      affine.store %q, %out[%i, %j] : memref<8x64xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %a = affine.load %x[%i, %j] : memref<8x64xf32>
      %b = affine.load %d[%i] : memref<8xf32>
      %q = arith.divf %a, %b : f32
      affine.store %q, %out[%i, %j] : memref<8x64xf32>
    }
  }
  return
}
