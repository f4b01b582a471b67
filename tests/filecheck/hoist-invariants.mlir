// PASSES: hoist-invariants
//
// The row's index and its check do not depend on %j.

// CHECK-LABEL: @main
// CHECK:         affine.for %[[I:.*]] = 0 to 1000 {
// CHECK:           %[[R:.*]] = affine.load %arg1[%[[I]]]
// CHECK:           cf.assert
// CHECK:           affine.for %[[J:.*]] = 0 to 64 {
// CHECK-NOT:         cf.assert
// CHECK:             memref.load %arg0[%[[R]], %{{.*}}]
//
// An index that differs from element to element stays where it is, and so does a row that the
// loop itself may change.
//
// CHECK:         affine.for %{{.*}} = 0 to 1000 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 64 {
// CHECK:             cf.assert
// CHECK:         affine.for %{{.*}} = 0 to 1000 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 64 {
// CHECK:             affine.load %arg1
// CHECK:             cf.assert
func.func @main(%table: memref<100x64xf32>, %rows: memref<1000xindex>,
                %places: memref<1000x64xindex>, %out: memref<1000x64xf32>) {
  %c100 = arith.constant 100 : index
  affine.for %i = 0 to 1000 {
    affine.for %j = 0 to 64 {
      %r = affine.load %rows[%i] : memref<1000xindex>
      %ok = arith.cmpi ult, %r, %c100 : index
      cf.assert %ok, "index out of range"
      %x = memref.load %table[%r, %j] : memref<100x64xf32>
      affine.store %x, %out[%i, %j] : memref<1000x64xf32>
    }
  }
  affine.for %i = 0 to 1000 {
    affine.for %j = 0 to 64 {
      %r = affine.load %places[%i, %j] : memref<1000x64xindex>
      %ok = arith.cmpi ult, %r, %c100 : index
      cf.assert %ok, "index out of range"
      %x = memref.load %table[%r, %j] : memref<100x64xf32>
      affine.store %x, %out[%i, %j] : memref<1000x64xf32>
    }
  }
  affine.for %i = 0 to 1000 {
    affine.for %j = 0 to 64 {
      %r = affine.load %rows[%i] : memref<1000xindex>
      %ok = arith.cmpi ult, %r, %c100 : index
      cf.assert %ok, "index out of range"
      %x = memref.load %table[%r, %j] : memref<100x64xf32>
      affine.store %x, %out[%i, %j] : memref<1000x64xf32>
      affine.store %r, %rows[%j] : memref<1000xindex>
    }
  }
  func.return
}
