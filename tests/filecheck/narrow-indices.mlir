// PASSES: narrow-indices
//
// The first position of a value is looked for in 32 bits and widened at the end. A minimum of
// numbers from memory stays, and so does one of positions that need more than 31 bits.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[I:.*]] = 0 to 16 {
// CHECK-DAG:       %[[Z:.*]] = arith.constant 9223372036854775807 : i64
// CHECK-DAG:       %[[TOP:.*]] = arith.constant 2147483647 : i32
// CHECK:           %[[R:.*]] = affine.for %[[K:.*]] = 0 to 1000 iter_args(%[[S:.*]] = %[[TOP]]) -> (i32) {
// CHECK-DAG:         %[[P:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK-DAG:         %[[NONE:.*]] = arith.constant 1000 : i32
// CHECK:             %[[V:.*]] = arith.select %{{.*}}, %[[P]], %[[NONE]] : i32
// CHECK:             arith.minsi %[[V]], %[[S]] : i32
// CHECK:           %[[W:.*]] = arith.extsi %[[R]] : i32 to i64
// CHECK:           %[[M:.*]] = arith.minsi %[[W]], %[[Z]] : i64
// CHECK:           affine.store %[[M]]
// CHECK:         affine.for
// CHECK:           affine.for {{.*}} -> (i64) {
// CHECK:         affine.for
// CHECK:           affine.for {{.*}} -> (i64) {
func.func @main(%a: memref<16x1000xf32>, %b: memref<16xi64>, %c: memref<16x1000xi64>, %x: f32) {
  affine.for %i = 0 to 16 {
    %z = arith.constant 9223372036854775807 : i64
    %none = arith.constant 1000 : i64
    %r = affine.for %k = 0 to 1000 iter_args(%s = %z) -> (i64) {
      %v = affine.load %a[%i, %k] : memref<16x1000xf32>
      %e = arith.cmpf oeq, %v, %x : f32
      %k0 = affine.apply affine_map<(d0) -> (d0)>(%k)
      %p = arith.index_cast %k0 : index to i64
      %w = arith.select %e, %p, %none : i64
      %t = arith.minsi %w, %s : i64
      affine.yield %t : i64
    }
    affine.store %r, %b[%i] : memref<16xi64>
  }
  affine.for %i = 0 to 16 {
    %z = arith.constant 9223372036854775807 : i64
    %r = affine.for %k = 0 to 1000 iter_args(%s = %z) -> (i64) {
      %v = affine.load %c[%i, %k] : memref<16x1000xi64>
      %t = arith.minsi %v, %s : i64
      affine.yield %t : i64
    }
    affine.store %r, %b[%i] : memref<16xi64>
  }
  affine.for %i = 0 to 16 {
    %z = arith.constant 9223372036854775807 : i64
    %none = arith.constant 3000000000 : i64
    %r = affine.for %k = 0 to 1000 iter_args(%s = %z) -> (i64) {
      %v = affine.load %a[%i, %k] : memref<16x1000xf32>
      %e = arith.cmpf oeq, %v, %x : f32
      %p = arith.index_cast %k : index to i64
      %w = arith.select %e, %p, %none : i64
      %t = arith.minsi %w, %s : i64
      affine.yield %t : i64
    }
    affine.store %r, %b[%i] : memref<16xi64>
  }
  return
}
