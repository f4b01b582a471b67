// PASSES: hoist-buffers
// A local buffer is that of an iteration: only what is allocated leaves the nest.
// CHECK:       %[[T:.*]] = memref.alloc() : memref<4xf32>
// CHECK-NEXT:  affine.for
// CHECK-NEXT:    memref.alloca() : memref<1xf32>
func.func @main(%a: memref<8xf32>, %b: memref<8xf32>) {
  affine.for %i = 0 to 8 {
    %u = memref.alloca() : memref<1xf32>
    %t = memref.alloc() : memref<4xf32>
    %x = affine.load %a[%i] : memref<8xf32>
    affine.store %x, %u[0] : memref<1xf32>
    affine.store %x, %t[0] : memref<4xf32>
    %y = affine.load %u[0] : memref<1xf32>
    %z = affine.load %t[0] : memref<4xf32>
    %s = arith.addf %y, %z : f32
    affine.store %s, %b[%i] : memref<8xf32>
  }
  return
}
