// PASSES: fuse-tiles
// TARGET: gpu
//
// What is looked up, and checked for each element, is computed by the tiles of what reads it: threads
// whose check fails come to the barriers of their block all the same.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloc(
// CHECK:         affine.for
// CHECK:           memref.alloca()
// CHECK:           cf.assert
// CHECK:           affine.store %{{.*}}, %arg3
// CHECK-NOT:     memref.alloc(
func.func @main(%a: memref<2050x2048xindex>, %t: memref<257xf32>, %u: memref<4xf32>,
                %out: memref<2048x2048xf32>) {
  %b = memref.alloc() : memref<2050x2048xf32>
  %most = arith.constant 257 : index
  affine.for %i = 0 to 2050 {
    affine.for %j = 0 to 2048 {
      %n = affine.load %a[%i, %j] : memref<2050x2048xindex>
      %ok = arith.cmpi ult, %n, %most : index
      cf.assert %ok, "index out of range"
      %v = memref.load %t[%n] : memref<257xf32>
      affine.store %v, %b[%i, %j] : memref<2050x2048xf32>
    }
  }
  affine.for %i = 0 to 2048 {
    affine.for %j = 0 to 2048 {
      %x = affine.load %b[%i, %j] : memref<2050x2048xf32>
      %y = affine.load %b[%i + 1, %j] : memref<2050x2048xf32>
      %z = affine.load %b[%i + 2, %j] : memref<2050x2048xf32>
      %v = arith.addf %x, %y : f32
      %w = arith.addf %v, %z : f32
      affine.store %w, %out[%i, %j] : memref<2048x2048xf32>
    }
  }
  return
}
