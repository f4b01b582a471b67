// PASSES: vectorize-nests
//
// The last iteration is one lane of a vector, which is stored by itself, without a mask.

// CHECK-LABEL: func.func @main
// CHECK:         scf.for
// CHECK:           vector.store {{.*}} vector<8xi32>
// CHECK:         vector.maskedload
// CHECK-NOT:     vector.maskedstore
// CHECK:         %[[LAST:.*]] = vector.extract %{{.*}}[0] : i32 from vector<8xi32>
// CHECK:         memref.store %[[LAST]], %arg1[%{{.*}}] : memref<33xi32>

module {
  func.func @main(%a: memref<33xi64>, %b: memref<33xi32>) {
    affine.for %i = 0 to 33 {
      %x = affine.load %a[%i] : memref<33xi64>
      %y = arith.addi %x, %x : i64
      %z = arith.trunci %y : i64 to i32
      affine.store %z, %b[%i] : memref<33xi32>
    }
    return
  }
}
