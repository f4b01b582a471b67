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

// Elements that are moved, or chosen, are the same quotients; sums round by themselves.

// CHECK-LABEL: func.func @chosen
// CHECK:         arith.divf %{{.*}}, %{{.*}} fastmath<contract> : tensor<4xf32>
// CHECK:         arith.divf %{{.*}}, %{{.*}} fastmath<contract> : tensor<4xf32>
// CHECK:         arith.divf %{{.*}}, %{{.*}} fastmath<reassoc,contract> : tensor<8xf32>
// CHECK:         tensor.concat
// CHECK:         arith.remf
func.func @chosen(%x: tensor<4xf32>, %y: tensor<8xf32>, %z: tensor<f32>)
    -> (tensor<f32>, tensor<f32>) {
  %0 = arith.divf %x, %x : tensor<4xf32>
  %1 = arith.divf %x, %x : tensor<4xf32>
  %2 = arith.divf %y, %y : tensor<8xf32>
  %3 = tensor.concat dim(0) %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %4 = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]
  } ins(%3 : tensor<8xf32>) outs(%z : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %m = arith.maximumf %in, %out : f32
    linalg.yield %m : f32
  } -> tensor<f32>
  %5 = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]
  } ins(%2 : tensor<8xf32>) outs(%z : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  %6 = arith.remf %4, %z : tensor<f32>
  %7 = math.floor %5 : tensor<f32>
  return %6, %7 : tensor<f32>, tensor<f32>
}

// CHECK-LABEL: func.func @branches
// CHECK-COUNT-2: arith.divf %{{.*}}, %{{.*}} fastmath<contract> : f32
func.func @branches(%x: f32, %c: i1) -> f32 {
  %0 = scf.if %c -> f32 {
    %1 = arith.divf %x, %x : f32
    scf.yield %1 : f32
  } else {
    %2 = arith.divf %x, %x : f32
    scf.yield %2 : f32
  }
  %3 = math.floor %0 : f32
  return %3 : f32
}

// Quotients that are compared with other numbers are divisions; signs, NaN and the larger of two
// numbers are found of products as well.

// CHECK-LABEL: func.func @compared
// CHECK:         arith.divf %{{.*}}, %{{.*}} fastmath<contract> : f32
// CHECK:         arith.divf %{{.*}}, %{{.*}} fastmath<reassoc,contract> : f32
// CHECK:         arith.cmpf oge
func.func @compared(%x: f32, %d: f32) -> (i1, i1, i1, i1, f32) {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0x7F800000 : f32
  %0 = arith.divf %x, %d : f32
  %1 = arith.divf %d, %d : f32
  %2 = arith.cmpf oge, %0, %d : f32
  %3 = arith.cmpf ogt, %1, %zero : f32
  %4 = arith.cmpf uno, %1, %1 : f32
  %5 = arith.cmpf oeq, %1, %inf : f32
  %6 = arith.cmpf ugt, %1, %d : f32
  %7 = arith.select %6, %1, %d : f32
  return %2, %3, %4, %5, %7 : i1, i1, i1, i1, f32
}

// CHECK-LABEL: func.func @sorted
// CHECK:         arith.divf %{{.*}}, %{{.*}} fastmath<contract> : tensor<4xf32>
// CHECK:         tm_tensor.sort
func.func @sorted(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.divf %x, %x : tensor<4xf32>
  %1 = tm_tensor.sort dimension(0) outs(%0 : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.cmpf olt, %a, %b : f32
    tm_tensor.yield %c : i1
  } -> tensor<4xf32>
  %2 = math.floor %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// The sign of a difference depends on the last bit of what it is made of, that of a product does
// not. The bits of a number are all of it.

// CHECK-LABEL: func.func @differences
// CHECK:         arith.divf %{{.*}}, %{{.*}} fastmath<contract> : f32
// CHECK:         arith.divf %{{.*}}, %{{.*}} fastmath<reassoc,contract> : f32
// CHECK:         arith.divf %{{.*}}, %{{.*}} fastmath<contract> : f32
// CHECK:         arith.bitcast
func.func @differences(%x: f32, %d: f32) -> (i1, i1, i32) {
  %zero = arith.constant 0.0 : f32
  %0 = arith.divf %x, %d : f32
  %1 = arith.subf %0, %d : f32
  %2 = arith.mulf %1, %d : f32
  %3 = arith.cmpf ogt, %2, %zero : f32
  %4 = arith.divf %x, %d : f32
  %5 = arith.mulf %4, %d : f32
  %6 = arith.cmpf ogt, %5, %zero : f32
  %7 = arith.divf %x, %d : f32
  %8 = arith.bitcast %7 : f32 to i32
  return %3, %6, %8 : i1, i1, i32
}

// Numbers that loops carry are those from before them and from the iteration before.

// CHECK-LABEL: func.func @carried
// CHECK-COUNT-4: arith.divf %{{.*}}, %{{.*}} fastmath<contract> : f32
// CHECK:         math.floor
func.func @carried(%x: f32, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = arith.divf %x, %x : f32
  %1 = scf.while (%a = %0) : (f32) -> f32 {
    %p = arith.cmpf olt, %a, %x : f32
    scf.condition(%p) %a : f32
  } do {
  ^bb0(%b: f32):
    %q = arith.divf %b, %x : f32
    scf.yield %q : f32
  }
  %2 = arith.divf %x, %x : f32
  %3 = scf.for %i = %c0 to %n step %c1 iter_args(%c = %2) -> f32 {
    %q = arith.divf %c, %1 : f32
    scf.yield %q : f32
  }
  %4 = math.floor %3 : f32
  return %4 : f32
}
