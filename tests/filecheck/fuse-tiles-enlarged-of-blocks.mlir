// PASSES: fuse-tiles
// TARGET: gpu
//
// An image is enlarged eight times in three steps. Tiles begin where groups of eight do, along rows
// and columns, so that what they need of each step is alike in size.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloc(
// CHECK:         affine.for %{{.*}} = 0 to {{[0-9]+}} {
// CHECK:           affine.for %{{.*}} = 0 to {{[0-9]+}} {
// CHECK:             memref.alloca()
// CHECK:             affine.load %arg0
// CHECK:             affine.store %{{.*}}, %arg1
// CHECK-NOT:     memref.alloc(
func.func @main(%a: memref<514x514xf32>, %out: memref<4096x4096xf32>) {
  %b = memref.alloc() : memref<1026x1026xf32>
  %c = memref.alloc() : memref<2050x2050xf32>
  affine.for %i = 0 to 1026 {
    affine.for %j = 0 to 1026 {
      %x = affine.load %a[%i floordiv 2, %j floordiv 2] : memref<514x514xf32>
      %y = affine.load %a[%i floordiv 2 + 1, %j floordiv 2] : memref<514x514xf32>
      %z = affine.load %a[%i floordiv 2, %j floordiv 2 + 1] : memref<514x514xf32>
      %v = arith.addf %x, %y : f32
      %w = arith.addf %v, %z : f32
      affine.store %w, %b[%i, %j] : memref<1026x1026xf32>
    }
  }
  affine.for %i = 0 to 2050 {
    affine.for %j = 0 to 2050 {
      %x = affine.load %b[%i floordiv 2, %j floordiv 2] : memref<1026x1026xf32>
      %y = affine.load %b[%i floordiv 2 + 1, %j floordiv 2] : memref<1026x1026xf32>
      %z = affine.load %b[%i floordiv 2, %j floordiv 2 + 1] : memref<1026x1026xf32>
      %v = arith.addf %x, %y : f32
      %w = arith.addf %v, %z : f32
      affine.store %w, %c[%i, %j] : memref<2050x2050xf32>
    }
  }
  affine.for %i = 0 to 4096 {
    affine.for %j = 0 to 4096 {
      %x = affine.load %c[%i floordiv 2, %j floordiv 2] : memref<2050x2050xf32>
      %y = affine.load %c[%i floordiv 2 + 1, %j floordiv 2] : memref<2050x2050xf32>
      %z = affine.load %c[%i floordiv 2, %j floordiv 2 + 1] : memref<2050x2050xf32>
      %v = arith.addf %x, %y : f32
      %w = arith.addf %v, %z : f32
      affine.store %w, %out[%i, %j] : memref<4096x4096xf32>
    }
  }
  return
}
