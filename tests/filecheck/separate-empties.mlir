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

// A slice is put into a tensor that is returned as it was: into a copy of it. Read before, it is
// changed where it is.

// CHECK-LABEL: func.func @updated
// CHECK:         %[[N:.*]] = linalg.generic
// CHECK:         %[[C:.*]] = bufferization.alloc_tensor() copy(%[[N]])
// CHECK:         tensor.insert_slice %{{.*}} into %[[C]][0]
// CHECK:         %[[M:.*]] = linalg.generic
// CHECK:         tensor.extract_slice %[[M]]
// CHECK:         tensor.insert_slice %{{.*}} into %[[M]][2]
func.func @updated(%b: tensor<4xf32>, %x: tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> (j)>], iterator_types = ["parallel"]} ins(%b : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.negf %in : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %0 = tensor.insert_slice %x into %n[0] [2] [1] : tensor<2xf32> into tensor<4xf32>
  %f = tensor.empty() : tensor<4xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> (j)>], iterator_types = ["parallel"]} ins(%b : tensor<4xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = math.absf %in : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %y = tensor.extract_slice %m[0] [2] [1] : tensor<4xf32> to tensor<2xf32>
  %1 = tensor.insert_slice %y into %m[2] [2] [1] : tensor<2xf32> into tensor<4xf32>
  return %0, %n, %1 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// What two tensors begin with is put into an empty one for each: less to move than a copy.

// CHECK-LABEL: func.func @borders
// CHECK-DAG:     %[[E0:.*]] = tensor.empty() : tensor<4x8xf32>
// CHECK-DAG:     %[[E1:.*]] = tensor.empty() : tensor<4x8xf32>
// CHECK-DAG:     %[[B0:.*]] = tensor.insert_slice %arg0 into %[[E0]][0, 0]
// CHECK-DAG:     %[[B1:.*]] = tensor.insert_slice %arg0 into %[[E1]][0, 0]
// CHECK-NOT:     bufferization.alloc_tensor
// CHECK-DAG:     tensor.insert_slice %arg1 into %[[B0]][1, 0]
// CHECK-DAG:     tensor.insert_slice %arg2 into %[[B1]][1, 0]
// CHECK:         return
func.func @borders(%a: tensor<1x8xf32>, %b: tensor<3x8xf32>, %c: tensor<3x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %f = tensor.insert_slice %a into %e[0, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<4x8xf32>
  %0 = tensor.insert_slice %b into %f[1, 0] [3, 8] [1, 1] : tensor<3x8xf32> into tensor<4x8xf32>
  %1 = tensor.insert_slice %c into %f[1, 0] [3, 8] [1, 1] : tensor<3x8xf32> into tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}
