// PASSES: narrow-accumulators
//
// A sum in i64 of which the lower half is used is kept in i32; one that is used whole stays, as does
// a maximum, whose lower half depends on the upper one.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for
// CHECK:           %[[Z:.*]] = arith.trunci %{{.*}} : i64 to i32
// CHECK:           %[[R:.*]] = affine.for %{{.*}} iter_args(%[[S:.*]] = %[[Z]]) -> (i32) {
// CHECK:             %[[X:.*]] = affine.load %arg0
// CHECK:             %[[Y:.*]] = affine.load %arg1
// CHECK:             %[[W:.*]] = arith.extsi %[[Y]] : i8 to i32
// CHECK:             %[[M:.*]] = arith.muli %[[X]], %[[W]] : i32
// CHECK:             arith.addi %[[S]], %[[M]] : i32
// CHECK:           affine.store %[[R]], %arg2
// CHECK:         affine.for
// CHECK:           affine.for {{.*}} -> (i64) {
// CHECK:             arith.addi
// CHECK:         affine.for
// CHECK:           affine.for {{.*}} -> (i64) {
// CHECK:             arith.maxsi
func.func @main(%a: memref<8x64xi32>, %b: memref<64xi8>, %c: memref<8xi32>, %d: memref<8xi64>) {
  %z = arith.constant 0 : i64
  affine.for %i = 0 to 8 {
    %r = affine.for %k = 0 to 64 iter_args(%s = %z) -> (i64) {
      %x = affine.load %a[%i, %k] : memref<8x64xi32>
      %y = affine.load %b[%k] : memref<64xi8>
      %x64 = arith.extsi %x : i32 to i64
      %y64 = arith.extsi %y : i8 to i64
      %m = arith.muli %x64, %y64 : i64
      %t = arith.addi %s, %m : i64
      affine.yield %t : i64
    }
    %n = arith.trunci %r : i64 to i32
    affine.store %n, %c[%i] : memref<8xi32>
  }
  affine.for %i = 0 to 8 {
    %r = affine.for %k = 0 to 64 iter_args(%s = %z) -> (i64) {
      %x = affine.load %a[%i, %k] : memref<8x64xi32>
      %x64 = arith.extsi %x : i32 to i64
      %t = arith.addi %s, %x64 : i64
      affine.yield %t : i64
    }
    affine.store %r, %d[%i] : memref<8xi64>
  }
  affine.for %i = 0 to 8 {
    %r = affine.for %k = 0 to 64 iter_args(%s = %z) -> (i64) {
      %x = affine.load %a[%i, %k] : memref<8x64xi32>
      %x64 = arith.extsi %x : i32 to i64
      %t = arith.maxsi %s, %x64 : i64
      affine.yield %t : i64
    }
    %n = arith.trunci %r : i64 to i32
    affine.store %n, %c[%i] : memref<8xi32>
  }
  return
}
