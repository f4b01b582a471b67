// PASSES: form-preparation
//
// A program with a constant argument begins with an empty branch for what depends on it.

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[TRUE:.*]] = arith.constant true
// CHECK-NEXT:    scf.if %[[TRUE]] {
// CHECK-NEXT:    } {polyblocks.region = "preparation"}
// CHECK-NEXT:    memref.copy
func.func @main(%a: memref<256xf32> {polyblocks.arg = {role = "input", name = "a", dtype = "float32", shape = array<i64: 256>, strides = array<i64: 1>, constant = true, updates = -1 : i64}},
                %b: memref<256xf32> {polyblocks.arg = {role = "output", name = "b", dtype = "float32", shape = array<i64: 256>, strides = array<i64: 1>, constant = false, updates = -1 : i64}}) {
  memref.copy %a, %b : memref<256xf32> to memref<256xf32>
  return
}
