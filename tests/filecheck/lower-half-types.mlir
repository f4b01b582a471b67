// PASSES: lower-half-types
//
// Arithmetic of f16 in f32; f64 through f32; bf16 conversions with integers; f32 untouched. An
// integer is rounded, which may make it an infinity.

// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[A:.*]]: f16, %[[B:.*]]: bf16, %[[C:.*]]: f32, %[[D:.*]]: f64)
// CHECK:         arith.shli
// CHECK:         %[[A32:.*]] = arith.extf %[[A]] {{.*}}: f16 to f32
// CHECK:         %[[S:.*]] = arith.addf %[[A32]], %[[A32]] : f32
// CHECK:         arith.truncf %[[S]] {{.*}}: f32 to f16
// CHECK:         math.sqrt %{{.*}} : f32
// CHECK:         arith.select %{{.*}} : i16
// CHECK:         %[[D32:.*]] = arith.truncf %[[D]] : f64 to f32
// CHECK:         arith.truncf %[[D32]] : f32 to f16
// CHECK:         arith.mulf %[[C]], %[[C]] : f32
// CHECK-NOT:     bf16 to f32
func.func @main(%a: f16, %b: bf16, %c: f32, %d: f64) -> (f16, bf16, f16, f32) {
  %0 = arith.addf %a, %a : f16
  %1 = math.sqrt %b : bf16
  %2 = arith.truncf %d : f64 to f16
  %3 = arith.mulf %c, %c : f32
  return %0, %1, %2, %3 : f16, bf16, f16, f32
}

// CHECK-LABEL: func.func @integers
// CHECK-SAME:  (%[[I:.*]]: i32)
// CHECK:         %[[W:.*]] = arith.sitofp %[[I]] : i32 to f32
// CHECK:         %[[H:.*]] = arith.truncf %[[W]] fastmath<none> : f32 to f16
// CHECK:         %[[R:.*]] = arith.extf %[[H]] {{.*}} : f16 to f32
// CHECK:         math.sqrt %[[R]] : f32
func.func @integers(%i: i32) -> f16 {
  %0 = arith.sitofp %i : i32 to f16
  %1 = math.sqrt %0 : f16
  return %1 : f16
}
