// PASSES: fuse-slices
//
// The producer is computed at both places where the consumer reads it, and its buffer goes. In the
// second pair the consumer reads what is overwritten in between: nothing moves.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloc
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK:           affine.load %{{.*}}[%[[I]]]
// CHECK:           arith.negf
// CHECK:           affine.load %{{.*}}[%[[I]] + 1]
// CHECK:           arith.negf
// CHECK:           arith.addf
// CHECK:         %[[KEPT:.*]] = memref.alloc
// CHECK:         affine.for
// CHECK:           affine.store %{{.*}}, %[[KEPT]]
// CHECK:         affine.for
// CHECK:         affine.for
// CHECK:           affine.load %[[KEPT]]
func.func @main(%a: memref<9xf32>, %b: memref<8xf32>, %c: memref<9xf32>) {
  %t = memref.alloc() : memref<9xf32>
  affine.for %i = 0 to 9 {
    %x = affine.load %a[%i] : memref<9xf32>
    %y = arith.negf %x : f32
    affine.store %y, %t[%i] : memref<9xf32>
  }
  affine.for %i = 0 to 8 {
    %x = affine.load %t[%i] : memref<9xf32>
    %y = affine.load %t[%i + 1] : memref<9xf32>
    %z = arith.addf %x, %y : f32
    affine.store %z, %b[%i] : memref<8xf32>
  }
  %u = memref.alloc() : memref<9xf32>
  affine.for %i = 0 to 9 {
    %x = affine.load %c[%i] : memref<9xf32>
    %y = math.absf %x : f32
    affine.store %y, %u[%i] : memref<9xf32>
  }
  affine.for %i = 0 to 9 {
    %x = affine.load %a[%i] : memref<9xf32>
    affine.store %x, %c[%i] : memref<9xf32>
  }
  affine.for %i = 0 to 8 {
    %x = affine.load %u[%i + 1] : memref<9xf32>
    affine.store %x, %b[%i] : memref<8xf32>
  }
  return
}
