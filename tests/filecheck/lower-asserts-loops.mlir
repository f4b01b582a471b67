// PASSES: lower-asserts
//
// A loop that might never end otherwise ends when a check in it has failed; one without does not
// ask.

// CHECK-LABEL: func.func @main
// CHECK:         %[[S:.*]] = memref.alloca() : memref<1xi32>
// CHECK:         scf.while
// CHECK:           %[[GO:.*]] = arith.cmpi ne
// CHECK:           %[[CODE:.*]] = memref.load %[[S]]
// CHECK:           %[[FINE:.*]] = arith.cmpi eq, %[[CODE]]
// CHECK:           %[[BOTH:.*]] = arith.andi %[[GO]], %[[FINE]]
// CHECK:           scf.condition(%[[BOTH]])
// CHECK:         scf.while
// CHECK-NEXT:      %[[MORE:.*]] = arith.cmpi ne
// CHECK-NEXT:      scf.condition(%[[MORE]])
func.func @main(%n: i32, %ok: i1, %out: memref<2xi32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = scf.while (%i = %c0) : (i32) -> i32 {
    %go = arith.cmpi ne, %i, %n : i32
    scf.condition(%go) %i : i32
  } do {
  ^bb0(%i: i32):
    cf.assert %ok, "index out of range"
    %j = arith.addi %i, %c1 : i32
    scf.yield %j : i32
  }
  %b = scf.while (%i = %c0) : (i32) -> i32 {
    %go = arith.cmpi ne, %i, %n : i32
    scf.condition(%go) %i : i32
  } do {
  ^bb0(%i: i32):
    %j = arith.addi %i, %c1 : i32
    scf.yield %j : i32
  }
  affine.store %a, %out[0] : memref<2xi32>
  affine.store %b, %out[1] : memref<2xi32>
  return
}
