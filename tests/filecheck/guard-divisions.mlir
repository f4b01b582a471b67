// PASSES: guard-divisions
//
// Of unknown divisors; of a constant only 0 and -1; not of zeros that a select replaces.

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

// CHECK-LABEL: func.func @replaced
// CHECK-NOT:     cf.assert
// CHECK:         arith.divui
// CHECK-NOT:     cf.assert
// CHECK:         arith.remui
// CHECK:         cf.assert
// CHECK:         arith.divui
// CHECK:         cf.assert
// CHECK:         arith.remui
func.func @replaced(%x: i32, %y: i32, %z: i32, %b: i1) -> (i32, i32, i32, i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %is = arith.cmpi eq, %y, %zero : i32
  %not = arith.cmpi ne, %y, %zero : i32
  %safe = arith.select %is, %one, %y : i32
  %also = arith.select %b, %two, %safe : i32
  %wrong = arith.select %not, %one, %y : i32
  %other = arith.select %is, %one, %z : i32
  %0 = arith.divui %x, %safe : i32
  %1 = arith.remui %x, %also : i32
  %2 = arith.divui %x, %wrong : i32
  %3 = arith.remui %x, %other : i32
  return %0, %1, %2, %3 : i32, i32, i32, i32
}
