// PASSES: fuse-tiles
// TARGET: gpu
//
// Two nests fill every other row. Their tiles begin with the same of them, in shared memory.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloc(
// CHECK:         affine.for
// CHECK:           memref.alloca()
// CHECK:           affine.load %arg0
// CHECK:           affine.load %arg1
// CHECK:           affine.store %{{.*}}, %arg2
// CHECK-NOT:     memref.alloc(
func.func @main(%a: memref<1025x2048xf32>, %b: memref<1025x2048xf32>, %out: memref<2048x2048xf32>) {
  %rows = memref.alloc() : memref<2050x2048xf32>
  affine.for %i = 0 to 1025 {
    affine.for %j = 0 to 2048 {
      %x = affine.load %a[%i, %j] : memref<1025x2048xf32>
      %v = arith.mulf %x, %x : f32
      affine.store %v, %rows[%i * 2, %j] : memref<2050x2048xf32>
    }
  }
  affine.for %i = 0 to 1025 {
    affine.for %j = 0 to 2048 {
      %x = affine.load %b[%i, %j] : memref<1025x2048xf32>
      %v = arith.addf %x, %x : f32
      affine.store %v, %rows[%i * 2 + 1, %j] : memref<2050x2048xf32>
    }
  }
  affine.for %i = 0 to 2048 {
    affine.for %j = 0 to 2048 {
      %x = affine.load %rows[%i, %j] : memref<2050x2048xf32>
      %y = affine.load %rows[%i + 1, %j] : memref<2050x2048xf32>
      %z = affine.load %rows[%i + 2, %j] : memref<2050x2048xf32>
      %v = arith.addf %x, %y : f32
      %w = arith.addf %v, %z : f32
      affine.store %w, %out[%i, %j] : memref<2048x2048xf32>
    }
  }
  return
}
