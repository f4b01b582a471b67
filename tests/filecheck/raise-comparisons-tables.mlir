// PASSES: raise-comparisons
// ARCH: x86-64-v4
//
// A table that counts is its place. One that does not is loaded.

// CHECK-LABEL: func.func @main
// CHECK:           arith.cmpi sge, %{{.*}}, %{{.*}} : index
// CHECK:         affine.for
// CHECK:           affine.load %{{.*}} : memref<8xi32>
// CHECK:           arith.cmpi sle, %{{.*}}, %{{.*}} : i32
memref.global "private" constant @counts : memref<8xi32> = dense<[0, 1, 2, 3, 4, 5, 6, 7]>
memref.global "private" constant @jumps : memref<8xi32> = dense<[0, 1, 2, 3, 4, 5, 7, 6]>
func.func @main(%a: memref<8x8xf32>, %b: memref<8x8xf32>, %c: memref<8x8xf32>) {
  %counts = memref.get_global @counts : memref<8xi32>
  %jumps = memref.get_global @jumps : memref<8xi32>
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 8 {
      %zero = arith.constant 0.0 : f32
      %row = affine.load %counts[%i] : memref<8xi32>
      %column = affine.load %counts[%j] : memref<8xi32>
      %m = arith.cmpi sge, %row, %column : i32
      %x = affine.load %a[%i, %j] : memref<8x8xf32>
      %y = arith.select %m, %x, %zero : f32
      affine.store %y, %b[%i, %j] : memref<8x8xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 8 {
      %zero = arith.constant 0.0 : f32
      %row = affine.load %jumps[%i] : memref<8xi32>
      %column = affine.load %jumps[%j] : memref<8xi32>
      %m = arith.cmpi sle, %row, %column : i32
      %x = affine.load %a[%i, %j] : memref<8x8xf32>
      %y = arith.select %m, %x, %zero : f32
      affine.store %y, %c[%i, %j] : memref<8x8xf32>
    }
  }
  return
}
