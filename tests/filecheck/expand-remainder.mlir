// PASSES: expand-remainder
//
// Of floats, scalars and vectors alike: integers have an instruction.

// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: f32, %[[Y:.*]]: f32, %[[I:.*]]: i32)
// CHECK-NOT:     arith.remf
// CHECK:         %[[Q:.*]] = arith.divf %{{.*}}, %[[D:.*]] : f32
// CHECK:         %[[N:.*]] = math.trunc %[[Q]] : f32
// CHECK:         %[[M:.*]] = arith.negf %[[N]] : f32
// CHECK:         %[[R:.*]] = math.fma %[[M]], %[[D]], %{{.*}} : f32
// CHECK:         %[[W:.*]] = scf.while
// CHECK:           scf.condition
// CHECK:           arith.divf
// CHECK:           math.trunc
// CHECK:           math.fma
// CHECK:           scf.yield
// CHECK:         arith.addf %[[W]], %[[D]] : f32
// CHECK:         math.copysign %{{.*}}, %[[X]] : f32
// CHECK:         arith.remsi %[[I]], %[[I]] : i32
func.func @main(%x: f32, %y: f32, %i: i32) -> (f32, i32) {
  %0 = arith.remf %x, %y : f32
  %1 = arith.remsi %i, %i : i32
  return %0, %1 : f32, i32
}

// CHECK-LABEL: func.func @vectors
// CHECK-NOT:     arith.remf
// CHECK:         math.fma %{{.*}} : vector<8xf64>
// CHECK:         scf.while (%{{.*}} = %{{.*}}) : (vector<8xf64>) -> vector<8xf64>
// CHECK:           vector.reduction <or>, %{{.*}} : vector<8xi1> into i1
func.func @vectors(%x: vector<8xf64>, %y: vector<8xf64>) -> vector<8xf64> {
  %0 = arith.remf %x, %y : vector<8xf64>
  return %0 : vector<8xf64>
}
