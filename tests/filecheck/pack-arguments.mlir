// PASSES: pack-arguments
//
// Weights by channel, read along the channels for every pixel, are copied with channels last. What
// is transposed once is not.

// CHECK-LABEL: func.func @main
// CHECK:         %[[PACKED:.*]] = memref.alloc() : memref<3x16xf32>
// CHECK:         affine.for %[[K:.*]] = 0 to 3 {
// CHECK-NEXT:      affine.for %[[C:.*]] = 0 to 16 {
// CHECK-NEXT:        %[[W:.*]] = affine.load %arg1[%[[C]], %[[K]]] : memref<16x3xf32>
// CHECK-NEXT:        affine.store %[[W]], %[[PACKED]][%[[K]], %[[C]]]
// CHECK:         affine.for %[[I:.*]] = 0 to 100 {
// CHECK-NEXT:      affine.for %[[D:.*]] = 0 to 16 {
// CHECK:             affine.load %[[PACKED]][0, %[[D]]]
// CHECK:             affine.load %[[PACKED]][1, %[[D]]]
// CHECK:         affine.for
// CHECK:           affine.load %arg1[

module {
  func.func @main(%x: memref<101x16xf32>, %w: memref<16x3xf32>, %y: memref<100x16xf32>,
                  %t: memref<3x16xf32>) {
    affine.for %i = 0 to 100 { affine.for %c = 0 to 16 {
      %a = affine.load %x[%i, %c] : memref<101x16xf32>
      %v = affine.load %w[%c, 0] : memref<16x3xf32>
      %p = arith.mulf %a, %v : f32
      %b = affine.load %x[%i + 1, %c] : memref<101x16xf32>
      %u = affine.load %w[%c, 1] : memref<16x3xf32>
      %q = arith.mulf %b, %u : f32
      %s = arith.addf %p, %q : f32
      affine.store %s, %y[%i, %c] : memref<100x16xf32>
    } }
    affine.for %k = 0 to 3 { affine.for %c = 0 to 16 {
      %v = affine.load %w[%c, %k] : memref<16x3xf32>
      affine.store %v, %t[%k, %c] : memref<3x16xf32>
    } }
    return
  }
}
