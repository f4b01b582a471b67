// PASSES: form-counted-loops
//
// From 3 to 11 in steps of 2, both included: five iterations; the counter ends at 13.

// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[END:.*]] = arith.constant 13 : i32
// CHECK-DAG:     %[[TRIPS:.*]] = arith.constant 5 : index
// CHECK:         %[[R:.*]] = scf.for %[[K:.*]] = %c0 to %[[TRIPS]] step %c1 iter_args(%[[X:.*]] = %{{.*}}) -> (f32) {
// CHECK:           %[[I:.*]] = arith.index_cast %[[K]] : index to i32
// CHECK:           %[[M:.*]] = arith.muli %[[I]], %c2_i32
// CHECK:           %[[A:.*]] = arith.addi %[[M]], %c3_i32
// CHECK:           arith.sitofp %[[A]]
// CHECK:         return %[[END]], %[[R]]
func.func @main(%a: f32) -> (i32, f32) {
  %c3 = arith.constant 3 : i32
  %c11 = arith.constant 11 : i32
  %c2 = arith.constant 2 : i32
  %r:2 = scf.while (%i = %c3, %x = %a) : (i32, f32) -> (i32, f32) {
    %go = arith.cmpi sge, %c11, %i : i32
    scf.condition(%go) %i, %x : i32, f32
  } do {
  ^bb0(%i: i32, %x: f32):
    %f = arith.sitofp %i : i32 to f32
    %y = arith.addf %f, %x : f32
    %n = arith.addi %i, %c2 : i32
    scf.yield %n, %y : i32, f32
  }
  return %r#0, %r#1 : i32, f32
}

// Two counters, both of which must be in their bounds: the second one ends it, after three iterations.

// CHECK-LABEL: func.func @first_of_two
// CHECK-DAG:     %[[FIVE:.*]] = arith.constant 5 : i32
// CHECK-DAG:     %[[LAST:.*]] = arith.constant -1 : i32
// CHECK-DAG:     %[[TRIPS:.*]] = arith.constant 3 : index
// CHECK-NOT:     scf.while
// CHECK:         %[[R:.*]] = scf.for %{{.*}} to %[[TRIPS]] step
// CHECK:         return %[[FIVE]], %[[LAST]], %[[R]]
func.func @first_of_two(%a: f32) -> (i32, i32, f32) {
  %c2 = arith.constant 2 : i32
  %c9 = arith.constant 9 : i32
  %c8 = arith.constant 8 : i32
  %c1 = arith.constant 1 : i32
  %m3 = arith.constant -3 : i32
  %m1 = arith.constant -1 : i32
  %r:3 = scf.while (%i = %c2, %j = %c8, %x = %a) : (i32, i32, f32) -> (i32, i32, f32) {
    %p = arith.cmpi slt, %i, %c9 : i32
    %q = arith.cmpi sgt, %j, %m1 : i32
    %go = arith.andi %p, %q : i1
    scf.condition(%go) %i, %j, %x : i32, i32, f32
  } do {
  ^bb0(%i: i32, %j: i32, %x: f32):
    %y = arith.addf %x, %x : f32
    %n = arith.addi %i, %c1 : i32
    %k = arith.addi %j, %m3 : i32
    scf.yield %n, %k, %y : i32, i32, f32
  }
  return %r#0, %r#1, %r#2 : i32, i32, f32
}

// The second loop ends where the first one has counted to.

// CHECK-LABEL: func.func @one_after_the_other
// CHECK-NOT:     scf.while
// CHECK-COUNT-2: scf.for
// CHECK:         return
func.func @one_after_the_other(%a: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  %r:2 = scf.while (%i = %c0, %x = %a) : (i32, f32) -> (i32, f32) {
    %go = arith.cmpi slt, %i, %c5 : i32
    scf.condition(%go) %i, %x : i32, f32
  } do {
  ^bb0(%i: i32, %x: f32):
    %y = arith.addf %x, %x : f32
    %n = arith.addi %i, %c1 : i32
    scf.yield %n, %y : i32, f32
  }
  %s:2 = scf.while (%i = %c0, %x = %r#1) : (i32, f32) -> (i32, f32) {
    %go = arith.cmpi slt, %i, %r#0 : i32
    scf.condition(%go) %i, %x : i32, f32
  } do {
  ^bb0(%i: i32, %x: f32):
    %y = arith.mulf %x, %x : f32
    %n = arith.addi %i, %c1 : i32
    scf.yield %n, %y : i32, f32
  }
  return %s#1 : f32
}

// Data has a say: it stays.

// CHECK-LABEL: func.func @data
// CHECK:         scf.while
func.func @data(%a: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c9 = arith.constant 9 : i32
  %one = arith.constant 1.0 : f32
  %r:2 = scf.while (%i = %c0, %x = %a) : (i32, f32) -> (i32, f32) {
    %p = arith.cmpi slt, %i, %c9 : i32
    %q = arith.cmpf olt, %x, %one : f32
    %go = arith.andi %p, %q : i1
    scf.condition(%go) %i, %x : i32, f32
  } do {
  ^bb0(%i: i32, %x: f32):
    %y = arith.addf %x, %x : f32
    %n = arith.addi %i, %c1 : i32
    scf.yield %n, %y : i32, f32
  }
  return %r#1 : f32
}

// It would count past the largest number before it ends: it stays.

// CHECK-LABEL: func.func @wraps
// CHECK:         scf.while
func.func @wraps(%a: f32) -> f32 {
  %c0 = arith.constant 0 : i8
  %c100 = arith.constant 100 : i8
  %r:2 = scf.while (%i = %c0, %x = %a) : (i8, f32) -> (i8, f32) {
    %p = arith.cmpi sle, %i, %c100 : i8
    scf.condition(%p) %i, %x : i8, f32
  } do {
  ^bb0(%i: i8, %x: f32):
    %y = arith.addf %x, %x : f32
    %n = arith.addi %i, %c100 : i8
    scf.yield %n, %y : i8, f32
  }
  return %r#1 : f32
}

// A second counter is computed from the variable of the loop.

// CHECK-LABEL: func.func @second
// CHECK-DAG:     %[[END:.*]] = arith.constant -13 : i64
// CHECK:         %[[R:.*]] = scf.for %[[K:.*]] = %c0 to %c9 step %c1 iter_args(%[[X:.*]] = %{{.*}}) -> (f32) {
// CHECK:           %[[I:.*]] = arith.index_cast %[[K]] : index to i64
// CHECK:           %[[M:.*]] = arith.muli %[[I]], %c-2_i64
// CHECK:           %[[A:.*]] = arith.addi %[[M]], %c5_i64
// CHECK:           arith.sitofp %[[A]]
// CHECK:         return %[[END]], %[[R]]
func.func @second(%a: f32) -> (i64, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %five = arith.constant 5 : i64
  %two = arith.constant 2 : i64
  %r:2 = scf.for %k = %c0 to %c9 step %c1 iter_args(%i = %five, %x = %a) -> (i64, f32) {
    %f = arith.sitofp %i : i64 to f32
    %y = arith.addf %f, %x : f32
    %n = arith.subi %i, %two : i64
    scf.yield %n, %y : i64, f32
  }
  return %r#0, %r#1 : i64, f32
}
