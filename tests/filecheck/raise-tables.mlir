// PASSES: raise-tables
//
// A row of 64 that is enlarged from 32: the table is half of the place, but for its ends. What is
// looked up in a table of no order stays. One of 24 that is enlarged from 16 is a quotient of twice
// the place.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[Y:.*]] = 0 to 4 {
// CHECK:           affine.for %[[X:.*]] = 0 to 64 {
// CHECK-NOT:         memref.load
// CHECK:             %[[A:.*]] = affine.load %{{.*}}[%[[Y]], (%[[X]] + 1) floordiv 2 - (%[[X]] + 63) floordiv 64] : memref<4x32xf32>
// CHECK:             affine.store %[[A]], %{{.*}}[%[[Y]], %[[X]]]
// CHECK:         affine.for %{{.*}} = 0 to 8 {
// CHECK:           memref.load
// CHECK:         affine.for %[[Z:.*]] = 0 to 24 {
// CHECK-NOT:       memref.load
// CHECK:             affine.load %{{.*}}[0, (%[[Z]] * 2 + 1) floordiv 3] : memref<4x32xf32>
memref.global "private" constant @halves : memref<24xi64> = dense<[
  0, 1, 1, 2, 3, 3, 4, 5, 5, 6, 7, 7, 8, 9, 9, 10, 11, 11, 12, 13, 13, 14, 15, 15]>
memref.global "private" constant @places : memref<64xi64> = dense<[
  0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13,
  14, 14, 15, 15, 16, 16, 17, 17, 18, 18, 19, 19, 20, 20, 21, 21, 22, 22, 23, 23, 24, 24, 25, 25,
  26, 26, 27, 27, 28, 28, 29, 29, 30, 30, 31]>
memref.global "private" constant @mixed : memref<8xi64> = dense<[3, 0, 7, 1, 5, 2, 6, 4]>
func.func @main(%a: memref<4x32xf32>, %b: memref<4x64xf32>, %c: memref<8xf32>,
                %d: memref<24xf32>) {
  %t = memref.get_global @places : memref<64xi64>
  %m = memref.get_global @mixed : memref<8xi64>
  affine.for %y = 0 to 4 {
    affine.for %x = 0 to 64 {
      %p = affine.load %t[%x] : memref<64xi64>
      %i = arith.index_cast %p : i64 to index
      %v = memref.load %a[%y, %i] : memref<4x32xf32>
      affine.store %v, %b[%y, %x] : memref<4x64xf32>
    }
  }
  affine.for %x = 0 to 8 {
    %p = affine.load %m[%x] : memref<8xi64>
    %i = arith.index_cast %p : i64 to index
    %c0 = arith.constant 0 : index
    %v = memref.load %a[%c0, %i] : memref<4x32xf32>
    affine.store %v, %c[%x] : memref<8xf32>
  }
  %h = memref.get_global @halves : memref<24xi64>
  affine.for %x = 0 to 24 {
    %p = affine.load %h[%x] : memref<24xi64>
    %i = arith.index_cast %p : i64 to index
    %c0 = arith.constant 0 : index
    %v = memref.load %a[%c0, %i] : memref<4x32xf32>
    affine.store %v, %d[%x] : memref<24xf32>
  }
  return
}
