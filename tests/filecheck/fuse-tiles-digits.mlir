// PASSES: fuse-tiles
//
// Rows of a three-dimensional argument are one dimension of what is computed of them. A row reads
// a quotient and a remainder of its number, one row of the argument, and not all that remainders
// may be: it is done with the other stages of its row.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloc(
// CHECK:         affine.for %[[R:.*]] = 0 to 2880 {
// CHECK:           memref.alloca()
// CHECK:           affine.for
// CHECK:             affine.load %arg0[
// CHECK:           affine.for
// CHECK:             affine.store %{{.*}}, %arg1[
// CHECK-NOT:     affine.for %{{.*}} = 0 to 2880 {
func.func @main(%a: memref<4x720x720xf32>, %out: memref<2880x720xf32>) {
  %b = memref.alloc() : memref<2880x720xf32>
  affine.for %r = 0 to 2880 {
    affine.for %i = 0 to 3 {
      affine.for %j = 0 to 240 {
        %x = affine.load %a[%r floordiv 720, %r mod 720, %i * 240 + %j] : memref<4x720x720xf32>
        %y = arith.addf %x, %x : f32
        affine.store %y, %b[%r, %i + %j * 3] : memref<2880x720xf32>
      }
    }
  }
  affine.for %r = 0 to 2880 {
    affine.for %i = 0 to 240 {
      affine.for %j = 0 to 3 {
        %x = affine.load %b[%r, %i * 3 + %j] : memref<2880x720xf32>
        %y = arith.mulf %x, %x : f32
        affine.store %y, %out[%r, %i + %j * 240] : memref<2880x720xf32>
      }
    }
  }
  return
}
