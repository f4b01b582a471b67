// PASSES: straighten-copies
//
// A copy of mirrored windows is made in the order of the weights. What sums over the windows begins
// at their end; what does not reads them backwards.

// CHECK-LABEL: func.func @main
// CHECK:         %[[M:.*]] = memref.alloc() : memref<8x5xf32>
// CHECK:         affine.for %[[F:.*]] = 0 to 8 {
// CHECK-NEXT:      affine.for %[[K:.*]] = 0 to 5 {
// CHECK-NEXT:        %[[V:.*]] = affine.load %arg0[%[[F]], %[[K]]]
// CHECK-NEXT:        affine.store %[[V]], %[[M]][%[[F]], %[[K]]]
// CHECK:         affine.for %[[F:.*]] = 0 to 8 {
// CHECK-NEXT:      affine.for %[[O:.*]] = 0 to 30 {
// CHECK:             affine.for %[[K:.*]] = 0 to 5 iter_args(
// CHECK-NEXT:          affine.load %[[M]][%[[F]], %[[K]]]
// CHECK-NEXT:          affine.load %arg1[%[[O]] - %[[K]] + 4]
// CHECK:         affine.for %[[F:.*]] = 0 to 8 {
// CHECK-NEXT:      affine.for %[[K:.*]] = 0 to 5 {
// CHECK-NEXT:        affine.load %[[M]][%[[F]], -%[[K]] + 4]
// CHECK-NEXT:        affine.store %{{.*}}, %arg3[%[[F]], %[[K]]]

module {
  func.func @main(%w: memref<8x5xf32>, %x: memref<34xf32>, %y: memref<8x30xf32>, %z: memref<8x5xf32>) {
    %zero = arith.constant 0.0 : f32
    %m = memref.alloc() : memref<8x5xf32>
    affine.for %f = 0 to 8 { affine.for %k = 0 to 5 {
      %v = affine.load %w[%f, -%k + 4] : memref<8x5xf32>
      affine.store %v, %m[%f, %k] : memref<8x5xf32>
    } }
    affine.for %f = 0 to 8 { affine.for %o = 0 to 30 {
      %s = affine.for %k = 0 to 5 iter_args(%a = %zero) -> f32 {
        %l = affine.load %m[%f, %k] : memref<8x5xf32>
        %r = affine.load %x[%o + %k] : memref<34xf32>
        %p = arith.mulf %l, %r fastmath<reassoc,contract> : f32
        %t = arith.addf %a, %p fastmath<reassoc,contract> : f32
        affine.yield %t : f32
      }
      affine.store %s, %y[%f, %o] : memref<8x30xf32>
    } }
    affine.for %f = 0 to 8 { affine.for %k = 0 to 5 {
      %v = affine.load %m[%f, %k] : memref<8x5xf32>
      affine.store %v, %z[%f, %k] : memref<8x5xf32>
    } }
    return
  }
}
