// PASSES: narrow-values
//
// A number that is clamped is an index of a table: the check goes, and the integers have 32 bits. It
// is compared as it was before it was extended.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK-NOT:       arith.extf
// CHECK:           %[[NAN:.*]] = arith.cmpf une, %[[X:.*]], %[[X]] : f32
// CHECK:           arith.cmpf olt, %[[X]], %{{.*}} : f32
// CHECK:           %[[K:.*]] = arith.fptosi %{{.*}} : f32 to i32
// CHECK-NOT:       cf.assert
// CHECK:           %[[P:.*]] = arith.index_cast %[[K]] : i32 to index
// CHECK:           memref.load %{{.*}}[%[[P]]]
//
// What may be no number is checked before it becomes an integer, if that integer would be checked.
//
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK:           %[[OK:.*]] = arith.cmpf ord, %[[C:.*]], %[[C]] : f32
// CHECK-NEXT:      cf.assert %[[OK]], "index out of range"
// CHECK-NEXT:      %[[K:.*]] = arith.fptosi %[[C]] : f32 to i32
// CHECK-NOT:       cf.assert
// CHECK:           memref.load
//
// Others have as many bits as they had: what no number becomes can be told.
//
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK-NOT:       cf.assert
// CHECK:           arith.fptosi %{{.*}} : f32 to i64
//
// Where a condition holds it says what a number is, and the digits of an index are the index.
//
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK:           %[[IN:.*]] = arith.andi
// CHECK:           %[[S:.*]] = arith.select %[[IN]]
// CHECK:           %[[K:.*]] = arith.fptosi %[[S]] : f32 to i32
// CHECK-NOT:       cf.assert
// CHECK-NOT:       arith.floordivsi
// CHECK:           %[[P:.*]] = arith.index_cast %[[K]] : i32 to index
// CHECK-NEXT:      memref.load %{{.*}}[%[[P]]] : memref<8xf32>
func.func @main(%a: memref<8xf32>, %table: memref<8xf32>, %rows: memref<2x4xf32>,
                %b: memref<8xf32>, %c: memref<8xf32>, %d: memref<8xf32>, %e: memref<8xi64>) {
  affine.for %i = 0 to 8 {
    %zero = arith.constant 0.0 : f32
    %top = arith.constant 7.0 : f32
    %wide_zero = arith.constant 0.0 : f64
    %x = affine.load %a[%i] : memref<8xf32>
    %nan = arith.cmpf une, %x, %x : f32
    %w = arith.extf %x : f32 to f64
    %negative = arith.cmpf olt, %w, %wide_zero : f64
    %low = arith.select %negative, %zero, %x : f32
    %high = arith.cmpf ogt, %low, %top : f32
    %clamped = arith.select %high, %top, %low : f32
    %number = arith.select %nan, %top, %clamped : f32
    %n = arith.fptosi %number : f32 to i64
    %k = arith.index_cast %n : i64 to index
    %c8 = arith.constant 8 : index
    %ok = arith.cmpi ult, %k, %c8 : index
    cf.assert %ok, "index out of range"
    %v = memref.load %table[%k] : memref<8xf32>
    affine.store %v, %b[%i] : memref<8xf32>
  }
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
    affine.store %v, %c[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    %zero = arith.constant 0.0 : f32
    %top = arith.constant 7.0 : f32
    %x = affine.load %a[%i] : memref<8xf32>
    %negative = arith.cmpf olt, %x, %zero : f32
    %low = arith.select %negative, %zero, %x : f32
    %high = arith.cmpf ogt, %low, %top : f32
    %clamped = arith.select %high, %top, %low : f32
    %n = arith.fptosi %clamped : f32 to i64
    affine.store %n, %e[%i] : memref<8xi64>
  }
  affine.for %i = 0 to 8 {
    %zero = arith.constant 0.0 : f32
    %top = arith.constant 7.0 : f32
    %x = affine.load %a[%i] : memref<8xf32>
    %from = arith.cmpf oge, %x, %zero : f32
    %to = arith.cmpf ole, %x, %top : f32
    %inside = arith.andi %from, %to : i1
    %chosen = arith.select %inside, %x, %zero : f32
    %n = arith.fptosi %chosen : f32 to i64
    %k = arith.index_cast %n : i64 to index
    %c8 = arith.constant 8 : index
    %ok = arith.cmpi slt, %k, %c8 : index
    cf.assert %ok, "index out of range"
    %c4 = arith.constant 4 : index
    %row = arith.floordivsi %k, %c4 : index
    %begin = arith.muli %row, %c4 : index
    %column = arith.subi %k, %begin : index
    %v = memref.load %rows[%row, %column] : memref<2x4xf32>
    affine.store %v, %d[%i] : memref<8xf32>
  }
  return
}
