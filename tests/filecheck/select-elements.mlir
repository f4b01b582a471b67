// PASSES: select-elements
//
// Tensors are chosen element by element; a scalar stays as it is.

// CHECK-LABEL: func.func @main
// CHECK:         %[[R:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1, %arg2 : i1, tensor<4xf32>, tensor<4xf32>)
// CHECK:         ^bb0(%[[P:.*]]: i1, %[[X:.*]]: f32, %[[Y:.*]]: f32, %{{.*}}: f32):
// CHECK:           %[[C:.*]] = arith.select %[[P]], %[[X]], %[[Y]] : f32
// CHECK:           linalg.yield %[[C]]
// CHECK:         %[[S:.*]] = arith.select %arg0, %arg3, %arg3 : f32
// CHECK:         return %[[R]], %[[S]]
func.func @main(%p: i1, %a: tensor<4xf32>, %b: tensor<4xf32>, %z: f32) -> (tensor<4xf32>, f32) {
  %r = arith.select %p, %a, %b : tensor<4xf32>
  %s = arith.select %p, %z, %z : f32
  return %r, %s : tensor<4xf32>, f32
}
