// PASSES: plan-memory
//
// %t lives in one iteration and shares bytes with %v; %u is carried, so nothing may lie there while
// the loop runs. Where they are is the same in all iterations.

// CHECK-LABEL: func.func @main
// CHECK-SAME:  %[[WS:[a-z0-9]+]]: memref<2048xi8> {polyblocks.arg = {
// CHECK-NOT:     memref.alloc
// CHECK:         %[[C0:.*]] = arith.constant 0 : index
// CHECK:         memref.view %[[WS]][%[[C0]]][] : memref<2048xi8> to memref<256xf32>
// CHECK:         %[[C1:.*]] = arith.constant 1024 : index
// CHECK:         memref.view %[[WS]][%[[C1]]][] : memref<2048xi8> to memref<256xf32>
// CHECK:         %[[C2:.*]] = arith.constant 1024 : index
// CHECK:         memref.view %[[WS]][%[[C2]]][] : memref<2048xi8> to memref<256xf32>
// CHECK:         affine.for
func.func @main(%a: memref<256xf32> {polyblocks.arg = {role = "input", name = "a", dtype = "float32", shape = array<i64: 256>, strides = array<i64: 1>, constant = false, updates = -1 : i64}}) {
  %u = memref.alloc() : memref<256xf32>
  memref.copy %a, %u : memref<256xf32> to memref<256xf32>
  affine.for %i = 0 to 10 {
    %t = memref.alloc() : memref<256xf32>
    memref.copy %u, %t : memref<256xf32> to memref<256xf32>
    memref.copy %t, %u : memref<256xf32> to memref<256xf32>
    %v = memref.alloc() : memref<256xf32>
    memref.copy %a, %v : memref<256xf32> to memref<256xf32>
    memref.copy %v, %a : memref<256xf32> to memref<256xf32>
  } {polyblocks.region = "loop1"}
  return
}
