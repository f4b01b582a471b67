// PASSES: guard-divisions
//
// Of unknown divisors; of a constant only 0 and -1.

// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: i32, %[[Y:.*]]: i32, %[[I:.*]]: index)
// CHECK:         %[[OK:.*]] = arith.cmpi ne, %[[Y]], %{{.*}} : i32
// CHECK:         cf.assert %[[OK]], "ZeroDivisionError: an integer is divided by zero"
// CHECK:         %[[LOW:.*]] = arith.cmpi eq, %[[X]], %{{.*}} : i32
// CHECK:         %[[NEG:.*]] = arith.cmpi eq, %[[Y]], %{{.*}} : i32
// CHECK:         %[[BOTH:.*]] = arith.andi %[[LOW]], %[[NEG]] : i1
// CHECK:         %[[SAFE:.*]] = arith.select %[[BOTH]], %{{.*}}, %[[Y]] : i32
// CHECK:         arith.floordivsi %[[X]], %[[SAFE]] : i32
// CHECK:         cf.assert
// CHECK-NOT:     arith.select
// CHECK:         arith.remui %[[X]], %[[Y]] : i32
// CHECK-NOT:     cf.assert
// CHECK:         arith.divsi %[[I]], %{{.*}} : index
// CHECK:         %[[SAFE1:.*]] = arith.select
// CHECK:         arith.remsi %[[X]], %[[SAFE1]] : i32
func.func @main(%x: i32, %y: i32, %i: index) -> (i32, i32, index, i32) {
  %c5 = arith.constant 5 : index
  %minus = arith.constant -1 : i32
  %0 = arith.floordivsi %x, %y : i32
  %1 = arith.remui %x, %y : i32
  %2 = arith.divsi %i, %c5 : index
  %3 = arith.remsi %x, %minus : i32
  return %0, %1, %2, %3 : i32, i32, index, i32
}
