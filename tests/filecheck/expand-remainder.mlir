// PASSES: expand-remainder
//
// Of floats, scalars and vectors alike: integers have an instruction.

// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: f32, %[[Y:.*]]: f32, %[[I:.*]]: i32)
// CHECK-NOT:     arith.remf
// CHECK:         %[[Q:.*]] = arith.divf %[[X]], %[[Y]] : f32
// CHECK:         %[[N:.*]] = math.trunc %[[Q]] : f32
// CHECK:         %[[M:.*]] = arith.negf %[[N]] : f32
// CHECK:         %[[R:.*]] = math.fma %[[M]], %[[Y]], %[[X]] : f32
// CHECK:         %[[C:.*]] = math.copysign %{{.*}}, %[[X]] : f32
// CHECK:         scf.if
// CHECK:           scf.while
// CHECK:             scf.condition
// CHECK:             arith.divf
// CHECK:             math.trunc
// CHECK:             math.fma
// CHECK:             scf.yield
// CHECK:           math.copysign %{{.*}}, %[[X]] : f32
// CHECK:           scf.yield
// CHECK:         else
// CHECK-NEXT:      scf.yield %[[C]] : f32
// CHECK:         arith.remsi %[[I]], %[[I]] : i32
func.func @main(%x: f32, %y: f32, %i: i32) -> (f32, i32) {
  %0 = arith.remf %x, %y : f32
  %1 = arith.remsi %i, %i : i32
  return %0, %1 : f32, i32
}

// CHECK-LABEL: func.func @vectors
// CHECK-NOT:     arith.remf
// CHECK:         math.fma %{{.*}} : vector<8xf64>
// CHECK:         vector.reduction <or>, %{{.*}} : vector<8xi1> into i1
// CHECK:         scf.if
// CHECK:           scf.while (%{{.*}} = %{{.*}}) : (vector<8xf64>) -> vector<8xf64>
// CHECK:             vector.reduction <or>, %{{.*}} : vector<8xi1> into i1
// CHECK:         polyblocks.rare
func.func @vectors(%x: vector<8xf64>, %y: vector<8xf64>) -> vector<8xf64> {
  %0 = arith.remf %x, %y : vector<8xf64>
  return %0 : vector<8xf64>
}

// The quotient without what remains is that of the step, if it is small enough.
// CHECK-LABEL: func.func @quotient
// CHECK-SAME:  (%[[X:.*]]: f32, %[[Y:.*]]: f32)
// CHECK:         %[[Q:.*]] = arith.divf %[[X]], %[[Y]] : f32
// CHECK:         scf.if
// CHECK:           arith.divf
// CHECK:           arith.divf
// CHECK:         else
// CHECK-NEXT:      scf.yield %{{.*}}, %[[N:.*]] : f32, f32
func.func @quotient(%x: f32, %y: f32) -> f32 {
  %0 = arith.remf %x, %y : f32
  %1 = arith.subf %x, %0 fastmath<reassoc,contract> : f32
  %2 = arith.divf %1, %y fastmath<reassoc,contract> : f32
  return %2 : f32
}

// By another number, of another dividend, or rounded as it is written.
// CHECK-LABEL: func.func @others
// CHECK-DAG:     arith.divf %{{.*}}, %arg0 fastmath<reassoc,contract> : f32
// CHECK-DAG:     arith.divf %{{.*}}, %arg1 fastmath<reassoc,contract> : f32
// CHECK-DAG:     arith.divf %{{.*}}, %arg1 : f32
func.func @others(%x: f32, %y: f32) -> (f32, f32, f32) {
  %0 = arith.remf %x, %y : f32
  %1 = arith.subf %x, %0 : f32
  %2 = arith.divf %1, %x fastmath<reassoc,contract> : f32
  %3 = arith.subf %y, %0 : f32
  %4 = arith.divf %3, %y fastmath<reassoc,contract> : f32
  %5 = arith.divf %1, %y : f32
  return %2, %4, %5 : f32, f32, f32
}
