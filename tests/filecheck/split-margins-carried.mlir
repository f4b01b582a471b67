// PASSES: split-margins
//
// Where iterations read what those of another part write, one nest stays.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[T:.*]] = 0 to 4 {
// CHECK-NEXT:      affine.for %[[I:.*]] = 0 to 16 {
// CHECK-NEXT:        affine.load
// CHECK-NEXT:        affine.load
// CHECK-NEXT:        affine.load %[[C:.*]][%[[T]], %[[I]] + 1] : memref<5x17xf32>
func.func @main(%a: memref<8xf32>, %b: memref<8xf32>, %c: memref<5x17xf32>) {
  %p = memref.alloc() : memref<16xf32>
  %q = memref.alloc() : memref<16xf32>
  affine.for %i = 0 to 8 {
    %zero = arith.constant 0.0 : f32
    affine.store %zero, %p[%i + 8] : memref<16xf32>
  }
  affine.for %i = 0 to 8 {
    %x = affine.load %a[%i] : memref<8xf32>
    affine.store %x, %p[%i] : memref<16xf32>
  }
  affine.for %i = 0 to 8 {
    %zero = arith.constant 0.0 : f32
    affine.store %zero, %q[%i] : memref<16xf32>
  }
  affine.for %i = 0 to 8 {
    %x = affine.load %b[%i] : memref<8xf32>
    affine.store %x, %q[%i + 8] : memref<16xf32>
  }
  affine.for %t = 0 to 4 {
    affine.for %i = 0 to 16 {
      %x = affine.load %p[%i] : memref<16xf32>
      %y = affine.load %q[%i] : memref<16xf32>
      %z = affine.load %c[%t, %i + 1] : memref<5x17xf32>
      %s = arith.addf %x, %y : f32
      %u = arith.addf %s, %z : f32
      affine.store %u, %c[%t + 1, %i] : memref<5x17xf32>
    }
  }
  return
}
