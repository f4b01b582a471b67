// A counter that another condition may stop, or that is changed in another way, is carried.

// CHECK:       scf.while (%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) : (tensor<i32>, tensor<f32>) -> (tensor<i32>, tensor<f32>) {
// CHECK:         scf.condition
// CHECK:       } do {
// CHECK:         scf.yield
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<2000> : tensor<i32>
  %r:2 = stablehlo.while(%i = %one, %a = %x) : tensor<i32>, tensor<f32>
  cond {
    %p = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %b = stablehlo.add %a, %a : tensor<f32>
    %n = stablehlo.add %i, %i : tensor<i32>
    stablehlo.return %n, %b : tensor<i32>, tensor<f32>
  }
  return %r#1 : tensor<f32>
}
