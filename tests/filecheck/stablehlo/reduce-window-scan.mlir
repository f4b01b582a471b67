// Windows that all begin at the first element are a scan; float32 is summed up in float64.

// CHECK-DAG:   #[[EVERY:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG:   #[[ROW:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK:       linalg.generic {indexing_maps = [#[[EVERY]], #[[EVERY]], #[[ROW]]], iterator_types = ["parallel", "reduction"]}
// CHECK-SAME:    ins(%{{.*}} : tensor<4x8xf32>) outs(%{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<4xf64>)
// CHECK:       ^bb0(%[[X:.*]]: f32, %{{.*}}: f32, %[[A:.*]]: f64):
// CHECK:         %[[W:.*]] = arith.extf %[[X]] : f32 to f64
// CHECK:         %[[S:.*]] = arith.addf %[[A]], %[[W]] : f64
// CHECK:         %[[R:.*]] = arith.truncf %[[S]] : f64 to f32
// CHECK:         linalg.yield %[[R]], %[[S]] : f32, f64
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %s = stablehlo.constant dense<0.0> : tensor<f32>
  %r = "stablehlo.reduce_window"(%x, %s) <{padding = dense<[[0, 0], [7, 0]]> : tensor<2x2xi64>,
      window_dimensions = array<i64: 1, 8>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
