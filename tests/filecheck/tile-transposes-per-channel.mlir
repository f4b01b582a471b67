// PASSES: tile-transposes
//
// Parameters of a channel stay the same along the pixels of a row: however many there are, nothing
// is transposed for them, and the loop along the rows stays inside.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[C:.*]] = 0 to 32 {
// CHECK-NEXT:      affine.for %[[X:.*]] = 0 to 112 {
// CHECK-NEXT:        affine.load %arg0[%[[C]], %[[X]]]
// CHECK-NEXT:        affine.load %arg1[%[[C]]]
// CHECK-NOT:     affine.for
func.func @main(%x: memref<32x112xf32>, %mean: memref<32xf32>, %scale: memref<32xf32>, %shift: memref<32xf32>, %y: memref<32x112xf32>) {
  affine.for %c = 0 to 32 {
    affine.for %i = 0 to 112 {
      %0 = affine.load %x[%c, %i] : memref<32x112xf32>
      %1 = affine.load %mean[%c] : memref<32xf32>
      %2 = arith.subf %0, %1 : f32
      %3 = affine.load %scale[%c] : memref<32xf32>
      %4 = arith.mulf %2, %3 : f32
      %5 = affine.load %shift[%c] : memref<32xf32>
      %6 = arith.addf %4, %5 : f32
      affine.store %6, %y[%c, %i] : memref<32x112xf32>
    }
  }
  return
}
