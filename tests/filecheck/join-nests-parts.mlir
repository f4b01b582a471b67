// PASSES: classify-nests,join-nests
// TARGET: gpu
//
// Margins of many images are parts of several blocks: as many as divide a loop of each nest and have
// work for the threads of a block.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[U:.*]] = 0 to 36 {
// CHECK-NEXT:      affine.for %[[C:.*]] = 0 to 4 {
// CHECK-NEXT:        affine.for %[[J:.*]] = 0 to 32 {
// CHECK:               affine.store %{{.*}}, %arg0[%[[U]] * 4 + %[[C]], 0, %[[J]]]
// CHECK:           affine.for %[[I:.*]] = 0 to 31 {
// CHECK-NEXT:        affine.for %[[D:.*]] = 0 to 4 {
// CHECK:               affine.store %{{.*}}, %arg0[%[[U]] * 4 + %[[D]], %[[I]] + 1, 31]
// CHECK-NOT:     affine.for
// CHECK:         return

func.func @main(%p: memref<144x32x32xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %c = 0 to 144 {
    affine.for %j = 0 to 32 { affine.store %zero, %p[%c, 0, %j] : memref<144x32x32xf32> }
  }
  affine.for %i = 0 to 31 {
    affine.for %c = 0 to 144 { affine.store %zero, %p[%c, %i + 1, 31] : memref<144x32x32xf32> }
  }
  return
}
