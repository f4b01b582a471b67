// PASSES: form-reductions
//
// Sums along the outer loop: it moves inside and carries the sum. A prefix sum has its store
// depend on every loop and stays. Two loops may count through one dimension, as the groups of a
// convolution do.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[J:.*]] = 0 to 16 {
// CHECK-NEXT:      %[[Z:.*]] = affine.load %{{.*}}[%[[J]]]
// CHECK-NEXT:      %[[R:.*]] = affine.for %[[I:.*]] = 0 to 8 iter_args(%[[ACC:.*]] = %[[Z]]) -> (f32) {
// CHECK-NEXT:        %[[X:.*]] = affine.load %{{.*}}[%[[I]], %[[J]]]
// CHECK-NEXT:        %[[S:.*]] = arith.addf %[[ACC]], %[[X]]
// CHECK-NEXT:        affine.yield %[[S]]
// CHECK:           affine.store %[[R]], %{{.*}}[%[[J]]]
// CHECK:         affine.for %[[K:.*]] = 0 to 15 {
// CHECK-NOT:       iter_args
// CHECK:           affine.store %{{.*}}, %{{.*}}[%[[K]] + 1]
// CHECK:         affine.for %[[G:.*]] = 0 to 4 {
// CHECK-NEXT:      affine.for %[[O:.*]] = 0 to 4 {
// CHECK-NEXT:        affine.load %{{.*}}[%[[G]] * 4 + %[[O]]]
// CHECK-NEXT:        affine.for %[[I:.*]] = 0 to 8 iter_args(
// CHECK-NEXT:          affine.load %{{.*}}[%[[I]], %[[G]] * 4 + %[[O]]]
// CHECK:         affine.for
// CHECK-NEXT:      affine.for
// CHECK-NEXT:        affine.for
// CHECK-NOT:           iter_args
func.func @main(%a: memref<8x16xf32>, %b: memref<16xf32>, %c: memref<16xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 16 {
      %s = affine.load %b[%j] : memref<16xf32>
      %x = affine.load %a[%i, %j] : memref<8x16xf32>
      %t = arith.addf %s, %x : f32
      affine.store %t, %b[%j] : memref<16xf32>
    }
  }
  affine.for %k = 0 to 15 {
    %p = affine.load %c[%k] : memref<16xf32>
    %x = affine.load %c[%k + 1] : memref<16xf32>
    %t = arith.addf %p, %x : f32
    affine.store %t, %c[%k + 1] : memref<16xf32>
  }
  affine.for %g = 0 to 4 {
    affine.for %o = 0 to 4 {
      affine.for %i = 0 to 8 {
        %s = affine.load %b[%g * 4 + %o] : memref<16xf32>
        %x = affine.load %a[%i, %g * 4 + %o] : memref<8x16xf32>
        %t = arith.addf %s, %x : f32
        affine.store %t, %b[%g * 4 + %o] : memref<16xf32>
      }
    }
  }
  // These meet: what one iteration leaves, another one adds to.
  affine.for %g = 0 to 4 {
    affine.for %o = 0 to 5 {
      affine.for %i = 0 to 8 {
        %s = affine.load %c[%g * 3 + %o] : memref<16xf32>
        %x = affine.load %a[%i, %g * 3 + %o] : memref<8x16xf32>
        %t = arith.addf %s, %x : f32
        affine.store %t, %c[%g * 3 + %o] : memref<16xf32>
      }
    }
  }
  return
}
