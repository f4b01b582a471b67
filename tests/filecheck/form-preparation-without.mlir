// PASSES: form-preparation
//
// Without constant arguments nothing is changed.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     scf.if
func.func @main(%a: memref<256xf32> {polyblocks.arg = {role = "input", name = "a", dtype = "float32", shape = array<i64: 256>, strides = array<i64: 1>, constant = false, updates = -1 : i64}},
                %b: memref<256xf32> {polyblocks.arg = {role = "output", name = "b", dtype = "float32", shape = array<i64: 256>, strides = array<i64: 1>, constant = false, updates = -1 : i64}}) {
  memref.copy %a, %b : memref<256xf32> to memref<256xf32>
  return
}
