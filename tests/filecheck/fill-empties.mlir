// PASSES: fill-empties
//
// Something is read that nobody has written: it is zero.

// CHECK-LABEL: func.func @main
// CHECK:         %[[Z:.*]] = linalg.generic {{.*}} ins(%{{.*}} : f32) outs(%{{.*}} : tensor<6xf32>)
// CHECK:         tensor.insert_slice %arg0 into %[[Z]][2]
func.func @main(%x: tensor<4xf32>) -> tensor<6xf32> {
  %e = tensor.empty() : tensor<6xf32>
  %a = tensor.insert_slice %x into %e[2] [4] [1] : tensor<4xf32> into tensor<6xf32>
  %l = tensor.extract_slice %a[3] [2] [1] : tensor<6xf32> to tensor<2xf32>
  %r = tensor.insert_slice %l into %a[0] [2] [1] : tensor<2xf32> into tensor<6xf32>
  return %r : tensor<6xf32>
}

// Slices cover all, of two dimensions and with strides, before it is read.
// CHECK-LABEL: func.func @covered
// CHECK-NOT:     linalg.generic
func.func @covered(%x: tensor<4x3xf32>, %y: tensor<2x6xf32>, %z: tensor<2x3xf32>) -> tensor<6x6xf32> {
  %e = tensor.empty() : tensor<6x6xf32>
  %a = tensor.insert_slice %x into %e[0, 0] [4, 3] [1, 2] : tensor<4x3xf32> into tensor<6x6xf32>
  %b = tensor.insert_slice %x into %a[0, 1] [4, 3] [1, 2] : tensor<4x3xf32> into tensor<6x6xf32>
  %c = tensor.insert_slice %y into %b[4, 0] [2, 6] [1, 1] : tensor<2x6xf32> into tensor<6x6xf32>
  return %c : tensor<6x6xf32>
}

// One column is left out.
// CHECK-LABEL: func.func @almost_covered
// CHECK:         linalg.generic
func.func @almost_covered(%x: tensor<4x3xf32>, %z: tensor<4x2xf32>) -> tensor<4x6xi64> {
  %e = tensor.empty() : tensor<4x6xi64>
  %o = arith.constant dense<1> : tensor<4x3xi64>
  %t = arith.constant dense<1> : tensor<4x2xi64>
  %a = tensor.insert_slice %o into %e[0, 0] [4, 3] [1, 2] : tensor<4x3xi64> into tensor<4x6xi64>
  %b = tensor.insert_slice %t into %a[0, 1] [4, 2] [1, 2] : tensor<4x2xi64> into tensor<4x6xi64>
  return %b : tensor<4x6xi64>
}

// An op writes all of it, another one reads it, and there is one that has no elements.
// CHECK-LABEL: func.func @destinations
// CHECK:         %[[E:.*]] = tensor.empty() : tensor<4xcomplex<f32>>
// CHECK:         %[[W:.*]] = linalg.generic {{.*}} outs(%[[E]] :
// CHECK:         %[[C:.*]] = complex.constant [0.000000e+00 : f32, 0.000000e+00 : f32]
// CHECK:         %[[Z:.*]] = linalg.generic {{.*}} ins(%[[C]] :
// CHECK:         linalg.generic {{.*}} outs(%[[Z]] :
// CHECK-NOT:     linalg.generic
#id = affine_map<(d0) -> (d0)>
func.func @destinations(%x: tensor<4xcomplex<f32>>)
    -> (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>, tensor<0xf32>) {
  %e = tensor.empty() : tensor<4xcomplex<f32>>
  %n = tensor.empty() : tensor<0xf32>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xcomplex<f32>>) outs(%e : tensor<4xcomplex<f32>>) {
    ^bb0(%a: complex<f32>, %o: complex<f32>):
      linalg.yield %a : complex<f32> } -> tensor<4xcomplex<f32>>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xcomplex<f32>>) outs(%e : tensor<4xcomplex<f32>>) {
    ^bb0(%a: complex<f32>, %o: complex<f32>):
      %s = complex.add %a, %o : complex<f32>
      linalg.yield %s : complex<f32> } -> tensor<4xcomplex<f32>>
  return %w, %r, %n : tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>, tensor<0xf32>
}
