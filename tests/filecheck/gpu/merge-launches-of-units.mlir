// PASSES: merge-launches
// TARGET: nvgpu sm_80
//
// Two margins are launched together. The product that writes between them stays a nest of its own,
// which a matrix unit computes, however short it is.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for
// CHECK:           affine.store %{{.*}}, %arg2[{{.*}}, 0]
// CHECK:           affine.store %{{.*}}, %arg2[{{.*}}, 785]
// CHECK:         affine.for %[[I:.*]] = 0 to 192 {
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to 784 {
// CHECK:             arith.mulf
// CHECK:             affine.store %{{.*}}, %arg2[%[[I]], %[[J]] + 1]
// CHECK-NOT:     affine.for
// CHECK:         return
func.func @main(%a: memref<192x32xf16>, %b: memref<32x784xf16>, %c: memref<192x786xf16>) {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : f16
  affine.for %i = 0 to 192 {
    affine.store %none, %c[%i, 0] : memref<192x786xf16>
  }
  affine.for %i = 0 to 192 {
    affine.for %j = 0 to 784 {
      %s = affine.for %k = 0 to 32 iter_args(%t = %zero) -> (f32) {
        %x = affine.load %a[%i, %k] : memref<192x32xf16>
        %y = affine.load %b[%k, %j] : memref<32x784xf16>
        %u = arith.extf %x : f16 to f32
        %v = arith.extf %y : f16 to f32
        %z = arith.mulf %u, %v fastmath<reassoc,contract> : f32
        %w = arith.addf %t, %z fastmath<reassoc,contract> : f32
        affine.yield %w : f32
      }
      %h = arith.truncf %s : f32 to f16
      affine.store %h, %c[%i, %j + 1] : memref<192x786xf16>
    }
  }
  affine.for %i = 0 to 192 {
    affine.store %none, %c[%i, 785] : memref<192x786xf16>
  }
  return
}
