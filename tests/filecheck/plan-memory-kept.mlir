// PASSES: plan-memory
//
// What the preparation leaves for the rest lies in memory of its own, which is kept between calls;
// what it alone uses, and what the rest alone uses, share the workspace.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    %[[WS:[a-z0-9]+]]: memref<1024xi8> {polyblocks.arg = {{{.*}}role = "workspace"
// CHECK-SAME:    %[[KEPT:[a-z0-9]+]]: memref<1024xi8> {polyblocks.arg = {{{.*}}role = "kept"
// CHECK-DAG:     memref.view %[[KEPT]][
// CHECK-DAG:     memref.view %[[WS]][
// CHECK-DAG:     memref.view %[[WS]][
func.func @main(%a: memref<256xf32> {polyblocks.arg = {role = "input", name = "a", dtype = "float32", shape = array<i64: 256>, strides = array<i64: 1>, constant = true, updates = -1 : i64}},
                %x: memref<256xf32> {polyblocks.arg = {role = "input", name = "x", dtype = "float32", shape = array<i64: 256>, strides = array<i64: 1>, constant = false, updates = -1 : i64}},
                %y: memref<256xf32> {polyblocks.arg = {role = "output", name = "y", dtype = "float32", shape = array<i64: 256>, strides = array<i64: 1>, constant = false, updates = -1 : i64}}) {
  %true = arith.constant true
  %k = memref.alloc() : memref<256xf32>
  %t = memref.alloc() : memref<256xf32>
  %u = memref.alloc() : memref<256xf32>
  scf.if %true {
    memref.copy %a, %t : memref<256xf32> to memref<256xf32>
    memref.copy %t, %k : memref<256xf32> to memref<256xf32>
  } {polyblocks.region = "preparation"}
  memref.copy %k, %u : memref<256xf32> to memref<256xf32>
  memref.copy %u, %y : memref<256xf32> to memref<256xf32>
  return
}
