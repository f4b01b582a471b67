// PASSES: expand-copies

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[I:.*]] = 0 to 4 {
// CHECK:           affine.for %[[J:.*]] = 0 to 8 {
// CHECK:             %[[V:.*]] = affine.load %{{.*}}[%[[I]], %[[J]]] : memref<4x8xf32>
// CHECK:             affine.store %[[V]], %{{.*}}[%[[I]], %[[J]]] : memref<4x8xf32, strided<[16, 1]>>
// CHECK:         affine.load %{{.*}}[] : memref<f32>
// CHECK-NOT:   memref.copy
func.func @main(%a: memref<4x8xf32>, %b: memref<4x8xf32, strided<[16, 1]>>, %c: memref<f32>, %d: memref<f32>) {
  memref.copy %a, %b : memref<4x8xf32> to memref<4x8xf32, strided<[16, 1]>>
  memref.copy %c, %d : memref<f32> to memref<f32>
  return
}
