// PASSES: expand-fma
// ARCH: x86-64-v2
//
// f32 through f64; f64 with the error of the product; an addition stays.

// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: f32, %[[D:.*]]: f64)
// CHECK-NOT:     math.fma
// CHECK:         %[[P:.*]] = arith.mulf %{{.*}}, %{{.*}} : f64
// CHECK:         %[[S:.*]] = arith.addf %[[P]], %{{.*}} : f64
// CHECK:         arith.truncf %[[S]] : f64 to f32
// CHECK:         arith.mulf %[[D]], %[[D]] : f64
// CHECK:         arith.select %{{.*}}, %{{.*}}, %{{.*}} : f64
// CHECK:         arith.addf %[[X]], %[[X]] fastmath<contract> : f32
func.func @main(%x: f32, %d: f64) -> (f32, f64, f32) {
  %0 = math.fma %x, %x, %x : f32
  %1 = math.fma %d, %d, %d : f64
  %2 = arith.addf %x, %x fastmath<contract> : f32
  return %0, %1, %2 : f32, f64, f32
}
