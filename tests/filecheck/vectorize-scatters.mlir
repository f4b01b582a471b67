// PASSES: vectorize-nests
// ARCH: x86-64-v4
//
// Only the row is known at run time alone: the elements of one update are neighbours. What is left
// of a row is masked.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[I:.*]] = 0 to 300 {
// CHECK:           %[[U:.*]] = vector.load %arg0[%[[I]], %{{.*}}] : memref<300x21xf32>, vector<16xf32>
// CHECK:           %[[ROW:.*]] = memref.load %arg1[%[[I]]]
// CHECK:           %[[OLD:.*]] = vector.load %arg2[%[[ROW]], %{{.*}}] : memref<50x21xf32>, vector<16xf32>
// CHECK:           %[[NEW:.*]] = arith.addf %[[OLD]], %[[U]]
// CHECK:           vector.store %[[NEW]], %arg2[%[[ROW]], %{{.*}}] : memref<50x21xf32>, vector<16xf32>
// CHECK:           vector.maskedload %arg2[%[[LAST:.*]], %{{.*}}]
// CHECK:           vector.maskedstore %arg2[%[[LAST]], %{{.*}}]
//
// The columns of a row that is known: elements far from each other.
//
// CHECK-NOT:     vector.
// CHECK:         return
func.func @main(%updates: memref<300x21xf32>, %rows: memref<300xindex>, %table: memref<50x21xf32>,
                %across: memref<21x50xf32>) {
  affine.for %i = 0 to 300 {
    affine.for %j = 0 to 21 {
      %u = affine.load %updates[%i, %j] : memref<300x21xf32>
      %r = affine.load %rows[%i] : memref<300xindex>
      %old = memref.load %table[%r, %j] : memref<50x21xf32>
      %new = arith.addf %old, %u : f32
      memref.store %new, %table[%r, %j] : memref<50x21xf32>
    }
  }
  affine.for %i = 0 to 300 {
    affine.for %j = 0 to 21 {
      %u = affine.load %updates[%i, %j] : memref<300x21xf32>
      %r = affine.load %rows[%i] : memref<300xindex>
      %old = memref.load %across[%j, %r] : memref<21x50xf32>
      %new = arith.addf %old, %u : f32
      memref.store %new, %across[%j, %r] : memref<21x50xf32>
    }
  }
  func.return
}
