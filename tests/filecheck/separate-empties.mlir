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

// Two sums that start from one tensor of zeros: each gets zeros, and an empty, of its own.

// CHECK-LABEL: func.func @sums
// CHECK:         %[[E0:.*]] = tensor.empty() : tensor<4xf32>
// CHECK:         %[[Z0:.*]] = linalg.fill ins(%{{.*}}) outs(%[[E0]]
// CHECK:         linalg.generic {{.*}} outs(%[[Z0]]
// CHECK:         %[[E1:.*]] = tensor.empty() : tensor<4xf32>
// CHECK:         %[[Z1:.*]] = linalg.fill ins(%{{.*}}) outs(%[[E1]]
// CHECK:         linalg.generic {{.*}} outs(%[[Z1]]
func.func @sums(%a: tensor<3x4xf32>, %b: tensor<3x4xf32>, %z: f32) -> (tensor<4xf32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]} ins(%a : tensor<3x4xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]} ins(%b : tensor<3x4xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// A computed start that is also returned: the sum gets a copy.

// CHECK-LABEL: func.func @kept
// CHECK:         %[[N:.*]] = linalg.generic
// CHECK:         %[[C:.*]] = bufferization.alloc_tensor() copy(%[[N]])
// CHECK:         linalg.generic {{.*}} outs(%[[C]]
func.func @kept(%a: tensor<3x4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> (j)>], iterator_types = ["parallel"]} ins(%b : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.negf %in : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]} ins(%a : tensor<3x4xf32>) outs(%n : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %0, %n : tensor<4xf32>, tensor<4xf32>
}
