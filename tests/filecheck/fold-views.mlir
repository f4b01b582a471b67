// PASSES: fold-views
//
// Accesses through a row of an array, and through a reshaped one, go to the array itself.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.subview
// CHECK-NOT:     memref.expand_shape
// CHECK:         affine.for %[[I:.*]] = 0 to 64 {
// CHECK:           affine.load %arg0[2, %[[I]]] : memref<8x64xf32>
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to 8 {
// CHECK:             affine.load %arg1[%[[I]] * 8 + %[[J]]] : memref<64xf32>
func.func @main(%x: memref<8x64xf32>, %y: memref<64xf32>, %z: memref<8x8xf32>) {
  %row = memref.subview %x[2, 0] [1, 64] [1, 1]
    : memref<8x64xf32> to memref<64xf32, strided<[1], offset: 128>>
  affine.for %i = 0 to 64 {
    %v = affine.load %row[%i] : memref<64xf32, strided<[1], offset: 128>>
    affine.store %v, %y[%i] : memref<64xf32>
  }
  %square = memref.expand_shape %y [[0, 1]] output_shape [8, 8] : memref<64xf32> into memref<8x8xf32>
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 8 {
      %v = affine.load %square[%i, %j] : memref<8x8xf32>
      affine.store %v, %z[%j, %i] : memref<8x8xf32>
    }
  }
  return
}
