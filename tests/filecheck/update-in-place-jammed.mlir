// PASSES: update-in-place
//
// Two rows in one: each element of %x is read where that of %y is stored, whichever of the two it
// is. %w cannot be %y: where its first row is stored, the second one is still to be read. Nor can
// %v be %w, whose elements would be read after they were stored for the first time.

// CHECK-LABEL: func.func @main
// CHECK:         %[[X:.*]] = memref.alloc() : memref<8x16xf32>
// CHECK:         affine.for %[[I:.*]] = 0 to 4 {
// CHECK-NEXT:      affine.for %[[K:.*]] = 0 to 16 {
// CHECK:             affine.load %[[X]][%[[I]] * 2, %[[K]]]
// CHECK:             affine.load %[[X]][%[[I]] * 2 + 1, %[[K]]]
// CHECK:             affine.store %{{.*}}, %[[X]][%[[I]] * 2, %[[K]]]
// CHECK:             affine.store %{{.*}}, %[[X]][%[[I]] * 2 + 1, %[[K]]]
// CHECK:         %[[W:.*]] = memref.alloc() : memref<8x16xf32>
// CHECK:         affine.for %[[I:.*]] = 0 to 4 {
// CHECK:             affine.store %{{.*}}, %[[W]][%[[I]] * 2, %{{.*}}]
// CHECK:             affine.load %[[X]][%[[I]] * 2 + 1, %{{.*}}]
// CHECK:             affine.store %{{.*}}, %[[W]][%[[I]] * 2 + 1, %{{.*}}]
// CHECK:         %[[V:.*]] = memref.alloc() : memref<8x16xf32>
// CHECK:         affine.for %[[I:.*]] = 0 to 7 {
// CHECK:             affine.load %[[W]][%[[I]], %{{.*}}]
// CHECK:             affine.store %{{.*}}, %[[V]][%[[I]], %{{.*}}]
func.func @main(%a: memref<8x16xf32>, %b: memref<8x16xf32>) {
  %x = memref.alloc() : memref<8x16xf32>
  affine.for %i = 0 to 8 {
    affine.for %k = 0 to 16 {
      %0 = affine.load %a[%i, %k] : memref<8x16xf32>
      %1 = arith.negf %0 : f32
      affine.store %1, %x[%i, %k] : memref<8x16xf32>
    }
  }
  %y = memref.alloc() : memref<8x16xf32>
  affine.for %i = 0 to 4 {
    affine.for %k = 0 to 16 {
      %0 = affine.load %x[2 * %i, %k] : memref<8x16xf32>
      %1 = affine.load %x[2 * %i + 1, %k] : memref<8x16xf32>
      %2 = arith.mulf %0, %0 : f32
      %3 = arith.mulf %1, %1 : f32
      affine.store %2, %y[2 * %i, %k] : memref<8x16xf32>
      affine.store %3, %y[2 * %i + 1, %k] : memref<8x16xf32>
    }
  }
  %w = memref.alloc() : memref<8x16xf32>
  affine.for %i = 0 to 4 {
    affine.for %k = 0 to 16 {
      %0 = affine.load %y[2 * %i, %k] : memref<8x16xf32>
      %1 = affine.load %y[2 * %i + 1, %k] : memref<8x16xf32>
      %2 = arith.addf %0, %1 : f32
      affine.store %2, %w[2 * %i, %k] : memref<8x16xf32>
      %3 = affine.load %y[2 * %i + 1, %k] : memref<8x16xf32>
      %4 = arith.subf %3, %0 : f32
      %5 = affine.load %y[2 * %i, %k] : memref<8x16xf32>
      %6 = arith.mulf %4, %5 : f32
      affine.store %6, %w[2 * %i + 1, %k] : memref<8x16xf32>
    }
  }
  %v = memref.alloc() : memref<8x16xf32>
  affine.for %i = 0 to 7 {
    affine.for %k = 0 to 16 {
      %0 = affine.load %w[%i, %k] : memref<8x16xf32>
      %1 = affine.load %w[%i + 1, %k] : memref<8x16xf32>
      %2 = arith.addf %0, %1 : f32
      %3 = arith.mulf %0, %1 : f32
      affine.store %2, %v[%i, %k] : memref<8x16xf32>
      affine.store %3, %v[%i + 1, %k] : memref<8x16xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %k = 0 to 16 {
      %0 = affine.load %v[%i, %k] : memref<8x16xf32>
      affine.store %0, %b[%i, %k] : memref<8x16xf32>
    }
  }
  return
}
