// A loop that counts becomes a counted loop. The counter, the second counter and what no iteration
// changes are not carried; a start that is known to be in range is not clamped.

// CHECK:       func.func public @main(%[[X:.*]]: tensor<20x4xf32>, %[[C:.*]]: tensor<4xf32>)
// CHECK:         %[[R:.*]] = scf.for %[[I:.*]] = %c0 to %c20 step %c1 iter_args(%[[A:.*]] = %[[X]]) -> (tensor<20x4xf32>) {
// CHECK-NOT:       minsi
// CHECK:           tensor.extract_slice %[[A]][%{{.*}}, 0] [1, 4] [1, 1]
// CHECK:           linalg.generic
// CHECK:           %[[N:.*]] = tensor.insert_slice %{{.*}} into %[[A]][%{{.*}}, 0] [1, 4] [1, 1]
// CHECK:           scf.yield %[[N]] : tensor<20x4xf32>
// CHECK:         return %[[R]], %{{.*}} : tensor<20x4xf32>, tensor<i32>
func.func @main(%x: tensor<20x4xf32>, %c: tensor<4xf32>) -> (tensor<20x4xf32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<20> : tensor<i32>
  %r:4 = stablehlo.while(%i = %zero, %j = %end, %k = %c, %a = %x)
      : tensor<i32>, tensor<i32>, tensor<4xf32>, tensor<20x4xf32>
  cond {
    %p = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %s = stablehlo.dynamic_slice %a, %i, %zero, sizes = [1, 4]
        : (tensor<20x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
    %w = stablehlo.reshape %k : (tensor<4xf32>) -> tensor<1x4xf32>
    %t = stablehlo.add %s, %w : tensor<1x4xf32>
    %b = stablehlo.dynamic_update_slice %a, %t, %i, %zero
        : (tensor<20x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<20x4xf32>
    %n = stablehlo.add %i, %one : tensor<i32>
    %m = stablehlo.subtract %j, %one : tensor<i32>
    stablehlo.return %n, %m, %k, %b
        : tensor<i32>, tensor<i32>, tensor<4xf32>, tensor<20x4xf32>
  }
  return %r#3, %r#1 : tensor<20x4xf32>, tensor<i32>
}
