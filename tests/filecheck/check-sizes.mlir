// PASSES: check-sizes
//
// Casts that say nothing new of a size are left as they are.

// CHECK-LABEL: func.func @main
// CHECK:         tensor.cast %arg0 : tensor<4xf32> to tensor<?xf32>
// CHECK:         tensor.cast %{{.*}} : tensor<?xf32> to tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = tensor.cast %x : tensor<4xf32> to tensor<?xf32>
  %b = tensor.cast %a : tensor<?xf32> to tensor<4xf32>
  return %b : tensor<4xf32>
}
