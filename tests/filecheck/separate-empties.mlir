// PASSES: separate-empties
//
// Two uses: one empty each. One use: untouched.

// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: tensor.empty() : tensor<4xf32>
// CHECK-NOT:     tensor.empty() : tensor<4xf32>
// CHECK:         tensor.empty() : tensor<5xf32>
// CHECK-NOT:     tensor.empty
func.func @main(%a: f32) -> (tensor<4xf32>, tensor<4xf32>, tensor<5xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.fill ins(%a : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %1 = linalg.fill ins(%a : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %s = tensor.empty() : tensor<5xf32>
  %2 = linalg.fill ins(%a : f32) outs(%s : tensor<5xf32>) -> tensor<5xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<5xf32>
}
