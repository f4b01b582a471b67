// The place of the largest element: one reduction for the number, one for its first place. A body
// that lets the last of equal elements win stays a reduction of pairs.

// CHECK:       linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%{{.*}} : tensor<4x99xf32>) outs(%{{.*}} : tensor<4xf32>)
// CHECK:         arith.maximumf
// CHECK:       linalg.generic
// CHECK-SAME:    outs(%{{.*}} : tensor<4xi32>)
// CHECK:         arith.minsi
// CHECK:       linalg.generic
// CHECK-SAME:    outs(%{{.*}}, %{{.*}} : tensor<4xf32>, tensor<4xi32>)
func.func @main(%x: tensor<4x99xf32>) -> (tensor<4xi32>, tensor<4xi32>) {
  %i = stablehlo.iota dim = 1 : tensor<4x99xi32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.reduce(%x init: %low), (%i init: %none) across dimensions = [1]
      : (tensor<4x99xf32>, tensor<4x99xi32>, tensor<f32>, tensor<i32>)
      -> (tensor<4xf32>, tensor<4xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%j: tensor<i32>, %k: tensor<i32>) {
      %g = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %n = stablehlo.compare NE, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %c = stablehlo.or %g, %n : tensor<i1>
      %v = stablehlo.select %c, %a, %b : tensor<i1>, tensor<f32>
      %w = stablehlo.select %c, %j, %k : tensor<i1>, tensor<i32>
      stablehlo.return %v, %w : tensor<f32>, tensor<i32>
    }
  %s:2 = stablehlo.reduce(%x init: %low), (%i init: %none) across dimensions = [1]
      : (tensor<4x99xf32>, tensor<4x99xi32>, tensor<f32>, tensor<i32>)
      -> (tensor<4xf32>, tensor<4xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%j: tensor<i32>, %k: tensor<i32>) {
      %g = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %v = stablehlo.select %g, %a, %b : tensor<i1>, tensor<f32>
      %w = stablehlo.select %g, %j, %k : tensor<i1>, tensor<i32>
      stablehlo.return %v, %w : tensor<f32>, tensor<i32>
    }
  return %r#1, %s#1 : tensor<4xi32>, tensor<4xi32>
}
