// PASSES: normalize-nests
//
// The unit loop and the constant load go, the copy becomes loops, the dead nest disappears.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloc
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK-NOT:       affine.for
// CHECK:           %[[C:.*]] = arith.constant 2.500000e+00 : f32
// CHECK:           arith.mulf %{{.*}}, %[[C]]
// CHECK:         affine.for %[[J:.*]] = 0 to 8 {
// CHECK-NEXT:      %[[V:.*]] = affine.load %{{.*}}[%[[J]]]
// CHECK-NEXT:      affine.store %[[V]], %{{.*}}[%[[J]]]
// CHECK-NEXT:    }
// CHECK-NOT:     affine.for
// CHECK-NOT:     memref.copy
memref.global "private" constant @w : memref<2xf32> = dense<[1.5, 2.5]>
func.func @main(%a: memref<8xf32>, %b: memref<8xf32>, %c: memref<8xf32>) {
  %w = memref.get_global @w : memref<2xf32>
  affine.for %i = 0 to 8 {
    affine.for %u = 0 to 1 {
      %x = affine.load %a[%i] : memref<8xf32>
      %k = affine.load %w[%u + 1] : memref<2xf32>
      %y = arith.mulf %x, %k : f32
      affine.store %y, %b[%i] : memref<8xf32>
    }
  }
  %dead = memref.alloc() : memref<8xf32>
  affine.for %i = 0 to 8 {
    %x = affine.load %a[%i] : memref<8xf32>
    affine.store %x, %dead[%i] : memref<8xf32>
  }
  memref.copy %b, %c : memref<8xf32> to memref<8xf32>
  return
}
