// PASSES: normalize-nests
//
// An index that memory holds, taken apart into row and column: a remainder that is never negative.

// CHECK:       affine.for
// CHECK:         %[[I:.*]] = arith.index_cast
// CHECK:         %[[ROW:.*]] = arith.floordivsi %[[I]]
// CHECK:         %[[WHOLE:.*]] = arith.floordivsi %[[I]]
// CHECK:         %[[ABOVE:.*]] = arith.muli %[[WHOLE]]
// CHECK:         %[[COLUMN:.*]] = arith.subi %[[I]], %[[ABOVE]]
// CHECK:         memref.load %{{.*}}[%[[ROW]], %[[COLUMN]]]
func.func @main(%a: memref<60x70xf32>, %at: memref<90xi64>, %b: memref<90xf32>) {
  affine.for %k = 0 to 90 {
    %n = affine.load %at[%k] : memref<90xi64>
    %i = arith.index_cast %n : i64 to index
    %row = affine.apply affine_map<(d) -> (d floordiv 70)>(%i)
    %column = affine.apply affine_map<(d) -> (d mod 70)>(%i)
    %x = memref.load %a[%row, %column] : memref<60x70xf32>
    affine.store %x, %b[%k] : memref<90xf32>
  }
  return
}
