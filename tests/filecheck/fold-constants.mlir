// PASSES: fold-constants
//
// What depends on constants alone is a constant, if that saves time: filters, sums, tables of
// elementary functions. Positions and arithmetic on them stay, as does what has an argument in it,
// and what is of a type that is not computed here.

#one = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>

// CHECK-LABEL: func.func @main
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<3xf32>
// CHECK:         %[[FILTER:.*]] = arith.constant dense<[[{{2.5.*}}, {{5.0.*}}, {{2.5.*}}]]> : tensor<1x3xf32>
// CHECK:         %[[ARGUMENT:.*]] = linalg.generic {{.*}} ins(%[[X]]
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      arith.divf
// CHECK:         %[[RAMP:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<16xf32>)
// CHECK:           linalg.index
// CHECK:         %[[TABLE:.*]] = arith.constant dense<[{{.*}}]> : tensor<16xf32>
// CHECK-NOT:     math.sin
// CHECK:         %[[NARROW:.*]] = tensor.extract_slice {{.*}}tensor<4xbf16>
// CHECK:         return %[[FILTER]], %[[ARGUMENT]], %[[TABLE]], %[[RAMP]], %[[NARROW]]
func.func @main(%x: tensor<3xf32>)
    -> (tensor<1x3xf32>, tensor<3xf32>, tensor<16xf32>, tensor<16xf32>, tensor<2xbf16>) {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %two = arith.constant 2.0 : f32
  %taps = arith.constant dense<[1.0, 2.0, 1.0]> : tensor<3xf32>
  %e3 = tensor.empty() : tensor<3xf32>
  %e16 = tensor.empty() : tensor<16xf32>
  %sum = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
      ins(%taps : tensor<3xf32>) outs(%zero : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  %mean = linalg.generic {indexing_maps = [#one, #none, #one], iterator_types = ["parallel"]}
      ins(%taps, %sum : tensor<3xf32>, tensor<f32>) outs(%e3 : tensor<3xf32>) {
  ^bb0(%in: f32, %total: f32, %out: f32):
    %q = arith.divf %in, %total : f32
    linalg.yield %q : f32
  } -> tensor<3xf32>
  %row = tensor.expand_shape %mean [[0, 1]] output_shape [1, 3] : tensor<3xf32> into tensor<1x3xf32>
  %argument = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%x : tensor<3xf32>) outs(%e3 : tensor<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %q = arith.divf %in, %two : f32
    linalg.yield %q : f32
  } -> tensor<3xf32>
  %ramp = linalg.generic {indexing_maps = [#one], iterator_types = ["parallel"]}
      outs(%e16 : tensor<16xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %f = arith.sitofp %n : i64 to f32
    linalg.yield %f : f32
  } -> tensor<16xf32>
  %table = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%ramp : tensor<16xf32>) outs(%e16 : tensor<16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = math.sin %in : f32
    %c = math.cos %s : f32
    linalg.yield %c : f32
  } -> tensor<16xf32>
  %e4 = tensor.empty() : tensor<4xbf16>
  %narrow = tensor.extract_slice %e4[0] [2] [1] : tensor<4xbf16> to tensor<2xbf16>
  return %row, %argument, %table, %ramp, %narrow
      : tensor<1x3xf32>, tensor<3xf32>, tensor<16xf32>, tensor<16xf32>, tensor<2xbf16>
}
