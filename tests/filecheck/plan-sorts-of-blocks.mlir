// PASSES: plan-sorts
// TARGET: gpu
//
// On a grid of threads long rows are sorted by a network, one stage in each iteration of a loop.

// CHECK-LABEL: @main
// CHECK:         %[[MASKS:.*]] = arith.constant dense<{{.*}}> : tensor<55xi64>
// CHECK:         scf.for %{{.*}} iter_args(%[[W:.*]] = %{{.*}}) -> (tensor<8x1000xi32>) {
// CHECK:           tensor.extract %[[MASKS]]
// CHECK:           linalg.generic
// CHECK:             tensor.extract %[[W]]
// CHECK:             arith.cmpi slt
// CHECK:             linalg.yield
// CHECK:           scf.yield
// CHECK-NOT:     tm_tensor.sort
func.func @main(%x: tensor<8x1000xi32>) -> tensor<8x1000xi32> {
  %s = tm_tensor.sort dimension(1) outs(%x : tensor<8x1000xi32>) {
  ^bb0(%a: i32, %b: i32):
    %c = arith.cmpi slt, %a, %b : i32
    tm_tensor.yield %c : i1
  } -> tensor<8x1000xi32>
  return %s : tensor<8x1000xi32>
}
