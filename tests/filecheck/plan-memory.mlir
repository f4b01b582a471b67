// PASSES: plan-memory
//
// %t and %v are never needed at the same time and share bytes; %u lies behind them.

// CHECK-LABEL: func.func @main
// CHECK-SAME:  %[[WS:[a-z0-9]+]]: memref<2048xi8> {polyblocks.arg = {
// CHECK-SAME:  role = "workspace"
// CHECK:         %[[C0:.*]] = arith.constant 0 : index
// CHECK:         memref.view %[[WS]][%[[C0]]][] : memref<2048xi8> to memref<256xf32>
// CHECK:         %[[C1:.*]] = arith.constant 1024 : index
// CHECK:         memref.view %[[WS]][%[[C1]]][] : memref<2048xi8> to memref<256xf32>
// CHECK:         %[[C2:.*]] = arith.constant 0 : index
// CHECK:         memref.view %[[WS]][%[[C2]]][] : memref<2048xi8> to memref<256xf32>
// CHECK-NOT:     memref.alloc
func.func @main(%a: memref<256xf32> {polyblocks.arg = {role = "input", name = "a", dtype = "float32", shape = array<i64: 256>, strides = array<i64: 1>, constant = false, updates = -1 : i64}}) {
  %t = memref.alloc() : memref<256xf32>
  %u = memref.alloc() : memref<256xf32>
  %v = memref.alloc() : memref<256xf32>
  memref.copy %a, %t : memref<256xf32> to memref<256xf32>
  memref.copy %t, %u : memref<256xf32> to memref<256xf32>
  memref.copy %u, %v : memref<256xf32> to memref<256xf32>
  memref.copy %v, %a : memref<256xf32> to memref<256xf32>
  return
}
