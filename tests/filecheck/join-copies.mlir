// PASSES: join-copies
//
// Rows that are held at their ends are one copy. What is put together of two arrays stays as it is.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[Y:.*]] = 0 to 4 {
// CHECK:           affine.for %[[X:.*]] = 0 to 10 {
// CHECK:             %[[V:.*]] = affine.load %{{.*}}[%[[Y]], %[[X]] - (%[[X]] + 1) floordiv 10 - (%[[X]] + 9) floordiv 10] : memref<4x8xf32>
// CHECK:             affine.store %[[V]], %{{.*}}[%[[Y]], %[[X]]] : memref<4x10xf32>
// CHECK-NOT:     affine.load %{{.*}} : memref<4x8xf32>
// CHECK:         affine.store %{{.*}}, %{{.*}}[%{{.*}}] : memref<16xf32>
// CHECK:         affine.store %{{.*}}, %{{.*}}[%{{.*}} + 8] : memref<16xf32>
func.func @main(%x: memref<4x8xf32>, %u: memref<8xf32>, %w: memref<8xf32>,
                %b: memref<4x8xf32>, %c: memref<16xf32>) {
  %p = memref.alloc() : memref<4x10xf32>
  %q = memref.alloc() : memref<16xf32>
  affine.for %y = 0 to 4 {
    %v = affine.load %x[%y, 0] : memref<4x8xf32>
    affine.store %v, %p[%y, 0] : memref<4x10xf32>
  }
  affine.for %y = 0 to 4 {
    affine.for %i = 0 to 8 {
      %v = affine.load %x[%y, %i] : memref<4x8xf32>
      affine.store %v, %p[%y, %i + 1] : memref<4x10xf32>
    }
  }
  affine.for %y = 0 to 4 {
    %v = affine.load %x[%y, 7] : memref<4x8xf32>
    affine.store %v, %p[%y, 9] : memref<4x10xf32>
  }
  affine.for %i = 0 to 8 {
    %v = affine.load %u[%i] : memref<8xf32>
    affine.store %v, %q[%i] : memref<16xf32>
  }
  affine.for %i = 0 to 8 {
    %v = affine.load %w[%i] : memref<8xf32>
    affine.store %v, %q[%i + 8] : memref<16xf32>
  }
  affine.for %y = 0 to 4 {
    affine.for %i = 0 to 8 {
      %l = affine.load %p[%y, %i] : memref<4x10xf32>
      %r = affine.load %p[%y, %i + 2] : memref<4x10xf32>
      %s = arith.addf %l, %r : f32
      affine.store %s, %b[%y, %i] : memref<4x8xf32>
    }
  }
  affine.for %i = 0 to 16 {
    %v = affine.load %q[%i] : memref<16xf32>
    %n = arith.negf %v : f32
    affine.store %n, %c[%i] : memref<16xf32>
  }
  return
}
