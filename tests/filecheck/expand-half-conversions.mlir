// PASSES: expand-half-conversions
// ARCH: x86-64
//
// Between f16 and f32, also of vectors; f64 stays.

// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[H:.*]]: f16, %[[V:.*]]: vector<4xf32>, %[[D:.*]]: f64)
// CHECK:         %[[B:.*]] = arith.bitcast %[[H]] : f16 to i16
// CHECK:         arith.extui %[[B]] : i16 to i32
// CHECK-NOT:     f16 to f32
// CHECK:         arith.bitcast %[[V]] : vector<4xf32> to vector<4xi32>
// CHECK:         arith.bitcast %{{.*}} : vector<4xi16> to vector<4xf16>
// CHECK-NOT:     arith.truncf %[[V]]
// CHECK:         arith.truncf %[[D]] : f64 to f32
func.func @main(%h: f16, %v: vector<4xf32>, %d: f64) -> (f32, vector<4xf16>, f32) {
  %0 = arith.extf %h : f16 to f32
  %1 = arith.truncf %v : vector<4xf32> to vector<4xf16>
  %2 = arith.truncf %d : f64 to f32
  return %0, %1, %2 : f32, vector<4xf16>, f32
}
