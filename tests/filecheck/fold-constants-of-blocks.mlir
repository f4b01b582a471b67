// PASSES: fold-constants
// TARGET: gpu
//
// On GPUs a few numbers that take a division each are constants rather than a kernel. A large table
// of places is one if it will be an expression (`raise-tables`); other large ones stay.

#one = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @main
// CHECK:         %[[FEW:.*]] = arith.constant dense<[{{.*}}]> : tensor<8xf32>
// CHECK:         %[[PLACES:.*]] = arith.constant dense<{{.*}}> : tensor<2048xi64>
// CHECK:         %[[MANY:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<2048xf32>)
// CHECK:           math.sin
// CHECK:         return %[[FEW]], %[[PLACES]], %[[MANY]]
func.func @main() -> (tensor<8xf32>, tensor<2048xi64>, tensor<2048xf32>) {
  %seven = arith.constant 7.0 : f32
  %half = arith.constant 0.5 : f32
  %e8 = tensor.empty() : tensor<8xf32>
  %few = linalg.generic {indexing_maps = [#one], iterator_types = ["parallel"]}
      outs(%e8 : tensor<8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %f = arith.sitofp %n : i64 to f32
    %q = arith.divf %f, %seven : f32
    linalg.yield %q : f32
  } -> tensor<8xf32>
  %ei = tensor.empty() : tensor<2048xi64>
  %places = linalg.generic {indexing_maps = [#one], iterator_types = ["parallel"]}
      outs(%ei : tensor<2048xi64>) {
  ^bb0(%out: i64):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %f = arith.sitofp %n : i64 to f32
    %h = arith.mulf %f, %half : f32
    %p = arith.fptosi %h : f32 to i64
    linalg.yield %p : i64
  } -> tensor<2048xi64>
  %ef = tensor.empty() : tensor<2048xf32>
  %many = linalg.generic {indexing_maps = [#one], iterator_types = ["parallel"]}
      outs(%ef : tensor<2048xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %f = arith.sitofp %n : i64 to f32
    %s = math.sin %f : f32
    linalg.yield %s : f32
  } -> tensor<2048xf32>
  return %few, %places, %many : tensor<8xf32>, tensor<2048xi64>, tensor<2048xf32>
}
