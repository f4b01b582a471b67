// PASSES: carry-scalars
//
// The counter and the condition of a loop are scalars; the state stays a tensor.

// CHECK-LABEL: func.func @main
// CHECK:         %[[R:.*]]:2 = scf.while (%[[I:.*]] = %c0_i32, %[[X:.*]] = %{{.*}}) : (i32, tensor<4xf32>) -> (i32, tensor<4xf32>) {
// CHECK-NEXT:      %[[P:.*]] = arith.cmpi slt, %[[I]], %c10_i32 : i32
// CHECK-NEXT:      scf.condition(%[[P]]) %[[I]], %[[X]]
// CHECK:         ^bb0(%[[J:.*]]: i32, %[[Y:.*]]: tensor<4xf32>):
// CHECK:           linalg.generic {{.*}} ins(%[[J]], %[[Y]] : i32, tensor<4xf32>)
// CHECK:           %[[N:.*]] = arith.addi %[[J]], %c1_i32 : i32
// CHECK:           scf.yield %[[N]]
#s = affine_map<() -> ()>
#e = affine_map<(d0) -> ()>
#id = affine_map<(d0) -> (d0)>
func.func @main(%a: tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>) {
  %zero = arith.constant dense<0> : tensor<i32>
  %ten = arith.constant dense<10> : tensor<i32>
  %one = arith.constant dense<1> : tensor<i32>
  %r:2 = scf.while (%i = %zero, %x = %a) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>) {
    %e = tensor.empty() : tensor<i1>
    %p = linalg.generic {indexing_maps = [#s, #s, #s], iterator_types = []} ins(%i, %ten : tensor<i32>, tensor<i32>) outs(%e : tensor<i1>) {
    ^bb0(%u: i32, %v: i32, %o: i1):
      %c = arith.cmpi slt, %u, %v : i32
      linalg.yield %c : i1
    } -> tensor<i1>
    %go = tensor.extract %p[] : tensor<i1>
    scf.condition(%go) %i, %x : tensor<i32>, tensor<4xf32>
  } do {
  ^bb0(%i: tensor<i32>, %x: tensor<4xf32>):
    %e = tensor.empty() : tensor<4xf32>
    %y = linalg.generic {indexing_maps = [#e, #id, #id], iterator_types = ["parallel"]} ins(%i, %x : tensor<i32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%u: i32, %v: f32, %o: f32):
      %f = arith.sitofp %u : i32 to f32
      %s = arith.addf %f, %v : f32
      linalg.yield %s : f32
    } -> tensor<4xf32>
    %d = tensor.empty() : tensor<i32>
    %n = linalg.generic {indexing_maps = [#s, #s, #s], iterator_types = []} ins(%i, %one : tensor<i32>, tensor<i32>) outs(%d : tensor<i32>) {
    ^bb0(%u: i32, %v: i32, %o: i32):
      %c = arith.addi %u, %v : i32
      linalg.yield %c : i32
    } -> tensor<i32>
    scf.yield %n, %y : tensor<i32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<i32>, tensor<4xf32>
}

// Without loops nothing is touched.

// CHECK-LABEL: func.func @straight
// CHECK:         tensor.extract %{{.*}}[] : tensor<i32>
func.func @straight(%a: tensor<i32>) -> i32 {
  %x = tensor.extract %a[] : tensor<i32>
  return %x : i32
}
