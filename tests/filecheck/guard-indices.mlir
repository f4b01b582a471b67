// PASSES: guard-indices
//
// An index from memory is checked; a loop variable, and what is asserted already, are not.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK:           %[[L:.*]] = arith.index_cast
// CHECK:           %[[OK:.*]] = arith.cmpi ult, %[[L]], %{{.*}} : index
// CHECK:           cf.assert %[[OK]], "index out of range: it must be at least 0 and less than 10"
// CHECK-NEXT:      memref.load
// CHECK:         scf.for
// CHECK-NOT:       cf.assert
// CHECK:           memref.store
// CHECK:           cf.assert %{{.*}}, "mine"
// CHECK-NOT:       cf.assert
func.func @main(%t: memref<10xf32>, %p: memref<8xi64>, %o: memref<8xf32>) {
  affine.for %i = 0 to 8 {
    %k = affine.load %p[%i] : memref<8xi64>
    %l = arith.index_cast %k : i64 to index
    %x = memref.load %t[%l] : memref<10xf32>
    affine.store %x, %o[%i] : memref<8xf32>
  }
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %z = arith.constant 0.0 : f32
    memref.store %z, %o[%i] : memref<8xf32>
    %k = memref.load %p[%i] : memref<8xi64>
    %c10 = arith.constant 10 : i64
    %ok = arith.cmpi ult, %k, %c10 : i64
    cf.assert %ok, "mine"
    %l = arith.index_cast %k : i64 to index
    %x = memref.load %t[%l] : memref<10xf32>
    memref.store %x, %o[%i] : memref<8xf32>
  }
  return
}
