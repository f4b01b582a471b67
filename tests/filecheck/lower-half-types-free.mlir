// PASSES: lower-half-types
// ARCH: x86-64-v4
//
// Conversions that the program does not ask for get the flag by which upstream's folds know them; the
// program's own do not. No mark is left.

// CHECK-LABEL: func.func @free
// CHECK-NOT:     polyblocks.free_rounding
// CHECK:         %[[R:.*]] = arith.truncf %arg0 fastmath<contract> : f32 to f16
// CHECK-NEXT:    arith.extf %[[R]] fastmath<contract> : f16 to f32
// CHECK-LABEL: func.func @asked
// CHECK-NOT:     polyblocks.free_rounding
// CHECK:         %[[S:.*]] = arith.truncf %arg0 : f32 to f16
// CHECK-NEXT:    arith.extf %[[S]] fastmath<contract> : f16 to f32
func.func @free(%a: f32) -> f32 {
  %0 = arith.truncf %a {polyblocks.free_rounding} : f32 to f16
  %1 = arith.extf %0 {polyblocks.free_rounding} : f16 to f32
  return %1 : f32
}
func.func @asked(%a: f32) -> f32 {
  %0 = arith.truncf %a : f32 to f16
  %1 = arith.extf %0 {polyblocks.free_rounding} : f16 to f32
  return %1 : f32
}
