// PASSES: fuse-tiles
// TARGET: gpu
//
// Tiles have a copy of their part of the input. The first stencil writes over it what it makes of
// it, when all of it is read: its results wait in a buffer of which each thread keeps elements.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloc(
// CHECK:         %[[TILE:.*]] = memref.alloca() {{.*}} : memref<132x132xf32>
// CHECK:         %[[KEPT:.*]] = memref.alloca() {{.*}} : memref<132x128xf32>
// CHECK-NOT:     memref.alloca
// CHECK:         affine.load %arg0
// CHECK:         affine.store %{{.*}}, %[[TILE]]
// CHECK:         affine.load %[[TILE]][%{{.*}}, %{{.*}} + 4]
// CHECK:         affine.store %{{.*}}, %[[KEPT]]
// CHECK:         affine.load %[[KEPT]]
// CHECK:         affine.store %{{.*}}, %[[TILE]]
// CHECK:         affine.load %[[TILE]][%{{.*}} + 4, %{{.*}}]
// CHECK:         affine.store %{{.*}}, %arg1
func.func @main(%a: memref<4096x4096xf32>, %out: memref<4092x4092xf32>) {
  %b = memref.alloc() : memref<4096x4092xf32>
  affine.for %i = 0 to 4096 {
    affine.for %j = 0 to 4092 {
      %x = affine.load %a[%i, %j] : memref<4096x4096xf32>
      %y = affine.load %a[%i, %j + 2] : memref<4096x4096xf32>
      %z = affine.load %a[%i, %j + 4] : memref<4096x4096xf32>
      %v = arith.addf %x, %y : f32
      %w = arith.addf %v, %z : f32
      affine.store %w, %b[%i, %j] : memref<4096x4092xf32>
    }
  }
  affine.for %i = 0 to 4092 {
    affine.for %j = 0 to 4092 {
      %x = affine.load %b[%i, %j] : memref<4096x4092xf32>
      %y = affine.load %b[%i + 2, %j] : memref<4096x4092xf32>
      %z = affine.load %b[%i + 4, %j] : memref<4096x4092xf32>
      %v = arith.addf %x, %y : f32
      %w = arith.addf %v, %z : f32
      affine.store %w, %out[%i, %j] : memref<4092x4092xf32>
    }
  }
  return
}
