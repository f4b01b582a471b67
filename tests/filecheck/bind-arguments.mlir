// PASSES: bind-arguments
//
// Results become output buffers; an in-place update goes through a buffer of its own.

// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[A:[a-z0-9]+]]: memref<4x3xf32, strided<[1, 4]>>
// CHECK-SAME:   updates = 0
// CHECK-SAME:   %[[OUT:[a-z0-9]+]]: memref<4x3xf32> {polyblocks.arg
// CHECK-SAME:   role = "output"
// CHECK:         %[[T:.*]] = bufferization.to_tensor %[[A]] restrict
// CHECK:         bufferization.materialize_in_destination %[[T]] in restrict writable %[[OUT]]
// CHECK:         %[[OWN:.*]] = memref.alloc() : memref<4x3xf32>
// CHECK:         bufferization.materialize_in_destination %{{.*}} in restrict writable %[[OWN]]
// CHECK:         memref.copy %[[OWN]], %[[A]]
// CHECK-NEXT:    return
func.func @main(%a: tensor<4x3xf32> {polyblocks.arg = {role = "input", name = "a", dtype = "float32", shape = array<i64: 4, 3>, strides = array<i64: 1, 4>, constant = false, updates = -1 : i64}})
    -> (tensor<4x3xf32> {polyblocks.result = {role = "output", name = "r", dtype = "float32", shape = array<i64: 4, 3>, strides = array<i64: 3, 1>, constant = false, updates = -1 : i64}},
        tensor<4x3xf32> {polyblocks.result = {role = "output", name = "u", dtype = "float32", shape = array<i64: 4, 3>, strides = array<i64: 3, 1>, constant = false, updates = 0 : i64}}) {
  %n = arith.negf %a : tensor<4x3xf32>
  return %a, %n : tensor<4x3xf32>, tensor<4x3xf32>
}
