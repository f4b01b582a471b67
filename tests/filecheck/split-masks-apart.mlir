// PASSES: split-masks
// ARCH: x86-64-v4
//
// A product with the mask as a number needs what it loads: NaN stays NaN. Of a choice of two arrays
// each part of a row loads one. Short rows stay as they are.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[I:.*]] = 0 to 4096 {
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to 4096 {
// CHECK:             arith.mulf
// CHECK:         affine.for %[[I:.*]] = 0 to 4096 {
// CHECK:           affine.for %[[J:.*]] = 0 to
// CHECK:             affine.load %arg0
// CHECK-NOT:         affine.load %arg1
// CHECK:           affine.for
// CHECK:             affine.load %arg0
// CHECK:             affine.load %arg1
// CHECK:           affine.for
// CHECK-NOT:         affine.load %arg0
// CHECK:             affine.load %arg1
// CHECK:         affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to 64 {
// CHECK-NOT:     affine.for
// CHECK:         return
func.func @main(%a: memref<4096x4096xf32>, %b: memref<4096x4096xf32>, %c: memref<4096x4096xf32>,
                %d: memref<64x64xf32>) {
  affine.for %i = 0 to 4096 {
    affine.for %j = 0 to 4096 {
      %m = arith.cmpi sle, %j, %i : index
      %n = arith.uitofp %m : i1 to f32
      %x = affine.load %a[%i, %j] : memref<4096x4096xf32>
      %y = arith.mulf %n, %x : f32
      affine.store %y, %c[%i, %j] : memref<4096x4096xf32>
    }
  }
  affine.for %i = 0 to 4096 {
    affine.for %j = 0 to 4096 {
      %m = arith.cmpi sle, %j, %i : index
      %x = affine.load %a[%i, %j] : memref<4096x4096xf32>
      %y = affine.load %b[%i, %j] : memref<4096x4096xf32>
      %z = arith.select %m, %x, %y : f32
      affine.store %z, %c[%i, %j] : memref<4096x4096xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %zero = arith.constant 0.0 : f32
      %m = arith.cmpi sle, %j, %i : index
      %x = affine.load %a[%i, %j] : memref<4096x4096xf32>
      %y = arith.select %m, %x, %zero : f32
      affine.store %y, %d[%i, %j] : memref<64x64xf32>
    }
  }
  return
}
