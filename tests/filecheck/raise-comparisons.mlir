// PASSES: raise-comparisons
//
// Numbers of documents of 512, rounded down as for numbers below zero, are compared: no array holds
// them, and nothing is divided for a column. A comparison with what an argument says stays, and so
// does one along one loop.

// CHECK:       #[[LOW:map[0-9]*]] = affine_map<(d0) -> ((d0 floordiv 512) * 512)>
// CHECK:       #[[HIGH:map[0-9]*]] = affine_map<(d0) -> ((d0 floordiv 512) * 512 + 512)>
// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloc
// CHECK:         affine.for %[[I:.*]] = 0 to 1024 {
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to 1024 {
// CHECK:             %[[FIRST:.*]] = affine.apply #[[LOW]](%[[I]])
// CHECK:             %[[L:.*]] = arith.cmpi sge, %[[J]], %[[FIRST]] : index
// CHECK:             %[[END:.*]] = affine.apply #[[HIGH]](%[[I]])
// CHECK:             %[[U:.*]] = arith.cmpi slt, %[[J]], %[[END]] : index
// CHECK:             %[[M:.*]] = arith.andi %[[L]], %[[U]] : i1
// CHECK:             affine.store %[[M]]
// CHECK:         affine.for
// CHECK:           affine.for
// CHECK:             affine.load
// CHECK:             arith.cmpi eq, %{{.*}} : i64
func.func @main(%mask: memref<1024x1024xi1>, %given: memref<1024xi64>, %other: memref<1024x1024xi1>) {
  %c512 = arith.constant 512 : i64
  %c0 = arith.constant 0 : i64
  %place = memref.alloc() : memref<1024xi64>
  %quotient = memref.alloc() : memref<1024xi64>
  %below = memref.alloc() : memref<1024xi1>
  %document = memref.alloc() : memref<1024xi64>
  affine.for %i = 0 to 1024 {
    %n = arith.index_cast %i : index to i64
    affine.store %n, %place[%i] : memref<1024xi64>
  }
  affine.for %i = 0 to 1024 {
    %n = affine.load %place[%i] : memref<1024xi64>
    %q = arith.divsi %n, %c512 : i64
    affine.store %q, %quotient[%i] : memref<1024xi64>
  }
  affine.for %i = 0 to 1024 {
    %n = affine.load %place[%i] : memref<1024xi64>
    %q = affine.load %quotient[%i] : memref<1024xi64>
    %m = arith.muli %q, %c512 : i64
    %r = arith.subi %n, %m : i64
    %b = arith.cmpi slt, %r, %c0 : i64
    affine.store %b, %below[%i] : memref<1024xi1>
  }
  affine.for %i = 0 to 1024 {
    %q = affine.load %quotient[%i] : memref<1024xi64>
    %b = affine.load %below[%i] : memref<1024xi1>
    %e = arith.extui %b : i1 to i64
    %d = arith.subi %q, %e : i64
    affine.store %d, %document[%i] : memref<1024xi64>
  }
  affine.for %i = 0 to 1024 {
    affine.for %j = 0 to 1024 {
      %a = affine.load %document[%i] : memref<1024xi64>
      %b = affine.load %document[%j] : memref<1024xi64>
      %m = arith.cmpi eq, %a, %b : i64
      affine.store %m, %mask[%i, %j] : memref<1024x1024xi1>
    }
  }
  affine.for %i = 0 to 1024 {
    affine.for %j = 0 to 1024 {
      %a = affine.load %given[%i] : memref<1024xi64>
      %b = affine.load %given[%j] : memref<1024xi64>
      %m = arith.cmpi eq, %a, %b : i64
      affine.store %m, %other[%i, %j] : memref<1024x1024xi1>
    }
  }
  return
}
