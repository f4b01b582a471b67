// PASSES: expand-remainder
//
// Floats only: integers have an instruction.

// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: f32, %[[Y:.*]]: f32, %[[I:.*]]: i32)
// CHECK-NOT:     arith.remf
// CHECK:         arith.remui %{{.*}} : i64
// CHECK:         scf.while
// CHECK:           scf.condition
// CHECK:           arith.shli
// CHECK:           arith.remui
// CHECK:           scf.yield
// CHECK:         math.copysign %{{.*}}, %[[X]] : f32
// CHECK:         arith.remsi %[[I]], %[[I]] : i32
func.func @main(%x: f32, %y: f32, %i: i32) -> (f32, i32) {
  %0 = arith.remf %x, %y : f32
  %1 = arith.remsi %i, %i : i32
  return %0, %1 : f32, i32
}
