// PASSES: narrow-values
// ARCH: neoverse-n1
//
// NaN becomes the lowest integer, which is no index: that it is a number is checked instead.

// CHECK-LABEL: func.func @main
// CHECK:         %[[OK:.*]] = arith.cmpf ord, %[[X:.*]], %[[X]] : f32
// CHECK:         cf.assert %[[OK]], "index out of range"
// CHECK:         arith.fptosi %[[X]] : f32 to i32
// CHECK-NOT:     cf.assert
func.func @main(%a: memref<8xf32>, %table: memref<8xf32>, %b: memref<8xf32>) {
  affine.for %i = 0 to 8 {
    %zero = arith.constant 0.0 : f32
    %top = arith.constant 7.0 : f32
    %x = affine.load %a[%i] : memref<8xf32>
    %negative = arith.cmpf olt, %x, %zero : f32
    %low = arith.select %negative, %zero, %x : f32
    %high = arith.cmpf ogt, %low, %top : f32
    %clamped = arith.select %high, %top, %low : f32
    %n = arith.fptosi %clamped : f32 to i64
    %k = arith.index_cast %n : i64 to index
    %c8 = arith.constant 8 : index
    %ok = arith.cmpi ult, %k, %c8 : index
    cf.assert %ok, "index out of range"
    %v = memref.load %table[%k] : memref<8xf32>
    affine.store %v, %b[%i] : memref<8xf32>
  }
  return
}
