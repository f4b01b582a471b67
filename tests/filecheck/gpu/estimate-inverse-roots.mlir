// PASSES: estimate-inverse-roots
// TARGET: nvgpu sm_80
//
// An estimate and a step where terms may be rearranged; a dividend of one is no product.

// CHECK-LABEL: func.func @main
// CHECK:         %[[R:.*]] = llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"(%[[S:.*]]) : (f32) -> f32
// CHECK:         %[[P:.*]] = arith.mulf %[[S]], %[[R]]
// CHECK:         %[[N:.*]] = arith.negf %[[P]]
// CHECK:         %[[E:.*]] = math.fma %[[N]], %[[R]]
// CHECK:         arith.cmpf olt, %[[E]]
// CHECK:         %[[V:.*]] = arith.select %{{.*}}, %{{.*}}, %[[R]] : f32
// CHECK:         arith.mulf %{{.*}}, %[[V]] : f32
// CHECK-COUNT-2: "llvm.nvvm.rsqrt.approx.f"
//
// A quotient that is not free, a root that is needed besides, and other types stay.
//
// CHECK-NOT:     llvm.call_intrinsic
// CHECK:         arith.divf %{{.*}} : f32
// CHECK-NOT:     llvm.call_intrinsic
// CHECK:         arith.divf %{{.*}} : f32
// CHECK-NOT:     llvm.call_intrinsic
// CHECK:         arith.divf %{{.*}} : f64
// CHECK-NOT:     llvm.call_intrinsic
func.func @main(%x: f32, %s: f32, %t: f32, %u: f32, %v: f32, %w: f32, %d: f64) -> (f32, f32, f32, f32, f32, f32, f64) {
  %one = arith.constant 1.0 : f32
  %0 = math.sqrt %s : f32
  %1 = arith.divf %x, %0 fastmath<reassoc,contract> : f32
  %2 = math.sqrt %t : f32
  %3 = arith.divf %one, %2 fastmath<reassoc,contract> : f32
  %4 = math.rsqrt %u : f32
  %5 = math.sqrt %v : f32
  %6 = arith.divf %x, %5 fastmath<contract> : f32
  %7 = math.sqrt %w : f32
  %8 = arith.divf %x, %7 fastmath<reassoc> : f32
  %9 = math.sqrt %d : f64
  %10 = arith.divf %d, %9 fastmath<reassoc> : f64
  return %1, %3, %4, %6, %7, %8, %10 : f32, f32, f32, f32, f32, f32, f64
}
