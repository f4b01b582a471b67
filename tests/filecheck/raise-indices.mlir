// PASSES: raise-indices
//
// A flipped row, and an index that was taken apart and put together again.

// CHECK-LABEL: @main
// CHECK:         affine.for %[[I:.*]] = 0 to 32 {
// CHECK-NOT:       cf.assert
// CHECK:           affine.load %arg0[-%[[I]] + 31]
// CHECK:         affine.for %[[I:.*]] = 0 to 32 {
// CHECK:           affine.load %arg1[%[[I]] floordiv 8, %[[I]] mod 8]
//
// A sign that is known decides; one that is not does not.
//
// CHECK:         affine.for %[[I:.*]] = 0 to 32 {
// CHECK-NOT:       arith.select
// CHECK:           affine.load %arg0[%[[I]]]
// CHECK:         affine.for %[[I:.*]] = 0 to 33 {
// CHECK:           arith.select
// CHECK:           cf.assert
// CHECK:           memref.load
func.func @main(%a: memref<32xf32>, %b: memref<4x8xf32>, %out: memref<33xf32>) {
  %c0 = arith.constant 0 : i64
  %c8 = arith.constant 8 : index
  %c31 = arith.constant 31 : index
  %c32 = arith.constant 32 : index
  %c32_i64 = arith.constant 32 : i64
  affine.for %i = 0 to 32 {
    %j = arith.subi %c31, %i : index
    %ok = arith.cmpi ult, %j, %c32 : index
    cf.assert %ok, "index out of range"
    %x = memref.load %a[%j] : memref<32xf32>
    affine.store %x, %out[%i] : memref<33xf32>
  }
  affine.for %i = 0 to 32 {
    %r = arith.divsi %i, %c8 : index
    %k = arith.remsi %i, %c8 : index
    %x = memref.load %b[%r, %k] : memref<4x8xf32>
    affine.store %x, %out[%i] : memref<33xf32>
  }
  affine.for %i = 0 to 32 {
    %w = arith.index_cast %i : index to i64
    %negative = arith.cmpi slt, %w, %c0 : i64
    %wrapped = arith.addi %w, %c32_i64 : i64
    %s = arith.select %negative, %wrapped, %w : i64
    %j = arith.index_cast %s : i64 to index
    %x = memref.load %a[%j] : memref<32xf32>
    affine.store %x, %out[%i] : memref<33xf32>
  }
  affine.for %i = 0 to 33 {
    %w = arith.index_cast %i : index to i64
    %last = arith.cmpi sge, %w, %c32_i64 : i64
    %s = arith.select %last, %c0, %w : i64
    %j = arith.index_cast %s : i64 to index
    %ok = arith.cmpi ult, %j, %c32 : index
    cf.assert %ok, "index out of range"
    %x = memref.load %a[%j] : memref<32xf32>
    affine.store %x, %out[%i] : memref<33xf32>
  }
  func.return
}
