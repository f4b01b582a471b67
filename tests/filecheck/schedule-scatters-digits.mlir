// PASSES: schedule-scatters
// TARGET: gpu
//
// Places that are affine after all: nothing is left to find at run time, and with a loop for each
// digit of them no two updates meet.

// CHECK-LABEL: @main
// CHECK:         affine.for %[[I:.*]] = 0 to 4 {
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to 32 {
// CHECK-NEXT:        affine.for %[[K:.*]] = 0 to 514 {
// CHECK-NOT:           memref.store
// CHECK:               affine.store %{{.*}}, %arg0[%[[K]] * 514 + %[[I]] * 8454272 + %[[J]] * 264196]
// CHECK-NOT:     affine.for
func.func @main(%column: memref<33817088xf32>) {
  affine.for %a = 0 to 65792 {
    %zero = arith.constant 0.0 : f32
    %i = affine.apply affine_map<(d0) -> (d0 floordiv 16448)>(%a)
    %iw = arith.index_cast %i : index to i64
    %ci = arith.constant 8454272 : i64
    %ip = arith.muli %iw, %ci : i64
    %j = affine.apply affine_map<(d0) -> ((d0 mod 16448) floordiv 514)>(%a)
    %jw = arith.index_cast %j : index to i64
    %cj = arith.constant 264196 : i64
    %jp = arith.muli %jw, %cj : i64
    %ij = arith.addi %ip, %jp : i64
    %k = affine.apply affine_map<(d0) -> (d0 mod 514)>(%a)
    %kw = arith.index_cast %k : index to i64
    %ck = arith.constant 514 : i64
    %kp = arith.muli %kw, %ck : i64
    %ijk = arith.addi %ij, %kp : i64
    %place = arith.index_cast %ijk : i64 to index
    memref.store %zero, %column[%place] : memref<33817088xf32>
  }
  func.return
}
