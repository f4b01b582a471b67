// PASSES: expand-rounding
// ARCH: x86-64
//
// f32 and f64, scalars and vectors; f16 is none of this pass's business.

// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: f32, %[[V:.*]]: vector<4xf64>, %[[H:.*]]: f16)
// CHECK-DAG:     arith.constant 0x4B000000 : f32
// CHECK-DAG:     arith.constant dense<0x4330000000000000> : vector<4xf64>
// CHECK:         %[[M:.*]] = math.absf %[[X]] : f32
// CHECK:         %[[S:.*]] = arith.addf %[[M]], %{{.*}} : f32
// CHECK:         arith.subf %[[S]], %{{.*}} : f32
// CHECK-NOT:     math.floor
// CHECK:         math.absf %[[V]] : vector<4xf64>
// CHECK-NOT:     math.ceil %[[V]]
// CHECK:         math.ceil %[[H]] : f16
func.func @main(%x: f32, %v: vector<4xf64>, %h: f16) -> (f32, vector<4xf64>, f16) {
  %0 = math.floor %x : f32
  %1 = math.ceil %v : vector<4xf64>
  %2 = math.ceil %h : f16
  return %0, %1, %2 : f32, vector<4xf64>, f16
}
