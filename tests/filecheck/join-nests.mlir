// PASSES: classify-nests,join-nests
// TARGET: gpu
//
// The margins of a padded array are one nest. What reads a margin, what takes longer than a launch,
// and sums stay apart.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %{{.*}} = 0 to 1 {
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to 10 {
// CHECK:             affine.store %{{.*}}, %[[P:.*]][0, %[[J]]] : memref<8x10xf32>
// CHECK:           affine.for %[[I:.*]] = 0 to 6 {
// CHECK:             affine.store %{{.*}}, %[[P]][%[[I]] + 1, 9] : memref<8x10xf32>
// CHECK-NOT:     affine.for %{{.*}} = 0 to 1 {
// CHECK:         affine.for %[[J:.*]] = 0 to 10 {
// CHECK:             affine.load %[[P]][0, %[[J]]]
// CHECK-NOT:     affine.for %{{.*}} = 0 to 1 {
// CHECK:         affine.for %{{.*}} = 0 to 1000000000 {
// CHECK-NOT:     affine.for %{{.*}} = 0 to 1 {
// CHECK:         return

func.func @main(%a: memref<8x10xf32>, %b: memref<10xf32>, %c: memref<1000000000xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %p = memref.alloc() : memref<8x10xf32>
  affine.for %j = 0 to 10 { affine.store %zero, %p[0, %j] : memref<8x10xf32> }
  affine.for %i = 0 to 6 { affine.store %one, %p[%i + 1, 9] : memref<8x10xf32> }
  affine.for %j = 0 to 10 {
    %x = affine.load %p[0, %j] : memref<8x10xf32>
    affine.store %x, %b[%j] : memref<10xf32>
  }
  affine.for %i = 0 to 1000000000 { affine.store %one, %c[%i] : memref<1000000000xf32> }
  return
}
