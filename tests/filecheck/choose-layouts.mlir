// PASSES: choose-layouts
//
// Images with channels last: what is padded in between has channels last, too, and so has what is
// computed of that. An array that is used in two orders stays as it is.

// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[NEXT:.*]] = memref.alloc() : memref<8x9x6xf32>
// CHECK-DAG:     %[[PADDED:.*]] = memref.alloc() : memref<8x10x6xf32>
// CHECK-DAG:     %[[BOTH:.*]] = memref.alloc() : memref<6x8xf32>
// CHECK:         affine.for %[[C:.*]] = 0 to 6 {
// CHECK:           affine.for %[[I:.*]] = 0 to 8 {
// CHECK:             affine.for %[[J:.*]] = 0 to 9 {
// CHECK:               affine.store %{{.*}}, %[[PADDED]][%[[I]], %[[J]] + 1, %[[C]]]
// CHECK:               affine.load %[[PADDED]][%{{.*}}, %{{.*}} + 1, %[[D:.*]]]
// CHECK:               affine.store %{{.*}}, %[[NEXT]][%{{.*}}, %{{.*}}, %[[D]]]
// CHECK:             affine.store %{{.*}}, %[[BOTH]][%[[A:.*]], %[[B:.*]]]
// CHECK:             affine.load %[[BOTH]][

module {
  func.func @main(%x: memref<6x8x9xf32, strided<[1, 54, 6]>>, %y: memref<6x8x9xf32, strided<[1, 54, 6]>>,
                  %p: memref<6x8xf32>, %q: memref<8x6xf32>) {
    %padded = memref.alloc() : memref<6x8x10xf32>
    %next = memref.alloc() : memref<6x8x9xf32>
    %both = memref.alloc() : memref<6x8xf32>
    affine.for %c = 0 to 6 { affine.for %i = 0 to 8 { affine.for %j = 0 to 9 {
      %v = affine.load %x[%c, %i, %j] : memref<6x8x9xf32, strided<[1, 54, 6]>>
      affine.store %v, %padded[%c, %i, %j + 1] : memref<6x8x10xf32>
    } } }
    affine.for %c = 0 to 6 { affine.for %i = 0 to 8 { affine.for %j = 0 to 9 {
      %v = affine.load %padded[%c, %i, %j + 1] : memref<6x8x10xf32>
      affine.store %v, %next[%c, %i, %j] : memref<6x8x9xf32>
    } } }
    affine.for %c = 0 to 6 { affine.for %i = 0 to 8 { affine.for %j = 0 to 9 {
      %v = affine.load %next[%c, %i, %j] : memref<6x8x9xf32>
      affine.store %v, %y[%c, %i, %j] : memref<6x8x9xf32, strided<[1, 54, 6]>>
    } } }
    affine.for %i = 0 to 6 { affine.for %j = 0 to 8 {
      %v = affine.load %p[%i, %j] : memref<6x8xf32>
      affine.store %v, %both[%i, %j] : memref<6x8xf32>
    } }
    affine.for %i = 0 to 6 { affine.for %j = 0 to 8 {
      %v = affine.load %both[%i, %j] : memref<6x8xf32>
      affine.store %v, %q[%j, %i] : memref<8x6xf32>
    } }
    return
  }
}
