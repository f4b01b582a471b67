// Updates beyond the array become -0.0, which changes no sum, at an index within; so every store is
// the plain sum, which can be shared among threads.

// CHECK:       arith.cmpi ule
// CHECK:       arith.select %{{.*}}, %{{.*}}, %cst{{.*}} : f32
// CHECK:       tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false)
// CHECK-SAME:    ins(%{{.*}}, %{{.*}} : tensor<1000xf32>, tensor<1000x1xi64>) outs(%{{.*}} : tensor<64xf32>)
// CHECK-NEXT:  ^bb0(%[[U:.*]]: f32, %[[OLD:.*]]: f32):
// CHECK-NEXT:    %[[NEW:.*]] = arith.addf %[[OLD]], %[[U]] : f32
// CHECK-NEXT:    tm_tensor.yield %[[NEW]] : f32
func.func @main(%x: tensor<64xf32>, %i: tensor<1000x1xi32>, %u: tensor<1000xf32>) -> tensor<64xf32> {
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
  }) : (tensor<64xf32>, tensor<1000x1xi32>, tensor<1000xf32>) -> tensor<64xf32>
  return %r : tensor<64xf32>
}
