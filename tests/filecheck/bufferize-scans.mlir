// PASSES: bufferize-scans
//
// The scan's result is a buffer of its own; a tensor made from an argument keeps what it says.

// CHECK-LABEL: @main
// CHECK:         bufferization.to_tensor %{{.*}} restrict : memref<4xf32>
// CHECK:         bufferization.to_tensor %{{.*}} restrict writable
// CHECK:         tm_tensor.scan
// CHECK-SAME:    memref<4xf32>
func.func @main(%a: memref<4xf32>, %acc: tensor<f32>) -> tensor<4xf32> {
  %x = bufferization.to_tensor %a restrict : memref<4xf32> to tensor<4xf32>
  %o = tensor.empty() : tensor<4xf32>
  %s:2 = "tm_tensor.scan"(%x, %o, %acc) <{dimension = 0 : i64, inclusive = true, operandSegmentSizes = array<i32: 1, 2>}> ({
  ^bb0(%p: f32, %q: f32):
    %t = arith.addf %p, %q : f32
    "tm_tensor.yield"(%t) : (f32) -> ()
  }) : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)
  func.return %s#0 : tensor<4xf32>
}
