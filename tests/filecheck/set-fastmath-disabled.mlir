// PASSES: set-fastmath
// OPTIONS: mlir_disable_fast_math
//
// Arithmetic stays as written, and a value that need not be rounded is.

// CHECK-LABEL: func.func @main
// CHECK:         %[[S:.*]] = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK-NOT:     polyblocks.free_rounding
// CHECK:         %[[R:.*]] = arith.truncf %[[S]] : f32 to bf16
// CHECK-NEXT:    arith.extf %[[R]] : bf16 to f32
func.func @main(%a: f32, %b: f32) -> f32 {
  %0 = arith.addf %a, %b : f32
  %1 = arith.truncf %0 {polyblocks.free_rounding} : f32 to bf16
  %2 = arith.extf %1 {polyblocks.free_rounding} : bf16 to f32
  return %2 : f32
}
