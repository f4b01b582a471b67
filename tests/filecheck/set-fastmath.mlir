// PASSES: set-fastmath
//
// Arithmetic may be reassociated; minima, comparisons and integers are left alone.

// CHECK-LABEL: func.func @main
// CHECK:         arith.addf %{{.*}}, %{{.*}} fastmath<reassoc,contract> : f32
// CHECK:         arith.mulf %{{.*}}, %{{.*}} fastmath<reassoc,contract> : f32
// CHECK:         arith.maximumf %{{.*}}, %{{.*}} : f32
// CHECK:         arith.cmpf ogt, %{{.*}}, %{{.*}} : f32
// CHECK:         arith.addi %{{.*}}, %{{.*}} : i32
func.func @main(%a: f32, %b: f32, %i: i32) -> (f32, i1, i32) {
  %0 = arith.addf %a, %b : f32
  %1 = arith.mulf %0, %b : f32
  %2 = arith.maximumf %1, %b : f32
  %3 = arith.cmpf ogt, %2, %b : f32
  %4 = arith.addi %i, %i : i32
  return %2, %3, %4 : f32, i1, i32
}
