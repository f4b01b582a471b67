// PASSES: multiply-reciprocals
//
// The reciprocal of a constant is a constant, where the division is. One that is no normal number is
// found in front of the loop as any other; a division that has to be exact stays.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for
// CHECK-NEXT:      affine.for
// CHECK:             %[[R:.*]] = arith.constant 0.00392156886 : f32
// CHECK:             arith.mulf %{{.*}}, %[[R]] : f32
// CHECK-NOT:         arith.mulf
// CHECK:         affine.for
// CHECK:           math.absf
// CHECK:           affine.for
// CHECK:             arith.mulf
// CHECK:         affine.for
// CHECK:             arith.divf
func.func @main(%x: memref<8x64xf32>, %out: memref<8x64xf32>) {
  %d = arith.constant 255.0 : f32
  %tiny = arith.constant 1.0e-40 : f32
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %a = affine.load %x[%i, %j] : memref<8x64xf32>
      %q = arith.divf %a, %d fastmath<reassoc,contract> : f32
      affine.store %q, %out[%i, %j] : memref<8x64xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %a = affine.load %x[%i, %j] : memref<8x64xf32>
      %q = arith.divf %a, %tiny fastmath<reassoc,contract> : f32
      affine.store %q, %out[%i, %j] : memref<8x64xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %a = affine.load %x[%i, %j] : memref<8x64xf32>
      %q = arith.divf %a, %d : f32
      affine.store %q, %out[%i, %j] : memref<8x64xf32>
    }
  }
  return
}
