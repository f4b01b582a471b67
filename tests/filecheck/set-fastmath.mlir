// PASSES: set-fastmath
//
// Arithmetic may be reassociated; minima, comparisons and integers are left alone.

// CHECK-LABEL: func.func @main
// CHECK:         arith.addf %{{.*}}, %{{.*}} fastmath<reassoc,contract> : f32
// CHECK:         arith.mulf %{{.*}}, %{{.*}} fastmath<reassoc,contract> : f32
// CHECK:         arith.maximumf %{{.*}}, %{{.*}} : f32
// CHECK:         arith.cmpf ogt, %{{.*}}, %{{.*}} : f32
// CHECK:         arith.addi %{{.*}}, %{{.*}} : i32
func.func @main(%a: f32, %b: f32, %i: i32) -> (f32, i1, i32) {
  %0 = arith.addf %a, %b : f32
  %1 = arith.mulf %0, %b : f32
  %2 = arith.maximumf %1, %b : f32
  %3 = arith.cmpf ogt, %2, %b : f32
  %4 = arith.addi %i, %i : i32
  return %2, %3, %4 : f32, i1, i32
}

// Of what is rounded to a whole number, also in another operation, quotients stay quotients.

// CHECK-LABEL: func.func @rounded
// CHECK:         arith.divf %{{.*}}, %{{.*}} fastmath<contract> : f32
// CHECK:         arith.mulf %{{.*}}, %{{.*}} fastmath<reassoc,contract> : f32
// CHECK:         arith.divf %{{.*}}, %{{.*}} fastmath<reassoc,contract> : f32
// CHECK:         arith.fptosi
func.func @rounded(%x: tensor<8xf32>, %d: f32) -> (tensor<8xi32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]
  } ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %q = arith.divf %in, %d : f32
    %m = arith.mulf %q, %d : f32
    linalg.yield %m : f32
  } -> tensor<8xf32>
  %1 = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]
  } ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %q = arith.divf %in, %d : f32
    linalg.yield %q : f32
  } -> tensor<8xf32>
  %f = tensor.empty() : tensor<8xi32>
  %2 = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]
  } ins(%0 : tensor<8xf32>) outs(%f : tensor<8xi32>) {
  ^bb0(%in: f32, %out: i32):
    %n = arith.fptosi %in : f32 to i32
    linalg.yield %n : i32
  } -> tensor<8xi32>
  return %2, %1 : tensor<8xi32>, tensor<8xf32>
}
